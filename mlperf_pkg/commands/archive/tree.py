"""The files of a tree as they are packed, and what in it cannot be."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from msgspec import Struct

from mlperf_pkg.commands.archive.names import Names
from mlperf_pkg.errors import UserError

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class TreeFile(Struct, frozen=True):
    """A file; ``path`` is relative to the top of its tree. ``content`` is of one not on disk."""

    path: str
    size: int
    sha256: str
    executable: bool = False
    content: bytes | None = None

    @classmethod
    def made(cls, path: str, content: bytes) -> TreeFile:
        """A file that the tree lacks."""
        return cls(path, len(content), hashlib.sha256(content).hexdigest(), content=content)


class Tree(Struct, frozen=True):
    """The regular files of a folder by path, its empty folders, and what else is in it, and why."""

    place: Path
    files: tuple[TreeFile, ...]
    empty: tuple[str, ...]
    strange: Mapping[str, str]


def read_tree(place: Path) -> Tree:
    """Every file below a folder, with the SHA-256 of its content; nothing is followed.

    Raises:
        UserError: something cannot be read.
    """
    names, strange = Names(), {}
    files: list[TreeFile] = []
    empty: list[str] = []
    try:
        for path, found in _below(place, ""):
            if found is None:
                empty.append(path)
            elif wrong := _kind(found) or names.add(path):
                strange[path] = wrong
            else:
                files.append(_file(place, path))
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read: {error.strerror}") from error
    return Tree(place, tuple(sorted(files, key=lambda file: file.path)), tuple(empty), strange)


def _below(folder: Path, prefix: str) -> Iterator[tuple[str, os.stat_result | None]]:
    """What is no folder, by name, and its state; None of a folder without anything in it."""
    with os.scandir(folder) as listed:
        found = sorted(listed, key=lambda entry: entry.name)
    if not found and prefix:
        yield prefix.rstrip("/"), None
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.stat(follow_symlinks=False)


def _kind(found: os.stat_result) -> str | None:
    if stat.S_ISREG(found.st_mode):
        return None
    return "a link" if stat.S_ISLNK(found.st_mode) else "no regular file"


def _file(place: Path, path: str) -> TreeFile:
    with _open(place / path) as stream:
        digest = hashlib.file_digest(stream, "sha256")  # type: ignore[arg-type]
        state = os.fstat(stream.fileno())
    return TreeFile(path, state.st_size, digest.hexdigest(), bool(state.st_mode & stat.S_IXUSR))


def open_file(tree: Path, file: TreeFile) -> IO[bytes]:
    """The content of a file.

    Raises:
        UserError: it cannot be opened, or is now a link.
    """
    if file.content is not None:
        return io.BytesIO(file.content)
    try:
        return _open(tree / file.path)
    except OSError as error:
        raise UserError(f"{tree / file.path}: cannot be read: {error.strerror}") from error


def _open(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, _FLAGS), "rb")
