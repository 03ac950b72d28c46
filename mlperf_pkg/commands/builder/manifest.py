"""The list of a tree's files, which is also the mark by which we know our own trees."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mlperf_pkg.checker.fold import tool
from mlperf_pkg.render.tables import json_text

MANIFEST = "MANIFEST.json"
FORMAT = "mlperf-pkg/manifest/1"


class ManifestEntry(Struct, frozen=True):
    """One file of a tree; ``origin`` is what it was copied from, relative to the workspace."""

    path: str
    size: int
    sha256: str
    origin: str | None


def manifest_text(
    entries: Iterable[ManifestEntry], made_by: Mapping[str, str] | None = None
) -> str:
    """The manifest of a tree, itself not listed in it; ``made_by`` is this tool unless told.

    Its own ``sha256`` is that of its text with an empty string in this place, so that a manifest
    that was changed or damaged is known as such.
    """
    files = sorted(entries, key=lambda entry: entry.path)
    content = {"format": FORMAT, "tool": made_by or tool(), "files": files, "sha256": ""}
    digest = hashlib.sha256(json_text(content).encode()).hexdigest()
    return json_text(content | {"sha256": digest})


def read_manifest(data: bytes) -> dict[str, ManifestEntry]:
    """The entries of a manifest of ours by path.

    Raises:
        ValueError: it is none, or not to the byte as it was written.
    """
    try:
        contents = json.loads(data)
        entries = [_entry(fields) for fields in contents["files"]]
        text = manifest_text(entries, contents["tool"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is no {FORMAT}") from error
    if text.encode() != data:
        raise ValueError("it is not as it was written")
    return {entry.path: entry for entry in entries}


def _entry(fields: dict[str, Any]) -> ManifestEntry:
    entry = ManifestEntry(**fields)
    if not (isinstance(entry.path, str) and isinstance(entry.sha256, str)):
        raise TypeError(fields)
    return entry


def is_ours(folder: Path) -> bool:
    """Whether a folder was built by this tool: it is no link and holds a manifest of ours."""
    try:
        contents = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    known = isinstance(contents, dict) and contents.get("format") == FORMAT
    return known and not folder.is_symlink()
