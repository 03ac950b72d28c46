"""JUnit XML, read by a maintained parser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, Waiver, folded
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import FORMATS, Checkout, View
from mlperf_pkg.results.report import Report
from tests.helpers import hostile_reports as hostile
from tests.helpers.reports import (
    FAIL,
    NOT_CHECKED,
    SET,
    finding,
    on_raw_set,
    raw_id,
    raw_logs,
    raw_sets,
    report,
    result_set,
    run,
    system,
)
from tests.helpers.trees import simulated, write_set, write_submission

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


def test_a_finding_on_a_set_and_its_runs_fails_all_of_them() -> None:
    cases = cases_of(finding(FOLDER), finding(LOGS[1]))
    assert [name for name, case in cases.items() if failures(case)] == [SET, LOGS[1]]


def test_a_finding_on_a_file_of_a_set_fails_the_test_of_the_set() -> None:
    cases = cases_of(finding(f"{FOLDER}/scaling.json", 2))
    assert [name for name, case in cases.items() if failures(case)] == [SET]
    assert failures(cases[SET])[0].text == f"{FOLDER}/scaling.json:2: error X1: wrong"


RAW_SUITES = {raw_id(name): [raw_id(name), *raw_logs(name)] for name in ("alpha", "beta")}


@pytest.mark.parametrize(
    ("made", "failed"),
    [
        (on_raw_set("beta"), [raw_id("beta")]),
        (on_raw_set("beta", finding("beta_1.log", 7)), ["beta_1.log"]),
        (on_raw_set("beta", finding("alpha_1.log", 7)), [raw_id("beta")]),
        ([*on_raw_set("alpha"), *on_raw_set("beta")], [raw_id("alpha"), raw_id("beta")]),
        ([finding("alpha_0.log")], ["alpha_0.log"]),
        ([finding(".")], ["."]),
    ],
    ids=["a set", "its run", "the run of another set", "both sets", "of no set", "the folder"],
)
def test_sets_of_raw_logs_in_one_folder_for_junit(made: list[Finding], failed: list[str]) -> None:
    read = suites(report(**raw_sets(), findings=made))
    named = {suite.name: [case.name for case in suite] for suite in read}
    assert named == RAW_SUITES | ({"tree": ["."]} if failed == ["."] else {})
    cases = [case for suite in read for case in suite]
    assert [case.name for case in cases if failures(case)] == failed


def test_no_finding_is_lost() -> None:
    (suite,) = suites(report(findings=[finding("a.log", set="a set without a row")]))
    assert [(suite.name, case.name, bool(failures(case))) for case in suite] == [
        ("tree", "a.log", True)
    ]


def test_a_folded_warning_is_output_of_its_runs() -> None:
    made = [finding(LOGS[number], severity=Severity.WARNING) for number in (0, 2)]
    cases = cases_of(*made)
    shown = [name for name, case in cases.items() if "warning X1" in (case.system_out or "")]
    assert shown == [LOGS[0], LOGS[2]]
    assert not any(map(failures, cases.values()))


@pytest.mark.parametrize(("basis", "type_"), [(Basis.OFFICIAL, "official"), (Basis.RULES, "rules")])
def test_whose_rule_fails_it(basis: Basis, type_: str) -> None:
    assert failures(one(basis=basis))[0].type == type_


def test_the_worst_of_several_errors_is_the_message() -> None:
    errors = [finding(LOG, 1, code="A1", basis=Basis.RULES), finding(LOG, 2, code="B1")]
    case = next(iter(suites(report(runs=(run(set=None),), findings=errors))[0]))
    (failure,) = failures(case)
    assert failure.message == "B1: wrong (and 1 error more)"
    assert failure.text.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"severity": Severity.WARNING}, "warning X1: wrong"),
        ({"severity": Severity.NOTE}, "note X1: wrong"),
        (
            {"waiver": Waiver("agreed", "Jane", "2026-12-31")},
            "waived error X1: wrong\n  waived by Jane until 2026-12-31: agreed",
        ),
    ],
)
def test_other_findings_are_output(changes: dict[str, Any], text: str) -> None:
    case = one(**changes)
    assert not case.result
    assert case.system_out == f"official: FAIL\nrules: pass\n{LOG}: {text}"


def test_what_was_not_checked_is_skipped() -> None:
    assert skipped(one(verdict=NOT_CHECKED, severity=Severity.WARNING))
    assert not skipped(one(verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.PASS)))
    assert not skipped(one(verdict=NOT_CHECKED))


def test_both_verdicts_are_properties() -> None:
    (suite, *_) = suites(whole(verdict=FAIL))
    properties = {entry.name: entry.value for entry in suite.properties()}  # type: ignore[no-untyped-call]
    assert properties["verdict.official"] == "fail"
    assert properties["verdict.rules"] == "pass"


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped_for_junit(text: str, file: str) -> None:
    suites_ = suites(hostile.hostile(text, file))
    names = [case.name for suite in suites_ for case in suite]
    assert len(names) == 5
    assert visible(f"b{file}") in names


def test_a_hostile_report_for_junit() -> None:
    assert sum(suite.failures for suite in suites(hostile.hostile())) == 1


def test_a_submission(tmp_path: Path) -> None:
    write_submission(tmp_path, "resnet", "bert")
    checked = check([str(tmp_path)], Options()).report
    names = [suite.name for suite in suites(checked)]
    owner = tmp_path.name
    assert names[:2] == [f"{owner}/bow-pod16/{name}/closed" for name in ("bert", "resnet")]
    sizes = [suite.tests for suite in suites(checked)]
    assert sizes[:2] == [11, 6]


def test_loose_logs_of_several_sets_in_one_folder(tmp_path: Path) -> None:
    write_set(tmp_path, (*simulated()[:3], *simulated("bert")[:2]))
    checked = check([str(tmp_path)], Options()).report
    cases = {suite.name: [case.name for case in suite] for suite in suites(checked)}
    ids = [f"Graphcore/bow-pod16/{name}/closed" for name in ("resnet", "bert")]
    assert cases == {
        ids[0]: [ids[0], *(f"result_{number}.txt" for number in (0, 1, 2))],
        ids[1]: [ids[1], *(f"result_{number}.txt" for number in (3, 4))],
    }
    second, first = (suite for suite in suites(checked))  # by name
    texts = [failure.message for case in first for failure in failures(case)]
    assert texts == ["SET101: the number of runs is 3; expected 5"]
    texts = [failure.text for case in second for failure in failures(case)]
    assert [re.findall("[A-Z]+101", text) for text in texts] == [["RCP101", "SET101"]]
