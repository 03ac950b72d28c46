"""Findings as compilers print theirs: one line each."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings

from mlperf_pkg.findings import Basis, Severity, Waiver, folded
from mlperf_pkg.render import FORMATS, Checkout, Show, View
from mlperf_pkg.results.report import Report
from tests.helpers import hostile_reports as hostile
from tests.helpers.reports import finding, on_raw_set, raw_sets, report

WAIVER = Waiver("agreed", "Jane", "2026-12-31")


def concise(report_: Report, *, show: Show = Show.ALL) -> list[str]:
    view = View(show=show, checkout=Checkout("/repo", "/repo/sub", "/repo/sub/logs"))
    return FORMATS["concise"](report_, view).splitlines()


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"line": 7}, "logs/a.log:7: error X1 wrong"),
        ({}, "logs/a.log: error X1 wrong"),
        ({"path": "../b c"}, "b c: error X1 wrong"),
        ({"path": "mlperf-pkg.yaml", "code": "WAIVE101"}, "mlperf-pkg.yaml: error WAIVE101 wrong"),
        ({"severity": Severity.WARNING}, "logs/a.log: warning X1 wrong"),
        ({"severity": Severity.NOTE}, "logs/a.log: note X1 wrong"),
        ({"waiver": WAIVER}, "logs/a.log: note X1 wrong; waived by Jane until 2026-12-31: agreed"),
        ({"basis": Basis.RULES, "hint": "fix"}, "logs/a.log: error X1 wrong [rules]; hint: fix"),
        ({"message": "a\nb\x1b"}, "logs/a.log: error X1 a\\nb\\x1b"),
    ],
)
def test_a_line(fields: dict[str, Any], line: str) -> None:
    assert concise(report(findings=[finding(**fields)])) == [line]


def test_one_line_for_all_places() -> None:
    logs = [f"set/{number}.log" for number in range(3)]
    made = folded([finding(path, 7) for path in logs], "set", logs)
    assert concise(report(findings=made)) == [
        "logs/set/0.log:7: error X1 wrong (3 of 3 runs; first 0.log:7)"
    ]


def test_sets_of_raw_logs_in_one_folder_for_concise() -> None:
    made = [*on_raw_set("alpha"), *on_raw_set("beta")]
    assert concise(report(**raw_sets(), findings=made)) == [
        f"logs: error X1 ACME/{system}/bert/closed: wrong" for system in ("alpha", "beta")
    ]


@pytest.mark.parametrize(("show", "lines"), [(Show.ERRORS, 1), (Show.WARNINGS, 2), (Show.NOTES, 3)])
def test_shown(show: Show, lines: int) -> None:
    made = [finding(severity=severity) for severity in Severity]
    assert len(concise(report(findings=made), show=show)) == lines


def test_nothing_found_for_concise() -> None:
    assert concise(report()) == []


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped_for_concise(text: str, file: str) -> None:
    lines = concise(hostile.hostile(text, file))
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert all(re.search(r": (error|warning|note) X1 ", line) for line in lines)
