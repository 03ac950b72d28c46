"""List the files of a submission tree, and write them completely or not at all.

A build must keep what was added to a tree, and what belongs to another division.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from mlperf_pkg.checks.workspace import unknown_code
from mlperf_pkg.commands.builder import manifest
from mlperf_pkg.commands.builder.plan import BuildPlan, JudgedSet, report, systems_of
from mlperf_pkg.commands.builder.workspace import BuildWorkspace
from mlperf_pkg.commands.notice import notice, score, unverified_results
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.archives import Names
from mlperf_pkg.infra.files import new_folder
from mlperf_pkg.infra.json_values import MAX_BYTES, read_json
from mlperf_pkg.infra.paths import (
    AnyPath,
    FolderEntry,
    ListedPath,
    location_of,
    open_file,
    read_file,
    walk,
)
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.tables import results_csv, results_html, results_json, results_markdown
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.submission.model import Place, is_result_log, power_names

PARAMETERS = "package_checker_params"
TABLES = ("results.csv", "results.html", "results.json", "results.md")
_LARGEST_MIB = 50
_CHUNK = 1 << 20
# What reviewed submissions contain in each implementation.
_EXPECTED = ("README.md", "run_and_time.sh")


class PlannedFile(Struct, frozen=True):
    """One file: its path in the tree, and its bytes or the file to copy or decompress.

    ``origin`` is the path of a copied file from the workspace, None for a generated one.
    """

    path: str
    content: bytes | Path | Source
    origin: str | None = None


def tree_files(
    plan: BuildPlan, judged: Sequence[JudgedSet], workspace: BuildWorkspace
) -> tuple[PlannedFile, ...]:
    """Return the files of a submission, by path.

    Raises:
        UserError: a folder of code or an extra file cannot be read or have its path.
    """
    files = []
    for system in systems_of(plan.sets):
        source = workspace.sources[system.path]
        files.append(PlannedFile(f"systems/{system.id}.json", source, system.path))
    files += _logs(plan, workspace)
    files += _code(plan, workspace)
    texts = parameters(judged) | tables(report(judged, workspace), workspace.config)
    files += [PlannedFile(path, text.encode()) for path, text in texts.items()]
    files += extra_files(workspace, {file.path for file in files})
    return tuple(sorted(files, key=lambda file: file.path))


def unfit(files: Iterable[PlannedFile]) -> Iterator[str]:
    """Yield why the official repository checker would reject files: their names or sizes."""
    for file in files:
        name = visible(file.origin or file.path)
        if " " in file.path:
            yield f"{name}: its path contains a space"
        if _size(file.content) > _LARGEST_MIB << 20:
            yield f"{name}: larger than {_LARGEST_MIB} MiB"


def _size(content: bytes | Path | Source) -> int:
    """Return the number of bytes of a file, decompressed where it is a source."""
    if isinstance(content, Path):
        return content.stat().st_size
    return sum(len(chunk) for chunk in chunks(content))


def chunks(content: bytes | Path | Source) -> Iterator[bytes]:
    """Yield the bytes of a file, decompressed where it is a source."""
    if isinstance(content, bytes):
        yield content
        return
    opened = open_file(content) if isinstance(content, Path) else content.open()
    with opened as stream:
        yield from iter(partial(stream.read, _CHUNK), b"")


def _content(file: Place) -> Path | Source:
    """Return what to copy: the file, or what it holds decompressed."""
    if file.part or file.compression or isinstance(file.path, ListedPath):
        return file.source
    return file.path


def _logs(plan: BuildPlan, workspace: BuildWorkspace) -> Iterator[PlannedFile]:
    """Yield the logs of the runs, with power, and the scaling factors of sets from a tree."""
    for planned in plan.sets:
        folders = set()
        for run, target in zip(planned.runs, planned.targets, strict=True):
            log = workspace.logs[run.path]
            folder = log.path.parent
            folders.add(folder)
            yield PlannedFile(target, _content(log), origin=run.path)
            power = _power_of(log)
            if power:
                yield from _below(power, f"{planned.folder}/power/{Path(target).stem}", workspace)
        if len(folders) == 1:
            factor = folders.pop() / "scaling.json"
            is_in_tree = _is_in_tree(factor, workspace)
            if is_in_tree and factor.is_file() and not factor.is_symlink():
                yield _copy(factor, f"{planned.folder}/scaling.json", workspace)


def _power_of(log: Place) -> AnyPath | None:
    """Return the folder with the measurements of a run, in ``power/`` beside its log, if any."""
    for name in power_names(log.name):
        power = log.path.parent / "power" / name
        if power.is_dir() and not power.is_symlink():
            return power
    return None


def _is_in_tree(path: AnyPath, workspace: BuildWorkspace) -> bool:
    """Return whether a file is in a submission tree among the logs."""
    return any(Path(str(path)).is_relative_to(tree) for tree in workspace.trees)


def tables(report: Report, config: Config) -> dict[str, str]:
    """Return the tables of the results of a tree, by path.

    Their scores are unverified, as the tree is still to be submitted.
    """
    results = unverified_results(report)
    notes = [*remarks(report, config), *notice(results.values())]
    scores = {}
    for name, result in results.items():
        scores[name] = score(result.minutes, is_verified=result.is_verified)
    return {
        "results.csv": results_csv(report),
        "results.html": results_html(report, notes, scores),
        "results.json": results_json(report),
        "results.md": results_markdown(report, notes, scores),
    }


def remarks(report: Report, config: Config) -> list[str]:
    """Return the notes on result sets and the prices of the configuration, for the tables."""
    notes = []
    for row in report.result_sets:
        name = row.path.removeprefix("results/")
        if name in config.notes:
            notes.append(f"{name}: {config.notes[name]}")
    systems = {row.system for row in report.result_sets}
    for system, price in config.prices.items():
        if system in systems:
            date = f", {price.date}" if price.date else ""
            notes.append(f"list price of {system}: ${price.usd:,.0f} ({price.source}{date})")
    return notes


# ---- bypasses -----------------------------------------------------------------------------


def parameters(judged: Iterable[JudgedSet]) -> dict[str, str]:
    """Return the bypasses of each set, by the path where the official package checker reads them.

    It compares whole lines including their line ends and understands only a last line without one,
    so a file holds one flag. The second flag of a set goes to the folder of its system, where it
    applies to all benchmarks.
    """
    of_sets: dict[str, str] = {}
    of_systems: dict[str, str] = {}
    for judged_set in judged:
        planned = judged_set.planned
        flags = sorted(judged_set.flags)
        if flags:
            of_sets[f"{planned.folder}/{PARAMETERS}"] = flags[0]
        for flag in flags[1:]:
            of_systems[f"results/{planned.system.id}/{PARAMETERS}"] = flag
    return of_sets | of_systems


# ---- code ---------------------------------------------------------------------------------


def _code(plan: BuildPlan, workspace: BuildWorkspace) -> list[PlannedFile]:
    files: list[PlannedFile] = []
    benchmarks = {planned.benchmark for planned in plan.sets}
    problems = list(unknown_code(workspace.config, workspace.round, benchmarks))
    for benchmark, implementations in workspace.config.code.items():
        if benchmark not in benchmarks:
            continue
        for name, path in implementations.items():
            folder = workspace.folders.workspace / path
            try:
                implementation = name or folder.resolve().name
                target = f"benchmarks/{benchmark}/implementations/{implementation}"
                files += _below(folder, target, workspace)
            except OSError as error:
                problem = _cannot_be_read(path, error)
                problems.append(f"{CONFIG_NAME}: code: {benchmark}: {problem}")
    if problems:
        raise UserError("\n".join(problems))
    return files


def _cannot_be_read(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"there is no folder {visible(path)}"
    return f"{visible(path)}: cannot be read: {visible(reason_of(error))}"


def code_notes(files: Iterable[PlannedFile]) -> Iterator[str]:
    """Yield which implementations lack the files that reviewers expect; none is added."""
    implementations: dict[str, set[str]] = {}  # paths by folder
    for file in files:
        names = file.path.split("/")
        if names[0] == "benchmarks" and len(names) > 1:
            folder = "/".join(names[:4])
            implementations.setdefault(folder, set()).add("/".join(names[4:]))
    for implementation, paths in sorted(implementations.items()):
        lacking = [name for name in _EXPECTED if name not in paths]
        if lacking:
            yield f"{implementation} has no {' and no '.join(lacking)}, which reviewers expect"


# ---- extra files --------------------------------------------------------------------------


def extra_files(workspace: BuildWorkspace, built: Collection[str]) -> Iterator[PlannedFile]:
    """Yield the extra files that the configuration names, at their paths in the submission.

    Raises:
        UserError: one does not exist, cannot be read, or has a path that is not valid or is that
            of a file that is ``built``.
    """
    names = Names()
    for name in (manifest.MANIFEST, *built):
        names.add(name)
    for target, source in workspace.config.extra_files.items():
        path = workspace.folders.workspace / source
        setting = f"{CONFIG_NAME}: extra_files"
        if not path.is_file() and not path.is_dir():
            raise UserError(f"{setting}: {target}: {path} is not a file or a folder")
        try:
            if path.is_dir():
                files = list(_below(path, target, workspace))
            else:
                files = [PlannedFile(target, path, workspace.folders.relative(path))]
        except OSError as error:
            raise UserError(f"{setting}: {target}: {_cannot_be_read(source, error)}") from error
        for file in files:
            reason = names.add(file.path)
            if reason:
                raise UserError(f"{setting}: {file.path}: not copied: {reason}")
            yield file


def _below(folder: AnyPath, target: str, workspace: BuildWorkspace) -> Iterator[PlannedFile]:
    """Yield the regular files below a folder, each at its path below ``target``.

    Links and whatever begins with a dot are left out.
    """
    for entry in list(walk(folder, keep=_is_copied)):
        if entry.file:
            yield _copy(folder / entry.path, f"{target}/{entry.path}", workspace)


def _is_copied(entry: FolderEntry) -> bool:
    return entry.link is None and not entry.hidden


def _is_in_no_dot_folder(entry: FolderEntry) -> bool:
    return "/." not in f"/{entry.path.rpartition('/')[0]}"


def left_out_note(judged: Iterable[JudgedSet], workspace: BuildWorkspace) -> Iterator[str]:
    """Yield what is left out of the folders of code and of the extra files, but ``.git``."""
    folders = list(workspace.config.extra_files.values())
    for benchmark in {judged_set.planned.benchmark for judged_set in judged}:
        folders += workspace.config.code.get(benchmark, {}).values()
    paths: set[str] = set()
    for name in folders:
        folder = workspace.folders.workspace / name
        if folder.is_dir():
            for entry in walk(folder, keep=_is_in_no_dot_folder, unreadable=lambda *_: None):
                if not _is_copied(entry) and entry.name != ".git":
                    paths.add(workspace.folders.relative(folder / entry.path))
    if paths:
        yield (
            "these files and folders are not copied, as they are links or their names begin with a"
            f" dot: {_named(sorted(paths))}"
        )


def _copy(path: AnyPath, target: str, workspace: BuildWorkspace) -> PlannedFile:
    origin = workspace.folders.relative(path)
    return PlannedFile(target, _content(Place(location_of(path), origin)), origin)


# ---- the tree: all of it or nothing -------------------------------------------------------

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
            listing = manifest.manifest_text(entries).encode()
            _write(folder, PlannedFile(manifest.MANIFEST, listing))
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
            " this tool), so it is not replaced; choose another --output"
        )
    others = others_in(target, division)
    if not force and not others.alone:
        if not others.sets:
            raise UserError(f"{target} exists already; --force replaces it")
        raise UserError(
            f"{target}: has results of the {division} division already; --force replaces them and"
            f" keeps those of the {others.division} division"
        )
    _refuse_foreign(target, files)
    message = lost(target, files, division)
    if message:
        raise UserError(message)
    if force:
        return
    built = {path: entry for path, entry in _built(target).items() if path not in TABLES}
    changed = _changes(target, built, files)
    if changed:
        raise UserError(
            f"{target}: this build would change or remove {_named(changed)}; --force allows this"
        )


# ---- files --------------------------------------------------------------------------------


def _write(folder: Path, file: PlannedFile) -> manifest.ManifestEntry:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
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
    sets: set[str] = set()
    tops = []  # the beginnings of their paths
    is_alone = True
    for system, folders in _sets_of_systems(built).items():
        if _division(target, system, built) == division:
            is_alone = False
            continue
        sets |= folders
        tops += [f"results/{system}/", f"systems/{system}.json"]
        tops += [f"benchmarks/{folder.rpartition('/')[2]}/" for folder in folders]
    return Others(
        division=next(other for other in DIVISIONS if other != division),
        sets=frozenset(sets),
        files={path: entry for path, entry in built.items() if path.startswith(tuple(tops))},
        alone=bool(sets) and is_alone,
    )


def _sets_of_systems(paths: Iterable[str]) -> dict[str, set[str]]:
    """Return the folders of result sets by system."""
    systems: dict[str, set[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if path.startswith("results/") and is_result_log(name):
            system = folder.split("/")[1]
            systems.setdefault(system, set()).add(folder)
    return systems


def _built(target: Path) -> dict[str, manifest.ManifestEntry]:
    """Return the files of a tree that its manifest lists; none if the manifest was changed."""
    try:
        entries = manifest.read_manifest(target)
    except ValueError:  # which _refuse_foreign reports
        return {}
    present = [entry.path for entry in walk(target) if entry.file and entry.link is None]
    return {path: entries[path] for path in sorted(present) if path in entries}


def _division(target: Path, system: str, built: Collection[str]) -> str | None:
    """Return the division in a system description of a tree; None if it cannot be read."""
    path = f"systems/{system}.json"
    if path not in built:
        return None
    try:
        contents = read_json(read_file(target / path, MAX_BYTES)).value
    except (OSError, ValueError):
        return None
    return contents.get("division") if isinstance(contents, dict) else None


def lost(target: Path, files: Iterable[PlannedFile], division: str | None) -> str | None:
    """Return a message that names the files of another division that a build would change."""
    others = others_in(target, division)
    gone = _changes(target, others.files, files)
    if gone:
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
    changing = []
    for path, entry in built.items():
        file = target / path
        if not _stays(file, planned.get(path)) and _is_as_listed(file, entry):
            changing.append(path)
    return changing


def _refuse_foreign(target: Path, files: Sequence[PlannedFile]) -> None:
    """Refuse to replace a tree that holds something that neither was built nor will be.

    Raises:
        UserError: a file was added or changed since the submission was built, and ``files`` do not
            include it as it is; or its manifest was changed.
    """
    try:
        entries = manifest.read_manifest(target)
    except ValueError as error:
        raise UserError(f"{target / manifest.MANIFEST}: {error}; nothing was replaced") from error
    planned = {file.path: file for file in files}
    foreign = []
    for entry in sorted(walk(target), key=lambda entry: entry.path):
        is_folder = entry.folder and entry.link is None
        if is_folder or entry.path == manifest.MANIFEST:
            continue
        if entry.link is not None or entry.special:
            foreign.append(entry.path)
            continue
        path = target / entry.path
        is_built = _is_as_listed(path, entries.get(entry.path))
        if not is_built and not _stays(path, planned.get(entry.path)):
            foreign.append(entry.path)
    if foreign:
        raise UserError(
            f"{target}: {_named(foreign)}: added or changed since the submission was built, so the"
            " submission is not replaced. Move these files away. If they belong in the submission,"
            f" move them into the workspace and name them in {CONFIG_NAME}:\n  extra_files:\n"
            f"    {foreign[0]}: <file in the workspace>"
        )


def _is_as_listed(path: Path, entry: manifest.ManifestEntry | None) -> bool:
    if entry is None:
        return False
    size = path.stat().st_size
    return (size, _digest(path)) == (entry.size, entry.sha256)


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
    names = separator.join(paths[:_NAMED])
    more = len(paths) - _NAMED
    return f"{names} and {more} more" if more > 0 else names
