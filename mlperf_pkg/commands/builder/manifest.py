"""Write and read the list of a tree's files, which also marks the trees of this tool."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.checker.fold import tool
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.render.table import json_text

MANIFEST = "MANIFEST.json"
LARGEST = 64 << 20  # bytes of a manifest
FORMAT = "mlperf-pkg/manifest/1"


class ManifestEntry(Struct, frozen=True):
    """One file of a tree; ``origin`` is the file it was copied from, relative to the workspace."""

    path: str
    size: int
    sha256: str
    origin: str | None


def manifest_text(
    entries: Iterable[ManifestEntry], made_by: Mapping[str, str] | None = None
) -> str:
    """Return the manifest of a tree, which does not list itself.

    Its own ``sha256`` is computed with an empty string in its stead, so that changes and damage
    are detected. ``made_by`` is the tool that wrote it, by default this one.
    """
    files = sorted(entries, key=lambda entry: entry.path)
    content = {"format": FORMAT, "tool": made_by or tool(), "files": files, "sha256": ""}
    digest = hashlib.sha256(json_text(content).encode()).hexdigest()
    return json_text(content | {"sha256": digest})


def read_manifest(folder: Path) -> dict[str, ManifestEntry]:
    """Return the entries of the manifest in a folder by path.

    Raises:
        OSError: it cannot be read, or is larger than ``LARGEST``.
        ValueError: it is not a manifest of this tool, or was changed.
    """
    data = read_file(folder / MANIFEST, LARGEST)
    try:
        contents = json.loads(data)
        entries = [ManifestEntry(**fields) for fields in contents["files"]]
        for entry in entries:
            if not isinstance(entry.path, str) or not isinstance(entry.sha256, str):
                raise TypeError(entry)
        text = manifest_text(entries, contents["tool"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"the file is not a manifest of the format {FORMAT}") from error
    if text.encode() != data:
        raise ValueError("the manifest was changed after it was written")
    return {entry.path: entry for entry in entries}


def is_ours(folder: Path) -> bool:
    """Return whether this tool built a folder: it is not a link and has such a manifest."""
    try:
        contents = json.loads(read_file(folder / MANIFEST, LARGEST))
    except (OSError, ValueError, RecursionError):
        return False
    marked = isinstance(contents, dict) and contents.get("format") == FORMAT
    return marked and not folder.is_symlink()
