"""Find what is in an existing tree and was not built: it must not be lost."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mlperf_pkg.commands.builder.contents import PlannedFile
from mlperf_pkg.commands.builder.manifest import MANIFEST, ManifestEntry, read_manifest
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.tree import walk

_NAMED = 10


def refuse_foreign(target: Path, files: Sequence[PlannedFile]) -> None:
    """Refuse to replace a tree that holds something that neither was built nor will be.

    Raises:
        UserError: a file was added or changed since the tree was built, and ``files`` do not
            include it as it is; or its manifest was changed.
    """
    try:
        entries = read_manifest((target / MANIFEST).read_bytes())
    except ValueError as error:
        raise UserError(f"{target / MANIFEST}: {error}: nothing was replaced") from error
    if foreign := sorted(_foreign(target, entries, files)):
        raise UserError(_message(target, foreign))


def _foreign(
    target: Path, entries: Mapping[str, ManifestEntry], files: Sequence[PlannedFile]
) -> Iterator[str]:
    planned = {file.path: file for file in files}
    for entry in walk(target):
        if not (entry.folder and entry.link is None) and entry.path != MANIFEST:
            regular = entry.link is None and not entry.special
            path = target / entry.path
            is_built = regular and _is_as_listed(path, entries.get(entry.path))
            if not is_built and not (regular and _stays(path, planned.get(entry.path))):
                yield entry.path


def _is_as_listed(path: Path, entry: ManifestEntry | None) -> bool:
    return entry is not None and (path.stat().st_size, _digest(path)) == (entry.size, entry.sha256)


def _stays(path: Path, planned: PlannedFile | None) -> bool:
    """Return whether a planned file has the same content."""
    match planned and planned.content:
        case bytes(data):
            return data == path.read_bytes()
        case Path() as source:
            return source.is_file() and _digest(source) == _digest(path)
    return False


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _message(target: Path, foreign: Sequence[str]) -> str:
    more = f" and {len(foreign) - _NAMED} more" if len(foreign) > _NAMED else ""
    return (
        f"{target}: {', '.join(foreign[:_NAMED])}{more}: added or changed since the tree was built,"
        f" so it is not replaced. Move them away or, if they belong in the submission, into the"
        f" workspace, and name them in {CONFIG_NAME}:\n"
        f"  extra_files:\n    {foreign[0]}: <file in the workspace>"
    )
