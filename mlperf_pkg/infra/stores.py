"""Files in object stores such as S3, by URL, through fsspec.

A folder is listed once, with everything below it, a thousand objects per request; that listing
answers what is a file or a folder, and how large. Each process opens the objects that it reads,
with credentials from the environment, as fsspec and s3fs do.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from mlperf_pkg.errors import EMPTY_PATH, UserError, reason_of
from mlperf_pkg.infra.paths import AnyPath, ListedPath, PathListing
from mlperf_pkg.infra.resources import require_package

REQUEST_BYTES = 16 << 20  # smaller objects are read with one request
_SCHEME = r"[a-z][a-z0-9+.-]*://"

# The module for each scheme, which is the name of its package, too.
_DRIVERS = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "memory": "fsspec"}
_PROBLEMS: dict[type[Exception], str] = {
    FileNotFoundError: "no such bucket or object",
    PermissionError: "permission denied",
}


def is_url(argument: str | Path) -> bool:
    """Return whether it is a URL; a file of this machine with such a name takes precedence."""
    text = str(argument)
    return "://" in text and bool(re.match(_SCHEME, text)) and not Path(argument).exists()


def is_within(url: str, folder: str) -> bool:
    """Return whether a URL is ``folder`` or below it, going by their spelling."""
    return f"{url}/".startswith(f"{folder.rstrip('/')}/")


def path_of(argument: str) -> AnyPath:
    """Return the path that an argument names; one in a store is listed.

    Raises:
        UserError: the argument is empty; a URL is not that of a store, the store cannot be reached,
            or nothing is there.
    """
    if not argument:
        raise UserError(EMPTY_PATH)
    if not is_url(argument):
        return Path(argument)
    with _errors_of(argument):
        fs, key = _connect(argument)
        objects = fs.find(key, detail=True)
    if not objects:
        raise UserError(f"{argument}: no such object or folder")
    return StoredPath(PurePosixPath(key), _listing(argument, key, objects))


# ---- reading ------------------------------------------------------------------------------


class Object(Struct, frozen=True):
    """An object, which opens in any process: its key in the store of the URL ``top``.

    ``size`` is in bytes. Opening and reading raise ``UserError`` if the object cannot be read.
    """

    top: str
    key: str
    size: int

    def open(self) -> io.BufferedReader:
        """Open its bytes as a stream, which holds no more of them than one request brings."""
        return io.BufferedReader(_RangeReader(self), max(1, min(self.size, REQUEST_BYTES)))

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end``, which must not exceed its size."""
        with _errors_of(str(self)):
            fs, _ = _connect(self.top)
            data: bytes = fs.cat_file(self.key, start=start, end=end)
        if len(data) != end - start:
            raise UserError(f"{self}: changed while it was read")
        return data

    def __str__(self) -> str:
        """Its URL."""
        return f"{_scheme(self.top)}://{self.key.lstrip('/')}"


class _RangeReader(io.RawIOBase):
    """Reads an object range by range."""

    def __init__(self, stored: Object) -> None:
        self._object = stored
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._object.size)
        if end == self._position:
            return 0
        data = self._object.fetch(self._position, end)
        buffer[: len(data)] = data
        self._position = end
        return len(data)

    def readall(self) -> bytes:
        start = self._position
        self._position = self._object.size
        return self._object.fetch(start, self._position) if start < self._position else b""


def _listing(top: str, key: str, objects: Mapping[str, Mapping[str, Any]]) -> PathListing:
    """Raise UserError for a key that cannot be a path of files and folders."""
    files = {name: values for name, values in objects.items() if not name.endswith("/")}
    listing = PathListing(
        top, {name: Object(top, name, int(files[name]["size"])) for name in files}
    )
    for name in sorted(objects.keys() - {key}):
        below = name.removeprefix(f"{key}/").removesuffix("/")  # a slash at its end marks a folder
        parent = key
        for part in below.split("/") if below else ():
            if part in {"", ".", ".."} or parent in listing.openers:
                raise UserError(f"{_scheme(top)}://{name}: the key cannot be the path of a file")
            listing.folders.setdefault(parent, {})[part] = None
            parent = f"{parent}/{part}"
        if name.endswith("/"):
            listing.folders.setdefault(parent, {})
    return listing


class StoredPath(ListedPath, frozen=True):
    """A path in a store.

    ``universal_pathlib`` takes objects that mark a folder for files, raises errors of each store,
    and takes 0.2 s to import.
    """

    whereabouts = "an object store"

    def __str__(self) -> str:
        """Its URL."""
        return f"{_scheme(self.listing.top)}://{str(self.path).lstrip('/')}"


# ---- writing ------------------------------------------------------------------------------


class StoredFile(Struct, frozen=True):
    """An object to be written, completely or not at all."""

    url: str

    def __str__(self) -> str:
        """Its URL."""
        return self.url

    @property
    def suffix(self) -> str:
        """The suffix of its name."""
        return PurePosixPath(self.url).suffix

    def resolve(self) -> StoredFile:
        """Return itself."""
        return self

    def exists(self) -> bool:
        """Return whether the object exists.

        Raises:
            UserError: the URL does not name a file, or the store or its bucket cannot be reached.
        """
        with _errors_of(self.url):
            fs, key = _connect(self.url)
            bucket, _, name = key.lstrip("/").partition("/")
            if not name or self.url.endswith("/"):
                raise UserError(f"{self.url}: does not name a file")
            fs.ls(bucket)  # raises if there is no such bucket
            return bool(fs.isfile(key))

    def write(self, data: bytes, *, replace: bool) -> None:
        """Write it with one request; without ``replace`` only if it is new, if the store can.

        Raises:
            UserError: it exists already, or cannot be written.
        """
        with _errors_of(self.url, "written"):
            fs, key = _connect(self.url)
            try:
                fs.pipe_file(key, data, mode="overwrite" if replace else "create")
            except FileExistsError as error:
                raise UserError(f"{self.url} exists already and is not overwritten") from error

    def unlink(self) -> None:
        """Remove it.

        Raises:
            UserError: it cannot be removed.
        """
        with _errors_of(self.url, "removed"):
            fs, key = _connect(self.url)
            fs.rm_file(key)


# ---- the store ----------------------------------------------------------------------------


def _scheme(url: str) -> str:
    return url.partition(":")[0]


def _connect(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the key that the URL names there."""
    driver = _DRIVERS.get(_scheme(url))
    if driver is None:
        schemes = ", ".join(f"{name}://" for name in _DRIVERS if name != "memory")
        raise UserError(f"{url}: not the URL of an object store; expected {schemes}")
    require_package(driver, driver, url)
    core = require_package("fsspec.core", driver, url)
    fs, key = core.url_to_fs(url, use_listings_cache=False)
    if not key.strip("/"):
        raise UserError(f"{url}: does not name a bucket")
    return fs, key


@contextmanager
def _errors_of(url: str, action: str = "read") -> Iterator[None]:
    """Turn the errors of a store into messages that name the URL."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # each store has errors of its own
        problems = [words for kind, words in _PROBLEMS.items() if isinstance(error, kind)]
        problem = next(iter(problems), f"cannot be {action}")
        raise UserError(f"{url}: {problem}: {reason_of(error) or type(error).__name__}") from error
