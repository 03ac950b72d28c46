"""How results are worded."""

import math
from typing import Any

import pytest

from mlperf_pkg.results import wording as words
from tests.helpers.reports import rcp, result_set, run


def test_edition() -> None:
    assert words.edition("hpc", "3.0") == "MLPerf HPC 3.0"
    assert words.edition("training", None) == "MLPerf Training of several rounds"


def test_change() -> None:
    pairs = [(10, 8), (8, 10), (5, 5.01), (5, 2)]
    texts = ["25 % faster", "25 % slower", "unchanged", "2.5 times as fast"]
    assert [words.change(*pair) for pair in pairs] == texts


def test_numbers() -> None:
    assert [words.shortened(list(text), 2) for text in ("", "ab", "abcd")] == [
        "",
        "a, b",
        "a, b and 2 more",
    ]
    assert [words.counted(n, "error") for n in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]
    values = (9.8065, 1.23456, 1000, None, math.nan)
    assert [*map(words.minutes, values)] == ["9.807", "1.235", "1000.000", "-", "-"]
    rows = [result_set(runs_found=3, runs_required=required) for required in (10, None)]
    assert [*map(words.runs, rows)] == ["3/10", "3"]


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
NO_POINT: dict[str, Any] = {**NO_NUMBERS, "message": "Missing RCP, please submit RCP with BS = 9"}


@pytest.mark.parametrize(
    ("changes", "state", "short"),
    [
        ({}, "pass", "pass +10.0 %"),
        ({"rcp": rcp(official_pass=False, mean=99.0, margin_percent=-1.0)}, "fail", "FAIL -1.0 %"),
        ({"rcp": rcp(**NO_NUMBERS)}, "fail", "FAIL"),
        ({"rcp": rcp(official_pass=False, mean=math.nan)}, "fail", "too few runs"),
        ({"rcp": rcp(**NO_POINT)}, "missing", "missing"),
        ({"rcp": rcp(**ZERO)}, "bypassed", "bypassed"),
        ({"rcp": rcp(margin_percent=None, no_limit_reason="why")}, "pass", "pass, no limit"),
        ({"rcp": None}, "not_checked", "not checked"),
        ({"division": "open"}, None, "-"),
        ({"division": "Closed", "rcp": rcp(**ZERO)}, "bypassed", "bypassed"),
        ({"division": "close", "rcp": rcp(**ZERO)}, None, "-"),
        ({"division": None}, None, "-"),
    ],
)
def test_rcp(changes: dict[str, Any], state: str | None, short: str) -> None:
    row = result_set(**changes)
    assert words.rcp_state(row) == state
    assert words.rcp(row) == short
