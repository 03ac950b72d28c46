"""Write an archive and its checksum file: both or neither."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.commands.archive.checksum import SUFFIX, checksum_line, digest_of
from mlperf_pkg.commands.archive.compression import Compressor
from mlperf_pkg.commands.archive.encryption import SUFFIXES, Encryption, Form, encrypting
from mlperf_pkg.commands.archive.hashed_tree import HashedFile, HashedTree
from mlperf_pkg.commands.archive.tar import Sink, write_tar
from mlperf_pkg.commands.builder.manifest import MANIFEST, ManifestEntry, manifest_text
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.archives import unfit
from mlperf_pkg.infra.files import private_folder

ENDING = ".tar.gz"
_SHA1 = ".sha1"


class Packed(Struct, frozen=True):
    """An archive that was written; sizes are in bytes, ``unpacked`` is the size of all files."""

    sha256: str
    files: int
    unpacked: int
    size: int


def name_of(tree: Path) -> str:
    """Return the name of a tree, which is also the only folder at the top of its archive.

    Raises:
        UserError: the name cannot be in an archive.
    """
    name = tree.resolve().name
    if reason := unfit(name):
        raise UserError(f"{tree}: cannot be packed under its name {name!r}: {reason}")
    return name


def default_target(tree: Path, form: Form | None) -> Path:
    """Return the default path of an archive, beside its tree.

    The official pack_submission.sh finds an archive by its name, so OFFICIAL has that name.
    """
    resolved, name = tree.resolve(), name_of(tree)
    if form is Form.OFFICIAL:
        return resolved.with_name(f"mlperf_submission_{name}{ENDING}")
    return resolved.with_name(f"{name}{ENDING}{SUFFIXES[form] if form else ''}")


def written_names(target: Path, form: Form | None) -> list[str]:
    """Return the names of all files that ``pack`` writes, the archive last.

    Raises:
        UserError: the name of the archive cannot be in a checksum file.
    """
    if not target.name or not target.name.isprintable() or "\\" in target.name:
        raise UserError(f"{target}: the name cannot be in a checksum file")
    old = [target.name.removesuffix(ENDING) + _SHA1] if form is Form.OFFICIAL else []
    return [*old, target.name + SUFFIX, target.name]


def pack(tree: HashedTree, target: Path, how: Encryption | None, *, force: bool) -> Packed:
    """Pack a tree into ``target`` and its checksum file; add a manifest if it has none.

    Raises:
        UserError: an entry cannot be packed or changed meanwhile, one of the files exists and
            ``force`` is not set, or a file cannot be read or written.
    """
    if tree.unfit:
        path = min(tree.unfit)
        raise UserError(f"{tree.root / path}: cannot be packed: {tree.unfit[path]}")
    files = _with_manifest(tree)
    names = written_names(target, how.form if how else None)
    with private_folder(target.parent, names, replace=force) as new:
        archive = new / target.name
        write_archive(archive, how, name_of(tree.root), tree.root, files)
        digest = digest_of(archive)
        for name in names[:-1]:
            algorithm = "sha256" if name.endswith(SUFFIX) else "sha1"
            (new / name).write_text(checksum_line(digest_of(archive, algorithm), target.name))
        for name in names:
            _sync(new / name)
        size = archive.stat().st_size
    return Packed(digest, len(files), sum(file.size for file in files), size)


def write_archive(
    path: Path, how: Encryption | None, top: str, tree: Path, files: tuple[HashedFile, ...]
) -> None:
    """Write a new archive with files below the folder ``top``, perhaps encrypted."""
    with encrypting(path, how) if how else _writing(path) as sink:
        compress(sink, top, tree, files)


@contextmanager
def _writing(path: Path) -> Iterator[Sink]:
    with path.open("xb") as stream:
        yield stream.write


def compress(sink: Sink, top: str, tree: Path, files: tuple[HashedFile, ...]) -> None:
    """Call ``sink`` with the bytes of an archive, in portions."""
    compressor = Compressor(sink)
    write_tar(compressor.write, top, tree, files)
    compressor.finish()


def _with_manifest(tree: HashedTree) -> tuple[HashedFile, ...]:
    if any(file.path == MANIFEST for file in tree.files):
        return tree.files
    text = manifest_text(
        ManifestEntry(file.path, file.size, file.sha256, None) for file in tree.files
    )
    manifest = HashedFile.of(MANIFEST, text.encode())
    return tuple(sorted((*tree.files, manifest), key=lambda file: file.path))


def _sync(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
