"""How fast a run trained: the samples until it converged over their time, and what it logs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from statistics import median
from typing import Any

from msgspec import Struct, field

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark, Epochs
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.evaluations import position_of
from mlperf_pkg.run.model import Run

_PRECISIONS = frozenset({"precision", "precision_mode", "numerical_precision"})
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
    rules = load_benchmark(run.usage, run.round, run.benchmark)
    reading = _Reading(run, rules)
    with source.open() as stream:
        for record in LogReader(stream, source.label, lambda _: None):
            if record is not None and isinstance(record.key, str):
                reading.take(record)
    rate = _rate(reading, run, rules) if rules else None
    logged = median(reading.throughputs) if reading.throughputs else None
    return Training(rate, logged, tuple(reading.precisions))


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values other than None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None


class _Reading(Struct):
    """The state of the pass; ``batch`` and ``samples`` are the last logged numbers.

    ``trained`` is a number of samples that was logged after ``run_start``.
    """

    run: Run
    rules: Benchmark | None
    converged_ms: float | None = None
    last_ms: float | None = None
    batch: float | None = None
    samples: float | None = None
    trained: float | None = None
    throughputs: list[float] = field(default_factory=list)
    precisions: dict[str, None] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        if record.key in evaluations.KEYS:
            self._evaluation(record)
        elif record.key == "train_samples":
            self._samples(record)
        elif record.key == "global_batch_size":
            self.batch = _positive(record.value)
        elif record.key in _PRECISIONS:
            self.precisions |= dict.fromkeys(_precision(record.value))
        elif record.key in ("throughput", "tracked_stats"):
            self._throughput(record.value)

    def _evaluation(self, record: Record) -> None:
        start, stop = self.run.start_ms, self.run.stop_ms
        if start is None or stop is None or not start < record.time_ms <= stop:
            return
        self.last_ms = float(record.time_ms)
        position = position_of(record, self.rules)
        reached = to_finite(self.run.convergence.to_converge)
        if position is None or reached is None:
            return
        if round(position.amount, _DECIMALS) == round(reached, _DECIMALS):
            self.converged_ms = self.last_ms

    def _samples(self, record: Record) -> None:
        value = record.value
        if isinstance(value, list) and value:
            value = value[-1]
        if self.run.start_ms is not None and record.time_ms > self.run.start_ms:
            self.trained = _positive(value)
        self.samples = _positive(value)

    def _throughput(self, value: Any) -> None:
        rate = _positive(value.get("throughput") if isinstance(value, dict) else value)
        if rate is not None:
            self.throughputs.append(rate)


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


def _rate(reading: _Reading, run: Run, rules: Benchmark) -> float | None:
    end = reading.converged_ms or reading.last_ms or run.stop_ms
    if not run.converged or run.start_ms is None or end is None:
        return None
    samples = _trained(reading, run, rules)
    seconds = (end - run.start_ms) / 1000
    return _positive(samples / seconds) if samples and seconds > 0 else None


def _trained(reading: _Reading, run: Run, rules: Benchmark) -> float | None:
    """The samples until convergence; None if the log does not say."""
    reached = _positive(run.convergence.to_converge) if run.convergence.converged else None
    if reached is None or rules.unit == "tokens":
        return reached
    if rules.unit == "epochs":
        return _of_epochs(reading, reached, rules.epochs, closed=run.division == "closed")
    if rules.unit == "steps":
        return reached * reading.batch if reading.batch else None
    plausible = not reading.batch or reached >= _FEWEST_STEPS * reading.batch
    return reached if plausible else reading.trained


def _of_epochs(reading: _Reading, reached: float, epochs: Epochs, *, closed: bool) -> float | None:
    """The data set of the Closed division has the size in the rules: some logs count batches."""
    size = epochs.samples if closed and epochs.samples else reading.samples
    done = reached - epochs.numbered_from
    if size is None or done <= 0 or (epochs.at_most is not None and done > epochs.at_most):
        return None
    return done * size
