"""The results in the arguments of ``compare``, with what their logs say of their speed."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct

from mlperf_pkg.checker.check import check_inputs
from mlperf_pkg.checker.values import Checked, Options, scores
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.commands.compare.ratios import Result, plain
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.paths import AnyPath, read_file
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import Record
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.evaluations import position_of
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
    arguments: Sequence[str], wanted: Filter, options: Options, noted: Callable[[Checked], Checked]
) -> list[Result]:
    """Return the results in all arguments that ``wanted`` accepts, each once.

    ``noted`` receives each check and returns it.

    Raises:
        UserError: as ``check`` and ``read_published``.
    """
    results: dict[_Key, Result] = {}
    new: dict[_Key, Result]
    accepts = wanted.accepts_benchmark
    for index, (argument, prefix) in enumerate(zip(arguments, labels(arguments), strict=True)):
        path = Path(argument)
        if path.suffix.lower() == _SUFFIX and path.is_file():
            published = read_published(path, index)
            new = {(path.resolve(), score.path, 1): score for score in published}
        else:
            part = find_part(argument, prefix, lambda files: accepts(files.benchmark))
            checked = noted(check_inputs((part,), options))
            new = dict(_results_of(checked, index, wanted))
        results = {**new, **results}
    ordered = sorted(results.values(), key=lambda result: result.argument)
    return [result for result in ordered if wanted.accepts(result)]


# ---- reading ------------------------------------------------------------------------------


def _results_of(checked: Checked, argument: int, wanted: Filter) -> Iterator[tuple[_Key, Result]]:
    runs = {run.path: run for run in checked.runs}
    places = checked.places
    numbers: Counter[tuple[AnyPath, str]] = Counter()
    for scored, context in zip(scores(checked).sets, checked.contexts, strict=True):
        row = scored.row
        if wanted.accepts_benchmark(row.benchmark) and scored.runs:
            first = runs[scored.runs[0].path]
            named = (places[first.path].path.resolve().parent, context.identity)
            numbers[named] += 1
            # What the logs of the runs that count in the score say of their speed.
            counting = [run.path for run in scored.runs if run.dropped is None]
            counting = [] if row.scaling == "weak" else counting
            trainings = [read_training(places[path].source, runs[path]) for path in counting]
            result = _result(row, first, context, trainings, argument)
            yield (*named, numbers[named]), result


def _result(
    row: ResultSetRow, first: Run, context: SetContext, trainings: Sequence[Training], argument: int
) -> Result:
    names = ("round", "benchmark", "division", "path", "scaling", "energy_joules")
    rules = load_benchmark(first.usage, row.round, row.benchmark)
    system = context.system
    description = (system.contents if system else None) or {}
    precisions = [name for training in trainings for name in training.precision]
    batch_size = [("global_batch_size", size) for size in first.batch_sizes[:1]]
    status = description.get("status")
    return Result(
        **{name: getattr(row, name) for name in names},
        argument=argument,
        submitter=row.submitter or first.text("org") or None,
        system=row.system or "unnamed system",
        system_name=system.system_name if system else None,
        minutes=row.score_minutes,
        note=row.score_note,
        rules=row.verdict.rules,
        accelerators=system.accelerators if system else None,
        nodes=_count(description.get("number_of_nodes")),
        hardware=hardware_of(description.get("accelerator_model_name")),
        framework=framework_of(description.get("framework")),
        unit=("tokens" if rules.unit == "tokens" else "samples") if rules else None,
        samples_per_second=mean(training.samples_per_second for training in trainings),
        logged_throughput=mean(training.logged_throughput for training in trainings),
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
    reader = csv.DictReader(io.StringIO(text, newline=""))
    results = []
    try:
        names = reader.fieldnames or ()
        minutes = next((name for name in _MINUTES if name in names), _MINUTES[0])
        required = ("system", "benchmark", minutes)
        missing = [name for name in required if name not in names]
        if missing:
            raise UserError(
                f"{path}:1: no column {' or '.join(missing)}; expected {', '.join(required)}"
            )
        for row in reader:
            cells = {name: (row[name] or "").strip() for name in names}
            if cells[minutes]:
                results.append(_of_line(f"{path}:{reader.line_num}", cells, minutes, argument))
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: {error}") from error
    return results


def _of_line(where: str, cells: Mapping[str, str], minutes: str, argument: int) -> Result:
    """Return the score in the cells of a line; ``minutes`` is the column that holds it.

    Raises:
        UserError: a cell is not as it should be.
    """
    if not cells["benchmark"]:
        raise UserError(f"{where}: benchmark is empty; expected a name")
    round_ = _ROUND.fullmatch(cells.get("round", ""))
    if cells.get("round") and not round_:
        raise UserError(f"{where}: round is {cells['round']!r}; expected a round such as 2.0")
    texts = ("submitter", "division", "availability")
    others: dict[str, Any] = {name: cells.get(name) or None for name in texts}
    for name in (minutes, "accelerators", "nodes", "energy_joules"):
        text = cells.get(name)
        is_count = name in ("accelerators", "nodes")
        try:
            value = float(text) if text else None
        except ValueError:
            value = math.nan
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{where}: {name} is {text!r}; expected a number above 0")
        if value is not None and is_count and not value.is_integer():
            raise UserError(f"{where}: {name} is {text!r}; expected a whole number")
        others[name] = int(value) if value is not None and is_count else value
    return Result(
        argument=argument,
        round=round_ and round_[1],
        system=cells["system"] or "unnamed system",
        system_name=None,
        benchmark=cells["benchmark"],
        minutes=others.pop(minutes),
        path=where,
        note="a published score",
        **others,
    )


# ---- how fast a run trained ---------------------------------------------------------------

_PRECISIONS = frozenset({"precision", "precision_mode", "numerical_precision"})
_THROUGHPUTS = frozenset({"throughput", "tracked_stats"})
_READ = evaluations.KEYS | {"global_batch_size", "train_samples"}
_X_Y = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")
# No benchmark converges in fewer steps: a smaller number does not count samples. Some runs of
# BERT log the number of a step or an epoch.
_FEWEST_STEPS = 50
_DECIMALS = 3  # of the position at which the RCP checker sees a run converge


class Training(Struct, frozen=True):
    """What one log says of its speed.

    ``samples_per_second`` counts from ``run_start`` to the evaluation that converged; tokens if
    the benchmark counts those. ``logged_throughput`` is the median of the values that are logged
    under ``throughput`` or, in ``tracked_stats``, of that name, in whatever unit the log uses.
    ``precision`` is the logged format of numbers, as X.Y (activations.weights) if it has that form.
    """

    samples_per_second: float | None = None
    logged_throughput: float | None = None
    precision: tuple[str, ...] = ()


def read_training(source: Source, run: Run) -> Training:
    """Read the log of a run once more, and return what it says of its speed.

    Raises:
        OSError: the log cannot be read.
    """
    records = list[Record]()
    rates = list[float]()
    precisions = dict[str, None]()
    with source.open() as stream:
        for record in LogReader(stream, source.label, lambda _: None):
            if record is None or not isinstance(record.key, str):
                continue
            value = record.value
            if record.key in _THROUGHPUTS:
                rate = _positive(value.get("throughput") if isinstance(value, dict) else value)
                rates += [] if rate is None else [rate]
            elif record.key in _PRECISIONS:
                precisions |= dict.fromkeys(_precision(value))
            elif record.key in _READ:
                records.append(record)
    return Training(_rate(run, records), median(rates) if rates else None, tuple(precisions))


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values other than None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None


def _positive(value: Any) -> float | None:
    number = to_finite(value)
    return number if number is not None and number > 0 else None


def _precision(value: Any) -> list[str]:
    """``FLOAT 16.16`` is 16.16; text of another form stays as it is."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return []
    text = str(value).strip()
    return _X_Y.findall(text) or ([text] if text else [])


