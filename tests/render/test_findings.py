"""Equal findings of several files are folded into one."""

from __future__ import annotations

from typing import Any

import pytest

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.render import View, findings
from tests.helpers.reports import finding, report, result_set, run

RUNS = tuple(run(path=f"set/result_{number}.txt") for number in range(12))


def in_logs(*numbers: int, **changes: Any) -> list[Finding]:
    """Return equal findings, one per log, on successive lines."""
    return [finding(f"set/result_{number}.txt", 10 + number, **changes) for number in numbers]


def shown(*several_findings: Finding, verbose: bool = False, **more: Any) -> list[tuple[str, str]]:
    """Return path and message of the findings shown."""
    report_ = report(findings=several_findings, runs=RUNS, **more)
    entries = findings.shown(report_, View(verbose=verbose))
    return [(folded.first.path, folded.message) for folded in entries]


@pytest.mark.parametrize(
    ("equal", "expected"),
    [
        ([], []),
        ([finding("a.log", 3)], [("a.log", "wrong")]),
        (
            [finding("a.log", 3), finding("b.log", 3, message="off")],
            [("a.log", "wrong"), ("b.log", "off")],
        ),
        ([finding("a.log", 3), finding("a.log", 9)], [("a.log", "wrong (also on line 9)")]),
        (
            [finding("a.log", line) for line in (3, 10, 9)],
            [("a.log", "wrong (also on lines 9, 10)")],
        ),
        (
            in_logs(10, 2),
            [("set/result_2.txt", "wrong (in 2 logs: result_2.txt:12, result_10.txt:20)")],
        ),
        (
            in_logs(1, 4, 8, 10),
            [("set/result_1.txt", "wrong (in 4 logs: result_1.txt:11 ... result_10.txt:20)")],
        ),
        (
            in_logs(*range(12)),
            [("set/result_0.txt", "wrong (in all 12 logs: result_0.txt:10 ... result_11.txt:21)")],
        ),
        (
            [finding("systems/a.json"), finding("systems/b.json")],
            [("systems/a.json", "wrong (in 2 files: a.json, b.json)")],
        ),
        (
            [finding("x/a.json"), finding("y/a.json")],
            [("x/a.json", "wrong"), ("y/a.json", "wrong")],
        ),
        ([finding(severity=Severity.NOTE)], []),
    ],
    ids=["none", "one", "two", "line", "lines", "logs", "many", "all", "files", "folders", "note"],
)
def test_folding(equal: list[Finding], expected: list[tuple[str, str]]) -> None:
    assert shown(*equal) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"code": "X2"},
        {"severity": Severity.WARNING},
        {"basis": Basis.RULES},
        {"message": "other"},
        {"hint": "do this"},
    ],
)
def test_what_differs_is_not_folded(change: dict[str, Any]) -> None:
    assert len(shown(*in_logs(1), *in_logs(2, **change))) == 2


def test_findings_about_sets_stay_apart() -> None:
    sets = (result_set(path="results/a/bert"), result_set(path="results/a/resnet"))
    several_findings = [finding(row.path) for row in sets]
    assert shown(*several_findings, result_sets=sets) == [
        ("results/a/bert", "wrong"),
        ("results/a/resnet", "wrong"),
    ]


def test_verbose_shows_all() -> None:
    note = finding("a.log", severity=Severity.NOTE)
    assert len(shown(*in_logs(1, 2, 3), note, verbose=True)) == 4


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (Basis.BOTH, "wrong"),
        (Basis.OFFICIAL, "wrong [official]"),
        (Basis.RULES, "wrong [rules]"),
        (Basis.ADVICE, "wrong [advice]"),
    ],
)
def test_basis(basis: Basis, message: str) -> None:
    assert shown(finding(basis=basis)) == [("a.log", message)]


def test_counts() -> None:
    several_findings = [finding(), finding(), finding(severity=Severity.NOTE)]
    assert findings.counts(several_findings) == {
        Severity.ERROR: 2,
        Severity.WARNING: 0,
        Severity.NOTE: 1,
    }
