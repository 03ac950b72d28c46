"""What a build starts from: the configuration, the system descriptions and the runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.systems import SystemFile, check_system
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Round, version_of
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.find import find_input
from mlperf_pkg.submission.model import Input


class Folders(Struct, frozen=True):
    """Where things lie; ``logs`` is the workspace itself where it has no folder ``logs``."""

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
        """Fill in ``logs/``, ``systems/`` and ``submissions/`` of the workspace."""
        usual = workspace / "logs"
        return cls(
            workspace=workspace,
            logs=logs or (usual if usual.is_dir() else workspace),
            systems=systems or workspace / "systems",
            output=output or workspace / "submissions",
        )

    def relative(self, path: Path) -> str:
        """A path as messages, patterns and the manifest show it: from the workspace, with ``/``."""
        return Path(os.path.relpath(path, self.workspace)).as_posix()


class Workspace(Struct, frozen=True):
    """Everything that a plan is made of.

    The paths of runs and systems are relative to the workspace; ``sources`` tells where each of
    them really lies. ``trees`` are the submission trees among the logs.
    """

    folders: Folders
    config: Config
    round: Round
    round_reason: str
    systems: tuple[SystemFile, ...]
    runs: tuple[Run, ...]
    sources: Mapping[str, Path]
    trees: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def read_workspace(folders: Folders, config: Config, round_name: str | None = None) -> Workspace:
    """Read every log and every system description.

    ``round_name`` goes before the configuration's and before what trees and logs tell. Where the
    logs tell several rounds, all are read again under the newest, as logs of earlier rounds may be
    submitted again.

    Raises:
        UserError: there are no logs or no system descriptions, they cannot be read, or the
            rulebook has no such round.
    """
    options = Options(round=round_name, config=config)
    if folders.logs == folders.workspace:
        _require_logs(folders)
    checked = check([str(folders.logs)], options)
    places = _places(folders, config, checked.inputs[0])
    runs, name, reason = _of_one_round(folders, options, checked, places)
    round_ = load_round(runs[0].usage, name)
    described = {folders.relative(path): path for path in _descriptions(folders.systems)}
    labels = {label: folders.relative(path) for label, path in places.items()}
    waivers = Waivers(config.waivers, CONFIG_NAME)
    return Workspace(
        folders=folders,
        config=config,
        round=round_,
        round_reason=reason,
        systems=tuple(
            waivers.waive_system(_system(label, path, round_)) for label, path in described.items()
        ),
        runs=tuple(waivers.waive_run(_relabelled(run, labels[run.path])) for run in runs),
        sources=described | {labels[label]: path for label, path in places.items()},
        trees=tuple(tree.place.local for tree in checked.inputs[0].submissions),
        notes=tuple(_tree_notes(folders, checked.inputs[0])),
    )


def refuse_overlap(target: Path, workspace: Workspace) -> None:
    """Nothing is written into what is read, nor is it replaced.

    Raises:
        UserError: ``target`` lies in one of the folders that are read, or around one.
    """
    folders = workspace.folders
    read = [folders.systems, *workspace.trees, *_code_folders(folders, workspace.config)]
    if folders.logs.resolve() != folders.workspace.resolve():
        read.append(folders.logs)
    place = target.resolve()
    for folder in read:
        known = folder.resolve()
        if place.is_relative_to(known) or known.is_relative_to(place):
            raise UserError(f"{target}: overlaps with {folder}, which is read: choose an --output")


def _relabelled(run: Run, path: str) -> Run:
    """The same run under another path."""
    findings = tuple(replace(finding, path=path) for finding in run.findings)
    return replace(run, path=path, findings=findings)


# ---- logs ---------------------------------------------------------------------------------


def _require_logs(folders: Folders) -> None:
    """A workspace without ``logs/`` and without a log anywhere gets a hint."""
    try:
        find_input(str(folders.logs))
    except UserError as error:
        hint = f"put the logs into {folders.workspace / 'logs'} or name their folder with --logs"
        raise UserError(f"{error}; {hint}") from error


def _places(folders: Folders, config: Config, given: Input) -> dict[str, Path]:
    """Every log by its label, without those that an earlier build or the code holds."""
    apart = [folders.output, *_code_folders(folders, config)]
    inside = [path.resolve() for path in apart]
    inside = [path for path in inside if not folders.logs.resolve().is_relative_to(path)]
    found = {
        place.label: place.local
        for place in given.every_log
        if not any(place.local.resolve().is_relative_to(path) for path in inside)
    }
    if not found:
        raise UserError(f"{folders.logs}: no logs but those of an earlier build")
    return found


def _code_folders(folders: Folders, config: Config) -> list[Path]:
    return [folders.workspace / name for name in config.code_folders]


def _of_one_round(
    folders: Folders, options: Options, checked: Checked, places: Mapping[str, Path]
) -> tuple[list[Run], str, str]:
    """The runs, all read under one round; that round, and why it is the one."""
    runs = [run for run in checked.runs if run.path in places]
    told = {run.round for run in runs if run.benchmark} or {run.round for run in runs}
    name = max(told, key=version_of)
    if all(run.round == name for run in runs):
        told_by = checked.report if checked.report.round else runs[0]
        return runs, name, told_by.round_reason
    read = check([str(folders.logs)], replace(options, round=name))
    reason = f"the newest of the rounds that the logs tell: {', '.join(sorted(told))}"
    return [run for run in read.runs if run.path in places], name, reason


def _tree_notes(folders: Folders, given: Input) -> Iterator[str]:
    """What lies beside the logs of submission trees, and is not taken along."""
    for tree in given.submissions:
        name = folders.relative(tree.place.local)
        yield f"the logs are those of the submission tree {name}"
        flags = tree.flags.union(*(each.flags for each in tree.result_sets))
        if flags:
            yield f"not taken along from {name}: the flags {', '.join(sorted(flags))}"
        for each in tree.result_sets:
            if each.others:
                where = folders.relative(each.place.local)
                yield f"not taken along from {where}: {', '.join(each.others)}"


# ---- systems ------------------------------------------------------------------------------


def _descriptions(folder: Path) -> list[Path]:
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError as error:
        raise UserError(
            f"{folder}: no system descriptions: {error.strerror}; put <system>.json files there"
            " or name their folder with --systems"
        ) from error
    return [folder / name for name in names if name.endswith(".json") and name[0] != "."]


def _system(label: str, path: Path, round_: Round) -> SystemFile:
    try:
        return check_system(label, path.read_bytes(), round_.usage, round_.name)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
