"""The report on a round of three submitters, with findings of every kind."""

from typing import Any

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, Waiver, folded
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.submission.membership import set_id
from tests.helpers.reports import FAIL, NOT_CHECKED, PASS, finding, rcp, report, result_set

WAIVER = Waiver("a known mistake of the checker", "Jane", "2026-12-31")
RUNS = 10

_FAST = rcp(official_pass=False, margin_percent=-1.0)


def _row(submitter: str, benchmark: str, **changes: Any) -> ResultSetRow:
    path = f"{submitter}/results/dgx/{benchmark}"
    return result_set(path=path, submitter=submitter, benchmark=benchmark, **changes)


ROWS = (
    _row("ACME", "bert", verdict=FAIL, rcp=_FAST),
    _row("ACME", "resnet"),
    _row("beta", "bert", verdict=Verdicts(Verdict.FAIL, Verdict.FAIL)),
    _row("beta", "chess", verdict=NOT_CHECKED, rcp=None, runs_required=None),
    _row("Zeta", "bert"),
)


def _id(set_path: str) -> str:
    submitter, _, system, benchmark = set_path.split("/")
    return set_id(submitter, system, benchmark, "closed")


def _of_runs(set_path: str, values: list[Any], *, line: int = 7, **fields: Any) -> list[Finding]:
    """A finding on the first runs of a set, each with its value."""
    made = [
        finding(f"{set_path}/result_{number}.txt", line + number, found=value, **fields)
        for number, value in enumerate(values)
    ]
    runs = [f"{set_path}/result_{number}.txt" for number in range(RUNS)]
    return folded(made, set_path, runs, _id(set_path))


def _interval(submitter: str, *values: int) -> list[Finding]:
    return _of_runs(
        f"{submitter}/results/dgx/bert",
        list(values),
        code="BERT121",
        message="evaluated every {found:,} samples; expected every {expected}",
        expected="150,000",
        severity=Severity.WARNING,
        basis=Basis.RULES,
    )


def _description(submitter: str, *fields: str) -> list[Finding]:
    path = f"{submitter}/systems/dgx.json"
    message, basis = "no value for {found:s}", Basis.RULES
    warning = Severity.WARNING
    made = [
        finding(path, 9, code="SYS202", message=message, found=name, severity=warning, basis=basis)
        for name in fields
    ]
    return folded(made, path)


def _of_set(path: str, code: str, message: str, **fields: Any) -> list[Finding]:
    made = finding(path, code=code, message=message, **fields)
    return folded([made], path, set_id=_id(path))


FINDINGS = [
    *_of_set("ACME/results/dgx/bert", "RCP101", "too fast", basis=Basis.OFFICIAL, hint="a review"),
    *_of_runs(
        "beta/results/dgx/bert", [1, 2, 2], code="RUN107", message="x is {found}; expected 0"
    ),
    *_of_runs("Zeta/results/dgx/bert", [9], code="RUN107", message="x is {found}; expected 0"),
    *_interval("ACME", 21_888, 23_040),
    *_interval("beta", 12_288),
    *_interval("Zeta", *[30_000] * RUNS),
    *_description("ACME", "cooling", "framework"),
    *_description("beta", "cooling"),
    *folded(
        [finding("beta", code="CODE100", message="no code", severity=Severity.WARNING)], "beta"
    ),
    *_of_set("ACME/results/dgx/resnet", "SET103", "refused", waiver=WAIVER, basis=Basis.OFFICIAL),
    *_of_set("Zeta/results/dgx/bert", "SET113", "overlap", severity=Severity.NOTE),
    finding("mlperf-pkg.yaml", 3, code="WAIVE101", message="ended", severity=Severity.WARNING),
]


def a_round(**changes: Any) -> Report:
    """Return the report on all of it."""
    fields: dict[str, Any] = {
        "verdict": Verdicts.worst([PASS, *(row.verdict for row in ROWS)]),
        "result_sets": ROWS,
        "findings": FINDINGS,
    }
    return report(**{**fields, **changes})
