"""The rows of the official tables, from a check."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.commands.official_tables import specs
from mlperf_pkg.commands.official_tables.table import Cell, Table
from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.rounds import has_ruleset
from mlperf_pkg.submission.model import SCALINGS, Submission, SystemFolder

STRONG, WEAK = SCALINGS
STRONG_METRICS = (
    "time_to_train",
    "Energy",
    "GBS",
    "samples_to_converge",
    "RCP",
    "rcp_scaling_factor",
)
WEAK_METRICS = ("number_of_models", "instance_scale", "time_to_train_all")
Row = dict[str, Cell]

_USAGES = ("training", "hpc")
_ALIASES = {"mask": "maskrcnn"}


class Summary(Struct, frozen=True):
    """The official tables of one round.

    ``plain`` has the times to train in minutes, one column per benchmark; ``detailed`` adds batch
    size, samples to converge, RCP and energy (in joules); ``weak`` is the throughput of HPC, None
    for training. ``left_out`` lists results that are not in the tables, and why: the official
    summarizer leaves out those without a description, and crashes on the others (``crashed``).
    ``tested`` lists the paths of the sets whose convergence it tests before it crashes.
    """

    usage: str
    round: str
    plain: Table
    detailed: Table
    weak: Table | None
    left_out: tuple[str, ...]
    tested: tuple[str, ...]
    crashed: bool


def summarize(checked: Checked) -> Summary:
    """Return the tables of the submissions of a check.

    They are what the official summarizer writes after the package checker has written
    ``scaling.json``.

    Raises:
        UserError: there is no submission, the submissions are of several rounds, or the installed
            mlperf-logging does not know the round.
    """
    submissions = [submission for source in checked.inputs for submission in source.submissions]
    usage, round_ = checked.report.usage, checked.report.round
    if not submissions or round_ is None or usage not in _USAGES:
        raise UserError("no official tables: expected submissions, all of one round")
    if not has_ruleset(usage, round_):
        reference = checked.report.tool["reference"]
        raise UserError(f"no official tables: {reference} does not know round {round_}")
    collector = _Collector(usage, round_, _benchmarks(usage, round_), checked)
    for submission in submissions:
        collector.add(submission)
    return collector.summary()


def _benchmarks(usage: str, round_: str) -> tuple[str, ...]:
    """Return the benchmarks in the order of the official columns."""
    ruleset = load_round(usage, round_).ruleset
    from mlperf_logging.benchmark_meta import (  # noqa: PLC0415 - wheels are built without it
        get_allowed_benchmarks,
    )

    return tuple(dict.fromkeys(get_allowed_benchmarks(usage, ruleset)))


class _Collector:
    """Collects rows, one per system and table."""

    def __init__(
        self, usage: str, round_: str, benchmarks: tuple[str, ...], checked: Checked
    ) -> None:
        self._usage = usage
        self._round = round_
        self._benchmarks = benchmarks
        self._systems = {system.path: system for system in checked.systems}
        self._sets = {result.row.path: result for result in checked.sets}
        self._plain: list[Row] = []
        self._detailed: list[Row] = []
        self._weak: list[Row] = []
        self._left_out: list[str] = []
        self._tested: list[str] = []
        self._crashed = False

    def add(self, submission: Submission) -> None:
        """Add a row for each folder in the results of a submission, even an empty one."""
        for folder in submission.tested:
            path = submission.place.child("systems").child(f"{folder.place.name}.json").label
            system = self._systems.get(path)
            if system is None:
                self._left_out.append(f"{folder.place.label}: no {path}")
                continue
            if system.contents is None:
                self._leave_out(f"{folder.place.label}: {path} is not readable")
                continue
            try:
                row = specs.system_cells(system.contents, folder.private_id)
            except ValueError as error:
                self._leave_out(f"{folder.place.label}: {path}: {error}")
                continue
            row |= specs.url_cells(system.contents, folder.place.name, self._usage, self._round)
            self._add_rows(submission, folder, row)

    def _add_rows(self, submission: Submission, folder: SystemFolder, row: Row) -> None:
        """Add the rows of a system; HPC has one for each kind of scaling with a folder."""
        for scaling in (STRONG, WEAK) if self._usage == "hpc" else (None,):
            if scaling and scaling not in folder.folders:
                continue
            parent = folder.place.child(scaling) if scaling else folder.place
            results = self._results(submission, parent.label)
            if scaling == WEAK:
                self._weak.append(row | _cells(results, _throughput))
            else:
                self._plain.append(row | _cells(results, _minutes))
                self._detailed.append(self._blank_rcp() | row | _cells(results, _details))

    def _results(self, submission: Submission, parent: str) -> dict[str, SetResult]:
        """Return the result sets in a folder by the names of their columns."""
        by_column, others = {}, []
        for files in submission.result_sets:
            label = files.place.label
            if label.rpartition("/")[0] != parent or label not in self._sets:
                continue
            if self._sets[label].summarized.scaling_factor is None:
                self._leave_out(f"{label}: scaling.json without a factor")
                continue
            if files.scaling_mode != WEAK and not self._crashed:
                self._tested.append(label)
            name = _ALIASES.get(files.benchmark, files.benchmark)
            if name in self._benchmarks:
                by_column[name] = self._sets[label]
            else:
                others.append(label)
        for label in others:
            self._leave_out(f"{label}: not a benchmark of round {self._round}")
        return by_column

    def _leave_out(self, reason: str) -> None:
        """Leave out what the official summarizer crashes on."""
        self._left_out.append(reason)
        self._crashed = True

    def _blank_rcp(self) -> Row:
        """Return empty strings for the RCP columns, which benchmarks without results keep."""
        return {f"{name}:RCP": "" for name in self._benchmarks}

    def summary(self) -> Summary:
        """Return the tables of all submissions added."""
        return Summary(
            usage=self._usage,
            round=self._round,
            plain=_table(self._benchmarks, self._plain),
            detailed=_table(self._columns(STRONG_METRICS), self._detailed),
            weak=_table(self._columns(WEAK_METRICS), self._weak) if self._usage == "hpc" else None,
            left_out=tuple(self._left_out),
            tested=tuple(self._tested),
            crashed=self._crashed,
        )

    def _columns(self, metrics: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{name}:{metric}" for name in self._benchmarks for metric in metrics)


def _table(scores: tuple[str, ...], rows: list[Row]) -> Table:
    return Table.of((*specs.COLUMNS, *scores, *specs.URLS), rows)


def _cells(results: dict[str, SetResult], of_set: Callable[[str, SetResult], Row]) -> Row:
    return {
        column: cell
        for name, result in results.items()
        for column, cell in of_set(name, result).items()
    }


def _minutes(name: str, result: SetResult) -> Row:
    return {name: result.row.official_minutes}


def _details(name: str, result: SetResult) -> Row:
    summarized = result.summarized
    values = (
        result.row.official_minutes,
        result.row.energy_joules,
        summarized.batch_size,
        summarized.to_converge,
        summarized.rcp,
        summarized.scaling_factor,
    )
    return {f"{name}:{metric}": v for metric, v in zip(STRONG_METRICS, values, strict=True)}


def _throughput(name: str, result: SetResult) -> Row:
    weak = result.summarized.weak
    if weak is None:
        return {}
    scale = None if weak.instance_scale is None else float(weak.instance_scale)
    values = (float(weak.models), scale, weak.minutes)
    return {f"{name}:{metric}": v for metric, v in zip(WEAK_METRICS, values, strict=True)}
