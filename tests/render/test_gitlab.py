"""GitLab's code quality report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from mlperf_pkg.findings import Basis, Severity, Waiver
from mlperf_pkg.render import FORMATS, Checkout, View
from mlperf_pkg.results.report import Report
from tests.helpers import hostile_reports as hostile
from tests.helpers.reports import finding, on_raw_set, raw_sets, report

SCHEMA = json.loads((Path(__file__).parent / "schemas/gitlab.schema.json").read_text("utf-8"))
WAIVER = Waiver("agreed", "Jane", "2026-12-31")


def issues(report_: Report) -> Any:
    view = View(checkout=Checkout("/repo", "/repo", "/repo/logs"))
    read = json.loads(FORMATS["gitlab"](report_, view))
    assert not [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(SCHEMA).iter_errors(read)
    ]
    return read


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_an_issue() -> None:
    (issue,) = issues(report(findings=[finding("a b.log", 7, basis=Basis.RULES, hint="fix")]))
    assert len(issue.pop("fingerprint")) == 32
    assert issue == {
        "description": "wrong [rules]; hint: fix",
        "check_name": "X1",
        "severity": "major",
        "location": {"path": "logs/a b.log", "lines": {"begin": 7}},
    }


def test_sets_of_raw_logs_in_one_folder_for_gitlab() -> None:
    made = [
        *on_raw_set("alpha"),
        *on_raw_set("beta"),
        *on_raw_set("beta", finding("beta_1.log", 7)),
    ]
    issues_ = issues(report(**raw_sets(), findings=made))
    assert [(issue["description"], issue["location"]["path"]) for issue in issues_] == [
        ("ACME/alpha/bert/closed: wrong", "logs"),
        ("ACME/beta/bert/closed: wrong", "logs"),
        ("ACME/beta/bert/closed: wrong (1 of 2 runs)", "logs/beta_1.log"),
    ]
    assert len({issue["fingerprint"] for issue in issues_}) == 3


def test_nothing_found_for_gitlab() -> None:
    assert issues(report()) == []


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"basis": Basis.BOTH}, "blocker"),
        ({"basis": Basis.OFFICIAL}, "critical"),
        ({"basis": Basis.RULES}, "major"),
        ({"severity": Severity.WARNING}, "minor"),
        ({"severity": Severity.NOTE}, "info"),
        ({"waiver": WAIVER}, "info"),
    ],
)
def test_severities(changes: dict[str, Any], severity: str) -> None:
    assert issues(report(findings=[finding(**changes)]))[0]["severity"] == severity


def test_a_waiver_is_reported() -> None:
    (issue,) = issues(report(findings=[finding(waiver=WAIVER)]))
    assert issue["description"] == "wrong; waived by Jane until 2026-12-31: agreed"


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped_for_gitlab(text: str, file: str) -> None:
    for issue in issues(hostile.hostile(text, file)):
        assert issue["description"].isprintable()
        assert issue["location"]["path"].isprintable()
