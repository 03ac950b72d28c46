"""Files in object stores such as S3, by URL, through fsspec.

A folder is listed once, with all that lies below it, a thousand objects a request; that listing
then answers what is a file, a folder, and how large. Each object is opened by whoever reads it,
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

from mlperf_pkg.errors import UserError

INSTALL = {
    "s3": "mlperf-pkg[cluster]",
    "gs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "memory": "fsspec",
}
REQUEST_BYTES = 16 << 20  # what is smaller is read by one request
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")


def is_url(argument: str | Path) -> bool:
    """Whether it names no file of this machine but a URL; a file of such a name comes first."""
    return bool(_SCHEME.match(str(argument))) and not Path(argument).exists()


def is_within(url: str, folder: str) -> bool:
    """Whether it is ``folder`` or lies below it, as far as the text of both tells."""
    return f"{url}/".startswith(f"{folder.rstrip('/')}/")


def path_of(argument: str) -> Path | StoredPath:
    """What an argument names: a path of this machine or, listed, that of a store.

    Raises:
        UserError: a URL of no store, one that cannot be reached, or nothing is there.
    """
    if not is_url(argument):
        return Path(argument)
    with _told(argument):
        fs, key = _connect(argument)
        found = fs.find(key, detail=True)
    if not found:
        raise UserError(f"{argument}: no such object or folder")
    return StoredPath(PurePosixPath(key), _listing(argument, key, found))


# ---- what is listed -----------------------------------------------------------------------


class Object(Struct, frozen=True):
    """An object, opened by calling it, in whatever process: its key in the store of ``top``.

    ``size`` is in bytes. Opening raises ``UserError`` where it cannot be read, and so does reading.
    """

    top: str
    key: str
    size: int

    def __call__(self) -> io.BufferedReader:
        """A stream of its bytes, for which no more of it is held than one request brings."""
        return io.BufferedReader(_Ranges(self), max(1, min(self.size, REQUEST_BYTES)))

    def fetch(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to ``end``, which are not beyond its size."""
        with _told(str(self)):
            fs, _ = _connect(self.top)
            data: bytes = fs.cat_file(self.key, start=start, end=end)
        if len(data) != end - start:
            raise UserError(f"{self}: has changed while it was read")
        return data

    def __str__(self) -> str:
        """Its URL."""
        return f"{_scheme(self.top)}://{self.key.lstrip('/')}"


class _Ranges(io.RawIOBase):
    """An object as a stream, read by range."""

    def __init__(self, found: Object) -> None:
        self._object = found
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
        start, self._position = self._position, self._object.size
        return self._object.fetch(start, self._position) if start < self._position else b""


class _Listing(Struct, frozen=True, eq=False):
    """Sizes of all objects, and the names in all folders, by their keys in the store."""

    top: str
    sizes: Mapping[str, int]
    folders: Mapping[str, Mapping[str, None]]


def _listing(top: str, key: str, found: Mapping[str, Mapping[str, Any]]) -> _Listing:
    """Raises UserError where a key could be no path of files and folders."""
    sizes = {name: int(each["size"]) for name, each in found.items() if not name.endswith("/")}
    folders: dict[str, dict[str, None]] = {}
    for name in sorted(found):
        if name == key:
            continue
        below = name.removeprefix(f"{key}/").removesuffix("/")  # with a slash it marks a folder
        parent = key
        for part in below.split("/") if below else ():
            if part in {"", ".", ".."} or parent in sizes:
                raise UserError(f"{_scheme(top)}://{name}: an object of a name that no file has")
            folders.setdefault(parent, {})[part] = None
            parent = f"{parent}/{part}"
        if name.endswith("/"):
            folders.setdefault(parent, {})
    return _Listing(top, sizes, folders)


