"""The shared parts of the formats for CI servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mlperf_pkg.findings import Finding, folded
from mlperf_pkg.render import Checkout, View
from mlperf_pkg.render.ci import fingerprints
from tests.helpers.reports import SET, finding, on_raw_set


def marks(*findings: Finding, base: str = "/repo") -> list[str]:
    return fingerprints(findings, View(checkout=Checkout("/repo", "/repo", base)))


def test_a_fingerprint_is_stable_when_lines_move() -> None:
    before = marks(finding(line=3, message="twice, first in line 1"), finding(line=9))
    after = marks(finding(line=5, message="twice, first in line 2"), finding(line=11))
    assert before == after


RUNS = [f"set/result_{number}.txt" for number in range(9)]


def folded_mark(
    *values: int,
    line: int = 3,
    subject: str = "set",
    set_id: str = SET,
    paths: Sequence[str] = RUNS,
) -> str:
    """The fingerprint of a finding on as many runs as values, by default the first."""
    made = [
        finding(path, line, message="x is {found}; expected {expected}", found=value, expected=line)
        for path, value in zip(paths, values, strict=False)
    ]
    (mark,) = marks(*folded(made, subject, RUNS, set_id))
    return mark


@pytest.mark.parametrize(
    "changes",
    [
        {"values": (2,)},
        {"values": (1, 1)},
        {"values": (1, 2, 3, 4)},
        {"line": 4},
        {"paths": RUNS[4:]},
        {"subject": "moved"},
    ],
    ids=["value", "runs", "values", "line", "other runs", "another folder"],
)
def test_a_fingerprint_is_stable_when_runs_and_values_change(changes: dict[str, Any]) -> None:
    fields = {"values": (1,), **changes}
    assert folded_mark(*fields.pop("values"), **fields) == folded_mark(1)


def test_a_fingerprint_is_of_the_set() -> None:
    assert folded_mark(1, set_id="ACME/dgx/bert/open") != folded_mark(1)
    assert len(set(marks(*on_raw_set("alpha"), *on_raw_set("beta")))) == 2


def test_a_fingerprint_does_not_depend_on_the_folder() -> None:
    assert marks(finding("logs/a.log")) == marks(finding("a.log"), base="/repo/logs")


@pytest.mark.parametrize(
    "other", [finding("b.log"), finding(code="X2"), finding(message="wronger"), finding()]
)
def test_fingerprints_differ(other: Finding) -> None:
    assert len(set(marks(finding(), other))) == 2


@pytest.mark.parametrize(
    ("checkout", "path"),
    [
        (Checkout(), "a.log"),
        (Checkout("/repo", "/repo/sub", "/repo/sub/logs"), "sub/logs/a.log"),
        (Checkout("/repo", "/repo", "/elsewhere"), "../elsewhere/a.log"),
    ],
)
def test_paths_start_from_the_repository(checkout: Checkout, path: str) -> None:
    assert checkout.path("a.log") == checkout.path_of(finding("a.log")) == path


def test_a_finding_about_the_configuration_is_here() -> None:
    checkout = Checkout("/repo", "/repo/sub", "/repo/sub/logs")
    waiver_finding = finding("mlperf-pkg.yaml", code="WAIVE101")
    assert checkout.path_of(waiver_finding) == "sub/mlperf-pkg.yaml"
