"""What is told of a run while it is followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mlperf_pkg.diagnostics import Diagnostic
from mlperf_pkg.watch.forecast import Forecast


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the log ``path``. ``event`` is what JSON calls it."""

    event: ClassVar[str] = ""
    path: str


@dataclass(frozen=True, slots=True)
class State(Event):
    """What became of the file: ``change`` in one word, ``message`` in a sentence."""

    event: ClassVar[str] = "state"
    change: str
    message: str


@dataclass(frozen=True, slots=True)
class Identified(Event):
    """The log has told what it is, so that its rules are known."""

    event: ClassVar[str] = "run"
    benchmark: str
    division: str
    round: str
    round_reason: str
    target: str


@dataclass(frozen=True, slots=True)
class Found(Event):
    """A finding that stands whatever comes."""

    event: ClassVar[str] = "finding"
    finding: Diagnostic


@dataclass(frozen=True, slots=True)
class Open(Event):
    """At ``run_start``: keys that the rules ask for and that are not logged yet."""

    event: ClassVar[str] = "open"
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluated(Event):
    """One evaluation; ``minutes`` since ``run_start``, ``position`` in ``unit``."""

    event: ClassVar[str] = "evaluation"
    minutes: float
    position: float
    unit: str
    values: Mapping[str, float]
    met: bool


@dataclass(frozen=True, slots=True)
class Progress(Event):
    """How far the run is; ``forecast`` None where its end cannot be told."""

    event: ClassVar[str] = "progress"
    minutes: float
    forecast: Forecast | None

    @property
    def remaining(self) -> float | None:
        """Minutes until the expected end, if that can be told; none when it is overdue."""
        return max(0.0, self.forecast.minutes - self.minutes) if self.forecast else None


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """The run is lost; ``reason`` says by what."""

    event: ClassVar[str] = "lost"
    reason: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """``run_stop`` was logged, and the file grows no more."""

    event: ClassVar[str] = "end"
    status: str | None
    minutes: float | None
    lost: bool
    errors: int
    warnings: int
