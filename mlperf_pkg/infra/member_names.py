"""Check names: every system must be able to unpack them, and none may hide another."""

from __future__ import annotations

import re
import sys
import unicodedata

from msgspec import Struct, field

LARGEST_NUMBER = 100_000
LONGEST_PATH = 1024
LONGEST_NAME = 255
_OF_WINDOWS = re.compile(
    r"""(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])\ *(\..*)?  # devices
    |.*[\ .]|.*[<>:"|?*\x01-\x1f].*""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def unfit(path: str) -> str | None:
    """Return why a relative path with ``/`` must not be in an archive; None if it may."""
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    parts = path.split("/")
    if path.startswith("/"):
        return "an absolute path"
    if any(part in {"", ".", ".."} for part in parts):
        return "a path that leads elsewhere, or is another spelling of the same path"
    if "\0" in path or "\\" in path:
        return "a name with a backslash or a zero byte, which other systems read differently"
    if len(encoded) > LONGEST_PATH or any(len(part.encode()) > LONGEST_NAME for part in parts):
        return f"longer than {LONGEST_PATH} bytes, or a part longer than {LONGEST_NAME}"
    return unfit_on_windows(path) if sys.platform == "win32" else None


def unfit_on_windows(path: str) -> str | None:
    """Return why Windows would write another file, a device or a stream; None if it would not."""
    if name := next(filter(_OF_WINDOWS.fullmatch, path.split("/")), None):
        return f"{name!r} is not the name of a file on Windows"
    return None


class Names(Struct):
    """The files and folders so far; a folder may be added more than once, a file may not."""

    _seen: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def add(self, path: str, *, folder: bool = False) -> str | None:
        """Add a file or folder and its parents; return why one must not be added, else None."""
        if reason := unfit(path):
            return reason
        parts = path.split("/")
        parents = ("/".join(parts[:end]) for end in range(1, len(parts)))
        for parent in parents:
            if reason := self._add_one(parent, folder=True):
                return reason
        return self._add_one(path, folder=folder)

    def _add_one(self, path: str, *, folder: bool) -> str | None:
        """Names that differ only in case or composition are one file on some systems."""
        key = unicodedata.normalize("NFC", path).casefold()
        if key not in self._seen:
            self._seen[key] = (path, folder)
            return None if len(self._seen) <= LARGEST_NUMBER else _TOO_MANY
        earlier, earlier_is_folder = self._seen[key]
        if earlier != path:
            return f"the same name as {earlier} on systems that ignore case or accents"
        return None if folder and earlier_is_folder else "twice in the archive"


_TOO_MANY = f"more than {LARGEST_NUMBER} files and folders"
