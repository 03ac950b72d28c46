"""Names that every machine can unpack, without one covering another or leaving the folder."""

from __future__ import annotations

import unicodedata

from msgspec import Struct, field

LARGEST_NUMBER = 100_000
LONGEST_PATH = 1024
LONGEST_NAME = 255


def wrong_with(path: str) -> str | None:
    """Why a relative path with ``/`` must not be in an archive; None if it may."""
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is no UTF-8"
    parts = path.split("/")
    if path.startswith("/"):
        return "an absolute path"
    if any(part in {"", ".", ".."} for part in parts):
        return "a path that leads elsewhere, or twice to the same place"
    if "\0" in path or "\\" in path:
        return "a name with a backslash or a zero byte, which other systems read as something else"
    if len(encoded) > LONGEST_PATH or any(len(each.encode()) > LONGEST_NAME for each in parts):
        return f"longer than {LONGEST_PATH} bytes, or a part of it than {LONGEST_NAME}"
    return None


class Names(Struct):
    """The files and folders seen so far; folders count once, however often they are named."""

    _known: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def add(self, path: str, *, folder: bool = False) -> str | None:
        """Take a file or folder and the folders above it; what is wrong with it, else None."""
        if wrong := wrong_with(path):
            return wrong
        parts = path.split("/")
        above = ("/".join(parts[:end]) for end in range(1, len(parts)))
        for each in above:
            if wrong := self._take(each, folder=True):
                return wrong
        return self._take(path, folder=folder)

    def _take(self, path: str, *, folder: bool) -> str | None:
        """Names that differ in case or composition only are one file on some systems."""
        key = unicodedata.normalize("NFC", path).casefold()
        if key not in self._known:
            self._known[key] = (path, folder)
            return None if len(self._known) <= LARGEST_NUMBER else _TOO_MANY
        known, is_folder = self._known[key]
        if known != path:
            return f"the same name as {known} where case or accents are not told apart"
        return None if folder and is_folder else "twice in the archive"


_TOO_MANY = f"more than {LARGEST_NUMBER} files and folders"
