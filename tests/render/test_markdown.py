"""Reports as the summary of a CI job."""

from __future__ import annotations

import pytest

from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.render import FORMATS, View
from mlperf_pkg.render.text import MAX_BYTES
from tests.helpers.reports import FAIL, SET, finding, report, result_set

markdown = FORMATS["markdown"]


def test_a_report() -> None:
    findings = [
        finding("results/dgx/bert", basis=Basis.OFFICIAL, hint="fix it", set=SET),
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


def test_a_round_starts_with_its_submitters() -> None:
    names = ("ACME", "Dell")
    rows = [result_set(path=f"{name}/results/dgx/bert", submitter=name) for name in names]
    findings = [finding("Dell/results/dgx/bert", basis=Basis.OFFICIAL)]
    report_ = report(verdict=FAIL, result_sets=(rows[0], rows[1]), findings=findings)
    _, table, _ = markdown(report_, View()).split("### ", 2)
    assert table.splitlines()[2:] == [
        "| Submitters | Sets | Official | Rules | Errors | Warnings | RCP failures |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: |",
        "| ACME | 1 | pass | pass | - | - | - |",
        "| Dell | 1 | FAIL | pass | 1 | - | - |",
        "",
    ]


@pytest.mark.parametrize(("message", "number"), [("wrong", 50_000), ("ä" * 5000, 5_000)])
def test_the_summary_has_a_limit(message: str, number: int) -> None:
    """GitHub rejects more than 1 MiB."""
    findings = [finding(f"{index}/a", message=message) for index in range(number)]
    summary = markdown(report(findings=findings), View())
    assert MAX_BYTES - 20_000 < len(summary.encode()) < 1 << 20
    last = summary.splitlines()[-1]
    left_out = number - summary.count("\n- ") + 4  # the verdicts are a list too
    assert last == f"{left_out} more lines are left out: a summary has at most 1 MiB."


def test_hostile_names_do_not_act_in_markdown() -> None:
    evil = "<script>|[x](y)\n# title\x1b"
    shown = markdown(
        report(result_sets=(result_set(system=evil),), findings=[finding(evil, message=evil)]),
        View(),
    )
    assert "<script>" not in shown.replace("\\<script\\>", "")
    assert "\n# title" not in shown
    assert shown.count("\\|\\[x\\](y)") == 3
    assert "\x1b" not in shown
