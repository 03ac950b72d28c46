"""Hash the files of a tree that can be packed, and say why the others cannot."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.archives import Names
from mlperf_pkg.infra.paths import Entry, walk

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
