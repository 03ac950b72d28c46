"""Hash the files of a tree, and write them as a tar stream: equal files give equal bytes anywhere.

The stream contains only files, by path, without user and group, with one time for all and the modes
0644 and 0755. Names that do not fit a ustar header, because of their length or letters, are in a
pax header (POSIX.1-2001).
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.commands.archive.compression import gzipped
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.archives import Names
from mlperf_pkg.infra.paths import open_file, walk

ENDING = ".tar.gz"
MARK = "mlperf-pkg/archive/1"
"""The comment before the first member of an archive that ``pack`` writes."""

BLOCK = tarfile.BLOCKSIZE
TIME = 315532800  # 1980-01-01: some unpackers warn about files from 1970
_CHUNK = 1 << 20


class HashedFile(Struct, frozen=True):
    """A file; ``path`` is relative to the root of its tree, ``size`` in bytes.

    ``content`` is None for a file on disk, which is read when it is packed.
    """

    path: str
    size: int
    sha256: str
    executable: bool = False
    content: bytes | None = None

    @classmethod
    def of(cls, path: str, content: bytes) -> HashedFile:
        """Return a file that is not on disk."""
        return cls(path, len(content), hashlib.sha256(content).hexdigest(), content=content)


class HashedTree(Struct, frozen=True):
    """The files of a folder that can be packed, by path, and its empty folders.

    ``unfit`` maps the paths of everything else to the reason why it cannot be packed.
    """

    root: Path
    files: tuple[HashedFile, ...]
    empty: tuple[str, ...]
    unfit: Mapping[str, str]


def hash_tree(root: Path) -> HashedTree:
    """Return every file below a folder with the SHA-256 of its content; no link is followed.

    Raises:
        UserError: a file or folder cannot be read.
    """
    names, files, unfit = Names(), list[HashedFile](), {}
    try:
        entries = list(walk(root))
        folders = {entry.path for entry in entries if entry.folder and entry.link is None}
        for entry in entries:
            if entry.path in folders:
                continue
            if entry.link is not None:
                unfit[entry.path] = "a link"
            elif reason := "not a regular file" if entry.special else names.add(entry.path):
                unfit[entry.path] = reason
            else:
                with open_file(root / entry.path, follow=False) as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                    state = os.fstat(stream.fileno())
                executable = bool(state.st_mode & stat.S_IXUSR)
                files.append(HashedFile(entry.path, state.st_size, digest, executable))
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read: {error.strerror}") from error
    files.sort(key=lambda file: file.path)
    parents = {entry.path.rpartition("/")[0] for entry in entries}
    empty = (entry.path for entry in entries if entry.path in folders - parents)
    return HashedTree(root, tuple(files), tuple(empty), unfit)


def compress(top: str, tree: Path, files: Sequence[HashedFile]) -> Iterator[bytes]:
    """Yield the bytes of an archive of files below a folder ``top``, in portions.

    Raises:
        UserError: a file of ``tree`` cannot be read, or has changed since it was hashed.
    """
    return gzipped(_tar(top, tree, files))


def _tar(top: str, tree: Path, files: Sequence[HashedFile]) -> Iterator[bytes]:
    header = tarfile.TarInfo.create_pax_global_header({"comment": MARK})
    yield header
    written = len(header)
    for file in files:
        info = tarfile.TarInfo(f"{top}/{file.path}")
        info.size, info.mtime, info.mode = file.size, TIME, 0o755 if file.executable else 0o644
        header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
        yield header
        digest, size = hashlib.sha256(), 0
        for chunk in _chunks(tree, file):
            digest.update(chunk)
            size += len(chunk)
            yield chunk
        if (size, digest.hexdigest()) != (file.size, file.sha256):
            raise UserError(f"{tree / file.path}: changed while it was packed")
        yield bytes(-size % BLOCK)
        written += len(header) + size + -size % BLOCK
    end = 2 * BLOCK
    yield bytes(end + -(written + end) % tarfile.RECORDSIZE)


def _chunks(tree: Path, file: HashedFile) -> Iterator[bytes]:
    in_memory = None if file.content is None else io.BytesIO(file.content)
    try:
        with in_memory or open_file(tree / file.path, follow=False) as stream:
            yield from iter(partial(stream.read, _CHUNK), b"")
    except OSError as error:
        raise UserError(f"{tree / file.path}: cannot be read: {error.strerror}") from error
