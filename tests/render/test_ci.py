"""The shared parts of the formats for CI servers."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, Waiver, folded
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import FORMATS, Checkout, Show, View
from mlperf_pkg.render.ci import fingerprinted
from mlperf_pkg.results.report import Report
from tests.helpers import hostile_reports as hostile
from tests.helpers.reports import (
    FAIL,
    NOT_CHECKED,
    SET,
    finding,
    on_raw_set,
    report,
    result_set,
    run,
    system,
)


def marks(*findings: Finding, base: str = "/repo") -> list[str]:
    view = View(checkout=Checkout("/repo", "/repo", base))
    return [mark for _, mark in fingerprinted(findings, view)]


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


def test_fingerprints_differ() -> None:
    for other in (finding("b.log"), finding(code="X2"), finding(message="wronger"), finding()):
        assert len(set(marks(finding(), other))) == 2


WAIVER = Waiver("agreed", "Jane", "2026-12-31")


def concise(report_: Report, *, show: Show = Show.ALL) -> list[str]:
    view = View(show=show, checkout=Checkout("/repo", "/repo/sub", "/repo/sub/logs"))
    return FORMATS["concise"](report_, view).splitlines()


def test_a_line() -> None:
    for fields, line in (
        ({"line": 7}, "logs/a.log:7: error X1 wrong"),
        ({}, "logs/a.log: error X1 wrong"),
        ({"path": "../b c"}, "b c: error X1 wrong"),
        ({"path": "mlperf-pkg.yaml", "code": "WAIVE101"}, "mlperf-pkg.yaml: error WAIVE101 wrong"),
        ({"severity": Severity.WARNING}, "logs/a.log: warning X1 wrong"),
        ({"severity": Severity.NOTE}, "logs/a.log: note X1 wrong"),
        ({"waiver": WAIVER}, "logs/a.log: note X1 wrong; waived by Jane until 2026-12-31: agreed"),
        ({"basis": Basis.RULES, "hint": "fix"}, "logs/a.log: error X1 wrong [rules]; hint: fix"),
        ({"message": "a\nb\x1b"}, "logs/a.log: error X1 a\\nb\\x1b"),
    ):
        assert concise(report(findings=[finding(**fields)])) == [line]


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped_for_concise(text: str, file: str) -> None:
    lines = concise(hostile.hostile(text, file))
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert all(re.search(r": (error|warning|note) X1 ", line) for line in lines)


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
        "official: FAIL, mlperf-logging 9.9.9 rejects this: 1 error\n"
        "rules: pass, 1 error\n"
        "1 error, 0 warnings, 0 notes\n"
        "round 2.0: as given",
    )


def test_kinds() -> None:
    for changes, kind, title in (
        ({}, "error", "X1"),
        ({"set": SET}, "error", f"X1 {SET}"),
        ({"set": SET, "waiver": WAIVER}, "notice", f"waived X1 {SET}"),
        ({"severity": Severity.WARNING}, "warning", "X1"),
        ({"severity": Severity.NOTE}, "notice", "X1"),
        ({"waiver": WAIVER}, "notice", "waived X1"),
    ):
        annotation = only(**changes)
        assert (annotation.kind, annotation.properties["title"]) == (kind, title)


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


SCHEMA = json.loads((Path(__file__).parent / "schemas/gitlab.schema.json").read_text("utf-8"))


def issues(report_: Report) -> Any:
    view = View(checkout=Checkout("/repo", "/repo", "/repo/logs"))
    read = json.loads(FORMATS["gitlab"](report_, view))
    assert not [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(SCHEMA).iter_errors(read)
    ]
    return read


def test_an_issue() -> None:
    (issue,) = issues(report(findings=[finding("a b.log", 7, basis=Basis.RULES, hint="fix")]))
    assert len(issue.pop("fingerprint")) == 32
    assert issue == {
        "description": "wrong [rules]; hint: fix",
        "check_name": "X1",
        "severity": "major",
        "location": {"path": "logs/a b.log", "lines": {"begin": 7}},
    }


def test_severities() -> None:
    for changes, severity in (
        ({"basis": Basis.BOTH}, "blocker"),
        ({"basis": Basis.OFFICIAL}, "critical"),
        ({"basis": Basis.RULES}, "major"),
        ({"severity": Severity.WARNING}, "minor"),
        ({"severity": Severity.NOTE}, "info"),
        ({"waiver": WAIVER}, "info"),
    ):
        assert issues(report(findings=[finding(**changes)]))[0]["severity"] == severity


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped_for_gitlab(text: str, file: str) -> None:
    for issue in issues(hostile.hostile(text, file)):
        assert issue["description"].isprintable()
        assert issue["location"]["path"].isprintable()


LOG = "results/dgx/bert/result_0.txt"


def suites(report_: Report, base: str = "/repo") -> list[TestSuite]:
    xml = FORMATS["junit"](report_, View(checkout=Checkout("/repo", "/repo", base)))
    read = JUnitXml.fromstring(xml.encode("utf-8"))
    suites_ = list(read)
    cases = [case for suite in suites_ for case in suite]
    assert read.tests == len(cases) == sum(suite.tests for suite in suites_)
    assert read.failures == sum(bool(failures(case)) for case in cases)
    assert read.failures == sum(suite.failures for suite in suites_)
    assert sum(suite.skipped for suite in suites_) == sum(map(skipped, cases))
    return suites_


def failures(case: TestCase) -> list[Failure]:
    return [part for part in case.result if isinstance(part, Failure)]


def skipped(case: TestCase) -> bool:
    return any(isinstance(part, Skipped) for part in case.result)


def whole(**changes: Any) -> Report:
    fields: dict[str, Any] = {
        "systems": (system(),),
        "result_sets": (result_set(),),
        "runs": (run(), run(path="stray.log", benchmark="", set=None)),
    }
    return report(**{**fields, **changes})


def test_cases() -> None:
    suites_ = suites(whole(findings=[finding("benchmarks/x", code="REPO101")]), "/repo/ACME")
    assert {suite.name: [case.name for case in suite] for suite in suites_} == {
        SET: [SET, f"ACME/{LOG}"],
        "logs outside result sets": ["ACME/stray.log"],
        "systems": ["ACME/systems/dgx.json"],
        "tree": ["ACME/benchmarks/x"],
    }


def one(**changes: Any) -> TestCase:
    """The test of the run, about which there is a finding."""
    verdict = changes.pop("verdict", FAIL)
    report_ = whole(runs=(run(verdict=verdict),), findings=[finding(LOG, **changes)])
    return next(case for suite in suites(report_) for case in suite if case.name == LOG)


def test_an_error_fails() -> None:
    case = one(line=3, hint="fix")
    (failure,) = failures(case)
    assert (failure.message, failure.type) == ("X1: wrong", "official and rules")
    assert failure.text == f"{LOG}:3: error X1: wrong\n  hint: fix"
    assert case.system_out == "official: FAIL\nrules: pass"


FOLDER = "results/dgx/bert"
LOGS = [f"{FOLDER}/result_{number}.txt" for number in range(5)]


def cases_of(*made: Finding) -> dict[str, TestCase]:
    """The tests of a set of five runs with findings, by name."""
    runs = tuple(run(path=path) for path in LOGS)
    findings = folded(made, FOLDER, LOGS, SET)
    report_ = report(result_sets=(result_set(),), runs=runs, findings=findings)
    return {case.name: case for suite in suites(report_) for case in suite}


def test_a_folded_finding_fails_the_tests_of_its_runs() -> None:
    made = [finding(LOGS[number], 9, message="x is {found}", found=number) for number in (0, 2, 3)]
    cases = cases_of(*made)
    assert list(cases) == [SET, *LOGS]
    messages = {name: [part.message for part in failures(case)] for name, case in cases.items()}
    assert {name: texts for name, texts in messages.items() if texts} == {
        LOGS[number]: [f"X1: x is {number}"] for number in (0, 2, 3)
    }
    assert failures(cases[LOGS[2]])[0].text == f"{LOGS[2]}:9: error X1: x is 2"


def test_the_worst_of_several_errors_is_the_message() -> None:
    errors = [finding(LOG, 1, code="A1", basis=Basis.RULES), finding(LOG, 2, code="B1")]
    case = next(iter(suites(report(runs=(run(set=None),), findings=errors))[0]))
    (failure,) = failures(case)
    assert failure.message == "B1: wrong (and 1 error more)"
    assert failure.text.count("\n") == 1


def test_other_findings_are_output() -> None:
    for changes, text in (
        ({"severity": Severity.WARNING}, "warning X1: wrong"),
        ({"severity": Severity.NOTE}, "note X1: wrong"),
        (
            {"waiver": Waiver("agreed", "Jane", "2026-12-31")},
            "waived error X1: wrong\n  waived by Jane until 2026-12-31: agreed",
        ),
    ):
        case = one(**changes)
        assert not case.result
        assert case.system_out == f"official: FAIL\nrules: pass\n{LOG}: {text}"


def test_what_was_not_checked_is_skipped() -> None:
    assert skipped(one(verdict=NOT_CHECKED, severity=Severity.WARNING))
    assert not skipped(one(verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.PASS)))
    assert not skipped(one(verdict=NOT_CHECKED))


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped_for_junit(text: str, file: str) -> None:
    suites_ = suites(hostile.hostile(text, file))
    names = [case.name for suite in suites_ for case in suite]
    assert len(names) == 5
    assert visible(f"b{file}") in names
