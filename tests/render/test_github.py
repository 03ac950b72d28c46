"""Workflow commands, read as the runner of GitHub Actions reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings

from mlperf_pkg.findings import Basis, Severity, Waiver, folded
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import FORMATS, Checkout, Show, View
from mlperf_pkg.results.report import Report
from tests.helpers import hostile_reports as hostile
from tests.helpers.reports import FAIL, SET, finding, on_raw_set, raw_sets, report

WAIVER = Waiver("agreed", "Jane", "2026-12-31")


@dataclass(frozen=True)
class Annotation:
    kind: str
    properties: dict[str, str]
    message: str


def parse(line: str) -> Annotation:
    """As documented: ``::name key=value,key=value::message``, unescaped after it was split."""
    start, command, message = line.split("::", 2)
    kind, _, rest = command.partition(" ")
    assert (start, kind in {"error", "warning", "notice"}) == ("", True)
    pairs = [pair.split("=", 1) for pair in rest.split(",") if pair]
    properties = {name: unescape(value, {"%3A": ":", "%2C": ","}) for name, value in pairs}
    return Annotation(kind, properties, unescape(message, {}))


def unescape(text: str, more: dict[str, str]) -> str:
    for escape, character in {"%0D": "\r", "%0A": "\n", **more, "%25": "%"}.items():
        text = text.replace(escape, character)
    return text


def annotated(
    report_: Report, *, show: Show = Show.WARNINGS, base: str = "/repo"
) -> list[Annotation]:
    view = View(show=show, checkout=Checkout("/repo", "/repo", base))
    shown = FORMATS["github"](report_, view)
    assert all(line.isprintable() for line in shown.split("\n"))
    return [parse(line) for line in shown.split("\n")[:-1]]


def only(**changes: Any) -> Annotation:
    _, annotation = annotated(
        report(findings=[finding(**changes)]), base="/repo/logs", show=Show.ALL
    )
    return annotation


def test_an_annotation() -> None:
    annotation = only(path="a, b:c.log", line=7, basis=Basis.OFFICIAL, hint="100 % sure")
    assert annotation == Annotation(
        "error",
        {"file": "logs/a, b:c.log", "line": "7", "title": "X1"},
        "wrong [official]\nhint: 100 % sure",
    )


def test_the_verdicts_come_first() -> None:
    first, _ = annotated(report(verdict=FAIL, findings=[finding()]))
    assert first == Annotation(
        "notice",
        {"title": "MLPerf check"},
        "official: FAIL, mlperf-logging 9.9.9 rejects this, 1 error\n"
        "rules: pass, 1 error\n"
        "1 error, 0 warnings, 0 notes\n"
        "round 2.0: as given",
    )


@pytest.mark.parametrize(
    ("changes", "kind", "title"),
    [
        ({}, "error", "X1"),
        ({"set": SET}, "error", f"X1 {SET}"),
        ({"set": SET, "waiver": WAIVER}, "notice", f"waived X1 {SET}"),
        ({"severity": Severity.WARNING}, "warning", "X1"),
        ({"severity": Severity.NOTE}, "notice", "X1"),
        ({"waiver": WAIVER}, "notice", "waived X1"),
    ],
)
def test_kinds(changes: dict[str, Any], kind: str, title: str) -> None:
    annotation = only(**changes)
    assert (annotation.kind, annotation.properties["title"]) == (kind, title)


def test_the_most_important_come_first() -> None:
    report_findings = [
        finding("a", severity=Severity.WARNING),
        finding("b", basis=Basis.RULES),
        finding("c", basis=Basis.OFFICIAL),
        finding("d"),
        finding("0", waiver=WAIVER),
    ]
    others = annotated(report(findings=report_findings))[1:]
    assert [annotation.properties["file"] for annotation in others] == ["d", "c", "b", "a", "0"]


def test_sets_of_raw_logs_in_one_folder_for_github() -> None:
    made = [*on_raw_set("alpha"), *on_raw_set("beta")]
    _, *others = annotated(report(**raw_sets(), findings=made))
    assert [annotation.properties for annotation in others] == [
        {"file": ".", "title": "X1 ACME/alpha/bert/closed"},
        {"file": ".", "title": "X1 ACME/beta/bert/closed"},
    ]
    assert {annotation.message for annotation in others} == {"wrong"}


def test_the_same_of_many_logs_is_one_annotation() -> None:
    logs = [f"logs/{number}.log" for number in range(20)]
    made = folded([finding(path, 7) for path in logs], "logs", logs)
    (_, annotation) = annotated(report(findings=made))
    assert annotation.message == "wrong (20 of 20 runs; first 0.log:7)"
    assert annotation.properties == {"file": "logs/0.log", "line": "7", "title": "X1"}


@pytest.mark.parametrize(
    ("numbers", "annotations", "left_out"),
    [
        ({"error": 10}, 10, ""),
        ({"error": 11}, 10, "1 error"),
        ({"error": 1, "warning": 40}, 11, "30 warnings"),
        ({"note": 9}, 9, ""),
        ({"note": 10}, 9, "1 notice"),
        ({"error": 500, "warning": 12, "note": 20}, 29, "490 errors, 2 warnings, 11 notices"),
    ],
)
def test_no_more_than_github_shows(
    numbers: dict[str, int], annotations: int, left_out: str
) -> None:
    """Ten of a kind, of which the notice with the verdicts is one; it says what is left out."""
    report_findings = [
        finding(f"{number}/a", severity=Severity(severity), message=str(number))
        for severity, count in numbers.items()
        for number in range(count)
    ]
    first, *others = annotated(report(findings=report_findings), show=Show.ALL)
    assert len(others) == annotations
    assert ("left out: " in first.message) == bool(left_out)
    assert not left_out or (
        f"\nleft out: {left_out}; GitHub shows 10 of a kind, the job summary lists all"
        in first.message
    )


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped_for_github(text: str, file: str) -> None:
    first, *others = annotated(hostile.hostile(text, file))
    assert first.properties == {"title": "MLPerf check"}
    assert {annotation.properties["file"] for annotation in others} == {
        visible(path) for path in (file, f"{file}/a", "other")
    }
    assert all(visible(text) in annotation.message for annotation in others)


def test_a_hostile_report_for_github() -> None:
    assert len(annotated(hostile.hostile())) == 4
