"""The calendar of a review: its dates, the file, and the formats."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.review.calendar import EVENTS, calendar_of, ics, read_calendar, text, yaml
from mlperf_pkg.render.findings import View
from tests.helpers.program import call

FRIDAY = date(2025, 10, 10)
VIEW = View(80)

BY_HAND = """
early_rcps 09-05 13:00, schedule 09-12 23:59
registration 09-24 23:59, repository 09-26 23:59, trial 09-26 23:59
write_ups 10-03 23:59
declining 10-09 23:59, submission 10-10 13:00, first_summary 10-10 13:30, grace 10-10 14:00
rcps 10-11 13:00
first_discussion 10-14 23:59, second_discussion 10-16 23:59
objections 10-17 23:59, audits 10-17 23:59, evidence 10-17 23:59
answers 10-20 23:59, first_decisions 10-21 23:59, questions 10-21 23:59
information 10-22 23:59, second_decisions 10-23 23:59
borrowing 10-27 23:59, scores 10-28 23:59
final 10-29 13:00, final_results 10-29 13:00, withdrawal 10-29 13:00, final_summary 10-29 13:30
presentations 10-30 23:59
briefings 11-03 09:30, draft 11-03 13:00, corrections 11-04 13:00, staging 11-04 17:00
publication 11-05 10:00
"""
"""From submission_rules, Schedule: weeks -5 to 4, in the order of EVENTS."""


def test_the_dates() -> None:
    made = [f"{name} {moment:%m-%d %H:%M}" for name, moment in calendar_of(FRIDAY).items()]
    assert made == [line.strip() for line in BY_HAND.strip().replace("\n", ",").split(",")]
    thursday = calendar_of(date(2025, 10, 9))
    moved = {name for name in thursday if thursday[name] != calendar_of(FRIDAY)[name]}
    assert moved == {"early_rcps", "submission", "grace", "rcps"}


def test_commands_are_of_the_program() -> None:
    """Each command that is named has a help page; so has each that makes a step of the end."""
    commands = {name: event.command for name, event in EVENTS.items() if event.command}
    assert {"draft", "final_results", "staging", "audits", "first_summary"} <= commands.keys()
    statuses = {}
    for command in commands.values():
        _, first, second, *_ = command.split()
        path = [word for word in (first, second) if word.islower() and "." not in word]
        statuses[command] = call(*path, "--help").exit_code
    assert set(statuses.values()) == {0}
    assert max(map(len, text(calendar_of(FRIDAY), VIEW).splitlines())) <= 80


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The calendar in the current folder, not yet written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "calendar.yaml"


def test_a_changed_date(file: Path) -> None:
    usual = calendar_of(FRIDAY)
    file.write_text(yaml(usual, VIEW).replace("2025-10-23", "2025-10-24"), "utf-8")
    day_later = {"second_decisions": datetime(2025, 10, 24, 23, 59)}
    assert read_calendar(file) == usual | day_later


@pytest.mark.parametrize(
    ("lines", "name", "moment"),
    [
        ("submission: 2025-10-10", "submission", "2025-10-10 13:00"),
        ("submission: 2025-10-10 17:00", "grace", "2025-10-10 18:00"),
        ("submission: 2025-10-10 17:00", "rcps", "2025-10-11 17:00"),
        ("submission: 2025-10-10 17:00", "answers", "2025-10-20 23:59"),
        ("submission: 2025-10-10\nbriefings: 2025-11-04", "briefings", "2025-11-04 09:30"),
        ("submission: 2025-10-10\ngrace: 2025-10-10", "grace", "2025-10-10 14:00"),
        ("submission: 2025-10-10\nanswers: 2025-10-20 12:00", "answers", "2025-10-20 12:00"),
    ],
)
def test_a_file(lines: str, name: str, moment: str, file: Path) -> None:
    """What is left out has the date by the rules, and a date alone their time."""
    file.write_text(lines, "utf-8")
    assert f"{read_calendar(file)[name]:%Y-%m-%d %H:%M}" == moment


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: expected dates by name"),
        ("- 2025-10-10\n", ":1: expected dates by name"),
        ("submission: 2025-10-10\nfinale: 2025-10-29\n", ":2: unknown date 'finale'; did you mean"),
        ("submission: 10.10.2025\n", ":1: submission is not a date"),
        ("submission: [2025-10-10]\n", ":1: submission is not a date"),
        ("submission: 2025-10-10\nfinal: 2025-10-29 25:00\n", ":2: final is not a date"),
        ("submission: 2025-10-10\nfinal: 2052-10-29\n", ":2: final is more than half a year from"),
        (
            "final: 2025-10-29\n",
            "the date of submission is missing, from which the other dates are counted",
        ),
    ],
)
def test_wrong_files(text: str, message: str, file: Path) -> None:
    file.write_text(text, "utf-8")
    result = call("review", "calendar")
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), message


def test_icalendar() -> None:
    """RFC 5545: lines end with CRLF and have at most 75 octets; the same dates, the same bytes."""
    made = ics(calendar_of(FRIDAY), VIEW)
    lines = made.split("\r\n")
    assert "\n" not in made.replace("\r\n", "")
    assert max(len(line.encode()) for line in lines) == 75
    unfolded = made.replace("\r\n ", "").split("\r\n")
    assert unfolded.count("BEGIN:VEVENT") == unfolded.count("END:VEVENT") == len(EVENTS)
    uids = [line for line in unfolded if line.startswith("UID:")]
    assert (len({*uids}), uids[0]) == (len(EVENTS), "UID:20251010-early-rcps@mlperf-pkg")
    assert "DTSTART;TZID=America/Los_Angeles:20251029T130000" in unfolded
    title = "results are public\\; from now on\\, objections go to a chair by e-mail"
    assert f"SUMMARY:MLPerf review: {title}" in unfolded


def read_ics(made: str) -> list[Any]:
    """The events as another program reads them."""
    icalendar = pytest.importorskip("icalendar", reason="pip install icalendar")
    calendar = icalendar.Calendar.from_ical(made)
    assert [part.errors for part in calendar.walk()] == [[]] * len(calendar.walk())
    (zone,) = calendar.walk("VTIMEZONE")
    assert zone["TZID"] == "America/Los_Angeles"
    own_zone = zone.to_tz(lookup_tzid=False)  # by the rules in the file
    offsets = [
        datetime(2025, month, day, 12, tzinfo=own_zone).utcoffset()
        for month, day in ((3, 8), (3, 9), (11, 1), (11, 2))
    ]
    assert [offset // timedelta(hours=1) for offset in offsets if offset] == [-8, -7, -7, -8]
    return list(calendar.walk("VEVENT"))


def test_a_parser_reads_the_icalendar() -> None:
    """The moments are those of the Pacific coast, in summer and in winter time."""
    events = {
        str(event["UID"]).split("@")[0][9:]: event
        for event in read_ics(ics(calendar_of(FRIDAY), VIEW))
    }
    assert len(events) == len(EVENTS)
    moments = {name: events[name]["DTSTART"].dt.astimezone(UTC) for name in events}
    assert moments["submission"] == datetime(2025, 10, 10, 20, 0, tzinfo=UTC)
    assert moments["publication"] == datetime(2025, 11, 5, 18, 0, tzinfo=UTC)
    assert events["draft"]["SUMMARY"] == "MLPerf review: draft of the results page"
    assert events["draft"]["DESCRIPTION"] == EVENTS["draft"].command
    assert "DESCRIPTION" not in events["briefings"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give --start DATE, as the current folder has no calendar.yaml"),
        ("--start 2025-13-10", "does not match the format"),
        ("--start 0001-01-05", "no review can be in that year"),
    ],
    ids=["no date", "not a date", "too early"],
)
def test_wrong_dates(arguments: str, message: str, file: Path) -> None:
    result = call("review", "calendar", *arguments.split())
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), message


def test_a_start_on_another_day_of_the_week_is_noted(file: Path) -> None:
    result = call("review", "calendar", "--start", "2025-10-09")
    assert "2025-10-09 is a Thursday" in result.stderr


def test_the_command(file: Path) -> None:
    statuses = {
        name: call("review", "calendar", "--start", "2025-10-10", "-o", name).exit_code
        for name in ("calendar.yaml", "calendar.ics")
    }
    assert statuses == {"calendar.yaml": 0, "calendar.ics": 0}
    made = file.with_suffix(".ics").read_bytes()
    assert made.count(b"\r\n") == made.count(b"\n")
    assert call("review", "calendar", "--format", "ics").stdout_bytes == made
    assert "2025-10-10 Fri 13:00  submissions are due" in call("review", "calendar").stdout
