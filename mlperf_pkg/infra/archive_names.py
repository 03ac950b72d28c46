"""The names of archives."""

from __future__ import annotations

SUFFIXES = (".tar", ".tar.gz", ".tar.xz", ".tar.zst", ".tgz", ".txz", ".tzst", ".zip")


def is_archive_name(name: str) -> bool:
    """Return whether a name has the suffix of an archive."""
    return name.lower().endswith(SUFFIXES)


def stem_of(name: str) -> str:
    """Return a name without the suffix of an archive."""
    lower = name.lower()
    suffix = max((suffix for suffix in SUFFIXES if lower.endswith(suffix)), key=len, default="")
    return name[: len(name) - len(suffix)] or name
