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
from msgspec.structs import replace

from mlperf_pkg.checker.check import check_inputs
from mlperf_pkg.checker.values import Checked, Options, ScoredSet, scores
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.commands.compare.ratios import Result, plain
from mlperf_pkg.commands.notice import shown_results
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
from mlperf_pkg.submission.model import Place

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
        if self.systems and not any(result.matches(pattern) for pattern in self.systems):
            return False
        if self.accelerators and result.accelerators not in self.accelerators:
            return False
        is_of_division = _any_matches(result.division, self.divisions)
        return is_of_division and self.accepts_benchmark(result.benchmark)


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
    prefixes = labels(arguments)
    for index, (argument, prefix) in enumerate(zip(arguments, prefixes, strict=True)):
        path = Path(argument)
        if path.suffix.lower() == _SUFFIX and path.is_file():
            new = {}
            for score in read_published(path, index):
                new[path.resolve(), score.path, 1] = score
        else:
            part = find_part(
                argument, prefix, lambda files: wanted.accepts_benchmark(files.benchmark)
            )
            new = _results_of(noted(check_inputs((part,), options)), index, wanted)
        results = {**new, **results}  # of equal keys, the result of the first argument counts
    ordered = sorted(results.values(), key=lambda result: result.argument)
    return [result for result in ordered if wanted.accepts(result)]


# ---- reading ------------------------------------------------------------------------------


def _results_of(checked: Checked, argument: int, wanted: Filter) -> dict[_Key, Result]:
    runs = {run.path: run for run in checked.runs}
    shown = shown_results(checked)
    numbers: Counter[tuple[AnyPath, str]] = Counter()
    results = {}
    for scored, context in zip(scores(checked).sets, checked.contexts, strict=True):
        if not scored.runs or not wanted.accepts_benchmark(scored.row.benchmark):
            continue
        first = runs[scored.runs[0].label]
        place = (checked.places[first.path].path.resolve().parent, context.identity)
        numbers[place] += 1
        result = _result(
            scored.row, first, context, _trainings(scored, runs, checked.places), argument
        )
        beside = shown[scored.row.id]
        results[*place, numbers[place]] = replace(
            result, is_verified=beside.is_verified, id=beside.id
        )
    return results


def _trainings(
    scored: ScoredSet, runs: Mapping[str, Run], places: Mapping[str, Place]
) -> list[Training]:
    """Return how fast a set trained by its logs: those of the runs that count in its score."""
    if scored.row.scaling == "weak":
        return []
    paths = [run.label for run in scored.runs if run.dropped is None]
    return [read_training(places[path].source, runs[path]) for path in paths]


def _result(
    row: ResultSetRow, first: Run, context: SetContext, trainings: Sequence[Training], argument: int
) -> Result:
    rules = load_benchmark(first.usage, row.round, row.benchmark)
    system = context.system
    description: Mapping[str, Any] = {}
    if system and system.contents:
        description = system.contents
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
        unit=_unit(rules),
        samples_per_second=mean(training.samples_per_second for training in trainings),
        logged_throughput=mean(training.logged_throughput for training in trainings),
        energy_joules=row.energy_joules,
        precision=_precisions(trainings),
        target=target_of(rules),
        availability=_availability(description.get("status")),
        hyperparameters=_hyperparameters(first),
        usage=row.usage,
    )


def _unit(rules: Benchmark | None) -> str | None:
    if rules is None:
        return None
    return "tokens" if rules.unit == "tokens" else "samples"


def _precisions(trainings: Sequence[Training]) -> str | None:
    names: dict[str, None] = {}
    for training in trainings:
        names.update(dict.fromkeys(training.precision))
    return ", ".join(names) or None


def _availability(status: Any) -> str | None:
    return status.strip() or None if isinstance(status, str) else None


def _hyperparameters(run: Run) -> Mapping[str, str]:
    if not run.batch_sizes:
        return run.hyperparameters
    return {"global_batch_size": run.batch_sizes[0], **run.hyperparameters}


def _count(value: Any) -> int | None:
    text = str(value).strip()
    return int(text) or None if _COUNT.fullmatch(text) else None


def hardware_of(value: Any) -> str | None:
    """Return the accelerator without remarks: ``A100 (400W)`` is ``A100``."""
    if not isinstance(value, str):
        return None
    return plain(_IN_BRACKETS.sub("", value)) or None


def framework_of(value: Any) -> str | None:
    """Return the first word, without version and commit."""
    if not isinstance(value, str) or not value.split():
        return None
    return plain(value.split()[0]) or None


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
        reason = error.strerror if isinstance(error, OSError) else "the file is not UTF-8 text"
        raise UserError(f"{path}: cannot be read: {reason}") from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        return list(_scores_in(reader, path, argument))
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: {error}") from error


