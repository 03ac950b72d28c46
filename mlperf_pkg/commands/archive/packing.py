"""Writing an archive and its checksum file: both or neither."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.commands.archive.checksum import SUFFIX, checksum_line, digest_of
from mlperf_pkg.commands.archive.compression import Compressor
from mlperf_pkg.commands.archive.encryption import SUFFIXES, Encryption, Form, encrypt
from mlperf_pkg.commands.archive.hashed_tree import HashedFile, HashedTree
from mlperf_pkg.commands.archive.names import wrong_with
from mlperf_pkg.commands.archive.tar import Sink, write_tar
from mlperf_pkg.commands.builder.manifest import MANIFEST, ManifestEntry, manifest_text
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import together

ENDING = ".tar.gz"
_SHA1 = ".sha1"


class Packed(Struct, frozen=True):
    """An archive that was written; sizes are in bytes, ``unpacked`` is that of all files."""

    sha256: str
    files: int
    unpacked: int
    size: int


def name_of(tree: Path) -> str:
    """What a tree is called, which is also the one folder at the top of its archive.

    Raises:
        UserError: it has no name that can be in an archive.
    """
    name = tree.resolve().name
    if wrong := wrong_with(name):
        raise UserError(f"{tree}: cannot be packed under its name {name!r}: {wrong}")
    return name


def default_target(tree: Path, form: Form | None) -> Path:
    """Where an archive goes by default: beside its tree.

    The official pack_submission.sh finds an archive by its name, which is therefore given.
    """
    place, name = tree.resolve(), name_of(tree)
    if form is Form.OFFICIAL:
        return place.with_name(f"mlperf_submission_{name}{ENDING}")
    return place.with_name(f"{name}{ENDING}{SUFFIXES[form] if form else ''}")


def written_names(target: Path, form: Form | None) -> list[str]:
    """The names of all files that are written, the archive last."""
    if not target.name or not target.name.isprintable() or "\\" in target.name:
        raise UserError(f"{target}: no name that a checksum file can tell")
    old = [target.name.removesuffix(ENDING) + _SHA1] if form is Form.OFFICIAL else []
    return [*old, target.name + SUFFIX, target.name]


def pack(tree: HashedTree, target: Path, how: Encryption | None, *, force: bool) -> Packed:
    """Pack a tree into ``target`` and its checksum file, with a manifest if it has none.

    Raises:
        UserError: something in it cannot be packed or changed meanwhile, one of the files exists
            and there is no ``force``, or something cannot be read or written.
    """
    if tree.unfit:
        raise UserError(f"{tree.root / min(tree.unfit)}: {tree.unfit[min(tree.unfit)]}")
    files = _with_manifest(tree)
    names = written_names(target, how.form if how else None)
    with together(target.parent, names, replace=force) as new:
        archive = new / target.name
        plain = new / f"{target.name}.plain" if how else archive
        write_archive(plain, name_of(tree.root), tree.root, files)
        if how:
            encrypt(plain, archive, how)
            plain.unlink()
        digest = digest_of(archive)
        for name in names[:-1]:
            algorithm = "sha256" if name.endswith(SUFFIX) else "sha1"
            (new / name).write_text(checksum_line(digest_of(archive, algorithm), target.name))
        for name in names:
            _sync(new / name)
        size = archive.stat().st_size
    return Packed(digest, len(files), sum(file.size for file in files), size)


def write_archive(path: Path, top: str, tree: Path, files: tuple[HashedFile, ...]) -> None:
    """Write a new archive of files below a folder ``top``."""
    with path.open("xb") as stream:
        compress(stream.write, top, tree, files)


def compress(sink: Sink, top: str, tree: Path, files: tuple[HashedFile, ...]) -> None:
    """The bytes of an archive, in portions."""
    compressor = Compressor(sink)
    write_tar(compressor.write, top, tree, files)
    compressor.finish()


def _with_manifest(tree: HashedTree) -> tuple[HashedFile, ...]:
    if any(file.path == MANIFEST for file in tree.files):
        return tree.files
    text = manifest_text(
        ManifestEntry(file.path, file.size, file.sha256, None) for file in tree.files
    )
    made = HashedFile.of(MANIFEST, text.encode())
    return tuple(sorted((*tree.files, made), key=lambda file: file.path))


def _sync(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
