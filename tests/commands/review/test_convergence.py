"""The RCP tests of a round, by margin."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mlperf_pkg.commands.review.convergence import section, state
from mlperf_pkg.commands.review.section import Section
from mlperf_pkg.results.report import ResultSetRow
from tests.helpers.reports import rcp
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
    a_set("Beta", name="pod", rcp=rcp(**{**NEW, "bypassed": True})),
    a_set("Zeta", "llama31_405b", rcp=rcp(**NEW)),
    a_set("Zeta", "dlrm", rcp=None),
    a_set("Beta", "ssd", division="open"),
    a_set("Beta", "unet3d", scaling_factor=1.02, unscaled_minutes=10.0, score_minutes=10.2),
]


def of(rows: list[ResultSetRow]) -> Section:
    return section(a_round(["ACME", "Beta", "Zeta"], rows))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (a_set("A"), "pass"),
        (a_set("A", division="open"), None),
        (a_set("A", rcp=None), "not compared"),
        (a_set("A", rcp=rcp(**FAST)), "FAIL"),
        (a_set("A", rcp=rcp(**FAST, bypassed=True)), "bypassed"),
        (a_set("A", rcp=rcp(**NEW)), "missing"),
        (a_set("A", rcp=rcp(**NEW, bypassed=True)), "missing"),
        (a_set("A", rcp=rcp(official_pass=False, message="Cannot find any RCPs")), "missing"),
        (
            a_set("A", rcp=rcp(official_pass=False, message="Insufficient convergence")),
            "not compared",
        ),
        (a_set("A", rcp=rcp(official_pass=False, mean=math.nan)), "not compared"),
        (
            a_set("A", rcp=rcp(official_pass=False, message="Could not detect global_batch_size")),
            "not compared",
        ),
    ],
)
def test_states(row: ResultSetRow, expected: str | None) -> None:
    assert state(row) == expected


def test_sets_by_margin() -> None:
    made = of(ROWS)
    rows = cells(made.tables["sets"])
    assert [row[4:6] for row in rows] == [
        ("FAIL", -5.0),
        ("bypassed", -1.0),
        ("pass", 10.0),
        ("pass", 10.0),
        ("missing", None),
        ("missing", None),
        ("not compared", None),
        ("missing", None),
    ]
    assert made.tables["sets"].marked == {(0, 4), (4, 4), (5, 4), (7, 4)}
    assert rows[6][-1] == "no test for this benchmark"


def test_runs_and_dates_of_missing_points() -> None:
    assert cells(of(ROWS).tables["missing"]) == [
        ("bert", 96, 20, "2022-05-21", "Beta", 2),
        ("llama31_405b", 96, 20, "2022-04-15", "Zeta", 1),
    ]


def test_the_effect_of_normalisation() -> None:
    assert cells(of(ROWS).tables["normalised"]) == [
        ("Beta", "dgx", "unet3d", 1.02, 10.0, 10.2, 0.2, 2.0)
    ]


def test_nothing_to_compare() -> None:
    made = of([a_set("ACME", division="open")])
    assert (made.summary, made.tables, made.text) == (("RCP test: -",), {}, ())
