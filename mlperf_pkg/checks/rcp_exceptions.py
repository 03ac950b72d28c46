"""What the rules allow in one round, or only to sets that pass the RCP test."""

from __future__ import annotations

from collections.abc import Iterator

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.results import rcp
from mlperf_pkg.run.model import Run

_ALLOWED_ROUND = (5, 0)  # of 405b
_END_RATE, _END_RATE_ROUND, _END_RATE_BENCHMARK = 4e-5, (6, 0), "gpt_oss_20b"
_END_SHARE = 0.1  # of the base learning rate


def check_allowance(
    context: SetContext, result: rcp.RcpResult, strict: rcp.RcpResult | None
) -> Iterator[Finding]:
    """Check a set that passes, by the ``strict`` test without the allowance of one round.

    Llama 3.1 405B might converge one evaluation early in round 5.0; the official checker subtracts
    this evaluation from the smallest acceptable mean in later rounds, too.
    """
    if strict is None or strict.official_pass or context.round.version <= _ALLOWED_ROUND:
        return
    is_bypassed = "rcp-bypass" in context.files.flags
    yield set_finding(
        context,
        "RCP105",
        "the mean to converge is {found:,.0f} samples; expected at least {expected:,.0f}, as only"
        " round 5.0 allows convergence one evaluation early",
        basis=Basis.RULES,
        severity=Severity.WARNING if is_bypassed else Severity.ERROR,
        found=result.mean,
        expected=strict.minimum,
    )


def check_end_rate(context: SetContext, result: rcp.RcpResult | None) -> Iterator[Finding]:
    """Check the end learning rate that only sets which pass the RCP test may have."""
    if (context.round.version, context.files.benchmark) != (_END_RATE_ROUND, _END_RATE_BENCHMARK):
        return
    if result is not None and result.official_pass:
        return
    if any(map(_has_special_end_rate, context.runs)):
        yield set_finding(
            context,
            "RCP106",
            "opt_end_learning_rate is {found}, which is allowed only if the RCP test passes;"
            " expected {expected}",
            basis=Basis.RULES,
            found=_END_RATE,
            expected="a tenth of opt_base_learning_rate",
        )


def _has_special_end_rate(run: Run) -> bool:
    end, base = (_number(run, f"opt_{name}_learning_rate") for name in ("end", "base"))
    return end == _END_RATE and (base is None or f"{base * _END_SHARE:.6g}" != f"{end:.6g}")


def _number(run: Run, key: str) -> float | None:
    try:
        return float(run.hyperparameters[key])
    except (KeyError, ValueError):
        return None
