"""Reports for the tests of what is made of them."""

from __future__ import annotations

from typing import Any

from mlperf_pkg.findings import Finding, Verdict, Verdicts
from mlperf_pkg.results.report import RcpRow, Report, ResultSetRow, RunRow, SeedsRow, SystemRow
from mlperf_pkg.submission.membership import set_id

PASS = Verdicts(Verdict.PASS, Verdict.PASS)
FAIL = Verdicts(Verdict.FAIL, Verdict.PASS)
NOT_CHECKED = Verdicts(Verdict.NOT_CHECKED, Verdict.NOT_CHECKED)
TOOL = {"version": "1", "rulebook": "1", "reference": "mlperf-logging 9.9.9"}


def rcp(**changes: Any) -> RcpRow:
    """A test passed by 10 %."""
    defaults: dict[str, Any] = {
        "official_pass": True,
        "message": "RCP found",
        "normalization": 1.0,
        "bypassed": False,
        "batch_size": 256.0,
        "mean": 110.0,
        "minimum": 100.0,
        "explanation": "All is well.",
        "margin_percent": 10.0,
    }
    return RcpRow(**{**defaults, **changes})


def result_set(**changes: Any) -> ResultSetRow:
    """A Closed set of bert that passes, in a submission."""
    defaults: dict[str, Any] = {
        "path": "results/dgx/bert",
        "submitter": "ACME",
        "system": "dgx",
        "benchmark": "bert",
        "division": "closed",
        "round": "2.0",
        "verdict": PASS,
        "runs_found": 10,
        "runs_required": 10,
        "score_minutes": 20.5,
        "unscaled_minutes": 20.5,
        "scaling_factor": 1.0,
        "official_minutes": 20.5,
        "score_note": "",
        "rcp": rcp(),
        "seeds": SeedsRow(official_pass=True),
    }
    row: dict[str, Any] = {**defaults, **changes}
    names = ("submitter", "system", "benchmark", "division", "scaling")
    id_ = set_id(*(row.get(name) for name in names))
    return ResultSetRow(**{"id": id_, **row})


def run(**changes: Any) -> RunRow:
    """A run of that set that counts."""
    defaults: dict[str, Any] = {
        "path": "results/dgx/bert/result_0.txt",
        "set": "ACME/dgx/bert/closed",
        "verdict": PASS,
        "benchmark": "bert",
        "division": "closed",
        "round": "2.0",
        "minutes": 20.0,
        "official_minutes": 20.0,
        "status": "success",
        "records": 100,
        "samples_to_converge": 3.0,
        "dropped": None,
    }
    return RunRow(**{**defaults, **changes})


def system(**changes: Any) -> SystemRow:
    """The system of that set."""
    defaults: dict[str, Any] = {
        "id": "dgx",
        "path": "systems/dgx.json",
        "submitter": "ACME",
        "division": "closed",
        "status": "onprem",
        "accelerators": 8,
        "verdict": PASS,
    }
    return SystemRow(**{**defaults, **changes})


def finding(path: str = "a.log", line: int | None = None, **changes: Any) -> Finding:
    """An error by both the rules and the checker."""
    return Finding(**{"code": "X1", "message": "wrong", "path": path, "line": line, **changes})


def report(**changes: Any) -> Report:
    """An empty report; findings are sorted, as in all reports."""
    defaults: dict[str, Any] = {
        "tool": TOOL,
        "usage": "training",
        "round": "2.0",
        "round_reason": "as given",
        "verdict": PASS,
    }
    changes["findings"] = tuple(sorted(changes.get("findings", ()), key=lambda f: f.sort_key))
    return Report(**{**defaults, **changes})


def nested(levels: int) -> list[Any]:
    """A list nested to ``levels`` levels below the first."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value
