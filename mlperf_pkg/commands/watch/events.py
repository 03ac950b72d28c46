"""The events of a run while it is followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from mlperf_pkg.commands.watch.forecast import Forecast
from mlperf_pkg.findings import Finding


class Event(Struct, frozen=True):
    """Something that happened to the log ``path``; ``event`` is its name in JSON."""

    event: ClassVar[str] = ""
    path: str


class State(Event, frozen=True):
    """A change of the file: ``change`` in one word, ``message`` in a sentence."""

    event: ClassVar[str] = "state"
    change: str
    message: str


class Identified(Event, frozen=True):
    """The log has named its benchmark, so that its rules are known."""

    event: ClassVar[str] = "run"
    benchmark: str
    division: str
    round: str
    round_reason: str
    target: str


class Found(Event, frozen=True):
    """A finding that no later record can change."""

    event: ClassVar[str] = "finding"
    finding: Finding


class Open(Event, frozen=True):
    """At ``run_start``: the keys that the rules require and that are not logged yet."""

    event: ClassVar[str] = "open"
    missing: tuple[str, ...]


class Evaluated(Event, frozen=True):
    """One evaluation, ``minutes`` after ``run_start``.

    ``position`` is how far the run had trained, in ``unit``; ``met`` says that the target is met.
    """

    event: ClassVar[str] = "evaluation"
    minutes: float
    position: float
    unit: str
    values: Mapping[str, float]
    met: bool


class Progress(Event, frozen=True):
    """How far the run is; ``forecast`` is None if its end cannot be predicted."""

    event: ClassVar[str] = "progress"
    minutes: float
    forecast: Forecast | None

    @property
    def remaining(self) -> float | None:
        """Minutes until the expected end, 0 when it is overdue; None if there is no forecast."""
        return max(0.0, self.forecast.minutes - self.minutes) if self.forecast else None


class Lost(Event, frozen=True):
    """The run is lost: it can no longer count."""

    event: ClassVar[str] = "lost"
    reason: str


class Ended(Event, frozen=True):
    """``run_stop`` was logged, and the file no longer grows."""

    event: ClassVar[str] = "end"
    status: str | None
    minutes: float | None
    lost: bool
    errors: int
    warnings: int
