"""How results are worded."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mlperf_pkg.findings import Severity, Waiver
from mlperf_pkg.results import wording as words
from tests.helpers.reports import finding, rcp, result_set, run


@pytest.mark.parametrize(
    ("usage", "round_", "name"),
    [
        ("training", "5.1", "MLPerf Training 5.1"),
        ("hpc", "3.0", "MLPerf HPC 3.0"),
        ("training", None, "MLPerf Training of several rounds"),
    ],
)
def test_edition(usage: str, round_: str | None, name: str) -> None:
    assert words.edition(usage, round_) == name


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (10, 8, "25 % faster"),
        (8, 10, "25 % slower"),
        (5, 5.01, "unchanged"),
        (5, 2, "2.5 times as fast"),
    ],
)
def test_change(before: float, now: float, change: str) -> None:
    assert words.change(before, now) == change


@pytest.mark.parametrize(
    ("texts", "text"), [([], ""), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")]
)
def test_shortened(texts: list[str], text: str) -> None:
    assert words.shortened(texts, 2) == text


@pytest.mark.parametrize(("number", "counted"), [(0, "0 errors"), (1, "1 error"), (2, "2 errors")])
def test_counted(number: int, counted: str) -> None:
    assert words.counted(number, "error") == counted


@pytest.mark.parametrize(
    ("value", "minutes"),
    [(9.8065, "9.807"), (1.23456, "1.235"), (1000, "1000.000"), (None, "-"), (math.nan, "-")],
)
def test_minutes(value: float | None, minutes: str) -> None:
    assert words.minutes(value) == minutes


@pytest.mark.parametrize(("required", "runs"), [(10, "3/10"), (None, "3")])
def test_runs(required: int | None, runs: str) -> None:
    assert words.runs(result_set(runs_found=3, runs_required=required)) == runs


@pytest.mark.parametrize(
    ("status", "dropped", "outcome"),
    [
        ("success", None, "success"),
        ("success", "fastest", "success, fastest"),
        ("success", "did not converge", "success, did not converge"),
        ("aborted", "did not converge", "aborted, dropped"),
        (None, "has no time-to-train", "no run_stop, dropped"),
        (None, None, "no run_stop"),
    ],
)
def test_outcome(status: str | None, dropped: str | None, outcome: str) -> None:
    assert words.outcome(run(status=status, dropped=dropped)) == outcome


NO_NUMBERS = {"official_pass": False, "mean": None, "minimum": None, "margin_percent": None}
ZERO = {"official_pass": False, "bypassed": True, "minimum": 0.0, "margin_percent": None}


@pytest.mark.parametrize(
    ("changes", "state", "short"),
    [
        ({}, "pass", "pass +10.0 %"),
        ({"rcp": rcp(official_pass=False, mean=99.0, margin_percent=-1.0)}, "fail", "FAIL -1.0 %"),
        ({"rcp": rcp(**NO_NUMBERS)}, "fail", "FAIL"),
        ({"rcp": rcp(official_pass=False, mean=math.nan)}, "fail", "too few runs"),
        ({"rcp": rcp(**ZERO)}, "bypassed", "bypassed"),
        ({"rcp": rcp(margin_percent=None, no_limit_reason="why")}, "pass", "pass, no limit"),
        ({"rcp": None}, "not_checked", "not checked"),
        ({"division": "open"}, None, "-"),
    ],
)
def test_rcp(changes: dict[str, Any], state: str | None, short: str) -> None:
    row = result_set(**changes)
    assert words.rcp_state(row) == state
    assert words.rcp(row) == short


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({}, "error"),
        ({"severity": Severity.NOTE}, "note"),
        ({"waiver": Waiver("agreed", "Jane", "2026-12-31")}, "waived error"),
    ],
)
def test_severity(changes: dict[str, Any], severity: str) -> None:
    assert words.severity(finding(**changes)) == severity