# ---- samples per second -------------------------------------------------------------------


def _rate(run: Run, records: Sequence[Record]) -> float | None:
    rules = load_benchmark(run.usage, run.round, run.benchmark)
    start = run.start_ms
    stop = run.stop_ms
    if rules is None or not run.converged or start is None or stop is None:
        return None
    evaluated = [r for r in records if r.key in evaluations.KEYS and start < r.time_ms <= stop]
    converged = [r for r in evaluated if _is_converged(r, run, rules)]
    end = float((converged or evaluated)[-1].time_ms) if evaluated else stop
    samples = _trained(run, rules, records, start)
    return _positive(samples / ((end - start) / 1000)) if samples and end > start else None


def _is_converged(record: Record, run: Run, rules: Benchmark) -> bool:
    position = position_of(record, rules)
    reached = to_finite(run.convergence.to_converge)
    if position is None or reached is None:
        return False
    return round(position[0], _DECIMALS) == round(reached, _DECIMALS)


def _trained(
    run: Run, rules: Benchmark, records: Sequence[Record], start_ms: float
) -> float | None:
    """Return the samples until convergence; None if the log does not say."""
    reached = _positive(run.convergence.to_converge) if run.convergence.converged else None
    if reached is None or rules.unit == "tokens":
        return reached
    if rules.unit == "epochs":
        # The data set of the Closed division has the size in the rules: some logs count batches.
        epochs = rules.epochs
        of_rules = run.division == "closed" and rules.epochs.samples
        size = of_rules or _samples(records)
        done = reached - rules.epochs.numbered_from
        is_possible = done > 0 and (epochs.at_most is None or done <= epochs.at_most)
        return done * size if size is not None and is_possible else None
    sizes = [_positive(r.value) for r in records if r.key == "global_batch_size"]
    batch = sizes[-1] if sizes else None
    if rules.unit == "steps":
        return reached * batch if batch else None
    if not batch or reached >= _FEWEST_STEPS * batch:
        return reached
    return _samples([r for r in records if r.time_ms > start_ms])


def _samples(records: Sequence[Record]) -> float | None:
    """Return the last number of samples logged, None if there is none."""
    values = [r.value for r in records if r.key == "train_samples"]
    last = values[-1] if values else None
    return _positive(last[-1] if isinstance(last, list) and last else last)
