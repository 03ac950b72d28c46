"""A cache of strings in the user's cache folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import is_special, write_whole
from mlperf_pkg.infra.opening import read_file

_MAX_BYTES = 16 << 20


def cached(name: str, make: Callable[[], str]) -> str:
    """Return the text of ``make``, from the file ``name`` of the cache if it exists.

    ``name`` contains the versions of everything that the text depends on. A folder that cannot be
    written, or has another owner, is not used.
    """
    folder = cache_folder()
    if folder is None:
        return make()
    path = folder / name
    with suppress(OSError, UnicodeDecodeError):
        if text := read_file(path, _MAX_BYTES).decode():
            return text
    text = make()
    with suppress(OSError, UserError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_special(path):
            write_whole(path, text, replace=True)
    return text


def cache_folder() -> Path | None:
    """Return the cache folder of mlperf-pkg, None if it has another owner."""
    own = getattr(os, "getuid", None)  # Windows has a folder for each user instead
    base = os.environ.get("XDG_CACHE_HOME" if own else "LOCALAPPDATA")
    base = base or os.path.expanduser("~/.cache")  # noqa: PTH111 - no home raises there
    folder = Path(base) / "mlperf-pkg"
    if not folder.is_absolute():
        return None
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        return folder if own is None or existing.stat().st_uid == own() else None
    except OSError:
        return None
