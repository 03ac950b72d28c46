"""Reports for the tests of what is made of them."""

from datetime import UTC, datetime
from typing import Any

from mlperf_pkg.findings import Finding, Verdict, Verdicts, folded
from mlperf_pkg.results.report import RcpRow, Report, ResultSetRow, RunRow, SeedsRow, SystemRow
from mlperf_pkg.submission.membership import set_id

PASS = Verdicts(Verdict.PASS, Verdict.PASS)
FAIL = Verdicts(Verdict.FAIL, Verdict.PASS)
NOT_CHECKED = Verdicts(Verdict.NOT_CHECKED, Verdict.NOT_CHECKED)
SET = "ACME/dgx/bert/closed"
"""The id of the set that ``result_set`` makes by default."""
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
        "usage": "training",
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
    row: dict[str, Any] = {"scaling": None, **defaults, **changes}
    names = ("submitter", "system", "benchmark", "division", "scaling")
    return ResultSetRow(**{"id": set_id(*(row[name] for name in names)), **row})


def run(**changes: Any) -> RunRow:
    """A run of that set that counts."""
    defaults: dict[str, Any] = {
        "path": "results/dgx/bert/result_0.txt",
        "set": SET,
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
        "usage": "training",
        "start": datetime(2022, 4, 20, 20, 31, 30, 146000, UTC),
        "submitter": "ACME",
        "system": "dgx",
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
    fields = {"code": "X1", "message": "wrong", "path": path, "line": line, "id": "X1-1"}
    return Finding(**{**fields, **changes})


def raw_sets() -> dict[str, Any]:
    """Two sets of raw logs in the folder that was checked, each with two runs."""
    systems = ("alpha", "beta")
    rows = [result_set(path=".", submitter=None, system=name, id=raw_id(name)) for name in systems]
    runs = [run(path=path, set=raw_id(name)) for name in systems for path in raw_logs(name)]
    return {"result_sets": tuple(rows), "runs": tuple(runs)}


def raw_logs(system: str) -> list[str]:
    """The logs of one of these sets."""
    return [f"{system}_0.log", f"{system}_1.log"]


def raw_id(system: str) -> str:
    """The id of one of these sets; its submitter is that of the logs."""
    return set_id("ACME", system, "bert", "closed")


def on_raw_set(system: str, *made: Finding) -> list[Finding]:
    """Fold findings on one of these sets, by default one on all of it."""
    made = made or (finding("."),)
    return folded(made, raw_id(system), raw_logs(system), raw_id(system))


def report(**changes: Any) -> Report:
    """An empty report; findings are sorted, as in all reports."""
    defaults: dict[str, Any] = {
        "tool": TOOL,
        "usage": "training",
        "round": "2.0",
        "round_reason": "as given",
        "verdict": PASS,
    }
    findings = tuple(sorted(changes.pop("findings", ()), key=lambda one: one.sort_key))
    return Report(**{**defaults, **changes, "findings": findings}).with_companies


def nested(levels: int) -> list[Any]:
    """A list nested to ``levels`` levels below the first."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value
