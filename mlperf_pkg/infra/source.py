"""Files to be read, wherever they are: on this machine, in a shared folder, in an object store."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.stores import REQUEST_BYTES, Object, StoredPath


class SharedFile(Struct, frozen=True):
    """A file that other machines open too, with its size in bytes as this machine sees it."""

    path: Path
    size: int

    def open(self) -> BinaryIO:
        """Open the file, if it has the same size here.

        Raises:
            UserError: it is missing, has another size, or cannot be read.
        """
        try:
            if self.path.stat().st_size == self.size:
                return self.path.open("rb")
            reason = f"its size there is not {self.size} bytes"
        except OSError as error:
            reason = str(error.strerror)
        raise UserError(
            f"{self.path}: a worker does not see this file: {reason}; with --scheduler, inputs"
            " must be in a folder that all machines share, or in a store (s3://...)"
        )


class Source(Struct, frozen=True):
    """A file to be read by any process: its path in reports, and where its bytes are."""

    label: str
    origin: Path | SharedFile | Object | bytes

    def open(self) -> BinaryIO:
        """Open the file; one that this process may not read opens as empty.

        The check of the tree reports such files.

        Raises:
            OSError: the file cannot be opened.
            UserError: the object cannot be read; a shared file differs on this machine.
        """
        match self.origin:
            case bytes(data):
                return BytesIO(data)
            case Object() as stored:
                return stored()
            case SharedFile() as shared:
                return shared.open()
            case path:
                return _open_or_empty(path)

    @property
    def size(self) -> int:
        """The number of bytes.

        Raises:
            OSError: the file does not exist.
        """
        match self.origin:
            case bytes(data):
                return len(data)
            case Object(size=size) | SharedFile(size=size):
                return size
            case path:
                return path.stat().st_size

    @property
    def stored(self) -> bool:
        """Whether the file is in an object store."""
        return isinstance(self.origin, Object)

    def fetched(self) -> Source:
        """Return the source with its bytes, if it is a small object: one request then reads it."""
        if isinstance(self.origin, Object) and self.size <= REQUEST_BYTES:
            return replace(self, origin=self.origin().read())
        return self

    def shared(self) -> Source:
        """Return the source for other machines, which refuse a file that differs there."""
        if not isinstance(self.origin, Path):
            return self
        path = self.origin.absolute()
        if not os.access(path, os.R_OK):
            return replace(self, origin=b"")
        return replace(self, origin=SharedFile(path, path.stat().st_size))


def source_of(path: Path | StoredPath, label: str) -> Source:
    """Return the source of a file of this machine or of a store."""
    return Source(label, path.object if isinstance(path, StoredPath) else path)


def _open_or_empty(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except PermissionError:
        return BytesIO()
