"""Paths whose folders were listed as a whole: in an object store, in an archive."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import replace


class Opener(Protocol):
    """A file of a listing: it opens in any process."""

    @property
    def size(self) -> int:
        """Its size in bytes."""

    def open(self) -> io.BufferedReader:
        """Open its bytes as a stream."""


class ListedPath(Struct, frozen=True):
    """A path in a listing, with the methods of ``pathlib.Path`` that we use. It has no links."""

    path: PurePosixPath
    listing: Any  # each kind of path has its own

    def __truediv__(self, name: str) -> Self:
        """Return the path of an entry below it."""
        return replace(self, path=self.path / name)

    @property
    def folders(self) -> Mapping[str, Mapping[str, None]]:
        """The names in all folders of the listing, by key."""
        raise NotImplementedError

    @property
    def opener(self) -> Opener | None:
        """What opens this file; None if there is no such file."""
        raise NotImplementedError

    @property
    def whereabouts(self) -> str:
        """What its files are in, for messages."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Its last part."""
        return self.path.name

    @property
    def stem(self) -> str:
        """Its last part without the suffix."""
        return self.path.stem

    @property
    def suffix(self) -> str:
        """The suffix of its name."""
        return self.path.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        """Its parts, from the top on."""
        return self.path.parts

    @property
    def parent(self) -> Self:
        """The folder that contains it."""
        return replace(self, path=self.path.parent)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in this folder, sorted."""
        return tuple(sorted(self.folders.get(str(self.path), ())))

    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        return str(self.path) in self.folders

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self.opener is not None

    def is_symlink(self) -> bool:
        """Return False."""
        return False

    def exists(self) -> bool:
        """Return whether it is a file or a folder."""
        return self.is_file() or self.is_dir()

    def resolve(self) -> Self:
        """Return itself."""
        return self

    def open(self, _mode: str = "rb") -> io.BufferedReader:
        """Open its bytes as a stream.

        Raises:
            FileNotFoundError: there is no such file.
        """
        if self.opener is None:
            raise FileNotFoundError(str(self))
        return self.opener.open()

    def read_bytes(self) -> bytes:
        """Return its content."""
        with self.open() as stream:
            return stream.read()


AnyPath: TypeAlias = Path | ListedPath

Location: TypeAlias = str | ListedPath
"""A path of this machine as text, with ``/``, or one in a listing.

Most are only joined, never opened: to join ``Path`` objects takes ten times as long.
"""


def location_of(path: AnyPath | Location) -> Location:
    """Return the location of a path."""
    return path.as_posix() if isinstance(path, Path) else path


def below(folder: Location, path: str) -> Location:
    """Return the location of an entry below a folder."""
    return f"{folder.rstrip('/')}/{path}" if isinstance(folder, str) else folder / path
