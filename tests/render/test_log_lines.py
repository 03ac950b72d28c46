"""Plain log lines."""

from __future__ import annotations

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Severity, Waiver
from mlperf_pkg.render import FORMATS, Show, View
from mlperf_pkg.results.report import Report
from tests.helpers.reports import finding, on_raw_set, raw_sets, report

WAIVER = Waiver("agreed", "Jane", "2026-12-31")


LOG_VIEW = View()


def lines(report_: Report, view: View = LOG_VIEW) -> list[str]:
    return FORMATS["log"](report_, view).splitlines()


def test_levels() -> None:
    checked = report(
        findings=[
            finding("a", 7, basis=Basis.RULES),
            finding("b", severity=Severity.WARNING),
            finding("c", severity=Severity.NOTE),
            finding("d", waiver=WAIVER),
        ]
    )
    assert lines(checked, View(show=Show.NOTES))[1:5] == [
        "ERROR - a:7: X1 [rules]: wrong",
        "WARNING - b: X1: wrong",
        "INFO - c: X1: wrong",
        "INFO - d: waived: X1: wrong",
    ]


def test_sets_of_raw_logs_in_log_lines() -> None:
    checked = report(**raw_sets(), findings=[*on_raw_set("alpha"), *on_raw_set("beta")])
    assert lines(checked)[1:3] == [
        "ERROR - ACME/alpha/bert/closed: X1: wrong",
        "ERROR - ACME/beta/bert/closed: X1: wrong",
    ]


def test_round_and_verdicts_are_always_there() -> None:
    checked = report(findings=[finding("a")])
    first, official, rules = lines(checked, View(quiet=True))
    assert first.startswith("INFO - round ")
    assert official.startswith("INFO - official verdict: ")
    assert rules.startswith("INFO - rules verdict: ")


def test_nothing_breaks_a_line() -> None:
    hostile = replace(finding("a\nb\x1b[31m"), message="x\ny\u2028z")
    assert len(lines(report(findings=[hostile]))) == 4
    assert all(line.isprintable() for line in lines(report(findings=[hostile])))
