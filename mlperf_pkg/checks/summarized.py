"""What the official summarizer prints about a result set besides its time-to-train.

Unlike the package checker, it runs the RCP test on Closed sets only, never by BERT's
``train_samples``, and without any bypass. (mlperf_logging.result_summarizer)
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.rcp import rcp_test, to_converge
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.results import rcp
from mlperf_pkg.results.scoring import Span, weak_score
from mlperf_pkg.run.model import Run

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

    ``result`` is that of the package checker's RCP test, which is the same unless a run counts in
    samples.
    """
    if context.weak:
        return Summarized(factor, weak=_weak_scaling(context))
    if not context.closed or not context.origin.is_judged:
        return Summarized(factor)
    if any(run.epochs for run in context.runs):
        context = replace(context, runs=tuple(map(_in_epochs, context.runs)))
        result = rcp_test(context)
    if result is None:
        return Summarized(factor)
    return Summarized(
        scaling_factor=factor,
        test=result,
        batch_size=to_float(result.batch_size),
        to_converge=_to_converge(context),
    )


def _in_epochs(run: Run) -> Run:
    return replace(run, convergence=run.epochs) if run.epochs else run


def _to_converge(context: SetContext) -> float | None:
    """Return the mean without one run at either end, for U-Net3D too."""
    kept = sorted(to_converge(context) or ())[1:-1]
    return rcp.numpy_mean(kept) if kept and not rcp.is_too_large(kept) else None


def _weak_scaling(context: SetContext) -> WeakScaling | None:
    passed = [run for run in context.runs if run.verdicts.official is Verdict.PASS]
    spans = [Span(run.path, *run.official_span_ms) for run in passed if run.official_span_ms]
    if not spans or context.rules is None:
        return None
    minutes = weak_score(spans, (), context.rules.runs.required).minutes
    if minutes is None:
        return None
    scales = [run.instance_scale for run in passed if run.instance_scale]
    return WeakScaling(len(spans), next(iter(scales), None), minutes)
