"""Events as lines of text or of JSON."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from mlperf_pkg.commands.watch import events
from mlperf_pkg.commands.watch.events import Event
from mlperf_pkg.commands.watch.forecast import Forecast, Method
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json

_HOUR = 60
_METHODS = {
    Method.REFERENCE: "by the reference",
    Method.CURVE: "roughly, by the curve",
}


def text(event: Event, now: datetime) -> str:
    """Return an event as one or more complete lines; ``now`` is the local time."""
    return "".join(f"{visible(line)}\n" for line in _TEXTS[type(event)](event, now))


def json(event: Event, _: datetime) -> str:
    """Return an event as one line of JSON."""
    return jsonlib.dumps({"event": event.event, **as_json(event)}, allow_nan=False) + "\n"


EVENT_FORMATS: Mapping[str, Callable[[Event, datetime], str]] = {"text": text, "json": json}


def status(path: str, progress: events.Progress | None, now: datetime) -> str:
    """Return how far a run is now, in one line."""
    state = "not started" if progress is None else _progress(progress, now)
    return visible(f"{path}: {state}")


def duration(minutes: float) -> str:
    """Return minutes as text: ``45 s``, ``12.5 min``, ``3 h 05 min``."""
    if minutes < 1:
        return f"{minutes * 60:.0f} s"
    if minutes < _HOUR:
        return f"{minutes:.1f} min"
    hours, rest = divmod(round(minutes), _HOUR)
    return f"{hours} h {rest:02} min"


def _state(event: events.State, _: datetime) -> Iterator[str]:
    yield f"{event.path}: {event.message}"


def _identified(event: events.Identified, _: datetime) -> Iterator[str]:
    subject = f"{event.benchmark}, {event.division or 'no division'}, round {event.round}"
    yield f"{event.path}: {subject} ({event.round_reason}); target {event.target or 'unknown'}"


def _found(event: events.Found, _: datetime) -> Iterator[str]:
    finding = event.finding
    location, severity = findings.location(finding), wording.severity(finding)
    yield f"{location}: {severity} {findings.label(finding)}: {findings.sentence(finding)}"
    yield from (f"  {remark}" for remark in findings.remarks(finding))


def _open(event: events.Open, _: datetime) -> Iterator[str]:
    yield f"{event.path}: not logged at run_start; expected by the end: {', '.join(event.missing)}"


def _evaluated(event: events.Evaluated, _: datetime) -> Iterator[str]:
    values = ", ".join(f"{name} {value:g}".strip() for name, value in event.values.items())
    reached = ", target reached" if event.met else ""
    at = f"{round(event.position, 4):,} {event.unit}"
    yield f"{event.path}: {duration(event.minutes)}, {at}: {values}{reached}"


def _advanced(event: events.Progress, now: datetime) -> Iterator[str]:
    yield f"{event.path}: {_progress(event, now)}"


def _progress(event: events.Progress, now: datetime) -> str:
    elapsed = f"{duration(event.minutes)} since run_start"
    if event.forecast is None or event.remaining is None:
        return f"{elapsed}, no forecast yet"
    return f"{elapsed}, {_expected(event.forecast, event.minutes, event.remaining, now)}"


def _expected(expected: Forecast, minutes: float, remaining: float, now: datetime) -> str:
    """Return the share of the run that is done, and its end as a time of day."""
    if not remaining:
        return f"expected to end after {duration(expected.minutes)}: overdue"
    end = now + timedelta(minutes=min(remaining, 1e6))
    at = f"{end:%H:%M}" if end.date() == now.date() else f"{end:%Y-%m-%d %H:%M}"
    latest = "or later" if expected.high is None else f"to {duration(expected.high)}"
    span = f"{duration(expected.low)} {latest}"
    share = 100 * minutes / expected.minutes
    return (
        f"{share:.0f} %, ends about {at}, {_METHODS[expected.method]},"
        f" after {duration(expected.minutes)} ({span})"
    )


def _lost(event: events.Lost, _: datetime) -> Iterator[str]:
    yield f"{event.path}: LOST: {event.reason}"


def _ended(event: events.Ended, _: datetime) -> Iterator[str]:
    minutes = "no time" if event.minutes is None else f"{wording.minutes(event.minutes)} minutes"
    errors = wording.counted(event.errors, "error")
    warnings = wording.counted(event.warnings, "warning")
    facts = ", ".join([minutes, errors, warnings, *(["LOST"] if event.lost else [])])
    yield f"{event.path}: ended with {event.status or 'no status'}: {facts}"


_TEXTS: Mapping[type[Event], Callable[..., Iterator[str]]] = {
    events.State: _state,
    events.Identified: _identified,
    events.Found: _found,
    events.Open: _open,
    events.Evaluated: _evaluated,
    events.Progress: _advanced,
    events.Lost: _lost,
    events.Ended: _ended,
}
