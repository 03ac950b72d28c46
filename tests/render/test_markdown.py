"""Reports as the summary of a CI job."""

from __future__ import annotations

from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.render import FORMATS, View
from tests.helpers.reports import FAIL, finding, report, result_set

markdown = FORMATS["markdown"]


def test_a_report() -> None:
    findings = [
        finding("results/dgx/bert", basis=Basis.OFFICIAL, hint="fix it"),
        finding("systems/dgx.json", 3, severity=Severity.NOTE),
    ]
    report_ = report(verdict=FAIL, result_sets=(result_set(verdict=FAIL),), findings=findings)
    assert markdown(report_, View()).split("\n") == [
        "## MLPerf check",
        "",
        "- **official**: FAIL, mlperf-logging 9.9.9 rejects this, 1 error in 1 of 1 result set",
        "- **rules**: pass",
        "- 1 error, 0 warnings, 1 note",
        "- round 2.0: as given",
        "",
        "### Results",
        "",
        "| Submitter | System | Benchmark | Division | Round | Accelerators | Runs | Minutes |"
        " RCP margin | Official | Rules |",
        "| --- | --- | --- | --- | --- | ---: | ---: | ---: | --- | --- | --- |",
        "| ACME | dgx | bert | closed | 2.0 | - | 10/10 | 20.500 | pass +10.0 % | FAIL | pass |",
        "",
        "### Findings",
        "",
        "- results/dgx/bert: **error X1 \\[official\\]**: wrong",
        "  <br>hint: fix it",
        "",
    ]


def test_without_findings() -> None:
    assert markdown(report(), View()).endswith("### Results\n\nNo result set.\n")


def test_hostile_names_do_not_act() -> None:
    evil = "<script>|[x](y)\n# title\x1b"
    shown = markdown(
        report(result_sets=(result_set(system=evil),), findings=[finding(evil, message=evil)]),
        View(),
    )
    assert "<script>" not in shown.replace("\\<script\\>", "")
    assert "\n# title" not in shown
    assert shown.count("\\|\\[x\\](y)") == 3
    assert "\x1b" not in shown
