"""The calendar of a review: its dates by the rules, or as the chair changed them in calendar.yaml.

All times are those of the Pacific coast. Source: submission_rules, Schedule; training_rules,
Handling RCP Failures.
"""

import re
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.plain_yaml import compose, key, kind
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, json_text
from mlperf_pkg.render.terminal import Terminal

NAME = "calendar.yaml"
FORMAT = "mlperf-pkg/calendar/1"

Calendar: TypeAlias = Mapping[str, datetime]
"""The dates by the names of ``EVENTS``, without a time zone: that of the Pacific coast."""

SUBMISSION = "submission"
_SUBMISSION_TIME = time(13)
FRIDAY = 4
_NIGHT = time(23, 59)
_FARTHEST = timedelta(183)  # from the date by the rules


class CalendarEvent(Struct, frozen=True):
    """What is due, and the command for it, if any.

    If ``at`` is a time of the day, ``days`` count from the Monday of the week of submission;
    otherwise it is due ``days`` and ``at`` after the submission.
    """

    title: str
    days: int
    at: time | timedelta = _NIGHT
    command: str = ""


_ROUND = "ROUND_FOLDER"
_SAME_TIME = timedelta(0)
_RESULTS = f"mlperf-pkg results {_ROUND} --private-ids ids.json"
_LIST = "mlperf-pkg review objections objections.yaml"
_AGENDA = "mlperf-pkg review agenda objections.yaml"
_REVIEW = f"mlperf-pkg review {_ROUND}"
_DIFF = f"mlperf-pkg diff SUBMITTED_FOLDER {_ROUND}"
EVENTS: Mapping[str, CalendarEvent] = {
    "early_rcps": CalendarEvent(
        "missing reference points of gpt3 and llama31_405b are due", -35, _SAME_TIME
    ),
    "schedule": CalendarEvent(
        "the committee agrees on this schedule",
        -24,
        command="mlperf-pkg review calendar --start DATE -o calendar.yaml",
    ),
    "registration": CalendarEvent("agreements are signed, and contacts are named", -12),
    "repository": CalendarEvent("the repository of submissions is created", -10),
    "trial": CalendarEvent(
        "everybody has tried an upload", -10, command="mlperf-pkg pack SUBMISSION"
    ),
    "write_ups": CalendarEvent("write-ups are due in advance", -3),
    "declining": CalendarEvent("last day for submitters to announce that they will not submit", 3),
    SUBMISSION: CalendarEvent("submissions are due", 0, _SAME_TIME, "mlperf-pkg check SUBMISSION"),
    "first_summary": CalendarEvent(
        "summary of the results", 4, time(13, 30), f"{_RESULTS} --anonymous -o week0"
    ),
    "grace": CalendarEvent("end of the grace period of 60 minutes", 0, timedelta(minutes=60)),
    "rcps": CalendarEvent(
        "all other missing reference points are due", 1, _SAME_TIME, f"{_REVIEW} -o review"
    ),
    "first_discussion": CalendarEvent("the committee discusses objections", 8, command=_AGENDA),
    "second_discussion": CalendarEvent("the committee discusses objections", 10, command=_AGENDA),
    "objections": CalendarEvent(
        "objections are filed",
        11,
        command=f"mlperf-pkg review objection all {_ROUND} -o objections",
    ),
    "audits": CalendarEvent(
        "results of audits are due", 11, command=f"mlperf-pkg review audits {_ROUND} --seed N"
    ),
    "evidence": CalendarEvent(
        "evidence for failing RCP tests is due", 11, command=f"{_REVIEW} -o review"
    ),
    "answers": CalendarEvent("submitters answer the objections against them", 14, command=_LIST),
    "first_decisions": CalendarEvent(
        "the committee decides on easy objections", 15, command=_AGENDA
    ),
    "questions": CalendarEvent("the committee asks submitters for information", 15),
    "information": CalendarEvent("the information that the committee asked for is due", 16),
    "second_decisions": CalendarEvent(
        "the committee decides on all other objections", 17, command=_AGENDA
    ),
    "borrowing": CalendarEvent(
        "submitters declare the hyperparameters that they borrow", 21, command=_DIFF
    ),
    "scores": CalendarEvent("scores are final", 22, command=f"{_LIST} {_ROUND}"),
    "final": CalendarEvent("code is final", 23, time(13), _DIFF),
    "final_results": CalendarEvent(
        "final results are due in human readable form", 23, time(13), f"{_RESULTS} -o final"
    ),
    "withdrawal": CalendarEvent(
        "last moment to withdraw an entry or move it to Open", 23, time(13), _DIFF
    ),
    "final_summary": CalendarEvent(
        "summary of the final results", 23, time(13, 30), f"{_RESULTS} -o week3"
    ),
    "presentations": CalendarEvent("presentations are reviewed", 24),
    "briefings": CalendarEvent("briefings under embargo", 28, time(9, 30)),
    "draft": CalendarEvent("draft of the results page", 28, time(13), f"{_RESULTS} -o draft"),
    "corrections": CalendarEvent("corrections of the results page are due", 29, time(13)),
    "staging": CalendarEvent(
        "the results page is on the staging server", 29, time(17), f"{_RESULTS} -o staging"
    ),
    "publication": CalendarEvent(
        "results are public; from now on, objections go to a chair by e-mail", 30, time(10)
    ),
}
"""What is due on each date, by the names of ``calendar.yaml``."""


