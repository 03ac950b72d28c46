"""The RCP tests of a round, by margin."""

import math
from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.commands.review.calendar import calendar_of
from mlperf_pkg.commands.review.convergence import RcpTest, section
from mlperf_pkg.commands.review.objections import ObjectionOutcome
from mlperf_pkg.commands.review.round import ReviewSection
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.results.report import ResultSetRow
from tests.helpers.reports import finding, rcp
from tests.helpers.reviews import a_round, a_set, cells

FAST: dict[str, Any] = {"official_pass": False, "mean": 95.0, "margin_percent": -5.0}
NEW: dict[str, Any] = {
    "official_pass": False,
    "message": "Missing RCP, please submit RCP with BS = 96",
    "batch_size": 96.0,
    "minimum": None,
    "margin_percent": None,
}
ROWS = [
    a_set("Zeta"),
    a_set("ACME", rcp=rcp(**FAST)),
    a_set("ACME", "resnet", rcp=rcp(**{**FAST, "margin_percent": -1.0, "bypassed": True})),
    a_set("Beta", rcp=rcp(**NEW)),
    a_set("Zeta", "llama31_405b", rcp=rcp(**NEW)),
    a_set("Zeta", "dlrm", rcp=None),
    a_set("Beta", "ssd", division="open"),
    a_set("Beta", "unet3d", scaling_factor=1.02, unscaled_minutes=10.0, score_minutes=10.2),
]


def of(rows: list[ResultSetRow]) -> ReviewSection:
    fast = (row.path for row in rows if row.rcp and not row.rcp.official_pass)
    findings = [finding(path, code="RCP101") for path in fast]
    reviewed = a_round(["ACME", "Beta", "Zeta"], rows, findings=findings)
    return section(
        replace(reviewed, outcome=ObjectionOutcome((), calendar=calendar_of(date(2022, 5, 20))))
    )


FAILS = finding("A/results/dgx/bert", code="RCP101")
BEFORE = replace(FAILS, basis=Basis.OFFICIAL)  # a round before the rule
ALLOWED = replace(FAILS, code="RCP105", found=98.0, expected=100.0)
CLOSE = {"mean": 98.0, "minimum": 95.0, "margin_percent": 3.16}


@pytest.mark.parametrize(
    ("fields", "finding", "expected"),
    [
        ({}, None, ("pass", 10.0)),
        (FAST, FAILS, ("FAIL", -5.0)),
        (FAST, BEFORE, ("official only", -5.0)),
        ({**FAST, "bypassed": True}, replace(FAILS, code="RCP102"), ("bypassed", -5.0)),
        (CLOSE | {"official_pass": True}, ALLOWED, ("FAIL", -2.0)),
        (CLOSE, replace(ALLOWED, severity=Severity.WARNING), ("bypassed", -2.0)),
        (NEW, FAILS, ("missing", None)),
        ({**NEW, "bypassed": True}, None, ("missing", None)),
        ({**NEW, "message": "Cannot find any RCPs"}, FAILS, ("missing", None)),
        ({**NEW, "message": "Insufficient convergence"}, FAILS, ("not compared", None)),
        ({**NEW, "mean": math.nan}, FAILS, ("not compared", None)),
        ({**NEW, "message": "Could not detect global_batch_size"}, None, ("not compared", None)),
    ],
)
def test_states(
    fields: dict[str, Any], finding: Finding | None, expected: tuple[str, float | None]
) -> None:
    test = RcpTest(a_set("A", rcp=rcp(**fields)), finding)
    margin = test.margin if test.margin is None else round(test.margin, 9)
    assert (test.state, margin) == expected
    assert finding is None or finding.code in test.words


def test_the_tables() -> None:
    made = of(ROWS)
    rows = cells(made.tables["sets"])
    assert [row[4:6] for row in rows] == [
        ("FAIL", -5.0),
        ("bypassed", -1.0),
        *[("pass", 10.0)] * 2,
        ("missing", None),
        ("not compared", None),
        ("missing", None),
    ]
    assert made.tables["sets"].marked == {(0, 4), (4, 4), (6, 4)}
    assert rows[5][-1] == "no test for this benchmark"
    assert cells(made.tables["missing"]) == [
        ("bert", 96, 20, "2022-05-21", "Beta", 1),
        ("llama31_405b", 96, 20, "2022-04-15", "Zeta", 1),
    ]
    increase = ("Beta", "dgx", "unet3d", 1.02, 10.0, 10.2, 0.2, 2.0)
    assert cells(made.tables["normalised"]) == [increase]


def test_nothing_to_compare() -> None:
    made = of([a_set("ACME", division="open")])
    assert (made.summary, made.tables, made.text) == (("RCP test: -",), {}, ())
