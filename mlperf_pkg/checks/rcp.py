"""Rules on the convergence of a set: the RCP test, and its exceptions.

``results.rcp`` computes the test; here is what it means for a set. (mlperf_logging.rcp_checker)
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.infra.json_values import is_number, to_float
from mlperf_pkg.results import rcp
from mlperf_pkg.results.report import RcpRow
from mlperf_pkg.results.scoring import weak_score
from mlperf_pkg.rulebook.rounds import TRAINING
from mlperf_pkg.run.model import Run

Points = tuple[rcp.ReferencePoint, ...]


def crash_of(context: SetContext, points: Points | None = None) -> str | None:
    """Return why the official RCP checker crashes on this set; None where it does not.

    ``points`` replace those of mlperf-logging.
    """
    for run in context.runs:
        if run.convergence.crash:
            return f"{run.convergence.crash} in {run.path}"
    names = {str(run.convergence.benchmark or "an unknown benchmark") for run in context.runs}
    batch_size = _batch_size(context.runs)
    if batch_size is None:
        return "the batch sizes of the logs differ"
    if len(names) != 1:
        return f"the logs are not of one benchmark, but of {' and '.join(sorted(names)) or 'none'}"
    name = names.pop()
    if not rcp.is_covered(context.round.usage, name):
        return f"it has no reference points for {name}"
    reason = _odd_numbers(context, batch_size)
    if reason:
        return reason
    return None if points or _points_of(context) else f"it has no reference points for {name}"


def _odd_numbers(context: SetContext, batch_size: Any) -> str | None:
    numbers = [*(run.convergence.to_converge for run in context.runs), batch_size]
    if not all(map(is_number, numbers)):
        return "not all epochs, samples and batch sizes are numbers"
    values = sorted(to_converge(context) or ())
    if batch_size != -1 and rcp.is_too_large(values[context.drop : len(values) - context.drop]):
        return "a logged number of epochs or samples is too large"
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


def _points_of(context: SetContext) -> Points:
    """Return the points that the official checker compares a set with."""
    assert context.rules  # noqa: S101
    usage = context.round.usage
    ruleset = context.round.ruleset
    benchmark = str(context.runs[0].convergence.benchmark)
    return _points(usage, ruleset, benchmark, context.rules.runs.required, context.drop)


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
        points or _points_of(context),
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
    points = points or _points_of(context)
    unit = context.rules.unit if context.rules else "epochs or samples"
    return RcpRow(
        official_pass=result.official_pass,
        message=result.message,
        normalization=result.normalization,
        bypassed=_is_bypassed(context, result),
        batch_size=result.batch_size,
        mean=result.mean,
        minimum=result.minimum,
        explanation=rcp.explain(result, points, unit),
        margin_percent=rcp.margin_percent(result),
        no_limit_reason=rcp.no_limit_reason(result, points),
    )


def _is_bypassed(context: SetContext, result: rcp.RcpResult) -> bool:
    requested = "rcp-bypass" in context.files.flags
    return requested and not result.official_pass and rcp.bypassed(result).official_pass


def check_rcp(context: SetContext, result: rcp.RcpResult | None) -> Iterator[Finding]:
    """Check a Closed set by the result of its test, as the official package checker does.

    That does not test sets whose description spells "Closed".
    """
    if not context.rcp_required_by_rules or context.rules is None:
        return
    if not context.origin.is_judged and len(context.runs) < context.rules.runs.required:
        return  # more runs may follow
    yield from _check_end_rate(context, result)
    if result is None and not context.rcp_required:
        return
    if result is None:
        message = (
            f"the official RCP checker crashes, as {crash_of(context)}; convergence was not checked"
        )
        yield context.finding("RCP103", message)
        return
    if result.official_pass:
        yield from _check_allowance(context, result)
        return
    means = {"found": result.mean, "expected": result.minimum}
    message = rcp.failure(result, _points_of(context), context.rules.unit)
    if _is_bypassed(context, result):
        message = f"{message}; the submission asks for a review with rcp-bypass"
        basis = Basis.RULES if context.round.usage == TRAINING else Basis.ADVICE
        yield context.finding("RCP102", message, basis=basis, **means)
        return
    hint = None
    if _may_be_reviewed(context, result):
        hint = (
            "a review may accept the result; to ask for this, write rcp-bypass into the"
            " file package_checker_params"
        )
    basis = Basis.BOTH if context.rcp_required else Basis.RULES
    yield context.finding("RCP101", message, basis=basis, hint=hint, **means)
    if not context.is_written("RCP101") and context.round.usage == TRAINING:
        yield from _check_approval(context, result)


def _check_approval(context: SetContext, result: rcp.RcpResult) -> Iterator[Finding]:
    """Check a set that fails the test in a round of which reviews approved many such sets.

    The rules of HPC have no reference convergence points. (Auditing, Training, 2021-05-20)
    """
    below = -(rcp.margin_percent(result) or 0.0)
    message = "the runs converge {found:.1f} % earlier than the RCP test accepts"
    if below > _MOST_APPROVED:
        message = (
            f"{message}; expected at most {{expected}} % (no approval of more than 6.5 % is known)"
        )
        yield context.finding("RCP107", message, found=below, expected=_MOST_APPROVED)
    elif below > 0 and _may_be_reviewed(context, result):
        message = f"{message}; such a result needs {{expected}}"
        approval = "the approval of the working group"
        yield context.finding("RCP108", message, found=below, expected=approval)


def _may_be_reviewed(context: SetContext, result: rcp.RcpResult) -> bool:
    """Return whether a failed test is a question of convergence, which a review may decide.

    It is none where runs are missing or did not converge, or where they count in another unit.
    """
    is_complete = len(context.runs) == context.required_runs and result.mean is not None
    return is_complete and not rcp.is_in_another_unit(result)


# ---- what the rules allow in one round, or only to sets that pass the test ----------------

# % below the smallest acceptable mean; those approved that we know of were up to 6.5 % below it.
_MOST_APPROVED = 20
_ALLOWED_ROUND = (5, 0)  # of 405b
_END_RATE = 4e-5
_END_RATE_ROUND = (6, 0)
_END_RATE_BENCHMARK = "gpt_oss_20b"
_END_SHARE = 0.1  # of the base learning rate


def _check_allowance(context: SetContext, result: rcp.RcpResult) -> Iterator[Finding]:
    """Apply the strict test, without the allowance of one round, to a set that passes.

    Llama 3.1 405B was allowed to converge one evaluation early in round 5.0; the official checker
    subtracts this evaluation from the smallest acceptable mean in later rounds, too.
    """
    if context.round.version <= _ALLOWED_ROUND or not _allowance(context):
        return
    strict = rcp_test(context, strict=True)
    if strict and not strict.official_pass:
        is_bypassed = "rcp-bypass" in context.files.flags
        severity = Severity.WARNING if is_bypassed else Severity.ERROR
        message = (
            "the runs converge after {found:,.0f} samples on average; expected at least"
            f" {{expected:,.0f}} for batch size {result.batch_size:,} (only round 5.0 allows"
            " 46,080 samples fewer)"
        )
        yield context.finding(
            "RCP105", message, severity=severity, found=result.mean, expected=strict.minimum
        )


def _check_end_rate(context: SetContext, result: rcp.RcpResult | None) -> Iterator[Finding]:
    """Check the end learning rate that only sets which pass the RCP test may have."""
    if (context.round.version, context.files.benchmark) != (_END_RATE_ROUND, _END_RATE_BENCHMARK):
        return
    if result is not None and result.official_pass:
        return
    if any(map(_has_special_end_rate, context.runs)):
        message = (
            "opt_end_learning_rate is {found}, which is allowed only in a result set that"
            " passes the RCP test; expected {expected}"
        )
        tenth = "a tenth of opt_base_learning_rate"
        yield context.finding("RCP106", message, found=_END_RATE, expected=tenth)


def _has_special_end_rate(run: Run) -> bool:
    end, base = (_number(run, f"opt_{name}_learning_rate") for name in ("end", "base"))
    return end == _END_RATE and (base is None or f"{base * _END_SHARE:.6g}" != f"{end:.6g}")


def _number(run: Run, key: str) -> float | None:
    try:
        return float(run.hyperparameters[key])
    except (KeyError, ValueError):
        return None


# ---- what the official summarizer prints besides the time-to-train ------------------------

_FAILURES = {rcp.FOUND: "Fail", rcp.INTERPOLATED: "Interp. Fail", rcp.NO_POINTS: "No RCP"}


class WeakScaling(Struct, frozen=True):
    """The throughput of many models trained at once (HPC training rules, Throughput).

    ``minutes`` is from the first start to the last stop; ``instance_scale``, the accelerators that
    train one model, is None where no log says it.
    """

    models: int
    instance_scale: int | None
    minutes: float


class Summarized(Struct, frozen=True):
    """The cells of the detailed table that ``ResultSetRow`` does not hold.

    ``scaling_factor`` is the official one, None if the summarizer crashes on ``scaling.json``.
    ``test`` is the summarizer's RCP test, None if it makes none.
    ``to_converge`` is the mean in epochs or samples without the fastest and the slowest run.
    ``weak`` is None except for sets of weak scaling with enough models.
    """

    scaling_factor: float | None
    test: rcp.RcpResult | None = None
    batch_size: float | None = None
    to_converge: float | None = None
    weak: WeakScaling | None = None

    @property
    def rcp(self) -> str:
        """The state of the test in words; empty if there is none."""
        if self.test is None:
            return ""
        if self.test.official_pass:
            return "Pass"
        if self.test.message.startswith(rcp.MISSING):
            return "Missing"
        return _FAILURES.get(self.test.message, "Unknown state")


def summarized(
    context: SetContext, factor: float | None, result: rcp.RcpResult | None
) -> Summarized:
    """Return what the summarizer prints if ``scaling.json`` has this ``factor``.

    ``result`` is that of the package checker's RCP test. Unlike that, the summarizer tests Closed
    sets only, never by BERT's ``train_samples``, and without any bypass.
    (mlperf_logging.result_summarizer)
    """
    if context.weak:
        return Summarized(factor, weak=_weak_scaling(context))
    if not context.closed or not context.origin.is_judged:
        return Summarized(factor)
    if any(run.epochs for run in context.runs):
        context = _in_epochs(context)
        result = rcp_test(context)
    if result is None:
        return Summarized(factor)
    kept = sorted(to_converge(context) or ())[1:-1]  # one run less at either end, for U-Net3D too
    mean = rcp.numpy_mean(kept) if kept and not rcp.is_too_large(kept) else None
    return Summarized(factor, result, to_float(result.batch_size), mean)


def _in_epochs(context: SetContext) -> SetContext:
    """Return a set whose convergence is counted in epochs, in the runs that log them."""
    runs: list[Run] = []
    for run in context.runs:
        if run.epochs:
            runs.append(replace(run, convergence=run.epochs))
        else:
            runs.append(run)
    return replace(context, runs=tuple(runs))


def _weak_scaling(context: SetContext) -> WeakScaling | None:
    passed = [run for run in context.runs if run.verdicts.official is Verdict.PASS]
    spans = [run.official_span_ms for run in passed if run.official_span_ms]
    if not spans or context.rules is None:
        return None
    minutes = weak_score(spans, (), context.rules.runs.required).minutes
    scale = next((run.instance_scale for run in passed if run.instance_scale), None)
    return None if minutes is None else WeakScaling(len(spans), scale, minutes)
