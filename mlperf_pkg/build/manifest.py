"""The list of a built tree's files, which is also the mark by which we know our own trees."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mlperf_pkg.checker import tool
from mlperf_pkg.tables import json_text

MANIFEST = "MANIFEST.json"
FORMAT = "mlperf-pkg/manifest/1"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree; ``origin`` is what it was copied from, relative to the workspace."""

    path: str
    size: int
    sha256: str
    origin: str | None


def manifest_text(entries: Iterable[Entry]) -> str:
    """The manifest of a tree, itself not listed in it."""
    files = sorted(entries, key=lambda entry: entry.path)
    return json_text({"format": FORMAT, "tool": tool(), "files": files})


def is_ours(folder: Path) -> bool:
    """Whether a folder was built by this tool: it is no link and holds a manifest of ours."""
    try:
        contents = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    known = isinstance(contents, dict) and contents.get("format") == FORMAT
    return known and not folder.is_symlink()
