"""What a chart of a run needs: its evaluations and phases, from a light pass over its log.

Nothing is judged here: a record that cannot be drawn is left out, as the check has told of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import Benchmark

MS_PER_MINUTE = 60_000
_METRICS = ("eval_accuracy", "eval_error")
_COUNTERS = ("samples_count", "epoch_num", "step_num")
_READ_BYTES = 1 << 20


class Phase(StrEnum):
    """What a run is doing; a block stands in for epochs where none are logged."""

    INIT = "initialisation"
    EPOCH = "epoch"
    BLOCK = "block"
    EVALUATION = "evaluation"


_PHASES = {"init": Phase.INIT, "epoch": Phase.EPOCH, "block": Phase.BLOCK, "eval": Phase.EVALUATION}
_EDGES = {f"{name}_{edge}" for name in _PHASES for edge in ("start", "stop")}


class Evaluation(Struct, frozen=True):
    """One evaluation of one metric.

    ``at`` is how far the run had trained, in the benchmark's unit. ``metric`` is empty where the
    benchmark has but one.
    """

    at: float
    value: float
    metric: str = ""


class Span(Struct, frozen=True):
    """A phase of a run, in minutes from its start; initialisation lies before it."""

    phase: Phase
    start: float
    stop: float


class Curve(Struct, frozen=True):
    """The evaluations of one run in the order of its log, and its phases in that of their end."""

    path: str
    evaluations: tuple[Evaluation, ...] = ()
    spans: tuple[Span, ...] = ()


class CurveFile(Struct, frozen=True):
    """A log to be drawn, with the rules of its benchmark."""

    source: Source
    rules: Benchmark | None = None


def read_curve(file: CurveFile) -> Curve:
    """The curve of one run; an empty one where the log does not tell when the run started.

    Raises:
        OSError: the log cannot be read.
    """
    reading = _Reading(file.rules)
    with file.source.open() as stream:
        for record in LogReader(stream, file.source.label, lambda _: None):
            if record is not None and isinstance(record.key, str):
                reading.take(record)
    return reading.curve(file.source.label)


def raw_lines(source: Source, numbers: Collection[int], limit: int) -> dict[int, str]:
    """Return the text of the lines of these ``numbers``, each up to ``limit`` characters.

    Raises:
        OSError: the file cannot be read.
    """
    found: dict[int, str] = {}
    last, line, start = max(numbers, default=0), 1, True
    with source.open() as stream:
        while line <= last and (piece := stream.readline(_READ_BYTES)):
            if start and line in numbers:
                text = piece.decode("utf-8", "replace").strip()
                found[line] = text if len(text) <= limit else f"{text[: limit - 3]}..."
            start = piece.endswith(b"\n")
            line += start
    return found


def goal(target: Mapping[str, Any]) -> float | None:
    """The bound that training works towards; None where a target is no such bound.

    A bound at 0 or 1 is the end of the metric's own range, and none; one that includes its own
    value comes before one that only fences off what is too good.
    """
    bounds = [target[name] for name in ("at_least", "at_most", "above", "below") if name in target]
    return next((float(bound) for bound in bounds if bound not in (0, 1)), None)


def goals(rules: Benchmark | None) -> dict[str, float]:
    """The ``goal`` of each metric, by its name, which is empty for the only one."""
    if rules is None:
        return {}
    several = rules.target.get("fields") or {"": rules.target}
    found = {name: goal(target) for name, target in several.items()}
    return {name: bound for name, bound in found.items() if bound is not None}


class _Reading(Struct):
    """The state of the pass; spans are in milliseconds until its end."""

    rules: Benchmark | None
    start_ms: float | None = None
    evaluations: list[Evaluation] = field(default_factory=list)
    spans: list[tuple[Phase, float, float]] = field(default_factory=list)
    began: dict[str, float] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        if record.key in _METRICS:
            self._evaluate(record)
        elif record.key in _EDGES:
            self._edge(record)
        elif record.key == "run_start" and self.start_ms is None:
            self.start_ms = float(record.time_ms)

    def curve(self, path: str) -> Curve:
        start = self.start_ms
        if start is None:
            return Curve(path)
        return Curve(
            path,
            tuple(self.evaluations),
            tuple(
                Span(phase, (begin - start) / MS_PER_MINUTE, (end - start) / MS_PER_MINUTE)
                for phase, begin, end in self._told()
            ),
        )

    def _told(self) -> Iterable[tuple[Phase, float, float]]:
        epochs = any(phase is Phase.EPOCH for phase, _, _ in self.spans)
        return (span for span in self.spans if not (epochs and span[0] is Phase.BLOCK))

    def _evaluate(self, record: Record) -> None:
        metadata = record.metadata if isinstance(record.metadata, dict) else {}
        at = self._position(metadata)
        for metric, value in self._metrics(record.value, metadata):
            if at is not None and (number := _number(value)) is not None:
                self.evaluations.append(Evaluation(at, number, metric))

    def _position(self, metadata: Mapping[str, Any]) -> float | None:
        own = (self.rules.counted_by,) if self.rules else ()
        named = next((name for name in (*own, *_COUNTERS) if name in metadata), None)
        return None if named is None else _number(metadata[named])

    def _metrics(self, value: Any, metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        if isinstance(value, dict):
            yield from value.items()
        elif self.rules and self.rules.joined:
            yield str(metadata.get(self.rules.joined.name, "")), value
        else:
            yield "", value

    def _edge(self, record: Record) -> None:
        name, _, edge = record.key.partition("_")
        if edge == "start":
            self.began.setdefault(name, float(record.time_ms))
        elif (begin := self.began.pop(name, None)) is not None:
            self.spans.append((_PHASES[name], begin, float(record.time_ms)))


def _number(value: Any) -> float | None:
    """A finite number; None for anything else that a log may hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
