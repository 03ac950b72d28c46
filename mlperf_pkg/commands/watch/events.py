"""The events of a run while it is followed, as lines of text or of JSON."""

import json as jsonlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from math import isfinite

from msgspec import Struct

from mlperf_pkg.commands.watch.forecast import Forecast
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json

_HOUR = 60
_METHODS = {
    "reference": "if the run converges like the reference",
    "curve": "if the curve of the run continues",
}


class WatchEvent(Struct, frozen=True):
    """Something that happened to a log; the tag names its kind in JSON."""

    def lines(self, path: str, now: datetime) -> Iterator[str]:
        """Yield the event of the log ``path`` as text; ``now`` is the local time."""
        yield f"{path}: {self.words(now)}"

    def words(self, _: datetime) -> str:
        """Return what happened."""
        raise NotImplementedError


class FileState(WatchEvent, frozen=True, tag="state"):
    """A change of the file: ``change`` in one word, ``message`` in a sentence."""

    change: str
    message: str

    def words(self, _: datetime) -> str:
        """Return the message."""
        return self.message


class Identified(WatchEvent, frozen=True, tag="run"):
    """The log has named its benchmark, so that its rules are known."""

    benchmark: str
    division: str
    round: str
    round_reason: str
    target: str

    def words(self, _: datetime) -> str:
        """Return the benchmark, by which rules, and the target."""
        subject = f"{self.benchmark}, {self.division or 'no division'}, round {self.round}"
        return f"{subject} ({self.round_reason}); target {self.target or 'unknown'}"


class Found(WatchEvent, frozen=True, tag="finding"):
    """A finding that no later record can change."""

    finding: Finding

    def lines(self, _: str, __: datetime) -> Iterator[str]:
        """Yield the finding as ``check`` does."""
        finding = self.finding
        place = findings.location(finding)
        severity = wording.severity(finding)
        yield f"{place}: {severity} {findings.label(finding)}: {findings.sentence(finding)}"
        yield from (f"  {remark}" for remark in findings.remarks(finding))


class Open(WatchEvent, frozen=True, tag="open"):
    """At ``run_start``: the keys that the rules require and that are not logged yet."""

    missing: tuple[str, ...]

    def words(self, _: datetime) -> str:
        """Return the keys."""
        return (
            "these keys are not logged yet at run_start; expected by the end of the run:"
            f" {', '.join(self.missing)}"
        )


class Evaluated(WatchEvent, frozen=True, tag="evaluation"):
    """One evaluation, ``minutes`` after ``run_start``.

    ``position`` is how far the run had trained, in ``unit``; ``met`` says that the target is met.
    """

    minutes: float
    position: float
    unit: str
    values: Mapping[str, float]
    met: bool

    def words(self, _: datetime) -> str:
        """Return when it was, how far the run had trained, and the values."""
        values = ", ".join(f"{name} {value:g}".strip() for name, value in self.values.items())
        trained = f"{round(self.position, 4):,} {self.unit}"
        text = f"{duration(self.minutes)}, {trained}: "
        if not all(map(isfinite, self.values.values())):
            return f"{text}warning: the value is not a finite number"
        text += values
        if self.met:
            text += ", target reached"
        return text


class Progress(WatchEvent, frozen=True, tag="progress"):
    """How far the run is; ``forecast`` is None if its end cannot be predicted."""

    minutes: float
    forecast: Forecast | None

    def words(self, now: datetime) -> str:
        """Return the share of the run that is done, and its end as a time of day."""
        elapsed = f"{duration(self.minutes)} since run_start"
        expected = self.forecast
        if expected is None:
            return f"{elapsed}, no forecast yet"
        length = duration(expected.minutes)
        remaining = expected.minutes - self.minutes
        if remaining <= 0:
            return f"{elapsed}; the run was expected to end after {length}"
        end = now + timedelta(minutes=min(remaining, 1e6))
        time = f"{end:%Y-%m-%d %H:%M}"
        if end.date() == now.date():
            time = f"{end:%H:%M}"
        latest = "or later"
        if expected.high is not None:
            latest = f"to {duration(expected.high)}"
        share = 100 * self.minutes / expected.minutes
        return (
            f"{elapsed}, {share:.0f} %, ends about {time},"
            f" {_METHODS[expected.method]}, after {length} ({duration(expected.low)} {latest})"
        )


class Lost(WatchEvent, frozen=True, tag="lost"):
    """The run is lost: it can no longer count."""

    reason: str

    def words(self, _: datetime) -> str:
        """Return the reason."""
        return f"LOST: {self.reason}"


class Ended(WatchEvent, frozen=True, tag="end"):
    """``run_stop`` was logged, and the file no longer grows."""

    status: str | None
    minutes: float | None
    lost: bool
    errors: int
    warnings: int

    def words(self, _: datetime) -> str:
        """Return how the run ended."""
        minutes = "no time"
        if self.minutes is not None:
            minutes = f"{wording.minutes(self.minutes)} minutes"
        errors = wording.counted(self.errors, "error")
        warnings = wording.counted(self.warnings, "warning")
        text = f"ended with {self.status or 'no status'}: {minutes}, {errors}, {warnings}"
        if self.lost:
            text += ", LOST"
        return text


def text(named: tuple[str, WatchEvent], now: datetime) -> str:
    """Return the path of a log and its event as complete lines; ``now`` is the local time."""
    path, event = named
    return "".join(f"{visible(line)}\n" for line in event.lines(path, now))


def json(named: tuple[str, WatchEvent], _: datetime) -> str:
    """Return the path of a log and its event as one line of JSON."""
    path, event = named
    fields = {"event": event.__struct_config__.tag, "path": as_json(path), **as_json(event)}
    return jsonlib.dumps(fields, allow_nan=False) + "\n"


EVENT_FORMATS = {"text": text, "json": json}


def duration(minutes: float) -> str:
    """Return minutes as text: ``45 s``, ``12.5 min``, ``3 h 05 min``."""
    if minutes < 1:
        return f"{minutes * 60:.0f} s"
    if minutes < _HOUR:
        return f"{minutes:.1f} min"
    hours, rest = divmod(round(minutes), _HOUR)
    return f"{hours} h {rest:02} min"
