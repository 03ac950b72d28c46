"""Write a tree as a tar stream: the same files give the same bytes on every machine.

It contains only files, by path, without user and group, with one time for all and the modes 0644
and 0755. Names that do not fit a ustar header, because of their length or letters, are in a pax
header (POSIX.1-2001).
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from mlperf_pkg.commands.archive.compression import Compressor
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.member_names import Names
from mlperf_pkg.infra.tree import Entry, walk

MARK = "mlperf-pkg/archive/1"
"""The comment before the first member of an archive that ``pack`` writes."""

BLOCK = tarfile.BLOCKSIZE
TIME = 315532800  # 1980-01-01: some unpackers warn about files from 1970
_CHUNK = 1 << 20

ENDING = ".tar.gz"
Sink = Callable[[bytes], object]


def compress(sink: Sink, top: str, tree: Path, files: tuple[HashedFile, ...]) -> None:
    """Call ``sink`` with the bytes of an archive, in portions."""
    compressor = Compressor(sink)
    write_tar(compressor.write, top, tree, files)
    compressor.finish()


def write_tar(sink: Sink, top: str, tree: Path, files: Sequence[HashedFile]) -> None:
    """Write the files of ``tree`` below a folder called ``top``.

    Raises:
        UserError: a file cannot be read, or has changed since it was hashed.
    """
    written = 0

    def write(data: bytes) -> None:
        nonlocal written
        written += len(data)
        sink(data)

    write(tarfile.TarInfo.create_pax_global_header({"comment": MARK}))
    for file in files:
        _write_file(write, f"{top}/{file.path}", tree, file)
    write(bytes(2 * BLOCK))
    write(bytes(-written % tarfile.RECORDSIZE))


def _write_file(write: Sink, name: str, tree: Path, file: HashedFile) -> None:
    write(_header(name, file))
    digest, size = hashlib.sha256(), 0
    with open_file(tree, file) as stream:
        while chunk := _read(stream, tree, file):
            digest.update(chunk)
            size += len(chunk)
            write(chunk)
    if (size, digest.hexdigest()) != (file.size, file.sha256):
        raise UserError(f"{tree / file.path}: changed while it was packed")
    write(bytes(-size % BLOCK))


def _read(stream: IO[bytes], tree: Path, file: HashedFile) -> bytes:
    try:
        return stream.read(_CHUNK)
    except OSError as error:
        raise UserError(f"{tree / file.path}: cannot be read: {error.strerror}") from error


def _header(name: str, file: HashedFile) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = file.size, TIME, 0o755 if file.executable else 0o644
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FLAGS |= getattr(os, "O_BINARY", 0)  # Windows


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
    names, unfit = Names(), {}
    files: list[HashedFile] = []
    try:
        entries = list(walk(root))
        for entry in entries:
            if _is_inner_folder(entry):
                continue
            if reason := _irregular(entry) or names.add(entry.path):
                unfit[entry.path] = reason
            else:
                files.append(_hash_file(root, entry.path))
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read: {error.strerror}") from error
    files.sort(key=lambda file: file.path)
    return HashedTree(root, tuple(files), _empty_folders(entries), unfit)


def _empty_folders(entries: Sequence[Entry]) -> tuple[str, ...]:
    parents = {entry.path.rpartition("/")[0] for entry in entries}
    return tuple(e.path for e in entries if _is_inner_folder(e) and e.path not in parents)


def _is_inner_folder(entry: Entry) -> bool:
    return entry.folder and entry.link is None


def _irregular(entry: Entry) -> str | None:
    if entry.link is not None:
        return "a link"
    return "not a regular file" if entry.special else None


def _hash_file(root: Path, path: str) -> HashedFile:
    with _open(root / path) as stream:
        digest = hashlib.file_digest(stream, "sha256")  # type: ignore[arg-type]
        state = os.fstat(stream.fileno())
    return HashedFile(path, state.st_size, digest.hexdigest(), bool(state.st_mode & stat.S_IXUSR))


def open_file(root: Path, file: HashedFile) -> IO[bytes]:
    """Open the content of a file.

    Raises:
        UserError: it cannot be opened, or has become a link.
    """
    if file.content is not None:
        return io.BytesIO(file.content)
    try:
        return _open(root / file.path)
    except OSError as error:
        raise UserError(f"{root / file.path}: cannot be read: {error.strerror}") from error


def _open(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, _FLAGS), "rb")
