"""Findings in words: which are shown, where they are, and how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mlperf_pkg.findings import MAX_LINES, Basis, Finding, Severity, Waiver, folded
from mlperf_pkg.render import Show, View, findings
from tests.helpers.reports import SET as SET_ID
from tests.helpers.reports import finding

SET = "results/dgx/bert"
RUNS = [f"{SET}/result_{number}.txt" for number in range(12)]


def in_runs(*numbers: int) -> list[Finding]:
    """Return equal findings, one per run, on successive lines."""
    return [finding(RUNS[number], 10 + number) for number in numbers]


def on_lines(*lines: int) -> list[Finding]:
    return [finding("a.log", line) for line in lines]


def in_files(*paths: str) -> list[Finding]:
    return [finding(path) for path in paths]


PLACES: list[tuple[str, Sequence[Finding], str | None, str]] = [
    # name, findings, what they are about, how they are shown
    ("a file", in_files("a.log"), None, "a.log: wrong"),
    ("a line", on_lines(3), None, "a.log:3: wrong"),
    ("a line twice", on_lines(3, 3), None, "a.log:3: wrong"),
    ("another line", on_lines(3, 9), None, "a.log:3: wrong (also on line 9)"),
    ("other lines", on_lines(3, 9, 10, 12), None, "a.log:3: wrong (also on lines 9, 10, 12)"),
    ("many lines", on_lines(*range(1, 6)), None, "a.log:1: wrong (and 4 more lines)"),
    ("too many", on_lines(*range(1, 99)), None, "a.log:1: wrong (and 97 more lines)"),
    ("a set", in_files(SET), SET, f"{SET}: wrong"),
    ("a run", in_runs(2), SET, f"{RUNS[2]}:12: wrong (1 of 12 runs)"),
    ("a run twice", [*in_runs(2), finding(RUNS[2], 15)], SET,
     f"{RUNS[2]}:12: wrong (1 of 12 runs, also on line 15)"),
    ("two runs", in_runs(10, 2), SET, f"{SET}: wrong (2 of 12 runs; first result_10.txt:20)"),
    ("all runs", in_runs(*range(12)), SET, f"{SET}: wrong (12 of 12 runs; first result_0.txt:10)"),
    ("all of a run", [finding(path) for path in RUNS[:2]], SET,
     f"{SET}: wrong (2 of 12 runs; first result_0.txt)"),
    ("two files", in_files("A/x", "A/y/z"), "A", "A: wrong (2 files: x, y/z)"),
    ("five files", in_files(*(f"A/{n}" for n in range(5))), "A",
     "A: wrong (5 files: 0, 1, 2 and 2 more)"),
    ("here", in_files("x", "y/z"), ".", "x: wrong (and 1 other file: y/z)"),
    ("here, five files", in_files("a", "b", "c", "d", "e"), ".",
     "a: wrong (and 4 other files: b, c, d and 1 more)"),
    ("of nothing", in_files("x", "y/z"), None, "x: wrong (and 1 other file: y/z)"),
    ("runs here", in_runs(2, 3), ".", f"{RUNS[2]}:12: wrong (2 of 12 runs)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "subject", "shown"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES]
)
def test_places(made: Sequence[Finding], subject: str | None, shown: str) -> None:
    (one,) = folded(made, subject, RUNS)
    assert f"{findings.location(one)}: {findings.sentence(one)}" == shown


RAW: list[tuple[str, Sequence[Finding], str]] = [
    # name, findings on a set of raw logs in the folder that was checked, how they are shown
    ("all of it", in_files("."), f"{SET_ID}: wrong"),
    ("a run", on_lines(3), "a.log:3: wrong (1 of 2 runs)"),
    (
        "both runs",
        [*on_lines(3), finding("b.log", 4)],
        f"{SET_ID}: wrong (2 of 2 runs; first a.log:3)",
    ),
]


@pytest.mark.parametrize(("made", "shown"), [row[1:] for row in RAW], ids=[row[0] for row in RAW])
def test_places_in_raw_logs(made: Sequence[Finding], shown: str) -> None:
    (one,) = folded(made, SET_ID, ["a.log", "b.log"], SET_ID)
    assert f"{findings.location(one)}: {findings.sentence(one)}" == shown


def test_lines_that_are_not_kept_are_counted() -> None:
    (one,) = folded(on_lines(*range(1, 1001)))
    assert len(one.places[0].lines) == MAX_LINES
    assert findings.sentence(one) == "wrong (and 999 more lines)"


@pytest.mark.parametrize(
    ("basis", "label"),
    [
        (Basis.BOTH, "X1"),
        (Basis.OFFICIAL, "X1 [official]"),
        (Basis.RULES, "X1 [rules]"),
        (Basis.ADVICE, "X1 [advice]"),
    ],
)
def test_basis(basis: Basis, label: str) -> None:
    assert findings.label(finding(basis=basis)) == label


WAIVER = Waiver("agreed", "Jane", "2026-12-31")


@pytest.mark.parametrize(
    ("changes", "remarks"),
    [
        ({}, []),
        ({"hint": "do this"}, ["hint: do this"]),
        ({"hint": "do this", "waiver": WAIVER}, ["waived by Jane until 2026-12-31: agreed"]),
    ],
)
def test_remarks(changes: dict[str, Any], remarks: list[str]) -> None:
    assert findings.remarks(finding(**changes)) == remarks


LEVELS = [finding(severity=severity) for severity in Severity]
WAIVED = finding(severity=Severity.NOTE, waiver=WAIVER)


@pytest.mark.parametrize(
    ("show", "number"), [("errors", 1), ("warnings", 2), ("notes", 3), ("all", 3)]
)
def test_levels(show: str, number: int) -> None:
    shown = findings.shown([*LEVELS, WAIVED], View(show=Show(show)))
    assert shown == [*LEVELS[:number], WAIVED]


def test_counts() -> None:
    made = [finding(), finding(), finding(severity=Severity.NOTE), finding(waiver=WAIVER)]
    assert findings.counts(made) == {Severity.ERROR: 2, Severity.WARNING: 0, Severity.NOTE: 1}
