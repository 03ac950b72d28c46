"""List the files of the tree to be built: their paths and their contents."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.checks.workspace import unknown_code
from mlperf_pkg.commands.builder.judge import JudgedSet, report
from mlperf_pkg.commands.builder.manifest import MANIFEST
from mlperf_pkg.commands.builder.plan import Plan, systems_of
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.archives import Names
from mlperf_pkg.infra.paths import AnyPath, ListedPath, open_file, walk
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.table import by_key
from mlperf_pkg.render.tables import results_csv, results_html, results_json, results_markdown
from mlperf_pkg.results.report import Report
from mlperf_pkg.submission.model import Place

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
    plan: Plan, judged: Sequence[JudgedSet], workspace: Workspace
) -> tuple[PlannedFile, ...]:
    """Return the files of a submission, by path.

    Raises:
        UserError: a folder of code or an extra file cannot be read or have its path.
    """
    sources, systems = workspace.sources, systems_of(plan.sets)
    texts = parameters(judged) | tables(report(judged, workspace), workspace.config)
    files = [
        *(PlannedFile(f"systems/{s.id}.json", sources[s.path], s.path) for s in systems),
        *_logs(plan, workspace),
        *_code(plan, workspace),
        *(PlannedFile(path, text.encode()) for path, text in texts.items()),
    ]
    files += extra_files(workspace, {file.path for file in files})
    return tuple(sorted(files, key=lambda file: file.path))


def unfit(files: Iterable[PlannedFile]) -> Iterator[str]:
    """Yield why the official repository checker would reject files: their names or sizes."""
    for file in files:
        name, content = visible(file.origin or file.path), file.content
        if " " in file.path:
            yield f"{name}: its path contains a space"
        size = (
            content.stat().st_size if isinstance(content, Path) else sum(map(len, chunks(content)))
        )
        if size > _LARGEST_MIB << 20:
            yield f"{name}: larger than {_LARGEST_MIB} MiB"


def chunks(content: bytes | Path | Source) -> Iterator[bytes]:
    """Yield the bytes of a file, decompressed where it is a source."""
    if isinstance(content, bytes):
        yield content
        return
    with open_file(content) if isinstance(content, Path) else content.open() as stream:
        yield from iter(partial(stream.read, _CHUNK), b"")


def _content(file: Place) -> Path | Source:
    """Return what to copy: the file, or what it holds decompressed."""
    return file.source if file.compression or isinstance(file.path, ListedPath) else file.path


def _logs(plan: Plan, workspace: Workspace) -> Iterator[PlannedFile]:
    """Yield the logs of the runs, with power, and the scaling factors of sets from a tree."""
    for planned in plan.sets:
        logs = [workspace.logs[run.path] for run in planned.runs]
        for run, log, target in zip(planned.runs, logs, planned.targets, strict=True):
            yield PlannedFile(target, _content(log), origin=run.path)
            folder = log.path.parent / "power" / log.path.name.partition(".")[0]
            if folder.is_dir() and not folder.is_symlink():
                yield from _below(folder, f"{planned.folder}/power/{Path(target).stem}", workspace)
        (parent, *others) = {log.path.parent for log in logs}
        factor = parent / "scaling.json"
        on_disk = Path(str(factor))
        in_a_tree = any(on_disk.is_relative_to(tree) for tree in workspace.trees)
        if not others and in_a_tree and factor.is_file() and not factor.is_symlink():
            origin = workspace.folders.relative(factor)
            content = _content(Place(str(factor), origin))
            yield PlannedFile(f"{planned.folder}/scaling.json", content, origin)


def tables(report: Report, config: Config) -> dict[str, str]:
    """Return the tables of the results of a tree, by path."""
    notes = remarks(report, config)
    html, markdown = results_html(report, notes), results_markdown(report, notes)
    texts = (results_csv(report), html, results_json(report), markdown)
    return dict(zip(TABLES, texts, strict=True))


def remarks(report: Report, config: Config) -> list[str]:
    """Return the notes on result sets and the prices of the configuration, for the tables."""
    names = [row.path.removeprefix("results/") for row in report.result_sets]
    notes = [f"{name}: {config.notes[name]}" for name in names if name in config.notes]
    for system, price in config.prices.items():
        if any(row.system == system for row in report.result_sets):
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
        planned, flags = judged_set.planned, sorted(judged_set.flags)
        of_sets |= {f"{planned.folder}/{PARAMETERS}": flag for flag in flags[:1]}
        of_systems |= {f"results/{planned.system.id}/{PARAMETERS}": flag for flag in flags[1:]}
    return of_sets | of_systems


# ---- code ---------------------------------------------------------------------------------


def _code(plan: Plan, workspace: Workspace) -> list[PlannedFile]:
    files: list[PlannedFile] = []
    benchmarks = {planned.benchmark for planned in plan.sets}
    problems = list(unknown_code(workspace.config, workspace.round, benchmarks))
    for benchmark, implementations in workspace.config.code.items():
        for name, path in implementations.items() if benchmark in benchmarks else ():
            folder = workspace.folders.workspace / path
            try:
                target = f"benchmarks/{benchmark}/implementations/{name or folder.resolve().name}"
                files += _below(folder, target, workspace)
            except OSError as error:
                problems.append(f"{CONFIG_NAME}: code: {benchmark}: {_cannot_be_read(path, error)}")
    if problems:
        raise UserError("\n".join(problems))
    return files


def _cannot_be_read(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"there is no folder {visible(path)}"
    return f"{visible(path)}: cannot be read: {visible(reason_of(error))}"


def code_notes(files: Iterable[PlannedFile]) -> Iterator[str]:
    """Yield which implementations lack the files that reviewers expect; none is added."""
    parts = (file.path.split("/") for file in files if file.path.startswith("benchmarks/"))
    implementations = by_key(("/".join(names[:4]), "/".join(names[4:])) for names in parts)
    for implementation, names in sorted(implementations.items()):
        if lacking := [name for name in _EXPECTED if name not in names]:
            yield f"{implementation} has no {' and no '.join(lacking)}: reviewers expect them"


# ---- extra files --------------------------------------------------------------------------


def extra_files(workspace: Workspace, built: Collection[str]) -> Iterator[PlannedFile]:
    """Yield the extra files that the configuration names, at their paths in the submission.

    Raises:
        UserError: one does not exist, cannot be read, or has a path that is not valid or is that
            of a file that is ``built``.
    """
    names = Names()
    for name in (MANIFEST, *built):
        names.add(name)
    for target, source in workspace.config.extra_files.items():
        path, setting = workspace.folders.workspace / source, f"{CONFIG_NAME}: extra_files"
        if not path.is_file() and not path.is_dir():
            raise UserError(f"{setting}: {target}: {path} is not a file or a folder")
        try:
            files = (
                list(_below(path, target, workspace))
                if path.is_dir()
                else [PlannedFile(target, path, workspace.folders.relative(path))]
            )
        except OSError as error:
            raise UserError(f"{setting}: {target}: {_cannot_be_read(source, error)}") from error
        for file in files:
            if reason := names.add(file.path):
                raise UserError(f"{setting}: {file.path}: not copied: {reason}")
            yield file


def _below(folder: AnyPath, target: str, workspace: Workspace) -> Iterator[PlannedFile]:
    """Yield the regular files below a folder, each at its path below ``target``.

    Links and whatever begins with a dot are left out.
    """
    entries = walk(folder, keep=lambda entry: entry.link is None and not entry.hidden)
    for path in [entry.path for entry in entries if entry.file]:
        origin = workspace.folders.relative(folder / path)
        yield PlannedFile(f"{target}/{path}", _content(Place(str(folder / path), origin)), origin)
