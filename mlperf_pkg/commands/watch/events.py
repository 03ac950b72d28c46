"""What is told of a run while it is followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from mlperf_pkg.commands.watch.forecast import Forecast
from mlperf_pkg.findings import Finding


class Event(Struct, frozen=True):
    """Something that happened to the log ``path``. ``event`` is what JSON calls it."""

    event: ClassVar[str] = ""
    path: str


class State(Event, frozen=True):
    """What became of the file: ``change`` in one word, ``message`` in a sentence."""

    event: ClassVar[str] = "state"
    change: str
    message: str


class Identified(Event, frozen=True):
    """The log has told what it is, so that its rules are known."""

    event: ClassVar[str] = "run"
    benchmark: str
    division: str
    round: str
    round_reason: str
    target: str


class Found(Event, frozen=True):
    """A finding that stands whatever comes."""

    event: ClassVar[str] = "finding"
    finding: Finding


class Open(Event, frozen=True):
    """At ``run_start``: keys that the rules ask for and that are not logged yet."""

    event: ClassVar[str] = "open"
    missing: tuple[str, ...]


class Evaluated(Event, frozen=True):
    """One evaluation; ``minutes`` since ``run_start``, ``position`` in ``unit``."""

    event: ClassVar[str] = "evaluation"
    minutes: float
    position: float
    unit: str
    values: Mapping[str, float]
    met: bool


class Progress(Event, frozen=True):
    """How far the run is; ``forecast`` None where its end cannot be told."""

    event: ClassVar[str] = "progress"
    minutes: float
    forecast: Forecast | None

    @property
    def remaining(self) -> float | None:
        """Minutes until the expected end, if that can be told; none when it is overdue."""
        return max(0.0, self.forecast.minutes - self.minutes) if self.forecast else None


class Lost(Event, frozen=True):
    """The run is lost; ``reason`` says by what."""

    event: ClassVar[str] = "lost"
    reason: str


class Ended(Event, frozen=True):
    """``run_stop`` was logged, and the file grows no more."""

    event: ClassVar[str] = "end"
    status: str | None
    minutes: float | None
    lost: bool
    errors: int
    warnings: int
