"""Files to be read, wherever they are: on this machine, in a shared folder, a store, an archive."""

from __future__ import annotations

import os
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.listed_path import AnyPath, ListedPath, Opener
from mlperf_pkg.infra.opening import NotAFileError, open_file
from mlperf_pkg.infra.partial import unreadable
from mlperf_pkg.infra.stores import REQUEST_BYTES, Object

if TYPE_CHECKING:
    from mlperf_pkg.infra.compression import Compression

NO_PERMISSION = "no permission to read it"


class SharedFile(Struct, frozen=True):
    """A file that other machines open too, with its size in bytes as this machine sees it."""

    path: Path
    size: int

    def open(self) -> BufferedReader:
        """Open the file, if it has the same size here.

        Raises:
            UserError: it is missing, has another size, or cannot be read.
        """
        try:
            if self.path.stat().st_size == self.size:
                return open_file(self.path)
            reason = f"its size there is not {self.size} bytes"
        except OSError as error:
            reason = str(error.strerror)
        raise UserError(
            f"{self.path}: a worker does not see this file: {reason}; with --scheduler, inputs"
            " must be in a folder that all machines share, or in a store (s3://...)"
        )


Origin: TypeAlias = str | Path | Opener | bytes


class Source(Struct, frozen=True):
    """A file to be read by any process: its path in reports, and where its bytes are.

    With a ``compression`` the bytes are read decompressed; ``size`` is then that on the disk.
    ``listed_size`` is the size in the listing of its folder, None if it is not known.
    """

    label: str
    origin: Origin
    compression: Compression | None = None
    listed_size: int | None = None

    def open(self) -> BinaryIO:
        """Open the file; one that this process may not read opens as empty.

        Such a file, and one whose compressed data is damaged, ends early: ``problem_of`` its
        stream is the reason.

        Raises:
            OSError: the file cannot be opened.
            UserError: the object cannot be read; a shared file differs on this machine.
        """
        stream = _open(self.origin)
        if self.compression is None:
            return stream
        from mlperf_pkg.infra.compression import decompressed  # noqa: PLC0415 - few logs need it

        return decompressed(stream, self.compression)

    @property
    def size(self) -> int:
        """The number of bytes.

        Raises:
            OSError: the file does not exist.
        """
        origin = self.origin
        if self.listed_size is not None:
            return self.listed_size
        if isinstance(origin, str | Path):
            return os.stat(origin).st_size  # noqa: PTH116 - Path.stat takes twice as long
        return len(origin) if isinstance(origin, bytes) else origin.size

    @property
    def stored(self) -> bool:
        """Whether the file is in an object store."""
        return isinstance(self.origin, Object)

    def fetched(self) -> Source:
        """Return the source with its bytes, if it is a small object: one request then reads it."""
        if isinstance(self.origin, Object) and self.size <= REQUEST_BYTES:
            return replace(self, origin=self.origin.open().read())
        return self

    def shared(self) -> Source:
        """Return the source for other machines, which refuse a file that differs there."""
        from mlperf_pkg.infra.parts import Deflated, Part  # noqa: PLC0415 - only archives have any

        match self.origin:
            case str() | Path() as path:
                return self._shared(Path(path).absolute())
            case Part() as part:
                return replace(self, origin=part.open().read())
            case Deflated(packed=Part() as part) as member:
                return replace(self, origin=replace(member, packed=part.open().read()))
        return self

    def _shared(self, path: Path) -> Source:
        if not os.access(path, os.R_OK):
            return replace(self, origin=b"", compression=None)
        return replace(self, origin=SharedFile(path, path.stat().st_size))


def source_of(
    path: AnyPath | str, label: str, compression: Compression | None = None, size: int | None = None
) -> Source:
    """Return the source of a file of this machine or of a listing.

    Raises:
        FileNotFoundError: the listing has no such file.
    """
    origin = path.opener if isinstance(path, ListedPath) else path
    if origin is None:
        raise FileNotFoundError(str(path))
    return Source(label, origin, compression, size)


def _open(origin: Origin) -> BinaryIO:
    if isinstance(origin, str | Path):
        return _open_or_empty(origin)
    return BytesIO(origin) if isinstance(origin, bytes) else origin.open()


def _open_or_empty(path: Path | str) -> BinaryIO:
    try:
        return open_file(path)
    except PermissionError:
        return unreadable(NO_PERMISSION)
    except NotAFileError as error:
        return unreadable(str(error.strerror))