def calendar_of(day: date, at: time = _SUBMISSION_TIME) -> dict[str, datetime]:
    """Return the dates by the rules for the day of submission, a Friday, and its deadline.

    Raises:
        UserError: no review can be in that year.
    """
    if not MINYEAR < day.year < MAXYEAR:
        raise UserError(f"{day:%Y-%m-%d}: no review can be in that year")
    submission = datetime.combine(day, at)
    monday = submission - timedelta(submission.weekday())
    dates = {}
    for name, event in EVENTS.items():
        if isinstance(event.at, time):
            event_day = monday + timedelta(event.days)
            dates[name] = datetime.combine(event_day, event.at)
        else:
            dates[name] = submission + timedelta(event.days) + event.at
    return dates


def calendar_here() -> dict[str, datetime] | None:
    """Return the dates of ``calendar.yaml`` in the current folder, None if there is none.

    Raises:
        UserError: as ``read_calendar``.
    """
    path = Path(NAME)
    if path.exists():
        return read_calendar(path)
    return None


def read_calendar(path: Path) -> dict[str, datetime]:
    """Return the dates in a file; those that it lacks are by the rules.

    Raises:
        UserError: the file cannot be read, or has an unknown name, a wrong date, or one that is
            more than half a year from that by the rules. The message has the line.
    """
    root: Any = compose(path)
    if root is None or kind(root) != "mapping":
        raise UserError(f"{path}:1: expected dates by name, such as {SUBMISSION}: 2026-10-16")
    dates = {}
    places = {}
    for key_node, node in root.value:
        where = f"{path}:{key_node.start_mark.line + 1}"
        name = key(key_node)
        if name not in EVENTS:
            raise UserError(f"{where}: unknown date {name!r}{did_you_mean(name, EVENTS)}")
        places[name] = where
        dates[name] = _moment(name, node.value, where)
    if SUBMISSION not in dates:
        raise UserError(
            f"{path}: the date of {SUBMISSION} is missing, from which the other dates are counted"
        )
    usual = calendar_of(dates[SUBMISSION].date(), dates[SUBMISSION].time())
    for name, moment in dates.items():
        if abs(moment - usual[name]) > _FARTHEST:
            about = f"{name} is more than half a year from its date by the rules"
            raise UserError(f"{places[name]}: {about}, {usual[name]:%Y-%m-%d}")
    return usual | dates


def _moment(name: str, text: Any, where: str) -> datetime:
    """Return a date with its time; without one, with that of the rules.

    Raises:
        UserError: the text is neither.
    """
    at = EVENTS[name].at
    try:
        if ":" in text:
            return datetime.strptime(text, "%Y-%m-%d %H:%M")
        day = date.fromisoformat(text)
    except (TypeError, ValueError) as error:
        reason = f"{name} is not a date; expected a date such as 2026-10-16 or 2026-10-16 13:00"
        raise UserError(f"{where}: {reason}") from error
    if isinstance(at, time):
        return datetime.combine(day, at)
    return datetime.combine(day, _SUBMISSION_TIME) + at


