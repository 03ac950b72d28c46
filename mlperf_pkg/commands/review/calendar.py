"""The calendar of a review: its dates by the rules, or as the chair changed them in calendar.yaml.

Source: submission_rules, Schedule; training_rules, Handling RCP Failures.
"""

import re
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, date, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.plain_yaml import compose, key, kind
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, json_text
from mlperf_pkg.render.terminal import Terminal

NAME = "calendar.yaml"
FORMAT = "mlperf-pkg/calendar/1"

Calendar: TypeAlias = Mapping[str, date]
"""The dates by the names of ``EVENTS``."""

SUBMISSION = "submission"
FRIDAY = 4
_DAY = 0
_MONDAY = 1
EVENTS: Mapping[str, tuple[str, int, int]] = {
    "early_rcps": ("missing reference points of gpt3 and llama31_405b are due", _DAY, -35),
    SUBMISSION: ("submissions are due at 13:00 Pacific, with a grace of 60 minutes", _DAY, 0),
    "rcps": ("all other missing reference points are due", _DAY, 1),
    "objections": ("objections are filed", _MONDAY, 11),
    "evidence": ("evidence for failing RCP tests is due", _MONDAY, 11),
    "answers": ("owners answer the objections", _MONDAY, 14),
    "first_decisions": ("the committee decides", _MONDAY, 15),
    "second_decisions": ("the committee decides what is left", _MONDAY, 17),
    "borrowing": ("intended hyperparameter borrowing is declared", _MONDAY, 21),
    "scores": ("scores are final", _MONDAY, 22),
    "final": ("code and results are final; last day to withdraw or move to Open", _MONDAY, 23),
    "publication": ("week of publication", _MONDAY, 28),
}
"""What is due on each date, and the days from that of submission or the Monday of its week."""


def calendar_of(submission: date) -> dict[str, date]:
    """Return the dates by the rules for a day of submission, a Friday.

    Raises:
        UserError: no review can be in that year.
    """
    if not MINYEAR < submission.year < MAXYEAR:
        raise UserError(f"{submission}: no review can be in that year")
    monday = submission - timedelta(submission.weekday())
    dates = {}
    for name, (_, start, days) in EVENTS.items():
        first = monday if start == _MONDAY else submission
        dates[name] = first + timedelta(days)
    return dates


def calendar_here() -> dict[str, date] | None:
    """Return the dates of ``calendar.yaml`` in the current folder, None if there is none.

    Raises:
        UserError: as ``read_calendar``.
    """
    path = Path(NAME)
    if path.exists():
        return read_calendar(path)
    return None


def read_calendar(path: Path) -> dict[str, date]:
    """Return the dates in a file; those that it lacks are by the rules.

    Raises:
        UserError: the file cannot be read, or has an unknown name or date.
    """
    root: Any = compose(path)
    if root is None or kind(root) != "mapping":
        raise UserError(f"{path}:1: expected dates by name, such as {SUBMISSION}: 2026-10-16")
    dates = {}
    for key_node, node in root.value:
        where = f"{path}:{key_node.start_mark.line + 1}"
        name = key(key_node)
        if name not in EVENTS:
            raise UserError(f"{where}: unknown date {name!r}{did_you_mean(name, EVENTS)}")
        try:
            dates[name] = date.fromisoformat(node.value)
        except (TypeError, ValueError) as error:
            reason = f"{name} is not a date; expected one such as 2026-10-16"
            raise UserError(f"{where}: {reason}") from error
    if SUBMISSION not in dates:
        raise UserError(f"{path}: no date of {SUBMISSION}; the other dates are counted from it")
    return calendar_of(dates[SUBMISSION]) | dates


# ---- formats ------------------------------------------------------------------------------

_LINE = 75  # octets of a line, without its end
_SPECIAL = r"([\\;,])"
_ESCAPED = r"\\\1"
_HEAD = "# The dates of a review. A line that is left out has the date by the rules.\n"


def text(calendar: Calendar, view: View) -> str:
    """Return the dates, one on a line."""
    terminal = Terminal(view)
    for _, day, what in by_date(calendar):
        terminal.paragraph((f"{day:%Y-%m-%d %a}  {what}", PLAIN))
    return terminal.text()


def yaml(calendar: Calendar, _: View) -> str:
    """Return the dates as a file that ``read_calendar`` reads."""
    lines = [f"{name}: {day}  # {what}\n" for name, day, what in by_date(calendar)]
    return _HEAD + "".join(lines)


def json(calendar: Calendar, _: View) -> str:
    """Return the dates as JSON."""
    events = []
    for name, day, what in by_date(calendar):
        events.append({"name": name, "date": f"{day}", "title": what})
    return json_text({"format": FORMAT, "events": events})


def ics(calendar: Calendar, _: View) -> str:
    """Return the dates as days of iCalendar (RFC 5545), the same bytes for the same dates."""
    submission = f"{calendar[SUBMISSION]:%Y%m%d}"
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//mlperf-pkg//review//EN"]
    for name, day, what in by_date(calendar):
        lines += [
            "BEGIN:VEVENT",
            f"UID:{submission}-{name.replace('_', '-')}@mlperf-pkg",
            f"DTSTAMP:{submission}T000000Z",
            f"DTSTART;VALUE=DATE:{day:%Y%m%d}",
            f"SUMMARY:MLPerf review: {re.sub(_SPECIAL, _ESCAPED, what)}",
            "TRANSP:TRANSPARENT",
            "END:VEVENT",
        ]
    lines.append("END:VCALENDAR")
    return "".join(map(_folded, lines))


def by_date(calendar: Calendar) -> list[tuple[str, date, str]]:
    """Return the name, date and description of all that is due, by date."""
    dates = []
    for name, day in calendar.items():
        dates.append((name, day, EVENTS[name][0]))
    return sorted(dates, key=itemgetter(1))


def _folded(line: str) -> str:
    """Return a line of ASCII in pieces, each with its end; all but the first begin with a space."""
    folded = f"{line[:_LINE]}\r\n"
    for start in range(_LINE, len(line), _LINE - 1):
        folded += f" {line[start : start + _LINE - 1]}\r\n"
    return folded


CALENDAR_FORMATS = {"text": text, "yaml": yaml, "ics": ics, "json": json}
