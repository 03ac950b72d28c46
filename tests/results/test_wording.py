"""How results are worded."""

import math
from typing import Any

from mlperf_pkg.findings import Severity, Waiver
from mlperf_pkg.results import wording as words
from tests.helpers.reports import finding, rcp, result_set, run


def test_edition() -> None:
    for usage, round_, name in [
        ("training", "5.1", "MLPerf Training 5.1"),
        ("hpc", "3.0", "MLPerf HPC 3.0"),
        ("training", None, "MLPerf Training of several rounds"),
    ]:
        assert words.edition(usage, round_) == name


def test_change() -> None:
    for before, now, change in [
        (10, 8, "25 % faster"),
        (8, 10, "25 % slower"),
        (5, 5.01, "unchanged"),
        (5, 2, "2.5 times as fast"),
    ]:
        assert words.change(before, now) == change


def test_shortened() -> None:
    for texts, text in [([], ""), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")]:
        assert words.shortened(texts, 2) == text


def test_counted() -> None:
    for number, counted in [(0, "0 errors"), (1, "1 error"), (2, "2 errors")]:
        assert words.counted(number, "error") == counted


def test_minutes() -> None:
    for value, minutes in [
        (9.8065, "9.807"),
        (1.23456, "1.235"),
        (1000, "1000.000"),
        (None, "-"),
        (math.nan, "-"),
    ]:
        assert words.minutes(value) == minutes


def test_runs() -> None:
    for required, runs in [(10, "3/10"), (None, "3")]:
        assert words.runs(result_set(runs_found=3, runs_required=required)) == runs


def test_outcome() -> None:
    for status, dropped, outcome in [
        ("success", None, "success"),
        ("success", "fastest", "success, fastest"),
        ("success", "did not converge", "success, did not converge"),
        ("aborted", "did not converge", "aborted, dropped"),
        (None, "has no time-to-train", "no run_stop, dropped"),
        (None, None, "no run_stop"),
    ]:
        assert words.outcome(run(status=status, dropped=dropped)) == outcome


NO_NUMBERS = {"official_pass": False, "mean": None, "minimum": None, "margin_percent": None}
ZERO = {"official_pass": False, "bypassed": True, "minimum": 0.0, "margin_percent": None}


def test_rcp() -> None:
    rows: list[tuple[dict[str, Any], str | None, str]] = [
        ({}, "pass", "pass +10.0 %"),
        ({"rcp": rcp(official_pass=False, mean=99.0, margin_percent=-1.0)}, "fail", "FAIL -1.0 %"),
        ({"rcp": rcp(**NO_NUMBERS)}, "fail", "FAIL"),
        ({"rcp": rcp(official_pass=False, mean=math.nan)}, "fail", "too few runs"),
        ({"rcp": rcp(**ZERO)}, "bypassed", "bypassed"),
        ({"rcp": rcp(margin_percent=None, no_limit_reason="why")}, "pass", "pass, no limit"),
        ({"rcp": None}, "not_checked", "not checked"),
        ({"division": "open"}, None, "-"),
    ]
    for changes, state, short in rows:
        row = result_set(**changes)
        assert words.rcp_state(row) == state
        assert words.rcp(row) == short


def test_severity() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({}, "error"),
        ({"severity": Severity.NOTE}, "note"),
        ({"waiver": Waiver("agreed", "Jane", "2026-12-31")}, "waived error"),
    ]
    for changes, severity in rows:
        assert words.severity(finding(**changes)) == severity
