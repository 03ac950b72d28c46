"""The RCP test of a result set, and what makes the official checker crash before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from mlperf_pkg.checks.context import PACKAGE_CHECKER, SetContext, set_finding
from mlperf_pkg.checks.rcp_exceptions import check_allowance, check_end_rate
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.results import rcp, rcp_margin
from mlperf_pkg.results.report import RcpRow
from mlperf_pkg.run.model import Run

_RULES = "training_rules, Handling RCP Failures"
_IN_RULES_FROM = (4, 0)


Points = tuple[rcp.ReferencePoint, ...]


def crash_of(context: SetContext, points: Points | None = None) -> str | None:
    """Return why the official RCP checker crashes on this set; None where it does not.

    ``points`` replace those of mlperf-logging.
    """
    for run in context.runs:
        if run.convergence.crash:
            return f"{run.path}: {run.convergence.crash}"
    names = {str(run.convergence.benchmark) for run in context.runs}
    if (batch_size := _batch_size(context.runs)) is None:
        return "the batch sizes of the logs differ"
    if len(names) != 1:
        return f"the logs are of {' and '.join(sorted(names)) or 'no benchmark'}"
    name = names.pop()
    if not rcp.is_covered(context.round.usage, name):
        return f"it does not cover {name}"
    if reason := _odd_numbers(context, batch_size):
        return reason
    return None if points or _points_of(context, name) else f"it has no reference points of {name}"


def _odd_numbers(context: SetContext, batch_size: Any) -> str | None:
    numbers = [*(run.convergence.to_converge for run in context.runs), batch_size]
    if not all(map(is_number, numbers)):
        return "not all epochs, samples and batch sizes are numbers"
    values = sorted(to_converge(context) or ())
    if batch_size != -1 and rcp.is_too_large(values[context.drop : len(values) - context.drop]):
        return "an integer of the epochs or samples is too large"
    return None


def to_converge(context: SetContext) -> list[Any] | None:
    """Return the epochs or samples of the runs; None if too many runs did not converge."""
    if sum(not run.convergence.converged for run in context.runs) > context.drop:
        return None
    return [run.convergence.to_converge for run in context.runs]


def _batch_size(runs: Sequence[Run]) -> Any:
    """Return the batch size of all runs; -1 where none is logged, None where they differ."""
    common: Any = -1
    for run in runs:
        size = run.convergence.batch_size
        if common == -1:
            common = size
        elif size != common:
            return None
    return common


def _points_of(context: SetContext, benchmark: str) -> Points:
    """Return the points that the official checker compares a set with."""
    assert context.rules  # noqa: S101
    usage, ruleset = context.round.usage, context.round.ruleset
    return _points(usage, ruleset, benchmark, context.rules.runs.required, context.drop)


def _points_of_set(context: SetContext) -> Points:
    """Return the points that a set was judged by."""
    return _points_of(context, context.runs[0].convergence.benchmark)


@cache
def _points(usage: str, ruleset: str, benchmark: str, runs: int, drop: int) -> Points:
    return rcp.prune(rcp.reference_points(usage, ruleset, benchmark, runs=runs, drop=drop))


def rcp_test(
    context: SetContext, points: Points | None = None, *, strict: bool = False
) -> rcp.RcpResult | None:
    """Run the RCP test, for any division; None where it does not apply or crashes.

    ``points`` replace those of mlperf-logging after pruning. A ``strict`` test is without the
    allowance of the official checker for some benchmarks.
    """
    if context.rules is None or context.round.version < (1, 0) or crash_of(context, points):
        return None
    return rcp.judge(
        points or _points_of_set(context),
        _batch_size(context.runs),
        to_converge(context),
        runs=context.rules.runs.required,
        drop=context.drop,
        allowance=0 if strict else _allowance(context),
    )


def _allowance(context: SetContext) -> int:
    return rcp.allowance(context.round.usage, context.runs[0].convergence.benchmark)


def rcp_row(
    context: SetContext, result: rcp.RcpResult | None, points: Points | None = None
) -> RcpRow | None:
    """Return the result of the test as a row of the report; ``points`` as for ``rcp_test``."""
    if result is None:
        return None
    points = points or _points_of_set(context)
    return RcpRow(
        official_pass=result.official_pass,
        message=result.message,
        normalization=result.normalization,
        bypassed=_is_bypassed(context, result),
        batch_size=result.batch_size,
        mean=result.mean,
        minimum=result.minimum,
        explanation=rcp_margin.explain(result, points),
        margin_percent=rcp_margin.margin_percent(result),
        no_limit_reason=rcp_margin.no_limit_reason(result, points),
    )


def _is_bypassed(context: SetContext, result: rcp.RcpResult) -> bool:
    requested = "rcp-bypass" in context.files.flags
    return requested and not result.official_pass and rcp.bypassed(result).official_pass


def check_rcp(context: SetContext, result: rcp.RcpResult | None) -> Iterator[Finding]:
    """Check a Closed set by the result of its test, as the official package checker does.

    That does not test sets whose description spells "Closed". The rules reject a failure by default
    since ``_IN_RULES_FROM``: in earlier rounds, many sets that fail were approved and published.
    """
    if not context.rcp_required_by_rules or context.rules is None:
        return
    if not context.origin.is_judged and len(context.runs) < context.rules.runs.required:
        return  # more runs may follow
    yield from check_end_rate(context, result)
    if result is None and not context.rcp_required:
        return
    if result is None:
        message = f"convergence was not checked, as the RCP checker crashes: {crash_of(context)}"
        yield set_finding(context, "RCP103", message, basis=Basis.OFFICIAL, source=PACKAGE_CHECKER)
        return
    if result.official_pass:
        strict = rcp_test(context, strict=True) if _allowance(context) else result
        yield from check_allowance(context, result, strict)
        return
    bypassed, basis = _is_bypassed(context, result), _basis(context)
    if basis is None and not bypassed:
        return
    explanation = rcp_margin.explain(result, _points_of_set(context)).removesuffix(".")
    failure = "RCP test failed, bypassed on request" if bypassed else "RCP test failed"
    yield set_finding(
        context,
        "RCP102" if bypassed else "RCP101",
        f"{failure}: {explanation[:1].lower()}{explanation[1:]}",
        basis=Basis.RULES if bypassed or basis is None else basis,
        severity=Severity.WARNING if bypassed else Severity.ERROR,
        source=_RULES,
        found=result.mean,
        expected=result.minimum,
        hint=None
        if bypassed
        else "a review decides; to ask for one, write rcp-bypass in package_checker_params",
    )


def _basis(context: SetContext) -> Basis | None:
    """Return the basis of a failed test; None where neither rules nor checker ask for it."""
    if context.round.version < _IN_RULES_FROM:
        return Basis.OFFICIAL if context.rcp_required else None
    return Basis.BOTH if context.rcp_required else Basis.RULES
