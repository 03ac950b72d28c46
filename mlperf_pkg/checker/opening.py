"""How files are opened: on this machine, on another that shares its folders, or in a store."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, TypeVar

from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.stores import REQUEST_BYTES, Object, StoredPath
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.power import PowerFile

_File = TypeVar("_File", LogFile, PowerFile)
_Result = TypeVar("_Result")


def opener(path: Path | StoredPath) -> Callable[[], BinaryIO]:
    """What opens a file, in any process; one that may not be read is empty."""
    return path.object if isinstance(path, StoredPath) else partial(_open, path)


def size_of(file: LogFile | PowerFile) -> int:
    """Bytes; 0 where nothing tells."""
    if isinstance(file.open, Object):
        return file.open.size
    return int(file.open.args[0].stat().st_size) if isinstance(file.open, partial) else 0


def at_once(read: Callable[[_File], _Result], file: _File) -> _Result:
    """``read(file)``, which may open it several times, by one request where it is small."""
    if isinstance(file.open, Object) and file.open.size <= REQUEST_BYTES:
        file = replace(file, open=partial(BytesIO, file.open().read()))
    return read(file)


def shared(file: _File) -> _File:
    """A file that another machine opens only if it sees it as this one does."""
    if not isinstance(file.open, partial):
        return file
    path: Path = file.open.args[0].absolute()
    if not os.access(path, os.R_OK):
        return replace(file, open=BytesIO)
    return replace(file, open=partial(_open_shared, path, path.stat().st_size))


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except PermissionError:
        return BytesIO()  # the check of the tree tells; what it holds is not passed


def _open_shared(path: Path, size: int) -> BinaryIO:
    try:
        if path.stat().st_size == size:
            return path.open("rb")
        reason = f"it does not have {size} bytes there"
    except OSError as error:
        reason = str(error.strerror)
    raise UserError(
        f"{path}: a worker does not see this file: {reason}; with --scheduler what is checked"
        " lies in a folder that all machines share, or in a store (s3://...)"
    )
