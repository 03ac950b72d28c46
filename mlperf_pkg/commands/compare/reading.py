"""The results in the arguments of ``compare``, with what their logs and systems say."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct

from mlperf_pkg.checker.check import check_inputs
from mlperf_pkg.checker.values import Checked, Options, scores
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.commands.compare.ratios import Result, plain
from mlperf_pkg.commands.compare.throughput import Training, mean, read_training
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import AnyPath, read_file
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.find import find_part, labels

_Key = tuple[AnyPath, str, int]
"""The identity of a result: its folder or file, its name, and its number among equal names."""

_COUNT = re.compile(r"[0-9]{1,9}")
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_ROUND = re.compile(r"v?(\d{1,4}\.\d{1,4})")
_SUFFIX = ".csv"
_LARGEST = 64 << 20  # bytes
_MINUTES = ("minutes", "score_minutes")


class Filter(Struct, frozen=True):
    """Which results to compare: of every kind that has values, one must match."""

    benchmarks: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    divisions: tuple[str, ...] = ()
    accelerators: tuple[int, ...] = ()

    def accepts_benchmark(self, name: str) -> bool:
        """Return whether results of this benchmark are compared."""
        return _any_matches(name, self.benchmarks)

    def accepts(self, result: Result) -> bool:
        """Return whether this result is compared."""
        return (
            (not self.systems or any(result.matches(pattern) for pattern in self.systems))
            and self.accepts_benchmark(result.benchmark)
            and _any_matches(result.division, self.divisions)
            and (not self.accelerators or result.accelerators in self.accelerators)
        )


def _any_matches(name: str | None, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name or "", pattern) for pattern in patterns)


def read_results(
    arguments: Sequence[str],
    result_filter: Filter,
    options: Options,
    noted: Callable[[Checked], Checked] = lambda checked: checked,
) -> list[Result]:
    """Return the results in all arguments that ``result_filter`` takes, none of them twice.

    ``noted`` receives each check and returns it.

    Raises:
        UserError: as ``check`` and ``read_published``.
    """
    results: dict[_Key, Result] = {}
    new: dict[_Key, Result]
    for index, (argument, prefix) in enumerate(zip(arguments, labels(arguments), strict=True)):
        path = Path(argument)
        if path.suffix.lower() == _SUFFIX and path.is_file():
            published = read_published(path, index)
            new = {(path.resolve(), score.path, 1): score for score in published}
        else:
            wanted = lambda files: result_filter.accepts_benchmark(files.benchmark)  # noqa: E731
            checked = noted(check_inputs((find_part(argument, prefix, wanted),), options))
            new = dict(_results_of(checked, index, result_filter))
        results = {**new, **results}
    ordered = sorted(results.values(), key=lambda result: result.argument)
    return [result for result in ordered if result_filter.accepts(result)]


# ---- reading ------------------------------------------------------------------------------


def _results_of(
    checked: Checked, argument: int, result_filter: Filter
) -> Iterator[tuple[_Key, Result]]:
    runs = {run.path: run for run in checked.runs}
    places = checked.places
    numbers: Counter[tuple[AnyPath, str]] = Counter()
    for scored, context in zip(scores(checked).sets, checked.contexts, strict=True):
        row = scored.row
        if result_filter.accepts_benchmark(row.benchmark) and scored.runs:
            first = runs[scored.runs[0].path]
            named = (places[first.path].path.resolve().parent, context.identity)
            numbers[named] += 1
            # What the logs of the runs that count in the score say of their speed.
            counting = [run.path for run in scored.runs if run.dropped is None]
            trainings = [
                read_training(places[path].source, runs[path])
                for path in (() if row.scaling == "weak" else counting)
            ]
            result = _result(row, first, context.system, trainings, argument)
            yield (*named, numbers[named]), result


def _result(
    row: ResultSetRow,
    first: Run,
    system: SystemFile | None,
    trainings: Sequence[Training],
    argument: int,
) -> Result:
    rules = load_benchmark(first.usage, row.round, row.benchmark)
    description = (system.contents if system else None) or {}
    precisions = [name for training in trainings for name in training.precision]
    batch_size = [("global_batch_size", size) for size in first.batch_sizes[:1]]
    status = description.get("status")
    return Result(
        argument=argument,
        round=row.round,
        submitter=row.submitter or first.text("org") or None,
        system=row.system or "unnamed system",
        system_name=system.system_name if system else None,
        benchmark=row.benchmark,
        division=row.division,
        minutes=row.score_minutes,
        path=row.path,
        scaling=row.scaling,
        note=row.score_note,
        rules=row.verdict.rules,
        accelerators=system.accelerators if system else None,
        nodes=_count(description.get("number_of_nodes")),
        hardware=hardware_of(description.get("accelerator_model_name")),
        framework=framework_of(description.get("framework")),
        unit=("tokens" if rules.unit == "tokens" else "samples") if rules else None,
        samples_per_second=mean(training.samples_per_second for training in trainings),
        logged_throughput=mean(training.logged_throughput for training in trainings),
        energy_joules=row.energy_joules,
        precision=", ".join(dict.fromkeys(precisions)) or None,
        target=target_of(rules),
        availability=status.strip() or None if isinstance(status, str) else None,
        hyperparameters={**dict(batch_size), **first.hyperparameters},
    )


def _count(value: Any) -> int | None:
    text = str(value).strip()
    return int(text) or None if _COUNT.fullmatch(text) else None


def hardware_of(value: Any) -> str | None:
    """Return the accelerator without remarks: ``A100 (400W)`` is ``A100``."""
    return plain(_IN_BRACKETS.sub("", value)) or None if isinstance(value, str) else None


def framework_of(value: Any) -> str | None:
    """Return the first word, without version and commit."""
    return plain(value.split()[0]) or None if isinstance(value, str) and value.split() else None


def target_of(rules: Benchmark | None) -> str | None:
    """Return the quality that the rules require, as text to compare."""
    return json.dumps(rules.target, sort_keys=True) if rules else None


# ---- published scores in a CSV file, for systems whose logs are not at hand -----------------


def read_published(path: Path, argument: int) -> list[Result]:
    """Return the scores in a CSV file, in their order; ``argument`` is its index among the paths.

    Its first line names the columns: ``system``, ``benchmark`` and ``minutes`` (or
    ``score_minutes``) are required; ``round``, ``submitter``, ``division``, ``accelerators``,
    ``nodes``, ``energy_joules`` and ``availability`` are optional, others are ignored. Lines
    without minutes are skipped.

    Raises:
        UserError: the file cannot be read or is not such a table; the message names the line.
    """
    try:
        text = read_file(path, _LARGEST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise UserError(f"{path}: cannot be read: {reason}") from error
    return list(_results(path, text, argument))


def _results(path: Path, text: str, argument: int) -> Iterator[Result]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = reader.fieldnames or ()
        minutes = next((name for name in _MINUTES if name in names), _MINUTES[0])
        required = ("system", "benchmark", minutes)
        if missing := [name for name in required if name not in names]:
            raise UserError(
                f"{path}:1: no column {' or '.join(missing)}; expected {', '.join(required)}"
            )
        for row in reader:
            cells = {name: (row[name] or "").strip() for name in names}
            if cells[minutes]:
                line = _Line(f"{path}:{reader.line_num}", cells)
                yield line.result(minutes, argument)
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: {error}") from error


class _Line(Struct, frozen=True):
    """A line of the table: where it is, and its cells by column."""

    location: str
    cells: Mapping[str, str]

    def result(self, minutes: str, argument: int) -> Result:
        """Return the score; ``minutes`` is the column that holds it.

        Raises:
            UserError: a cell is not as it should be.
        """
        cells = self.cells
        if not cells["benchmark"]:
            raise UserError(f"{self.location}: benchmark is empty; expected a name")
        return Result(
            argument=argument,
            round=self._round(),
            submitter=cells.get("submitter") or None,
            system=cells["system"] or "unnamed system",
            system_name=None,
            benchmark=cells["benchmark"],
            division=cells.get("division") or None,
            minutes=self._number(minutes),
            path=self.location,
            note="a published score",
            accelerators=self._count("accelerators"),
            nodes=self._count("nodes"),
            energy_joules=self._number("energy_joules"),
            availability=cells.get("availability") or None,
        )

    def _round(self) -> str | None:
        text = self.cells.get("round")
        if not text:
            return None
        match = _ROUND.fullmatch(text)
        if match is None:
            raise UserError(f"{self.location}: round is {text!r}; expected a round such as 2.0")
        return match[1]

    def _number(self, name: str) -> float | None:
        text = self.cells.get(name)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise UserError(f"{self.location}: {name} is {text!r}; expected a number above 0")
        return value

    def _count(self, name: str) -> int | None:
        value = self._number(name)
        if value is not None and not value.is_integer():
            raise UserError(
                f"{self.location}: {name} is {self.cells[name]!r}; expected a whole number"
            )
        return None if value is None else int(value)