class StoredPath(Struct, frozen=True):
    """A path in a store, with what is asked of a ``pathlib.Path``. There are no links."""

    path: PurePosixPath
    listing: _Listing

    def __truediv__(self, name: str) -> StoredPath:
        """What lies below it."""
        return StoredPath(self.path / name, self.listing)

    def __str__(self) -> str:
        """Its URL."""
        return f"{_scheme(self.listing.top)}://{str(self.path).lstrip('/')}"

    @property
    def name(self) -> str:
        """Its last part."""
        return self.path.name

    @property
    def stem(self) -> str:
        """Its last part without the ending."""
        return self.path.stem

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return self.path.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        """Its parts, from the bucket on."""
        return self.path.parts

    @property
    def parent(self) -> StoredPath:
        """The folder it lies in."""
        return StoredPath(self.path.parent, self.listing)

    @property
    def names(self) -> tuple[str, ...]:
        """The sorted names in this folder."""
        return tuple(sorted(self.listing.folders.get(str(self.path), ())))

    @property
    def object(self) -> Object:
        """The object that this file is."""
        key = str(self.path)
        return Object(self.listing.top, key, self.listing.sizes[key])

    def is_dir(self) -> bool:
        """Whether it is a folder: objects lie below it."""
        return str(self.path) in self.listing.folders

    def is_file(self) -> bool:
        """Whether it is an object."""
        return str(self.path) in self.listing.sizes

    def exists(self) -> bool:
        """Whether anything is there."""
        return self.is_file() or self.is_dir()

    def resolve(self) -> StoredPath:
        """Itself."""
        return self

    def open(self, _mode: str = "rb") -> io.BufferedReader:
        """A stream of its bytes."""
        return self.object()

    def read_bytes(self) -> bytes:
        """All that it holds."""
        return self.open().read()

    def read_text(self, encoding: str, errors: str) -> str:
        """All that it holds, as text with line ends as a text file has them."""
        with io.TextIOWrapper(self.open(), encoding, errors) as text:
            return text.read()


# ---- what is written ----------------------------------------------------------------------


class StoredFile(Struct, frozen=True):
    """An object to be written, which is there as a whole or not at all."""

    url: str

    def __str__(self) -> str:
        """Its URL."""
        return self.url

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return PurePosixPath(self.url).suffix

    def resolve(self) -> StoredFile:
        """Itself."""
        return self

    def exists(self) -> bool:
        """Whether there is such an object.

        Raises:
            UserError: the store or its bucket cannot be reached.
        """
        with _told(self.url):
            fs, key = _connect(self.url)
            bucket, _, name = key.lstrip("/").partition("/")
            if not name or self.url.endswith("/"):
                raise UserError(f"{self.url}: names no file")
            fs.ls(bucket)  # one that is missing is told
            return bool(fs.isfile(key))

    def write(self, data: bytes, *, replace: bool) -> None:
        """Write it by one request; without ``replace`` only where there is none, if the store can.

        Raises:
            UserError: there is one already, or it cannot be written.
        """
        with _told(self.url, "written"):
            fs, key = _connect(self.url)
            try:
                fs.pipe_file(key, data, mode="overwrite" if replace else "create")
            except FileExistsError as error:
                message = f"{self.url}: exists already and is not overwritten"
                raise UserError(message) from error

    def unlink(self) -> None:
        """Take it away.

        Raises:
            UserError: the store does not.
        """
        with _told(self.url, "removed"):
            fs, key = _connect(self.url)
            fs.rm_file(key)


# ---- the store ----------------------------------------------------------------------------


def _scheme(url: str) -> str:
    return url.partition(":")[0]


def _connect(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the key it names there."""
    scheme = _scheme(url)
    if scheme not in INSTALL:
        known = ", ".join(f"{name}://" for name in INSTALL if name != "memory")
        raise UserError(f"{url}: no object store; {known} are known")
    import fsspec.core  # noqa: PLC0415 - slow to import

    fs, key = fsspec.core.url_to_fs(url, use_listings_cache=False)
    if not key.strip("/"):
        raise UserError(f"{url}: names no bucket")
    return fs, key


@contextmanager
def _told(url: str, done: str = "read") -> Iterator[None]:
    """Failures of the store as messages that name the URL and what would mend it."""
    try:
        yield
    except UserError:
        raise
    except ImportError as error:
        package = INSTALL[_scheme(url)]
        raise UserError(f"{url}: needs pip install '{package}' ({error})") from error
    except FileNotFoundError as error:
        raise UserError(f"{url}: no such bucket or object: {_reason(error)}") from error
    except PermissionError as error:
        raise UserError(f"{url}: no permission: {_reason(error)}") from error
    except Exception as error:  # each store has errors of its own
        raise UserError(f"{url}: cannot be {done}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
