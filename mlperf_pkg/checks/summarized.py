"""What the official summarizer says of a result set besides its time to train.

Unlike the package checker it tests convergence of Closed sets alone, never by BERT's
``train_samples``, and without any bypass. (mlperf_logging.result_summarizer)
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.rcp import rcp_test
from mlperf_pkg.findings import Verdict
from mlperf_pkg.results import rcp
from mlperf_pkg.results.scoring import weak_score
from mlperf_pkg.run.model import Run

_FAILED = ((rcp.FOUND, "Fail"), (rcp.INTERPOLATED, "Interp. Fail"), (rcp.NO_POINTS, "No RCP"))


class WeakScaling(Struct, frozen=True):
    """Many models trained at once: how many, on how many accelerators each, until the last stops.

    ``minutes`` is from the first start to the last stop; ``instance_scale`` is None where no log
    tells it (HPC training rules, Throughput).
    """

    models: int
    instance_scale: int | None
    minutes: float


class Summarized(Struct, frozen=True):
    """The cells of the detailed table that ``ResultSetRow`` does not hold.

    ``scaling_factor`` is that of the folder's ``scaling.json``, 1.0 without it. ``rcp`` is "Pass",
    "Fail", "Interp. Fail", "Missing", "No RCP", "Unknown state", or empty where there was no test.
    ``to_converge`` is the mean in epochs or samples without the fastest and the slowest run, and
    ``weak`` is None but for sets of weak scaling with enough models.
    """

    scaling_factor: float
    rcp: str = ""
    batch_size: float | None = None
    to_converge: float | None = None
    weak: WeakScaling | None = None


def summarized(
    case: SetContext, scaling_factor: float | None, tested: rcp.RcpResult | None
) -> Summarized:
    """Work it out; ``scaling_factor`` is None without a ``scaling.json``.

    ``tested`` is the package checker's test, which is the same where no run counts in samples.
    """
    factor = 1.0 if scaling_factor is None else scaling_factor
    if case.weak:
        return Summarized(factor, weak=_weak(case))
    if not case.closed or case.loose:
        return Summarized(factor)
    runs = case.runs
    if any(run.epochs for run in runs):
        runs = tuple(map(_in_epochs, runs))
        tested = rcp_test(replace(case, runs=runs))
    if tested is None:
        return Summarized(factor)
    return Summarized(factor, _word(tested), float(tested.batch_size), _to_converge(case, runs))


def _in_epochs(run: Run) -> Run:
    return replace(run, convergence=run.epochs) if run.epochs else run


def _word(tested: rcp.RcpResult) -> str:
    if tested.official_pass:
        return "Pass"
    if tested.message.startswith(rcp.MISSING):
        return "Missing"
    return next((word for message, word in _FAILED if message == tested.message), "Unknown state")


def _to_converge(case: SetContext, runs: tuple[Run, ...]) -> float | None:
    """Of U-Net3D, too, only one run is dropped at either end."""
    lost = sum(not run.convergence.converged for run in runs)
    kept = sorted(run.convergence.to_converge for run in runs)[1:-1]
    return rcp.numpy_mean(kept) if kept and lost <= case.drop else None


def _weak(case: SetContext) -> WeakScaling | None:
    counted = [run for run in case.runs if run.verdicts.official is Verdict.PASS]
    spans = [(run.path, *run.official_span_ms) for run in counted if run.official_span_ms]
    if not spans or case.rules is None:
        return None
    minutes = weak_score(spans, (), case.rules.runs.required).minutes
    if minutes is None:
        return None
    scales = [run.instance_scale for run in counted if run.instance_scale]
    return WeakScaling(len(spans), next(iter(scales), None), minutes)
