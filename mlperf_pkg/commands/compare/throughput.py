"""How fast a run trained: samples until it converged over the time they took, and what it logs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from statistics import median
from typing import Any

from msgspec import Struct, field

from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark, Epochs
from mlperf_pkg.run.model import Run

_EVALUATIONS = frozenset({"eval_accuracy", "eval_error"})
_POSITIONS = ("samples_count", "step_num", "epoch_num")
_PRECISIONS = frozenset({"precision", "precision_mode", "numerical_precision"})
_X_Y = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")
# No benchmark converges in so few steps: what is logged is then no number of samples. Some runs
# of BERT number their steps or epochs.
_FEWEST_STEPS = 50


class Training(Struct, frozen=True):
    """What one log says of its speed.

    ``samples_per_second`` counts from ``run_start`` to the evaluation that converged; tokens where
    the benchmark counts those. ``logged_throughput`` is the median of what the run logs under
    ``throughput`` or, in ``tracked_stats``, of that name, in units of its own. ``precision`` is
    what it logs of the format of numbers, as X.Y (activations.weights) where it says so.
    """

    samples_per_second: float | None = None
    logged_throughput: float | None = None
    precision: tuple[str, ...] = ()


def read_training(source: Source, run: Run) -> Training:
    """What the log of a run, read once more, says of its speed.

    Raises:
        OSError: it cannot be read.
    """
    seen = _Seen(run)
    with source.open() as stream:
        for record in LogReader(stream, source.label, lambda _: None):
            if record is not None and isinstance(record.key, str):
                seen.see(record)
    return Training(_rate(seen, run), _median(seen.throughputs), tuple(seen.precisions))


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there; None without any."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


class _Seen(Struct):
    """What matters in the records of a log; ``samples`` and so on are the last numbers logged."""

    run: Run
    converged_ms: float | None = None
    last_ms: float | None = None
    batch: float | None = None
    samples: float | None = None
    trained: float | None = None  # a number of samples that is logged at the end
    throughputs: list[float] = field(default_factory=list)
    precisions: dict[str, None] = field(default_factory=dict)

    def see(self, record: Record) -> None:
        if record.key in _EVALUATIONS:
            self._evaluation(record)
        elif record.key == "train_samples":
            self._samples(record)
        elif record.key == "global_batch_size":
            self.batch = number(record.value)
        elif record.key in _PRECISIONS:
            self.precisions |= dict.fromkeys(_precision(record.value))
        elif record.key in ("throughput", "tracked_stats"):
            self._throughput(record.value)

    def _evaluation(self, record: Record) -> None:
        start, stop = self.run.start_ms, self.run.stop_ms
        if start is None or stop is None or not start < record.time_ms <= stop:
            return
        self.last_ms = float(record.time_ms)
        if _position(record) == self.run.convergence.to_converge:
            self.converged_ms = self.last_ms

    def _samples(self, record: Record) -> None:
        value = record.value[-1] if _is_list(record.value) else record.value
        if self.run.start_ms is not None and record.time_ms > self.run.start_ms:
            self.trained = number(value)
        self.samples = number(value)

    def _throughput(self, value: Any) -> None:
        rate = number(value.get("throughput") if isinstance(value, dict) else value)
        if rate is not None:
            self.throughputs.append(rate)


def number(value: Any) -> float | None:
    """A finite number above zero; None for anything else, as logs hold anything."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if 0 < found < math.inf else None


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _position(record: Record) -> Any:
    """Where an evaluation stands, as the RCP test reads it."""
    fields = record.metadata if isinstance(record.metadata, dict) else {}
    value = next((fields[name] for name in _POSITIONS if name in fields), None)
    return round(value, 3) if isinstance(value, float) and math.isfinite(value) else value


def _median(values: list[float]) -> float | None:
    return median(values) if values else None


def _precision(value: Any) -> list[str]:
    """``FLOAT 16.16`` is 16.16; anything else is as it stands."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return []
    text = str(value).strip()
    return _X_Y.findall(text) or ([text] if text else [])


# ---- samples a second ---------------------------------------------------------------------


def _rate(seen: _Seen, run: Run) -> float | None:
    rules = load_benchmark(run.usage, run.round, run.benchmark)
    end = seen.converged_ms or seen.last_ms or run.stop_ms
    if rules is None or not run.converged or run.start_ms is None or end is None:
        return None
    samples = _trained(seen, run, rules)
    seconds = (end - run.start_ms) / 1000
    return number(samples / seconds) if samples and seconds > 0 else None


def _trained(seen: _Seen, run: Run, rules: Benchmark) -> float | None:
    """The samples until convergence, None where the log does not tell."""
    reached = number(run.convergence.to_converge) if run.convergence.converged else None
    if reached is None or rules.unit == "tokens":
        return reached
    if rules.unit == "epochs":
        return _of_epochs(seen, reached, rules.epochs, run.division == "closed")
    if rules.unit == "steps":
        return reached * seen.batch if seen.batch else None
    plausible = not seen.batch or reached >= _FEWEST_STEPS * seen.batch
    return reached if plausible else seen.trained


def _of_epochs(seen: _Seen, reached: float, epochs: Epochs, closed: bool) -> float | None:
    """The data set of the Closed division is that of the rules: some logs count its batches."""
    size = epochs.samples if closed and epochs.samples else seen.samples
    done = reached - epochs.numbered_from
    if size is None or done <= 0 or (epochs.at_most is not None and done > epochs.at_most):
        return None
    return done * size
