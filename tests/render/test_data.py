"""Reports for programs: the contract of the JSON report."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from mlperf_pkg.findings import Basis, folded
from mlperf_pkg.render import FORMATS, View
from tests.helpers.reports import (
    FAIL,
    finding,
    nested,
    on_raw_set,
    raw_sets,
    rcp,
    report,
    result_set,
    run,
    system,
)

REPORT = report(
    verdict=FAIL,
    systems=(system(),),
    result_sets=(result_set(),),
    runs=(run(),),
    findings=[finding("a.log", 3, basis=Basis.RULES, found=1.5, expected=["a", None])],
)

# Fields may be added to the contract, none renamed or taken away.
CONTRACT = {
    "systems": "id path submitter division status accelerators verdict",
    "result_sets": "id path submitter system benchmark division verdict runs_found runs_required"
    " score_minutes unscaled_minutes scaling_factor official_minutes rcp seeds energy_joules"
    " system_by judged",
    "runs": "path set verdict benchmark division minutes status records samples_to_converge dropped",
    "findings": "code severity basis path line message found expected hint source waiver"
    " subject runs of_runs places set",
}


def as_json(report_: Any) -> Any:
    shown = FORMATS["json"](report_, View())
    assert shown.isascii()
    assert shown.endswith("}\n")
    return json.loads(shown, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_the_contract() -> None:
    read = as_json(REPORT)
    head = ["format", "tool", "usage", "round", "round_reason", "verdict", *CONTRACT]
    assert list(read) == [*head, "hidden", "configuration"]
    assert read["format"] == "mlperf-pkg/report/3"
    assert read["verdict"] == {"official": "fail", "rules": "pass"}
    assert set(read["tool"]) == {"version", "rulebook", "reference"}
    for part, names in CONTRACT.items():
        assert set(names.split()) <= set(read[part][0]), part
    row = read["result_sets"][0]
    names = "official_pass message normalization bypassed batch_size mean minimum"
    assert set(names.split()) <= set(row["rcp"])
    assert row["seeds"] == {"official_pass": True}


def test_a_finding() -> None:
    assert as_json(REPORT)["findings"][0] == {
        "code": "X1",
        "message": "wrong",
        "path": "a.log",
        "line": 3,
        "severity": "error",
        "basis": "rules",
        "found": 1.5,
        "expected": ["a", None],
        "hint": None,
        "source": None,
        "waiver": None,
        "subject": None,
        "runs": None,
        "of_runs": None,
        "places": [
            {"path": "a.log", "lines": [3], "count": 1, "found": [1.5], "expected": [["a", None]]}
        ],
        "set": None,
    }


def test_runs_and_findings_name_their_set() -> None:
    made = [*on_raw_set("alpha"), *on_raw_set("beta"), finding("mlperf-pkg.yaml")]
    read = as_json(report(**raw_sets(), findings=made))
    rows = {row["id"]: row["system"] for row in read["result_sets"]}
    assert [rows[run["set"]] for run in read["runs"]] == ["alpha", "alpha", "beta", "beta"]
    assert [rows.get(made["set"]) for made in read["findings"]] == ["alpha", "beta", None]
    assert [made["subject"] for made in read["findings"]] == [*rows, None]


def test_a_folded_finding() -> None:
    made = [
        finding(
            f"a/{n}.log", line, message="x is {found}; expected {expected}", found=n, expected=9
        )
        for n, line in ((1, 3), (1, 5), (2, 4))
    ]
    (folded_finding,) = folded(made, "a", ["a/1.log", "a/2.log", "a/3.log"])
    read = as_json(report(findings=[folded_finding]))["findings"][0]
    assert read["message"] == "x is 1 to 2; expected 9"
    assert [read[name] for name in ("path", "line", "found", "expected")] == ["a/1.log", 3, 1, 9]
    assert [read[name] for name in ("subject", "runs", "of_runs")] == ["a", 2, 3]
    assert read["places"] == [
        {"path": "a/1.log", "lines": [3, 5], "count": 2, "found": [1], "expected": [9]},
        {"path": "a/2.log", "lines": [4], "count": 1, "found": [2], "expected": [9]},
    ]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_is_null(number: float) -> None:
    read = as_json(report(result_sets=(result_set(rcp=rcp(mean=number)),)))
    assert read["result_sets"][0]["rcp"]["mean"] is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("größer\x1b\n\u202e", "größer\x1b\n\u202e"),
        ("half \ud800", "half \\ud800"),
        ({"\udcff": math.nan}, {"\\udcff": None}),
        (10**100, 10**100),
        (True, True),
    ],
)
def test_hostile_values(value: Any, expected: Any) -> None:
    assert as_json(report(findings=[finding(found=value)]))["findings"][0]["found"] == expected


def test_a_value_nested_too_deep_is_cut() -> None:
    value = as_json(report(findings=[finding(found=nested(10_000))]))["findings"][0]["found"]
    assert '"..."' in json.dumps(value)


def test_csv_holds_the_results() -> None:
    lines = FORMATS["csv"](REPORT, View()).splitlines()
    assert [line.partition(",")[0] for line in lines] == ["submitter", "ACME"]
