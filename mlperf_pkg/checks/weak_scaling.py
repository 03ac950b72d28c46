"""Sets of weak scaling (HPC): how many models were trained at once, where, and how fast."""

from __future__ import annotations

from collections.abc import Iterator

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.results.scoring import Score, Span, weak_score
from mlperf_pkg.run.model import Run

_SUMMARIZER = "mlperf-logging, result_summarizer"


def number_of_models(context: SetContext) -> int | None:
    """Return how many models a weak set trained; None for other sets."""
    return len(_trained_runs(context)) if context.weak else None


def instance_scale(context: SetContext) -> int | None:
    """Return how many accelerators train one model of a weak set; None where its runs disagree."""
    scales = _scales(context)
    return scales[0] if len(scales) == 1 else None


def weak_set_score(context: SetContext) -> Score:
    """Score a weak set: from the first start to the last stop of the models that it trained."""
    trained = _trained_runs(context)
    spans = [Span(run.path, run.start_ms or 0.0, run.stop_ms or 0.0) for run in trained]
    failed = [(r.path, r.minutes is not None) for r in context.runs if r not in trained]
    return weak_score(spans, failed, context.rules.runs.required if context.rules else 1)


def check_scale(context: SetContext) -> Iterator[Finding]:
    """Check that all models of a weak set train on the same number of accelerators."""
    if len(scales := _scales(context)) > 1:
        yield set_finding(
            context,
            "SET130",
            f"the models use {' and '.join(map(str, scales))} accelerators; expected one number,"
            " as the result summarizer crashes on more",
            severity=Severity.WARNING,
            basis=Basis.OFFICIAL,
            source=_SUMMARIZER,
            found=scales,
        )


def check_alone(context: SetContext) -> Iterator[Finding]:
    """Check that a submission with the throughput of a benchmark has its time to solution, too."""
    if not context.weak or context.timed is None:
        return
    if context.files.benchmark not in context.timed:
        yield set_finding(
            context,
            "SET131",
            "the submission has the throughput alone; expected {expected}",
            basis=Basis.RULES,
            expected=f"a set of strong scaling of {context.files.benchmark}, too",
        )


def _scales(context: SetContext) -> list[int]:
    scales = {run.instance_scale for run in _trained_runs(context)} if context.weak else set()
    return sorted(scale for scale in scales if scale is not None)


def _trained_runs(context: SetContext) -> list[Run]:
    return [run for run in context.runs if run.converged and run.minutes is not None]
