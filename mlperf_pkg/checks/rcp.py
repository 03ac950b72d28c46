"""The RCP test of a result set, and what the official checker dies of on the way to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from mlperf_pkg.checks.context import PACKAGE, SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.results import rcp
from mlperf_pkg.results.report import RcpRow
from mlperf_pkg.run.model import Run

_RULES = "training_rules, Reference convergence points"


def _rcp_death(case: SetContext) -> str | None:
    """Why the official RCP checker raises on this set, if it does."""
    for run in case.runs:
        if run.convergence.crash:
            return f"{run.path}: {run.convergence.crash}"
    names = {str(run.convergence.benchmark) for run in case.runs}
    if _batch_size(case.runs) is None:
        return "the batch sizes of the logs differ"
    if len(names) != 1:
        return f"the logs are of {' and '.join(sorted(names)) or 'no benchmark'}"
    name = names.pop()
    if not rcp.is_covered(case.round.usage, name):
        return f"it does not know {name}"
    numbers = [*(run.convergence.to_converge for run in case.runs), _batch_size(case.runs)]
    if not all(isinstance(number, int | float) for number in numbers):
        return "epochs, samples or batch sizes that are no numbers"
    return None if _points_of(case, name) else f"it has no reference points of {name}"


def _batch_size(runs: Sequence[Run]) -> Any:
    """The batch size of all runs; -1 where none is logged, None where they differ."""
    known: Any = -1
    for run in runs:
        size = run.convergence.batch_size
        if known == -1:
            known = size
        elif size != known:
            return None
    return known


def _points_of(case: SetContext, benchmark: str) -> tuple[rcp.ReferencePoint, ...]:
    """The points that the official checker compares a set with."""
    assert case.rules  # noqa: S101
    usage, ruleset = case.round.usage, case.round.ruleset
    return _points(usage, ruleset, benchmark, case.rules.runs.required, case.drop)


@cache
def _points(
    usage: str, ruleset: str, benchmark: str, runs: int, drop: int
) -> tuple[rcp.ReferencePoint, ...]:
    return rcp.prune(rcp.reference_points(usage, ruleset, benchmark, runs=runs, drop=drop))


def rcp_test(case: SetContext) -> rcp.RcpResult | None:
    """The RCP test itself, of whatever division; None where it does not apply or dies."""
    if case.rules is None or case.round.version < (1, 0) or _rcp_death(case):
        return None
    benchmark = case.runs[0].convergence.benchmark
    lost = sum(not run.convergence.converged for run in case.runs)
    return rcp.judge(
        _points_of(case, benchmark),
        _batch_size(case.runs),
        None if lost > case.drop else [run.convergence.to_converge for run in case.runs],
        benchmark=benchmark,
        ruleset=case.round.ruleset,
        runs=case.rules.runs.required,
        drop=case.drop,
    )


def rcp_row(case: SetContext, tested: rcp.RcpResult | None) -> RcpRow | None:
    """The test as a row of the report."""
    if tested is None:
        return None
    return RcpRow(
        official_pass=tested.official_pass,
        message=tested.message,
        normalization=tested.normalization,
        bypassed=_bypassed(case, tested),
        batch_size=tested.batch_size,
        mean=tested.mean,
        minimum=tested.minimum,
        explanation=rcp.explain(tested),
    )


def _bypassed(case: SetContext, tested: rcp.RcpResult) -> bool:
    asked = "rcp-bypass" in case.files.flags
    return asked and not tested.official_pass and rcp.bypassed(tested).official_pass


def check_rcp(case: SetContext, tested: rcp.RcpResult | None) -> Iterator[Finding]:
    """What the official package checker makes of the test of a Closed set."""
    if not case.rcp_tested or case.rules is None:
        return
    if case.loose and len(case.runs) < case.rules.runs.required:
        return  # not all runs are there yet
    if tested is None:
        message = f"convergence was not checked: the RCP checker dies: {_rcp_death(case)}"
        yield set_finding(case, "RCP103", message, basis=Basis.OFFICIAL, source=PACKAGE)
        return
    if tested.official_pass:
        return
    bypassed = _bypassed(case, tested)
    yield set_finding(
        case,
        "RCP102" if bypassed else "RCP101",
        f"RCP test failed{', by request not counted' if bypassed else ''}: {rcp.explain(tested)}",
        basis=Basis.RULES if bypassed else Basis.OFFICIAL,
        severity=Severity.WARNING if bypassed else Severity.ERROR,
        source=_RULES,
        found=tested.mean,
        expected=tested.minimum,
        hint="a review decides; rcp-bypass in package_checker_params asks for one",
    )
