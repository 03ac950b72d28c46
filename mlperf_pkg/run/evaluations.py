"""The evaluations in a log: how far a run had trained, and what quality it had reached.

Every figure and chart that needs evaluations reads them here, so that all agree on what a record
means. The verdicts do not: ``run/convergence.py`` reads what the official RCP checker reads.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from math import isfinite
from typing import Any, Self

from msgspec import Struct, msgpack

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.streams import FilePart, kept
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import EVALUATION_KEYS, POSITION_UNITS, Benchmark

KEYS = EVALUATION_KEYS
_LARGEST = 1e100  # products of larger numbers overflow

Number = int | float


class Evaluation(Struct, frozen=True, array_like=True):
    """One evaluation record.

    ``time_ms`` is in milliseconds since the epoch, ``line`` the 1-based line of the log.
    ``position`` is how far the run had trained, in ``unit``; see ``position_of``.
    ``values`` are the finite numbers by metric name; the name is empty for the only metric of a
    benchmark. There are none if the value is not a number.
    """

    key: str
    time_ms: float
    line: int
    position: Number
    unit: str
    values: Mapping[str, Number]


def evaluation_of(record: Record, rules: Benchmark | None, line: int) -> Evaluation | None:
    """Return an evaluation, read by the rules of its benchmark if there are any.

    None if the record does not say how far the run had trained.
    """
    place = position_of(record, rules)
    if place is None:
        return None
    position, unit = place
    values = {}
    for name, value in _metrics(record, rules):
        number = _measured(value)
        if number is not None:
            values[name] = number
    return Evaluation(record.key, float(record.time_ms), line, position, unit, values)


def position_of(record: Record, rules: Benchmark | None) -> tuple[float, str] | None:
    """Return how far a run had trained at a record, and the unit; None if its metadata do not say.

    Many logs hold several counts. The one that the rules count convergence by comes first; then
    ``samples_count``, ``epoch_num`` and ``step_num``. The first that is a number counts.
    """
    metadata = _metadata(record)
    if rules and _measured(metadata.get(rules.counted_by)) is not None:
        return metadata[rules.counted_by], rules.unit
    for name, unit in POSITION_UNITS.items():
        if _measured(metadata.get(name)) is not None:
            return metadata[name], unit
    return None


def _metrics(record: Record, rules: Benchmark | None) -> Iterator[tuple[str, Any]]:
    if isinstance(record.value, dict):
        yield from record.value.items()
    elif rules and rules.joined:
        yield str(_metadata(record).get(rules.joined.name, "")), record.value
    else:
        yield "", record.value


def _metadata(record: Record) -> Mapping[str, Any]:
    return record.metadata if isinstance(record.metadata, dict) else {}


def _measured(value: Any) -> float | None:
    number = to_finite(value)
    if number is None or abs(number) >= _LARGEST:
        return None
    return number


# ---- the curve of a run, for charts and tables: nothing is judged here -------------------

MS_PER_MINUTE = 60_000


class Phase(StrEnum):
    """A phase of a run; a block takes the place of epochs if none are logged."""

    INIT = "initialisation"
    EPOCH = "epoch"
    BLOCK = "block"
    EVALUATION = "evaluation"


_PHASES = {"init": Phase.INIT, "epoch": Phase.EPOCH, "block": Phase.BLOCK, "eval": Phase.EVALUATION}


class PhaseSpan(Struct, frozen=True, array_like=True):
    """A phase of a run, in minutes from its start; initialisation is before it."""

    phase: Phase
    start: float
    stop: float


class Curve(Struct, frozen=True, array_like=True):
    """The evaluations of one run in the order of its log, and its phases in that of their ends."""

    evaluations: tuple[Evaluation, ...] = ()
    spans: tuple[PhaseSpan, ...] = ()


class PackedCurve(Struct, frozen=True):
    """A curve in a fifth of the memory, or in a temporary file.

    ``packed`` is the curve itself where only Python can hold it.
    """

    packed: bytes | FilePart | Curve

    @classmethod
    def of(cls, curve: Curve) -> Self:
        """Pack a curve."""
        try:
            return cls(msgpack.encode(curve))
        except (OverflowError, UnicodeEncodeError):  # a number of 65 bits, a part of a character
            return cls(curve)

    @property
    def _curve(self) -> Curve:
        return self.packed if isinstance(self.packed, Curve) else _unpacked(self.packed)

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """As those of the curve."""
        return self._curve.evaluations

    @property
    def spans(self) -> tuple[PhaseSpan, ...]:
        """As those of the curve."""
        return self._curve.spans


@lru_cache(maxsize=64)  # about a result set, which its charts are drawn of
def _unpacked(curve: bytes | FilePart) -> Curve:
    return msgpack.decode(kept(curve), type=Curve)


def goal(target: Mapping[str, Any]) -> float | None:
    """Return the bound that training works towards; None if a target has no such bound.

    A bound at 0 or 1 does not count: it is the end of the metric's own range. ``at_least`` and
    ``at_most`` come before ``above`` and ``below``, which only exclude what is too good.
    """
    bounds = [target[name] for name in ("at_least", "at_most", "above", "below") if name in target]
    return next((float(bound) for bound in bounds if bound not in (0, 1)), None)


def goals(rules: Benchmark | None) -> dict[str, float]:
    """Return the ``goal`` of each metric by its name, which is empty for the only one."""
    if rules is None:
        return {}
    targets = rules.target.get("fields") or {"": rules.target}
    bounds = {name: goal(target) for name, target in targets.items()}
    return {name: bound for name, bound in bounds.items() if bound is not None}


class CurveReader:
    """Follows the blocks of a log; ``rules`` are those of the benchmark, if it has any.

    ``line_of`` returns the line of a record by its number in the log.
    """

    def __init__(self, rules: Benchmark | None, line_of: Callable[[int], int]) -> None:
        """Start at the head of a log."""
        self._rules = rules
        self._line_of = line_of
        self._start_ms: float | None = None
        self._evaluations: list[Evaluation] = []
        self._intervals: list[tuple[Phase, float, float]] = []  # in milliseconds
        self._began_ms: dict[str, float] = {}

    def take_block(self, block: Block) -> None:
        """Read the next block."""
        starts = block.indexes.get("run_start", ())
        if starts and self._start_ms is None:
            self._start_ms = float(block.times(starts[:1])[0])
        indexes = sorted(chain.from_iterable(block.indexes.get(key, ()) for key in KEYS))
        for index, record in zip(indexes, block.select(indexes), strict=True):
            line = self._line_of(block.first + index)
            evaluation = evaluation_of(record, self._rules, line)
            if evaluation and evaluation.values:
                self._evaluations.append(evaluation)
        ended = chain.from_iterable(self._ended(name, block) for name in _PHASES)
        self._intervals += [interval for _, interval in sorted(ended)]

    def curve(self) -> Curve:
        """Return what was read so far; an empty curve before ``run_start``."""
        if self._start_ms is None:
            return Curve()
        has_epochs = any(phase is Phase.EPOCH for phase, *_ in self._intervals)
        spans = []
        for phase, start_ms, stop_ms in self._intervals:
            if has_epochs and phase is Phase.BLOCK:
                continue
            start = (start_ms - self._start_ms) / MS_PER_MINUTE
            stop = (stop_ms - self._start_ms) / MS_PER_MINUTE
            if isfinite(start) and isfinite(stop):
                spans.append(PhaseSpan(phase, start, stop))
        return Curve(tuple(self._evaluations), tuple(spans))

    def packed(self) -> PackedCurve:
        """Return the same, for whoever keeps many."""
        return PackedCurve.of(self.curve())

    def _ended(self, name: str, block: Block) -> Iterator[tuple[int, tuple[Phase, float, float]]]:
        """Yield the intervals of a phase that end in a block, with the indexes of their ends."""
        starts = block.indexes.get(f"{name}_start", [])
        indexes = sorted([*starts, *block.indexes.get(f"{name}_stop", [])])
        if not indexes:
            return
        beginnings = set(starts)
        for index, time_ms in zip(indexes, block.times(indexes), strict=True):
            if index in beginnings:
                self._began_ms.setdefault(name, float(time_ms))
            elif name in self._began_ms:
                yield index, (_PHASES[name], self._began_ms.pop(name), float(time_ms))
