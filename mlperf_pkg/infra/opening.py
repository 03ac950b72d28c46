"""The one way to open a file of an input: only files are opened, and opening never blocks.

A name in a folder may be that of a pipe, a device or a socket, also where it was that of a file
when the folder was listed. To open a pipe would wait for its writer.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

from mlperf_pkg.infra.listed_path import AnyPath, ListedPath, Location

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FLAGS |= getattr(os, "O_BINARY", 0)  # Windows
_NOT_A_FILE = "is a pipe, a device or a socket; expected a file"


class NotAFileError(OSError):
    """A pipe, a device or a socket."""


class TooLargeError(OSError):
    """A file of more bytes than are read."""


class _File(FileIO):
    """A file that ends instead of waiting: some files in ``/proc`` are streams."""

    def readinto(self, buffer: Any) -> int:
        return super().readinto(buffer) or 0

    def readall(self) -> bytes:
        return super().readall() or b""


def open_file(path: AnyPath | Location) -> BufferedReader:
    """Open a file of this machine or of a listing.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    if isinstance(path, ListedPath):
        return path.open()
    descriptor = os.open(path, _FLAGS)
    try:
        _refuse_others(os.fstat(descriptor).st_mode, path)
        return BufferedReader(_File(descriptor))
    except BaseException:
        os.close(descriptor)
        raise


def is_folder(path: AnyPath | Location) -> bool:
    """Return whether a path is a folder; False if this cannot be determined."""
    return path.is_dir() if isinstance(path, ListedPath) else os.path.isdir(path)  # noqa: PTH112 - Path.is_dir may raise


def read_file(path: AnyPath | Location, limit: int) -> bytes:
    """Return the content of a file of at most ``limit`` bytes.

    Raises:
        TooLargeError: it has more.
        OSError: it cannot be read, or is not a regular file.
    """
    with open_file(path) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise TooLargeError(errno.EFBIG, f"larger than {limit >> 20} MiB", str(path))
    return data


def _refuse_others(mode: int, path: Path | str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise NotAFileError(errno.ENODEV, _NOT_A_FILE, str(path))
