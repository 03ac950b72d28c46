"""Findings by code, and by submitter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, Waiver, folded
from mlperf_pkg.render.text import SubmitterRow, Submitters, by_code, root, subjects_in_words
from mlperf_pkg.results.report import ResultSetRow
from tests.helpers.reports import (
    FAIL,
    NOT_CHECKED,
    PASS,
    finding,
    rcp,
    report,
    result_set,
)
from tests.helpers.round_report import FINDINGS, a_round

WARNING, A_NOTE = Severity.WARNING, Severity.NOTE
WAIVER = Waiver("agreed", "Jane", "2026-12-31")


@pytest.mark.parametrize(
    ("made", "order"),
    [
        ([finding(code="B1"), finding(code="A1")], ["A1", "B1"]),
        ([finding(code="A1", severity=WARNING), finding(code="B1")], ["B1", "A1"]),
        ([finding(code="A1", severity=A_NOTE), finding(code="B1", severity=WARNING)], ["B1", "A1"]),
        ([finding(code="A1", waiver=WAIVER), finding(code="B1", severity=A_NOTE)], ["B1", "A1"]),
        ([finding(basis=Basis.RULES), finding(basis=Basis.OFFICIAL)], ["X1", "X1"]),
        ([finding("a"), finding("b", message="other")], ["X1"]),
    ],
)
def test_the_most_important_codes_come_first(made: list[Finding], order: list[str]) -> None:
    assert [group.first.code for group in by_code(made)] == order


def test_findings_of_each_waiver_are_apart() -> None:
    other = Waiver("agreed again", "Joe", "2026-12-31")
    groups = by_code([finding(), finding(waiver=WAIVER), finding("b", waiver=other)])
    assert [group.first.waiver for group in groups] == [None, WAIVER, other]


def with_values(*values: Any, **changes: Any) -> list[Finding]:
    return [
        finding(f"{index}.log", message="x is {found}", found=value, **changes)
        for index, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (with_values(1), "x is 1"),
        (with_values(3, 1, 2), "x is 1 to 3"),
        (with_values("b", "a", "b"), 'x is "b", "a"'),
        ([*with_values(1), finding(message="other")], "x is 1 (and 1 similar message)"),
        ([finding(message=f"{n}") for n in range(9)], "0 (and 8 similar messages)"),
    ],
)
def test_a_group_has_the_values_of_all_its_findings(made: list[Finding], text: str) -> None:
    (group,) = by_code(made)
    assert group.text == text


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ("a", "a"),
        ("abc", "a, b, c"),
        ("abca", "a, b, c"),
        ("abcdefgh", "a, b, c, d, e, f and 2 more"),
    ],
)
def test_subjects_are_named_and_counted(paths: str, words: str) -> None:
    (group,) = by_code([finding(path) for path in paths])
    assert len(group.subjects) == len(set(paths))
    assert subjects_in_words(group) == words


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("results/dgx/bert", ""),
        ("ACME/results/dgx/bert", "ACME"),
        ("v2.0/ACME/results/dgx/strong/bert", "v2.0/ACME"),
        ("results/results/dgx/bert", "results"),
        (".", ""),
    ],
)
def test_root(path: str, expected: str) -> None:
    assert root(path) == expected


def test_the_submitters_of_a_round() -> None:
    assert list(Submitters(a_round()).rows()) == [
        SubmitterRow("ACME", 2, FAIL, errors=1, warnings=2, rcp_failures=1),
        SubmitterRow("beta", 2, Verdicts(Verdict.FAIL, Verdict.FAIL), 1, 3, 0),
        SubmitterRow("Zeta", 1, Verdicts(Verdict.FAIL, Verdict.FAIL), 1, 1, 0),
        SubmitterRow("elsewhere", 0, NOT_CHECKED, 0, 1, 0),
    ]


def test_the_rows_have_every_finding() -> None:
    rows = list(Submitters(a_round()).rows())
    made = [one for one in FINDINGS if not one.waiver and one.severity is not A_NOTE]
    assert sum(row.errors + row.warnings for row in rows) == len(made)


@pytest.mark.parametrize(
    ("sets", "made", "verdicts"),
    [
        ([PASS], [], PASS),
        ([PASS, FAIL], [], FAIL),
        ([NOT_CHECKED], [], NOT_CHECKED),
        ([NOT_CHECKED, PASS], [], PASS),
        ([NOT_CHECKED], [finding("A/x", severity=WARNING)], NOT_CHECKED),
        ([NOT_CHECKED], [finding("A/x", basis=Basis.RULES)], Verdicts(Verdict.NOT_CHECKED, Verdict.FAIL)),
        ([PASS], [finding("A/x", basis=Basis.OFFICIAL)], FAIL),
        ([PASS], [finding("A/x", waiver=WAIVER)], FAIL),
        ([PASS], [finding("B/x")], PASS),
    ],
)  # fmt: skip
def test_the_verdicts_of_a_submitter(
    sets: Sequence[Verdicts], made: list[Finding], verdicts: Verdicts
) -> None:
    rows = tuple(
        result_set(path=f"A/results/{index}/bert", submitter="A", verdict=verdict)
        for index, verdict in enumerate(sets)
    )
    row = next(Submitters(report(result_sets=rows, findings=made)).rows())
    assert row.verdicts == verdicts


def test_no_submitter_fails_officially_where_nothing_was_checked() -> None:
    rows = (result_set(path="A/results/x/bert", submitter="A", verdict=NOT_CHECKED),)
    made = report(result_sets=rows, findings=[finding("A/x")], verdict=NOT_CHECKED)
    assert [row.verdicts.official for row in Submitters(made).rows()] == [Verdict.NOT_CHECKED]


@pytest.mark.parametrize(
    ("changes", "failures"),
    [
        ({"rcp": rcp(official_pass=False)}, 1),
        ({"rcp": rcp(official_pass=False, bypassed=True)}, 0),
        ({"rcp": rcp(official_pass=False), "division": "open"}, 0),
        ({"rcp": None}, 0),
        ({}, 0),
    ],
)
def test_rcp_failures(changes: dict[str, Any], failures: int) -> None:
    row = result_set(path="A/results/x/bert", submitter="A", **changes)
    (submitter,) = Submitters(report(result_sets=(row,))).rows()
    assert submitter.rcp_failures == failures


@pytest.mark.parametrize(
    ("path", "submitter"),
    [
        ("ACME", "ACME"),
        ("ACME/systems/x.json", "ACME"),
        ("ACME/results/dgx/bert/result_0.txt", "ACME"),
        ("ACME2/systems/x.json", None),
        ("mlperf-pkg.yaml", None),
    ],
)
def test_whose_file_it_is(path: str, submitter: str | None) -> None:
    assert Submitters(a_round()).of(finding(path)) == submitter


def test_a_submission_that_was_checked_from_within_has_all_files() -> None:
    submitters = Submitters(report(result_sets=(result_set(),)))
    assert submitters.of(finding("systems/x.json")) == "ACME"
    assert (submitters.number, set(submitters.roots)) == (1, {""})


RAW_ROWS = [
    result_set(path=".", submitter="ACME"),
    result_set(path=".", submitter="beta"),
    result_set(path="logs", submitter=None, id="Zeta/dgx/bert/closed"),
]


@pytest.mark.parametrize(
    ("set_", "submitter"),
    [("ACME/dgx/bert/closed", "ACME"), ("beta/dgx/bert/closed", "beta"),
     ("Zeta/dgx/bert/closed", None), (None, None)],
)  # fmt: skip
def test_whose_raw_logs_they_are(set_: str | None, submitter: str | None) -> None:
    submitters = Submitters(report(result_sets=RAW_ROWS))
    assert submitters.of(finding(".", set=set_)) == submitter
    assert not submitters.roots


@pytest.mark.parametrize(
    ("rows", "number"),
    [
        ([], 0),
        (RAW_ROWS[2:], 0),
        (RAW_ROWS, 2),
        ([RAW_ROWS[0], result_set(path="A/results/x/bert", submitter="A")], 2),
        ([RAW_ROWS[0], result_set(path="ACME/results/x/bert", system="x")], 1),
    ],
    ids=["none", "unnamed", "raw logs", "raw logs and a submission", "both of one submitter"],
)
def test_the_number_of_submitters(rows: list[ResultSetRow], number: int) -> None:
    assert Submitters(report(result_sets=rows)).number == number


def test_the_findings_on_raw_logs_by_submitter() -> None:
    made = [finding(".", set=f"{name}/dgx/bert/closed") for name in ("ACME", "beta", "beta")]
    rows = list(Submitters(report(result_sets=RAW_ROWS, findings=made)).rows())
    assert [(row.name, row.result_sets, row.errors) for row in rows] == [
        ("ACME", 1, 1),
        ("beta", 1, 2),
    ]


def test_the_findings_of_a_code_by_submitter() -> None:
    paths = ["Zeta/a", "beta/a", "beta/b", "ACME/a", "mlperf-pkg.yaml"]
    (group,) = by_code([finding(path) for path in paths])
    assert Submitters(a_round()).of_group(group) == "beta 2, Zeta 1, ACME 1, elsewhere 1"


def test_places_of_a_folded_finding_are_one_subject() -> None:
    paths = [f"set/{number}" for number in range(3)]
    (group,) = by_code(folded(map(finding, paths), "set", paths))
    assert group.subjects == ("set",)
