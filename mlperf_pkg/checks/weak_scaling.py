"""Sets of weak scaling (HPC): how many models were trained at once, on how much, and how long."""

from __future__ import annotations

from collections.abc import Iterator

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.results.scoring import Score, weak_score
from mlperf_pkg.run.model import Run

_SUMMARIZER = "mlperf-logging, result_summarizer: weak scaling"


def models(case: SetContext) -> int | None:
    """How many models a weak set has trained."""
    return len(_trained(case)) if case.weak else None


def instance_scale(case: SetContext) -> int | None:
    """The accelerators that train each model of a weak set; None where its runs disagree."""
    scales = _scales(case)
    return scales[0] if len(scales) == 1 else None


def weak_set_score(case: SetContext) -> Score:
    """From the first start to the last stop of the models that a weak set has trained."""
    trained = _trained(case)
    spans = [(r.path, r.start_ms or 0.0, r.stop_ms or 0.0) for r in trained]
    failed = [(r.path, r.minutes is not None) for r in case.runs if r not in trained]
    return weak_score(spans, failed, case.rules.runs.required if case.rules else 1)


def check_scale(case: SetContext) -> Iterator[Finding]:
    """All models of a weak set train on equally many accelerators."""
    if len(scales := _scales(case)) > 1:
        yield set_finding(
            case,
            "SET130",
            f"models on {' and '.join(map(str, scales))} accelerators: the result summarizer dies",
            severity=Severity.WARNING,
            basis=Basis.OFFICIAL,
            source=_SUMMARIZER,
            found=scales,
        )


def _scales(case: SetContext) -> list[int]:
    found = {run.instance_scale for run in _trained(case)} if case.weak else set()
    return sorted(scale for scale in found if scale is not None)


def _trained(case: SetContext) -> list[Run]:
    return [run for run in case.runs if run.converged and run.minutes is not None]
