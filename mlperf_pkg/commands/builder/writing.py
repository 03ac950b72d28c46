"""Write a submission tree completely or not at all, and lose nothing of an existing one.

A build must keep what was added to a tree, and what it has of another division.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from mlperf_pkg.commands.builder import manifest
from mlperf_pkg.commands.builder.contents import TABLES, PlannedFile, chunks
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.files import new_folder
from mlperf_pkg.infra.json_values import MAX_BYTES, read_json
from mlperf_pkg.infra.paths import read_file, walk
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.submission.model import is_result_log

_NAMED = 10


def write_tree(
    target: Path,
    files: Sequence[PlannedFile],
    accept: Callable[[Path], None] = lambda _: None,
    *,
    force: bool,
    division: str | None = None,
) -> None:
    """Write the files and their manifest into a new folder, then give it the name ``target``.

    Nobody ever sees a part of the tree: an error or an interruption leaves neither debris nor a
    change to ``target``. Files are copied byte for byte, never linked; of their mode only the
    permission to execute is kept. ``accept`` gets the whole tree before it has its name, and may
    raise. ``division`` is the one that is built, None for both.

    Raises:
        UserError: ``target`` exists and must not be replaced, or the tree cannot be written.
    """

    def replaces(there: Path) -> bool:
        try:
            refuse_to_replace(there, files, force=force, division=division)
        except UserError:  # it changed after the check below; new_folder puts it back
            return False
        return True

    try:
        refuse_to_replace(target, files, force=force, division=division)
        with new_folder(target, replaces) as folder:
            entries = [_write(folder, file) for file in files]
            _write(folder, PlannedFile(manifest.MANIFEST, manifest.manifest_text(entries).encode()))
            accept(folder)
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {reason_of(error)}") from error


def refuse_to_replace(
    target: Path, files: Sequence[PlannedFile], *, force: bool, division: str | None = None
) -> None:
    """Refuse to replace anything but a tree that this tool built, and that only with ``force``.

    No ``force`` is needed to add a ``division`` to a tree of another one.

    Raises:
        UserError: ``target`` exists and is not such a tree; ``force`` is needed; the tree holds
            something that was not built and is not among ``files``; or it would lose results of
            another division.
    """
    if not target.exists() and not target.is_symlink():
        return
    if not manifest.is_ours(target):
        raise UserError(
            f"{target}: exists and was not built by mlperf-pkg (it has no {manifest.MANIFEST} of"
            " this tool), so it is not replaced: choose another --output"
        )
    others = others_in(target, division)
    if not force and not others.alone:
        if not others.sets:
            raise UserError(f"{target}: exists already; --force replaces it")
        raise UserError(
            f"{target}: has results of the {division} division already; --force replaces them and"
            f" keeps those of the {others.division} division"
        )
    _refuse_foreign(target, files)
    if message := lost(target, files, division):
        raise UserError(message)
    built = {path: entry for path, entry in _built(target).items() if path not in TABLES}
    if not force and (changed := _changes(target, built, files)):
        raise UserError(
            f"{target}: this build would change or remove {_named(changed)}; --force allows this"
        )


# ---- files --------------------------------------------------------------------------------


def _write(folder: Path, file: PlannedFile) -> manifest.ManifestEntry:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as stream:
        for chunk in chunks(file.content):
            digest.update(chunk)
            size += stream.write(chunk)
        executable = isinstance(file.content, Path) and os.access(file.content, os.X_OK)
        if executable and hasattr(os, "fchmod"):  # not on Windows
            mode = os.fstat(stream.fileno()).st_mode
            os.fchmod(stream.fileno(), mode | (mode & 0o444) >> 2)  # for all who may read it
        stream.flush()
        os.fsync(stream.fileno())
    return manifest.ManifestEntry(file.path, size, digest.hexdigest(), file.origin)


# ---- the other division -------------------------------------------------------------------


class Others(Struct, frozen=True):
    """The part of a tree that is of another ``division`` than the one to be built.

    ``sets`` are the folders of its result sets; ``files`` are all its files that were built, with
    system descriptions and code. ``alone`` says that the tree has no result set of the division to
    be built.
    """

    division: str = ""
    sets: frozenset[str] = frozenset()
    files: Mapping[str, manifest.ManifestEntry] = field(default_factory=dict)
    alone: bool = False


def others_in(target: Path, division: str | None) -> Others:
    """Return what a tree has of another division; nothing if ``division`` is None (both).

    The system description in the tree decides; without one, the results of a system are kept, too.
    """
    if division is None or not manifest.is_ours(target):
        return Others()
    built = _built(target)
    paths = [path.rpartition("/") for path in built if path.startswith("results/")]
    sets = {folder for folder, _, name in paths if is_result_log(name)}
    systems = {folder.split("/")[1] for folder in sets}
    own = {system for system in systems if _division(target, system, built) == division}
    others = frozenset(folder for folder in sets if folder.split("/")[1] not in own)
    tops = (
        *(f"results/{system}/" for system in systems - own),
        *(f"systems/{system}.json" for system in systems - own),
        *(f"benchmarks/{folder.rpartition('/')[2]}/" for folder in others),
    )
    return Others(
        division=next(other for other in DIVISIONS if other != division),
        sets=others,
        files={path: entry for path, entry in built.items() if path.startswith(tops)},
        alone=bool(others) and not own,
    )


def _built(target: Path) -> dict[str, manifest.ManifestEntry]:
    """Return the files of a tree that its manifest lists; none if the manifest was changed."""
    try:
        entries = manifest.read_manifest(target)
    except ValueError:  # which _refuse_foreign reports
        return {}
    there = sorted(e.path for e in walk(target) if e.file and e.link is None)
    return {path: entries[path] for path in there if path in entries}


def _division(target: Path, system: str, built: Collection[str]) -> str | None:
    """Return the division in a system description of a tree; None if it cannot be read."""
    path = f"systems/{system}.json"
    try:
        contents = read_json(read_file(target / path, MAX_BYTES)).value if path in built else None
    except (OSError, ValueError):
        return None
    return contents.get("division") if isinstance(contents, dict) else None


def lost(target: Path, files: Iterable[PlannedFile], division: str | None) -> str | None:
    """Return a message that names the files of another division that a build would change."""
    others = others_in(target, division)
    if gone := _changes(target, others.files, files):
        named = _named(gone, ",\n  ")
        return (
            f"{target}: this build would change or remove files of the {others.division} division,"
            f" which it must keep:\n  {named}\nNothing was replaced. Restore their logs,"
            " descriptions and code, and give the same options,\nor replace the whole tree with"
            " --force and without a division,\nor choose another --output"
        )
    return None


# ---- additions and changes ----------------------------------------------------------------


def _changes(
    target: Path, built: Mapping[str, manifest.ManifestEntry], files: Iterable[PlannedFile]
) -> list[str]:
    """Return the files of a tree, unchanged since they were built, that ``files`` would change."""
    planned = {file.path: file for file in files}
    changing = [path for path in built if not _stays(target / path, planned.get(path))]
    return [path for path in changing if _is_as_listed(target / path, built[path])]


def _refuse_foreign(target: Path, files: Sequence[PlannedFile]) -> None:
    """Refuse to replace a tree that holds something that neither was built nor will be.

    Raises:
        UserError: a file was added or changed since the tree was built, and ``files`` do not
            include it as it is; or its manifest was changed.
    """
    try:
        entries = manifest.read_manifest(target)
    except ValueError as error:
        raise UserError(f"{target / manifest.MANIFEST}: {error}: nothing was replaced") from error
    planned = {file.path: file for file in files}
    if foreign := sorted(_foreign(target, entries, planned)):
        raise UserError(
            f"{target}: {_named(foreign)}: added or changed since the tree was built,"
            " so the tree is not replaced. Move them away or, if they belong in the submission,"
            f" into the workspace, and name them in {CONFIG_NAME}:\n"
            f"  extra_files:\n    {foreign[0]}: <file in the workspace>"
        )


def _foreign(
    target: Path, entries: Mapping[str, manifest.ManifestEntry], planned: Mapping[str, PlannedFile]
) -> Iterator[str]:
    for entry in walk(target):
        if not (entry.folder and entry.link is None) and entry.path != manifest.MANIFEST:
            regular = entry.link is None and not entry.special
            path = target / entry.path
            is_built = regular and _is_as_listed(path, entries.get(entry.path))
            if not is_built and not (regular and _stays(path, planned.get(entry.path))):
                yield entry.path


def _is_as_listed(path: Path, entry: manifest.ManifestEntry | None) -> bool:
    return entry is not None and (path.stat().st_size, _digest(path)) == (entry.size, entry.sha256)


def _stays(path: Path, planned: PlannedFile | None) -> bool:
    """Return whether a planned file has the same content."""
    if planned is None or (isinstance(planned.content, Path) and not planned.content.is_file()):
        return False
    return _digest(planned.content) == _digest(path)


def _digest(content: bytes | Path | Source) -> str:
    digest = hashlib.sha256()
    for chunk in chunks(content):
        digest.update(chunk)
    return digest.hexdigest()


def _named(paths: Sequence[str], separator: str = ", ") -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{separator.join(paths[:_NAMED])}{more}"
