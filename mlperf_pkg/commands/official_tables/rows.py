"""From a check to the rows of the official tables."""

from __future__ import annotations

from collections.abc import Callable

from mlperf_logging.benchmark_meta import get_allowed_benchmarks
from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.commands.official_tables import specs
from mlperf_pkg.commands.official_tables.table import Cell, Table
from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.submission.find import SCALINGS
from mlperf_pkg.submission.model import Submission, SystemFolder

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

    ``plain`` has the times to train in minutes, one column a benchmark; ``detailed`` what belongs
    to them (energy in joules); ``weak`` is the throughput of HPC, None for training. ``left_out``
    tells what the tables lack and why; of most of that the official summarizer dies.
    """

    usage: str
    round: str
    plain: Table
    detailed: Table
    weak: Table | None
    left_out: tuple[str, ...]


def summarize(checked: Checked) -> Summary:
    """The tables of the submissions of a check, as the tree was published.

    That is what the official summarizer prints when it first reads a tree. It then writes factors
    of its own into ``scaling.json``, and from the second time on prints other numbers.

    Raises:
        UserError: there is no submission, or they are of several rounds.
    """
    submissions = [each for given in checked.inputs for each in given.submissions]
    usage, round_ = checked.report.usage, checked.report.round
    if not submissions or round_ is None or usage not in _USAGES:
        raise UserError("official tables are of submissions, all of one round")
    maker = _Maker(usage, round_, _benchmarks(usage, round_), checked)
    for each in submissions:
        maker.add(each)
    return maker.summary()


def _benchmarks(usage: str, round_: str) -> tuple[str, ...]:
    """In the order of the official columns."""
    ruleset = load_round(usage, round_).ruleset
    return tuple(dict.fromkeys(get_allowed_benchmarks(usage, ruleset)))


class _Maker:
    """Collects rows, one a system and table."""

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

    def add(self, submission: Submission) -> None:
        """The rows of a submission: one for each folder of its results, however empty."""
        for folder in submission.tested:
            path = submission.place.child("systems").child(f"{folder.place.name}.json").label
            system = self._systems.get(path)
            if system is None or system.contents is None:
                self._left_out.append(f"{folder.place.label}: no {path} that can be read")
                continue
            try:
                row = specs.specs(system.contents, folder.private_id)
            except ValueError as error:
                self._left_out.append(f"{folder.place.label}: {path}: {error}")
                continue
            row |= specs.urls(system.contents, folder.place.name, self._usage, self._round)
            self._add_rows(submission, folder, row)

    def _add_rows(self, submission: Submission, folder: SystemFolder, row: Row) -> None:
        """HPC has a row for each kind of scaling that has a folder."""
        for scaling in (STRONG, WEAK) if self._usage == "hpc" else (None,):
            if scaling and scaling not in folder.folders:
                continue
            parent = folder.place.child(scaling) if scaling else folder.place
            results = self._results(submission, parent.label)
            if scaling == WEAK:
                self._weak.append(row | _cells(results, _throughput))
            else:
                self._plain.append(row | _cells(results, _minutes))
                self._detailed.append(self._blank_words() | row | _cells(results, _details))

    def _results(self, submission: Submission, parent: str) -> dict[str, SetResult]:
        """The result sets in a folder, by the name of their columns."""
        found = {}
        for files in submission.result_sets:
            label = files.place.label
            if label.rpartition("/")[0] == parent and label in self._sets:
                name = _ALIASES.get(files.benchmark, files.benchmark)
                if name in self._benchmarks:
                    found[name] = self._sets[label]
                else:
                    self._left_out.append(f"{label}: no benchmark of round {self._round}")
        return found

    def _blank_words(self) -> Row:
        """Of benchmarks without results the RCP column holds an empty text."""
        return {f"{name}:RCP": "" for name in self._benchmarks}

    def summary(self) -> Summary:
        """The tables of what was added."""
        return Summary(
            usage=self._usage,
            round=self._round,
            plain=_table(self._benchmarks, self._plain),
            detailed=_table(self._columns(STRONG_METRICS), self._detailed),
            weak=_table(self._columns(WEAK_METRICS), self._weak) if self._usage == "hpc" else None,
            left_out=tuple(self._left_out),
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
    said = result.summarized
    values = (
        result.row.official_minutes,
        result.row.energy_joules,
        said.batch_size,
        said.to_converge,
        said.rcp,
        said.scaling_factor,
    )
    return {f"{name}:{metric}": v for metric, v in zip(STRONG_METRICS, values, strict=True)}


def _throughput(name: str, result: SetResult) -> Row:
    weak = result.summarized.weak
    if weak is None:
        return {}
    scale = None if weak.instance_scale is None else float(weak.instance_scale)
    values = (float(weak.models), scale, weak.minutes)
    return {f"{name}:{metric}": v for metric, v in zip(WEAK_METRICS, values, strict=True)}
