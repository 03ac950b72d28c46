"""Read the inputs of a build: the configuration, the system descriptions and the runs."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.descriptions import SystemFile, check_system
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import AnyPath, FolderCache, read_file
from mlperf_pkg.infra.source import words_of_lines
from mlperf_pkg.results.wording import shortened
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Round, version_of
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.find import find_input
from mlperf_pkg.submission.model import MAY_BE_LOGS, PRUNED, Input, Place, Why

_NAMED_LOGS = 3


class Folders(Struct, frozen=True):
    """The folders of a build; ``logs`` is the workspace itself if it has no folder ``logs``."""

    workspace: Path
    logs: Path
    systems: Path
    output: Path

    @classmethod
    def of(
        cls,
        workspace: Path,
        logs: Path | None = None,
        systems: Path | None = None,
        output: Path | None = None,
    ) -> Folders:
        """Return the given folders, by default ``logs/``, ``systems/`` and ``submissions/``."""
        if logs is None:
            default = workspace / "logs"
            logs = default if default.is_dir() else workspace
        return cls(
            workspace=workspace,
            logs=logs,
            systems=systems or workspace / "systems",
            output=output or workspace / "submissions",
        )

    def relative(self, path: AnyPath) -> str:
        """Return a path as messages, patterns and the manifest show it: from the workspace."""
        return Path(os.path.relpath(str(path), self.workspace)).as_posix()


class BuildWorkspace(Struct, frozen=True):
    """The inputs of a plan.

    The paths of runs and systems are relative to the workspace; ``sources`` maps those of systems
    to their files, ``logs`` those of runs. ``trees`` are the submission trees among the logs.
    """

    folders: Folders
    config: Config
    round: Round
    round_reason: str
    systems: tuple[SystemFile, ...]
    runs: tuple[Run, ...]
    sources: Mapping[str, Path]
    logs: Mapping[str, Place] = field(default_factory=dict)
    trees: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def read_workspace(
    folders: Folders, config: Config, round_name: str | None = None, usage: str | None = None
) -> BuildWorkspace:
    """Read every log and every system description.

    ``round_name`` and ``usage`` take precedence over those of the configuration, and these over the
    names of trees and the logs. If the logs are of different rounds, all are read again under the
    newest, because logs of earlier rounds may be submitted again.

    Raises:
        UserError: there are no logs or no system descriptions, they cannot be read, or the
            rulebook has no such round.
    """
    if folders.logs == folders.workspace:
        _refuse_without_logs(folders)
    options = Options(usage, round_name, config=replace(config, code={}), named=True)
    checked = check([str(folders.logs)], options)
    contents = checked.inputs[0]
    logs = _logs(folders, config, contents)
    runs, newest, reason = _of_one_round(folders, options, checked, logs)
    round_ = load_round(runs[0].usage, newest)
    descriptions = _descriptions(folders)
    waivers = Waivers(config.waivers, CONFIG_NAME)
    return BuildWorkspace(
        folders=folders,
        config=config,
        round=round_,
        round_reason=reason,
        systems=tuple(map(waivers.waive_system, _systems(descriptions, round_))),
        runs=tuple(map(waivers.waive_run, _relabelled(runs, folders, logs))),
        sources=descriptions,
        logs={_log_path(folders, log): log for log in logs.values()},
        trees=tuple(_on_disk(tree.place) for tree in contents.submissions),
        notes=(*_tree_notes(folders, contents), *_not_counted(folders, checked)),
    )


def _refuse_without_logs(folders: Folders) -> None:
    """Refuse a workspace without logs, and say where they belong.

    Raises:
        UserError: there are none.
    """
    try:
        find_input(str(folders.logs))
    except UserError as error:
        place = folders.workspace / "logs"
        hint = f"put the log files into {place}/, or name their folder with 'build --logs'"
        raise UserError(f"{error}; {hint}") from error


def _relabelled(runs: Iterable[Run], folders: Folders, logs: Mapping[str, Place]) -> Iterator[Run]:
    """Yield the runs with their paths from the workspace, also in their findings."""
    for run in runs:
        path = _log_path(folders, logs[run.path])
        findings = tuple(replace(finding, path=path) for finding in run.findings)
        yield replace(run, path=path, findings=findings)


def _log_path(folders: Folders, log: Place) -> str:
    """Return the path of a log from the workspace, with its lines in a file of several runs."""
    return f"{folders.relative(log.path)}{words_of_lines(log.lines)}"


def refuse_overlap(target: Path, workspace: BuildWorkspace) -> None:
    """Refuse to write into an input folder, or to replace one.

    Raises:
        UserError: ``target`` is inside an input folder or contains one.
    """
    folders = workspace.folders
    inputs = [folders.systems, *workspace.trees, *_code_folders(folders, workspace.config)]
    if folders.logs.resolve() != folders.workspace.resolve():
        inputs.append(folders.logs)
    output = target.resolve()
    for folder in inputs:
        read = folder.resolve()
        conflict = None
        if output == read:
            conflict = f"{target} is the output folder and an input folder"
        elif output.is_relative_to(read):
            conflict = f"the output folder {target} is inside the input folder {folder}"
        elif read.is_relative_to(output):
            conflict = f"the input folder {folder} is inside the output folder {target}"
        if conflict:
            raise UserError(f"{conflict}; choose another --output")


def refuse_outside(folders: Folders, config: Config) -> None:
    """Refuse files of the configuration that are outside the workspace, links followed.

    Raises:
        UserError: a folder of code or an extra file is outside; all of them are named.
    """
    top = folders.workspace.resolve()
    outside = []
    for name in dict.fromkeys((*config.code_folders, *config.extra_files.values())):
        path = (folders.workspace / name).resolve()
        if not path.is_relative_to(top):
            outside.append(name)
    if outside:
        raise UserError(
            f"{CONFIG_NAME} names files outside the workspace {folders.workspace}:"
            f" {', '.join(outside)}; with --allow-outside, they are copied"
        )


# ---- logs ---------------------------------------------------------------------------------


def _logs(folders: Folders, config: Config, contents: Input) -> dict[str, Place]:
    """Return the logs by label, without those in the code or in the output of earlier builds."""
    read = folders.logs.resolve()
    excluded = []
    for folder in (folders.output, *_code_folders(folders, config)):
        path = folder.resolve()
        if not read.is_relative_to(path):
            excluded.append(path)
    logs = {}
    for place in contents.every_log:
        file = _on_disk(place).resolve()
        if not any(file.is_relative_to(path) for path in excluded):
            logs[place.label] = place
    if not logs:
        raise UserError(f"{folders.logs}: no logs but those of an earlier build")
    return logs


def _on_disk(place: Place) -> Path:
    """Return where a file or folder is; in an archive, where it would be if that were a folder."""
    return Path(str(place.path))


def _code_folders(folders: Folders, config: Config) -> list[Path]:
    return [folders.workspace / name for name in config.code_folders]


def _of_one_round(
    folders: Folders, options: Options, checked: Checked, logs: Container[str]
) -> tuple[list[Run], str, str]:
    """Return the runs read under one round, the round, and the reason for it."""
    runs = [run for run in checked.runs if run.path in logs]
    rounds = {run.round for run in runs if run.benchmark}
    if not rounds:
        rounds = {run.round for run in runs}
    newest = max(rounds, key=version_of)
    if all(run.round == newest for run in runs):
        origin = checked.report if checked.report.round else runs[0]
        return runs, newest, origin.round_reason
    options = replace(options, round=newest)
    again = check([str(folders.logs)], options)
    runs = [run for run in again.runs if run.path in logs]
    reason = f"the newest of the rounds that the logs name ({', '.join(sorted(rounds))})"
    return runs, newest, reason


def _tree_notes(folders: Folders, contents: Input) -> Iterator[str]:
    """Yield notes on what is beside the logs of submission trees, and is not copied."""
    for tree in contents.submissions:
        name = folders.relative(tree.place.path)
        yield f"the logs are read from the submission {name}"
        flags = tree.flags.union(*(files.flags for files in tree.result_sets))
        if flags:
            yield f"the flags {', '.join(sorted(flags))} in {name} are not copied"
        for files in tree.result_sets:
            names = list(files.others)
            if files.pruned:
                names.append(PRUNED)
            if names:
                folder = folders.relative(files.place.path)
                yield f"these files and folders of {folder} are not copied: {', '.join(names)}"


def _not_counted(folders: Folders, checked: Checked) -> Iterator[str]:
    """Yield which logs are not submitted: those not read, without a run, and of a run of another.

    A file that is not read is named, as it may be the log of a run.
    """
    no_runs: list[str] = []
    unread: list[str] = []
    for file in checked.inputs[0].unread:
        path = _log_path(folders, file.place)
        if file.why is Why.NO_RUN:
            no_runs.append(path)
        elif file.why in MAY_BE_LOGS:
            unread.append(f"{path} ({file.reason})")
    repeats: list[str] = []
    for context in checked.contexts:
        repeats += [_log_path(folders, checked.places[path]) for path in context.repeats]
    if unread:
        names = shortened(unread, _NAMED_LOGS)
        yield f"these files are not submitted, as they are not read: {names}"
    if no_runs:
        yield (
            "these logs are not submitted, as no run started in them:"
            f" {shortened(no_runs, _NAMED_LOGS)}"
        )
    if repeats:
        of_runs = shortened(sorted(repeats), _NAMED_LOGS)
        yield (
            "these logs are not submitted, as a more complete log of the same run is submitted:"
            f" {of_runs}"
        )


# ---- systems ------------------------------------------------------------------------------


def _descriptions(folders: Folders) -> dict[str, Path]:
    """Return the files of the system descriptions by their paths from the workspace."""
    folder = folders.systems
    try:
        entries = FolderCache()[str(folder)]
    except OSError as error:
        raise UserError(
            f"the folder {folder}/ with the system descriptions cannot be read ({error.strerror});"
            " name the right folder with 'build --systems', or write a description: run"
            f" 'mlperf-pkg system init -o {folder}/SYSTEM.json' on the system itself"
        ) from error
    descriptions = {}
    for entry in entries.values():
        if entry.file and entry.name.endswith(".json") and not entry.hidden:
            file = folder / entry.name
            descriptions[folders.relative(file)] = file
    return descriptions


def _systems(descriptions: Mapping[str, Path], round_: Round) -> Iterator[SystemFile]:
    for path, file in descriptions.items():
        try:
            data = read_file(file, MAX_BYTES)
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from error
        yield check_system(path, data, round_.usage, round_.name)