# ---- formats ------------------------------------------------------------------------------

_LINE = 75  # octets of a line, without its end
_SPECIAL = r"([\\;,])"
_ESCAPED = r"\\\1"
_HEAD = """\
# The dates of a review, in Pacific time. If a line is left out, the date of the rules applies. A
# date without a time has the time of the rules, or 23:59 if the rules name no time.
"""
_ZONE = "America/Los_Angeles"
# As of 2007, when the law last changed.
_TIME_ZONE = f"""\
BEGIN:VTIMEZONE
TZID:{_ZONE}
BEGIN:DAYLIGHT
DTSTART:20070311T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=2SU
TZOFFSETFROM:-0800
TZOFFSETTO:-0700
TZNAME:PDT
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:20071104T020000
RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=1SU
TZOFFSETFROM:-0700
TZOFFSETTO:-0800
TZNAME:PST
END:STANDARD
END:VTIMEZONE"""


def text(calendar: Calendar, view: View) -> str:
    """Return the dates, one on a line, each with its command below."""
    terminal = Terminal(view)
    terminal.paragraph(("Pacific time", PLAIN))
    for name, moment in by_date(calendar):
        terminal.paragraph((f"{moment:%Y-%m-%d %a %H:%M}  {EVENTS[name].title}", PLAIN))
        if EVENTS[name].command:
            terminal.paragraph((f"    {EVENTS[name].command}", PLAIN))
    return terminal.text()


def yaml(calendar: Calendar, _: View) -> str:
    """Return the dates as a file that ``read_calendar`` reads."""
    lines = []
    for name, moment in by_date(calendar):
        lines.append(f"{name}: {moment:%Y-%m-%d %H:%M}  # {EVENTS[name].title}\n")
    return _HEAD + "".join(lines)


def json(calendar: Calendar, _: View) -> str:
    """Return the dates as JSON."""
    events = []
    for name, moment in by_date(calendar):
        event = {"name": name, "date": f"{moment:%Y-%m-%d}", "title": EVENTS[name].title}
        event["time"] = f"{moment:%H:%M}"
        event["command"] = EVENTS[name].command
        events.append(event)
    return json_text({"format": FORMAT, "time_zone": _ZONE, "events": events})


def ics(calendar: Calendar, _: View) -> str:
    """Return the dates as moments of iCalendar (RFC 5545), the same bytes for the same dates."""
    submission = f"{calendar[SUBMISSION]:%Y%m%d}"
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//mlperf-pkg//review//EN"]
    lines += _TIME_ZONE.split("\n")
    for name, moment in by_date(calendar):
        event = EVENTS[name]
        lines += [
            "BEGIN:VEVENT",
            f"UID:{submission}-{name.replace('_', '-')}@mlperf-pkg",
            f"DTSTAMP:{submission}T000000Z",
            f"DTSTART;TZID={_ZONE}:{moment:%Y%m%dT%H%M%S}",
            f"SUMMARY:MLPerf review: {re.sub(_SPECIAL, _ESCAPED, event.title)}",
        ]
        if event.command:
            lines.append(f"DESCRIPTION:{re.sub(_SPECIAL, _ESCAPED, event.command)}")
        lines += ["TRANSP:TRANSPARENT", "END:VEVENT"]
    lines.append("END:VCALENDAR")
    return "".join(map(_folded, lines))


def by_date(calendar: Calendar) -> list[tuple[str, datetime]]:
    """Return the names and dates of all that is due, by date."""
    return sorted(calendar.items(), key=itemgetter(1))


def _folded(line: str) -> str:
    """Return a line of ASCII in pieces, each with its end; all but the first begin with a space."""
    folded = f"{line[:_LINE]}\r\n"
    for start in range(_LINE, len(line), _LINE - 1):
        folded += f" {line[start : start + _LINE - 1]}\r\n"
    return folded


CALENDAR_FORMATS = {"text": text, "yaml": yaml, "ics": ics, "json": json}
