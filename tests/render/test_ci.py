"""The formats for CI servers: each valid, whatever a log says."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite
from sarif_pydantic import Sarif

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, Waiver, folded
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import FORMATS, Checkout, Show, View
from mlperf_pkg.render.ci import fingerprinted
from mlperf_pkg.results.report import Report, RunRow
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


RUNS = [f"set/result_{number}.txt" for number in range(9)]


def folded_mark(
    values: Sequence[int] = (1,),
    line: int = 3,
    subject: str = "set",
    set_id: str = SET,
    first: int = 0,
) -> str:
    """The fingerprint of a finding on as many runs as values, by default the first."""
    message = "x is {found}; expected {expected}"
    made = [
        finding(path, line, message=message, found=value, expected=line)
        for path, value in zip(RUNS[first:], values, strict=False)
    ]
    (mark,) = marks(*folded(made, subject, RUNS, set_id))
    return mark


def test_a_fingerprint_is_stable_when_lines_runs_and_values_change() -> None:
    before = marks(finding(line=3, message="twice, first in line 1"), finding(line=9))
    after = marks(finding(line=5, message="twice, first in line 2"), finding(line=11))
    assert before == after
    changes: list[dict[str, Any]] = [
        *({"values": values} for values in ((2,), (1, 1), (1, 2, 3, 4))),
        *({"line": 4}, {"first": 4}, {"subject": "moved"}),
    ]
    assert {folded_mark(**change) for change in changes} == {folded_mark()}


def test_fingerprints_differ() -> None:
    assert folded_mark(set_id="ACME/dgx/bert/open") != folded_mark()
    assert len(set(marks(*on_raw_set("alpha"), *on_raw_set("beta")))) == 2
    assert [
        other
        for other in (finding("b.log"), finding(code="X2"), finding(message="wronger"), finding())
        if len(set(marks(finding(), other))) != 2
    ] == []


WAIVER = Waiver("agreed", "Jane", "2026-12-31")


def concise(report_: Report, *, show: Show = Show.ALL) -> list[str]:
    view = View(show=show, checkout=Checkout("/repo", "/repo/sub", "/repo/sub/logs"))
    return FORMATS["concise"](report_, view).splitlines()


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"line": 7}, "logs/a.log:7: error X1 wrong"),
        ({}, "logs/a.log: error X1 wrong"),
        ({"path": "../b c"}, "b c: error X1 wrong"),
        ({"path": "mlperf-pkg.yaml", "code": "WAIVE101"}, "mlperf-pkg.yaml: error WAIVE101 wrong"),
        ({"severity": Severity.WARNING}, "logs/a.log: warning X1 wrong"),
        ({"severity": Severity.NOTE}, "logs/a.log: note X1 wrong"),
        ({"waiver": WAIVER}, "logs/a.log: note X1 wrong; waived by Jane until 2026-12-31: agreed"),
        ({"basis": Basis.RULES, "hint": "fix"}, "logs/a.log: error X1 wrong [rules]; hint: fix"),
        ({"message": "a\nb\x1b"}, "logs/a.log: error X1 a\\nb\\x1b"),
    ],
)
def test_a_line(fields: Any, line: str) -> None:
    assert concise(report(findings=[finding(**fields)])) == [line]


Annotation = tuple[str, dict[str, str], str]


def parse(line: str) -> Annotation:
    """As documented: ``::name key=value,key=value::message``, unescaped after it was split."""
    start, command, message = line.split("::", 2)
    kind, _, rest = command.partition(" ")
    assert (start, kind in {"error", "warning", "notice"}) == ("", True)
    pairs = [pair.split("=", 1) for pair in rest.split(",") if pair]
    properties = {name: unescape(value, {"%3A": ":", "%2C": ","}) for name, value in pairs}
    return kind, properties, unescape(message, {})


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
    made = report(findings=[finding(**changes)])
    _, annotation = annotated(made, base="/repo/logs", show=Show.ALL)
    return annotation


def test_an_annotation() -> None:
    """After one with the verdicts."""
    annotation = only(path="a, b:c.log", line=7, basis=Basis.OFFICIAL, hint="100 % sure")
    properties = {"file": "logs/a, b:c.log", "line": "7", "title": "X1"}
    assert annotation == ("error", properties, "wrong [official]\nhint: 100 % sure")
    first, _ = annotated(report(verdict=FAIL, findings=[finding()]))
    verdicts = "official: FAIL (mlperf-logging 9.9.9), 1 error in 1 file\n"
    verdicts += "rules: pass, 1 error in 1 file\n"
    summary = f"{verdicts}1 error, 0 warnings, 0 notes\nround 2.0: as given"
    assert first == ("notice", {"title": "MLPerf check"}, summary)


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
def test_kinds(changes: Any, kind: str, title: str) -> None:
    is_kind, properties, _ = only(**changes)
    assert (is_kind, properties["title"]) == (kind, title)


@pytest.mark.parametrize(
    ("numbers", "annotations", "left_out"),
    [
        ({"error": 10, "note": 9}, 19, []),
        ({"error": 11, "note": 10}, 19, ["1 error, 1 notice"]),
        ({"error": 500, "warning": 12}, 20, ["490 errors, 2 warnings"]),
    ],
)
def test_no_more_than_github_shows(
    numbers: dict[str, int], annotations: int, left_out: list[str]
) -> None:
    """Ten of a kind, of which the notice with the verdicts is one; it says what is left out."""
    made = [
        finding(f"{number}/a", severity=Severity(severity), message=str(number))
        for severity, count in numbers.items()
        for number in range(count)
    ]
    (_, _, message), *others = annotated(report(findings=made), show=Show.ALL)
    assert len(others) == annotations
    pattern = "\nnot shown here: (.*); GitHub shows at most 10 of each severity, and the job"
    assert re.findall(pattern, message) == left_out


IN_LOGS = View(checkout=Checkout("/repo", "/repo", "/repo/logs"))
SCHEMAS = Path(__file__).parent / "schemas"


def valid(format_: str, shown: str) -> Any:
    """What is read, valid by the schema of the format."""
    schema = json.loads((SCHEMAS / f"{format_}.schema.json").read_text("utf-8"))
    read = json.loads(shown)
    errors = Draft202012Validator(schema).iter_errors(read)
    assert not [f"{error.json_path}: {error.message}" for error in errors]
    return read


def issues(report_: Report) -> Any:
    return valid("gitlab", FORMATS["gitlab"](report_, IN_LOGS))


def test_an_issue() -> None:
    (issue,) = issues(report(findings=[finding("a b.log", 7, basis=Basis.RULES, hint="fix")]))
    assert len(issue.pop("fingerprint")) == 32
    assert issue == {
        "description": "wrong [rules]; hint: fix",
        "check_name": "X1",
        "severity": "major",
        "location": {"path": "logs/a b.log", "lines": {"begin": 7}},
    }


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
def test_severities(
    changes: dict[str, Basis] | dict[str, Severity] | dict[str, Waiver], severity: str
) -> None:
    assert issues(report(findings=[finding(**changes)]))[0]["severity"] == severity


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


def whole(*runs: RunRow, findings: list[Finding]) -> Report:
    return report(systems=(system(),), result_sets=(result_set(),), runs=runs, findings=findings)


def test_cases() -> None:
    runs = (run(), run(path="stray.log", benchmark="", set=None))
    suites_ = suites(whole(*runs, findings=[finding("benchmarks/x", code="X")]), "/repo/ACME")
    assert {suite.name: [case.name for case in suite] for suite in suites_} == {
        SET: [SET, f"ACME/{LOG}"],
        "logs outside result sets": ["ACME/stray.log"],
        "systems": ["ACME/systems/dgx.json"],
        "tree": ["ACME/benchmarks/x"],
    }


def one(**changes: Any) -> TestCase:
    """The test of the run, about which there is a finding."""
    verdict = changes.pop("verdict", FAIL)
    report_ = whole(run(verdict=verdict), findings=[finding(LOG, **changes)])
    return next(case for suite in suites(report_) for case in suite if case.name == LOG)


def test_an_error_fails() -> None:
    """The worst of several is the message."""
    case = one(line=3, hint="fix")
    (failure,) = failures(case)
    assert (failure.message, failure.type) == ("X1: wrong", "official and rules")
    assert failure.text == f"{LOG}:3: error X1: wrong\n  hint: fix"
    assert case.system_out == "official: FAIL\nrules: pass"
    errors = [finding(LOG, 1, code="A1", basis=Basis.RULES), finding(LOG, 2, code="B1")]
    case = next(iter(suites(report(runs=(run(set=None),), findings=errors))[0]))
    assert [part.message for part in failures(case)] == ["B1: wrong (and 1 more error)"]
    assert failures(case)[0].text.count("\n") == 1


def test_a_folded_finding_fails_the_tests_of_its_runs() -> None:
    logs = [f"results/dgx/bert/result_{number}.txt" for number in range(3)]
    made = [finding(logs[number], 9, message="x is {found}", found=number) for number in (0, 2)]
    runs = tuple(run(path=path) for path in logs)
    findings = folded(made, "results/dgx/bert", logs, SET)
    report_ = report(result_sets=(result_set(),), runs=runs, findings=findings)
    cases = {case.name: case for suite in suites(report_) for case in suite}
    messages = {name: [part.message for part in failures(case)] for name, case in cases.items()}
    assert messages == {SET: [], logs[0]: ["X1: x is 0"], logs[1]: [], logs[2]: ["X1: x is 2"]}
    assert failures(cases[logs[2]])[0].text == f"{logs[2]}:9: error X1: x is 2"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"severity": Severity.WARNING}, "warning X1: wrong"),
        ({"severity": Severity.NOTE}, "note X1: wrong"),
        ({"waiver": WAIVER}, "waived error X1: wrong\n  waived by Jane until 2026-12-31: agreed"),
    ],
)
def test_other_findings_are_output(
    changes: dict[str, Severity] | dict[str, Waiver], text: str
) -> None:
    case = one(**changes)
    assert not case.result
    assert case.system_out == f"official: FAIL\nrules: pass\n{LOG}: {text}"


def test_what_was_not_checked_is_skipped() -> None:
    assert skipped(one(verdict=NOT_CHECKED, severity=Severity.WARNING))
    assert not skipped(one(verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.PASS)))
    assert not skipped(one(verdict=NOT_CHECKED))


# ---- SARIF: valid by the specification, and as code scanning uses it ---------------------------


def run_of(report_: Report, view: View = IN_LOGS) -> Any:
    """The only run of a valid SARIF file."""
    shown = FORMATS["sarif"](report_, view)
    assert shown.isascii()
    read = valid("sarif", shown)
    (parsed,) = Sarif.model_validate_json(shown).runs  # by a reader of other people
    assert len(parsed.results or ()) == len(report_.findings)
    return read["runs"][0]


def only_result(**changes: Any) -> Any:
    path, line = changes.pop("path", "a.log"), changes.pop("line", None)
    return run_of(report(findings=[finding(path, line, **changes)]))["results"][0]


def test_a_result() -> None:
    result = only_result(line=3, basis=Basis.RULES, found=1.5, expected="2", hint="fix", source="s")
    mark = result.pop("partialFingerprints")["mlperfPkgFinding/v2"]
    assert len(mark) == 32
    assert result == {
        "ruleId": "X1",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "wrong [rules]\nhint: fix"},
        "locations": [location("logs/a.log", 3)],
        "properties": {
            "basis": "rules",
            "fails": {"official": False, "rules": True},
            "found": 1.5,
            "expected": "2",
            "hint": "fix",
            "source": "s",
            **dict.fromkeys(("subject", "runs", "of_runs", "set", "cause")),
            "id": "X1-1",
            "count": 1,
            "places": 1,
        },
    }


def location(path: str, line: int | None = None) -> dict[str, Any]:
    region = {"region": {"startLine": line}} if line else {}
    artifact = {"uri": path, "uriBaseId": "%SRCROOT%"}
    return {"physicalLocation": {"artifactLocation": artifact, **region}}


def folded_result(*made: Finding, set_id: str | None = None) -> Any:
    one = folded(made, "set", ["set/a.log", "set/b.log", "set/c.log"], set_id)
    return run_of(report(findings=one))["results"][0]


def test_a_folded_finding_is_one_result_with_its_places() -> None:
    places = (("set/a.log", 3), ("set/a.log", 5), ("set/b.log", None))
    made = [finding(*at, message="x is {found}", found=n) for n, at in enumerate(places, 1)]
    result = folded_result(*made, set_id=SET)
    assert result["message"]["text"] == "x is 1 to 3 (2 of 3 runs: a.log:3, b.log)"
    named = {"logicalLocations": [{"fullyQualifiedName": SET}]}
    places_ = [
        location("logs/set/a.log", 3),
        location("logs/set/a.log", 5),
        location("logs/set/b.log"),
    ]
    assert [*result["locations"], *result["relatedLocations"]] == [p | named for p in places_]
    assert len(result["locations"]) == 1
    names = ("set", "subject", "runs", "of_runs", "count", "places", "found")
    assert [result["properties"][name] for name in names] == [SET, "set", 2, 3, 3, 2, 1]


def test_related_locations_are_limited_and_counted() -> None:
    result = folded_result(*(finding(f"set/{number}.log", 1) for number in range(500)))
    assert len(result["relatedLocations"]) == 100
    assert result["properties"]["places"] == 500


def test_what_is_waived_is_suppressed() -> None:
    result = only_result(waiver=WAIVER)
    why = "agreed (approved by Jane until 2026-12-31)"
    accepted = {"kind": "external", "status": "accepted", "justification": why}
    assert result["suppressions"] == [accepted]
    assert result["properties"]["fails"] == {"official": True, "rules": False}


def test_rules_explain_themselves() -> None:
    findings = [finding(code=code) for code in ("SET101", "BERT111", "BERT111")]
    whole_run = run_of(report(findings=findings))
    bert, set_ = whole_run["tool"]["driver"]["rules"]
    assert [result["ruleIndex"] for result in whole_run["results"]] == [0, 0, 1]
    assert (bert["id"], set_["id"]) == ("BERT111", "SET101")
    assert [
        rule
        for rule in (bert, set_)
        if [
            part
            for part in ("shortDescription", "fullDescription", "help")
            if len(rule[part]["text"]) <= 10
        ]
        != []
    ] == []
    assert [rule for rule in (bert, set_) if "source " not in rule["help"]["text"]] == []
    assert bert["shortDescription"]["text"].startswith("eval_accuracy: at least once")


def test_the_run_of_sarif() -> None:
    whole_run = run_of(report(verdict=FAIL, findings=[finding()]))
    status = {"exitCode": 1, "exitCodeDescription": "1 error, 0 warnings, 0 notes"}
    assert whole_run["invocations"] == [{"executionSuccessful": True, **status}]
    assert whole_run["properties"]["verdict"] == {"official": "fail", "rules": "pass"}
    assert whole_run["tool"]["driver"]["properties"]["reference"] == "mlperf-logging 9.9.9"
    assert run_of(report())["invocations"][0]["exitCode"] == 0


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("{0} and }", "{{0}} and }}"),
        ("[a](http://x)", "[a\\](http://x)"),
        ("[1, 2]", "[1, 2]"),
        ("a\n\x1b", "a\\n\\x1b"),
    ],
)
def test_messages_are_plain_text(message: str, text: str) -> None:
    assert only_result(message=message)["message"]["text"] == text


# ---- all formats ------------------------------------------------------------------------------


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped(text: str, file: str) -> None:
    made = hostile.hostile(text, file)
    view = View(show=Show.ALL, color=True)
    shown = {name: FORMATS[name](made, view) for name in ("text", "log", "markdown")}
    printed = {name: re.sub(r"\x1b\[[0-9;]*m|\n", "", text) for name, text in shown.items()}
    assert [name for name, text in printed.items() if not text.isprintable()] == []
    assert not re.search(r"(?<!\\)<(?!br>)", shown["markdown"])
    files = {file, f"{file}/a", "other"}
    lines = concise(made)
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert all(re.search(r": (error|warning|note) X1 ", line) for line in lines)
    (_, about, _), *others = annotated(made)
    assert about == {"title": "MLPerf check"}
    assert {properties["file"] for _, properties, _ in others} == set(map(visible, files))
    assert all(visible(text) in message for *_, message in others)
    assert [
        issue
        for issue in issues(made)
        if not (issue["description"] + issue["location"]["path"]).isprintable()
    ] == []
    names = [case.name for suite in suites(made) for case in suite]
    assert len(names) == 5
    assert visible(f"b{file}") in names
    places = [one["locations"][0]["physicalLocation"] for one in run_of(made, View())["results"]]
    uris = (place["artifactLocation"]["uri"] for place in places)
    assert set(map(os.fsdecode, map(unquote_to_bytes, uris))) == files


TORN = finding("b.log", 3, code="LOG101", id="LOG101-1", basis=Basis.RULES)
FOLLOWER = finding("a.log", code="RN117", id="RN117-1", cause="LOG101-1", hint="fix LOG101 first")


def test_annotations_begin_with_causes() -> None:
    lines = FORMATS["github"](report(findings=[TORN, FOLLOWER]), View()).splitlines()
    codes = [re.findall(r"title=(\w+)", line) for line in lines]
    assert codes == [["MLPerf"], ["LOG101"], ["RN117"]]


@pytest.mark.parametrize("format_", ["github", "gitlab", "junit", "sarif", "concise", "markdown"])
def test_what_follows_names_its_cause(format_: str) -> None:
    assert "fix LOG101 first" in FORMATS[format_](report(findings=[TORN, FOLLOWER]), View())
