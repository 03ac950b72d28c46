"""Write a tree as a tar stream: the same files give the same bytes on every machine.

It contains only files, by path, without user and group, with one time for all and the modes 0644
and 0755. Names that do not fit a ustar header, because of their length or letters, are in a pax
header (POSIX.1-2001).
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from mlperf_pkg.commands.archive.hashed_tree import HashedFile, open_file
from mlperf_pkg.errors import UserError

MARK = "mlperf-pkg/archive/1"
"""The comment before the first member of an archive that ``pack`` writes."""

BLOCK = tarfile.BLOCKSIZE
TIME = 315532800  # 1980-01-01: some unpackers warn about files from 1970
_CHUNK = 1 << 20

Sink = Callable[[bytes], object]


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