def _scores_in(reader: csv.DictReader[str], path: Path, argument: int) -> Iterator[Result]:
    """Yield the score of each line that has one.

    Raises:
        UserError: a column is missing, or a cell is not as it should be.
    """
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
            yield _score_of_line(f"{path}:{reader.line_num}", cells, minutes, argument)


def _score_of_line(where: str, cells: Mapping[str, str], minutes: str, argument: int) -> Result:
    """Return the score in the cells of a line; ``minutes`` is the column that holds it.

    Raises:
        UserError: a cell is not as it should be.
    """
    if not cells["benchmark"]:
        raise UserError(f"{where}: benchmark is empty; expected a name")
    round_ = _ROUND.fullmatch(cells.get("round", ""))
    if cells.get("round") and not round_:
        raise UserError(f"{where}: round is {cells['round']!r}; expected a round such as 2.0")
    return Result(
        argument=argument,
        round=round_ and round_[1],
        submitter=cells.get("submitter") or None,
        system=cells["system"] or "unnamed system",
        system_name=None,
        benchmark=cells["benchmark"],
        division=cells.get("division") or None,
        minutes=_positive_cell(where, cells, minutes),
        path=where,
        note="a published score",
        accelerators=_count_cell(where, cells, "accelerators"),
        nodes=_count_cell(where, cells, "nodes"),
        energy_joules=_positive_cell(where, cells, "energy_joules"),
        availability=cells.get("availability") or None,
    )


def _positive_cell(where: str, cells: Mapping[str, str], name: str) -> float | None:
    text = cells.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UserError(f"{where}: {name} is {text!r}; expected a number above 0")
    return value


def _count_cell(where: str, cells: Mapping[str, str], name: str) -> int | None:
    value = _positive_cell(where, cells, name)
    if value is None:
        return None
    if not value.is_integer():
        raise UserError(f"{where}: {name} is {cells[name]!r}; expected a whole number")
    return int(value)


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
            if record.key in _THROUGHPUTS:
                rate = _throughput(record.value)
                if rate is not None:
                    rates.append(rate)
            elif record.key in _PRECISIONS:
                precisions.update(dict.fromkeys(_precision(record.value)))
            elif record.key in _READ:
                records.append(record)
    return Training(_rate(run, records), median(rates) if rates else None, tuple(precisions))


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values other than None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None


def _throughput(value: Any) -> float | None:
    return _positive(value.get("throughput") if isinstance(value, dict) else value)


def _positive(value: Any) -> float | None:
    number = to_finite(value)
    return number if number is not None and number > 0 else None


def _precision(value: Any) -> list[str]:
    """``FLOAT 16.16`` is 16.16; text of another form stays as it is."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return []
    text = str(value).strip()
    if not text:
        return []
    return _X_Y.findall(text) or [text]


# ---- samples per second -------------------------------------------------------------------


def _rate(run: Run, records: Sequence[Record]) -> float | None:
    rules = load_benchmark(run.usage, run.round, run.benchmark)
    start = run.start_ms
    stop = run.stop_ms
    if rules is None or not run.converged or start is None or stop is None:
        return None
    end = stop
    evaluated = [r for r in records if r.key in evaluations.KEYS and start < r.time_ms <= stop]
    if evaluated:
        converged = [record for record in evaluated if _is_converged(record, run, rules)]
        last = (converged or evaluated)[-1]
        end = float(last.time_ms)
    samples = _trained(run, rules, records, start)
    if not samples or end <= start:
        return None
    return _positive(samples / ((end - start) / 1000))


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
        return _samples_of_epochs(reached, run, rules, records)
    batch_sizes = [record.value for record in records if record.key == "global_batch_size"]
    batch = _positive(batch_sizes[-1]) if batch_sizes else None
    if rules.unit == "steps":
        return reached * batch if batch else None
    if not batch or reached >= _FEWEST_STEPS * batch:
        return reached
    return _samples([record for record in records if record.time_ms > start_ms])


def _samples_of_epochs(
    reached: float, run: Run, rules: Benchmark, records: Sequence[Record]
) -> float | None:
    epochs = rules.epochs
    done = reached - epochs.numbered_from
    if done <= 0 or (epochs.at_most is not None and done > epochs.at_most):
        return None
    # The data set of the Closed division has the size in the rules: some logs count batches.
    size: float | None = epochs.samples if run.division == "closed" else None
    if not size:
        size = _samples(records)
    return None if size is None else done * size


def _samples(records: Sequence[Record]) -> float | None:
    """Return the last number of samples logged, None if there is none."""
    values = [record.value for record in records if record.key == "train_samples"]
    if not values:
        return None
    last = values[-1]
    if isinstance(last, list) and last:
        last = last[-1]
    return _positive(last)
