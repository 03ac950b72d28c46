"""The calendar of a review: its dates, the file, and the formats."""

from datetime import date
from pathlib import Path

import pytest

from mlperf_pkg.commands.review.calendar import EVENTS, calendar_of, ics, read_calendar, yaml
from mlperf_pkg.render.findings import View
from tests.helpers.program import call

FRIDAY = date(2025, 10, 10)
VIEW = View(80)

# By hand, from submission_rules, Schedule: weeks 0 to 4, in the order of EVENTS.
BY_HAND = "09-05 10-10 10-11 10-17 10-17 10-20 10-21 10-23 10-27 10-28 10-29 11-03"


def test_the_dates() -> None:
    assert [f"{day:%m-%d}" for day in calendar_of(FRIDAY).values()] == BY_HAND.split()
    thursday = calendar_of(date(2025, 10, 9))
    moved = {name for name in thursday if thursday[name] != calendar_of(FRIDAY)[name]}
    assert moved == {"early_rcps", "submission", "rcps"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The calendar in the current folder, not yet written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "calendar.yaml"


def test_a_changed_date(file: Path) -> None:
    file.write_text(yaml(calendar_of(FRIDAY), VIEW).replace("2025-10-21", "2025-10-22"), "utf-8")
    assert read_calendar(file) == calendar_of(FRIDAY) | {"first_decisions": date(2025, 10, 22)}
    file.write_text("submission: 2025-10-10\n", "utf-8")
    assert read_calendar(file) == calendar_of(FRIDAY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: expected dates by name"),
        ("- 2025-10-10\n", ":1: expected dates by name"),
        ("submission: 2025-10-10\nfinale: 2025-10-29\n", ":2: unknown date 'finale'; did you mean"),
        ("submission: 10.10.2025\n", ":1: submission is not a date"),
        ("submission: [2025-10-10]\n", ":1: submission is not a date"),
        ("final: 2025-10-29\n", "no date of submission; the other dates are counted from it"),
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
    assert "DTSTART;VALUE=DATE:20251029" in unfolded
    assert (
        "SUMMARY:MLPerf review: code and results are final\\; last day to withdraw or move to Open"
        in unfolded
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "no --start DATE, and there is no calendar.yaml here"),
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
    assert "2025-10-10 Fri  submissions are due" in call("review", "calendar").stdout
