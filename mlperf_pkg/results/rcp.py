"""Reference convergence points (RCPs): did a submission converge suspiciously fast?

The reference implementation was trained many times at several batch sizes. A result set may need
fewer epochs (or samples) than the reference, but not significantly fewer: a one-sided two-sample
t-test with equal variances at p = 0.05 gives the smallest acceptable mean
(training_rules.adoc, Reference Convergence Points).

The official verdict is that of ``mlperf_logging.rcp_checker``, double for double, hence numpy's
order of summation below. Its data are read from the installed package, without its imports.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache, reduce
from operator import add, attrgetter
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.rulebook.model import version_of

ALPHA = 0.05
TOLERANCE = 1e-4  # where the search for the smallest acceptable mean ends, in the points' unit
EARLY_EVALUATION = 46080  # samples, one evaluation: what llama31_405b may be faster than that

NO_BATCH_SIZE = "Could not detect global_batch_size"
NOT_CONVERGED = "Insufficient convergence"
FOUND = "RCP found"
INTERPOLATED = "RCP Interpolation"
SMALLER = "RCP not found but slower convergence on smaller batch size"
MISSING = "Missing RCP, please submit RCP with BS = "
NO_POINTS = "Cannot find any RCPs"
BYPASS = " passed using rcp_bypass"

_BY_SIZE = attrgetter("batch_size")
_IN_SAMPLES = frozenset({"llama2_70b_lora", "flux1"})
_COVERED = {
    "training": "bert deepseekv3_671b dlrm_dcnv2 dlrmv4 flux1 gnn gpt3 gpt_oss_20b llama2_70b_lora "
    "llama31_405b llama31_8b maskrcnn qwen35_397b_grpo resnet retinanet rgat rnnt ssd "
    "stable_diffusion unet3d",
    "hpc": "cosmoflow deepcam oc20 openfold",
}


def is_covered(usage: str, benchmark: str) -> bool:
    """Whether the official checker knows how many runs ``benchmark`` takes.

    Where it does not (dlrm, minigo, ...) it ends with ``KeyError`` and so without a verdict, even
    if there is a file of reference points. ``usage`` is ``training`` or ``hpc``.
    """
    return benchmark in _COVERED.get(usage, "").split()


class ReferencePoint(Struct, frozen=True):
    """Convergence of the reference at one batch size, in the benchmark's own unit.

    ``to_converge`` holds the reference runs in ascending order (none for an interpolated point),
    ``mean`` is their olympic mean, ``stdev`` their population standard deviation, and ``count`` the
    number of reference runs that the t-test is told of. ``runs`` (at least 3) is the number of runs
    that a submission needs.
    """

    name: str
    batch_size: float
    to_converge: tuple[float, ...]
    mean: float
    stdev: float
    count: int
    runs: int

    @property
    def minimum(self) -> float:
        """The smallest mean that a submission may have."""
        return _smallest_acceptable(self.mean, self.stdev, self.count, self.runs)

    @classmethod
    def from_runs(
        cls,
        name: str,
        batch_size: float,
        to_converge: Sequence[float],
        *,
        runs: int,
        drop: int,
        trimmed_deviation: bool = False,
    ) -> Self:
        """The statistics of reference runs, of which the ``drop`` fastest and slowest are dropped.

        The official checker takes the deviation of all runs; ``trimmed_deviation`` takes that of
        the runs left, as the worked example of training_rules.adoc does.
        """
        ordered = tuple(sorted(to_converge))
        kept = ordered[drop : len(ordered) - drop]
        mean, stdev = numpy_mean(kept), _stdev(kept if trimmed_deviation else ordered)
        count = len(ordered) - 2 * drop
        return cls(name, batch_size, ordered, mean, stdev, count, runs)

    @classmethod
    def between(cls, low: Self, high: Self, batch_size: float, *, runs: int) -> Self:
        """Mean and deviation on the line between two points, as of ``2 * runs`` reference runs."""
        mean, stdev = _on_line(batch_size, low, high)
        name = f"{low.name} to {high.name}"
        return cls(name, batch_size, (), mean, stdev, 2 * runs, runs)


class RcpResult(Struct, frozen=True):
    """The outcome of the RCP test of one result set.

    ``official_pass`` and ``message`` are the official checker's, ``normalization`` its factor for
    the score (1.0 where none applies; infinite or NaN where it divides by zero). ``mean`` is the
    submission's olympic mean, NaN where dropping leaves no run, None where the runs did not
    converge. ``reference_mean`` and ``minimum`` (smallest acceptable mean) are None where there was
    nothing to compare with; ``points`` names the reference points used.
    """

    official_pass: bool
    message: str
    batch_size: float
    normalization: float = 1.0
    mean: float | None = None
    reference_mean: float | None = None
    minimum: float | None = None
    points: tuple[str, ...] = ()
    interpolated: bool = False

    @property
    def margin_percent(self) -> float | None:
        """By how many percent the reference mean exceeds the smallest acceptable mean.

        So defined in the worked example of training_rules.adoc: 15.75 over 15.21 is 3.53 %.
        """
        if self.reference_mean is None or self.minimum is None:
            return None
        return 100 * (_divide(self.reference_mean, self.minimum) - 1)


@cache
def reference_points(
    usage: str, ruleset: str, benchmark: str, *, runs: int, drop: int
) -> tuple[ReferencePoint, ...]:
    """All reference points of a benchmark, by ascending batch size; empty where there are none.

    ``usage`` is ``training`` or ``hpc``, ``ruleset`` is written like ``2.0.0``. ``runs`` (at least
    3) is the number of runs that a submission needs, ``drop`` how many are dropped at either end.
    Source: ``rcp_checker/<usage>_<ruleset>/rcps_<benchmark>.json`` of the installed mlperf-logging.
    """
    name = f"rcp_checker/{usage}_{ruleset}/rcps_{benchmark}.json"
    file = official_folder() / name
    if not file.is_file():
        return ()
    records: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    points = (
        ReferencePoint.from_runs(name, record["BS"], _runs_of(record), runs=runs, drop=drop)
        for name, record in records.items()
    )
    return tuple(sorted(points, key=_BY_SIZE))


def prune(points: Sequence[ReferencePoint]) -> tuple[ReferencePoint, ...]:
    """The points that the official checker compares with, of ``points`` by ascending batch size.

    Gone are points at smaller batches than the fastest one, then points slower than the line
    between their neighbours (training_rules.adoc, RCP pruning). One pass only, as officially: no
    point is looked at again after a later removal, so the result need not be convex.
    """
    if not points:
        return ()
    fastest = min(points, key=attrgetter("mean"))
    kept = [point for point in points if point.batch_size >= fastest.batch_size]
    at = 1
    while at < len(kept) - 1:
        before, here, after = kept[at - 1 : at + 2]
        if here.mean > _on_line(here.batch_size, before, after)[0]:
            del kept[at]
        else:
            at += 1
    return tuple(kept)


def judge(
    points: Sequence[ReferencePoint],
    batch_size: float,
    to_converge: Sequence[float] | None,
    *,
    benchmark: str,
    ruleset: str,
    runs: int,
    drop: int,
) -> RcpResult:
    """The official verdict over a result set, without any bypass.

    ``points`` are the ``prune``-d ones for the package checker's test. ``batch_size`` is -1 where
    no log gives one. ``to_converge`` holds epochs or samples for each run, 1e9 for one that did
    not converge, or is None where more than ``drop`` did not. All must be numbers: on anything
    else the official checker crashes. It also crashes, and this function does not, where
    ``is_covered`` is false, where ``points`` is empty for want of a file, and where the logs
    disagree on the batch size or the benchmark.
    """
    if batch_size == -1:
        return RcpResult(False, NO_BATCH_SIZE, batch_size)
    if to_converge is None:
        return RcpResult(False, NOT_CONVERGED, batch_size)
    mean = numpy_mean(sorted(to_converge)[drop : len(to_converge) - drop])
    blank = RcpResult(False, MISSING + str(batch_size), batch_size, mean=mean)
    low = max((p for p in points if p.batch_size <= batch_size), key=_BY_SIZE, default=None)
    high = min((p for p in points if p.batch_size >= batch_size), key=_BY_SIZE, default=None)
    allowance = _allowance(benchmark, ruleset)
    if high is None:
        return blank if low else replace(blank, message=NO_POINTS)
    if low is None:
        result = _compared(blank, high, allowance)
        return replace(result, message=SMALLER) if result.official_pass else result
    if low.batch_size == high.batch_size:
        return _compared(replace(blank, message=FOUND), low, allowance)
    point = ReferencePoint.between(low, high, batch_size, runs=runs)
    result = _compared(replace(blank, message=INTERPOLATED), point, allowance)
    return replace(result, points=(low.name, high.name), interpolated=True)


def bypassed(result: RcpResult) -> RcpResult:
    """``result`` under ``--rcp_bypass``: failing against a point or for want of one, it passes."""
    if result.official_pass or not result.message.startswith((FOUND, INTERPOLATED, MISSING)):
        return result
    return replace(result, official_pass=True, message=result.message + BYPASS)


def explain(result: RcpResult) -> str:
    """One or two plain sentences for people: compared with what, by how much, to what effect."""
    minimum, mean, reference = result.minimum, result.mean, result.reference_mean
    if minimum is None or reference is None or mean is None or math.isnan(mean):
        return f"{result.message}: convergence was not compared with the reference."
    accepted = _reaches(mean, reference, minimum)
    relation, source = "reaches" if accepted else "is below", " and ".join(result.points)
    said = (
        f"The mean to converge, {_number(mean)}, {relation} the smallest acceptable mean of"
        f" {_number(minimum)} at batch size {_number(result.batch_size)} (reference mean"
        f" {_number(reference)}, margin {result.margin_percent:.2f} %,"
        f" {'interpolated between' if result.interpolated else 'from'} {source})."
    )
    if not accepted or mean >= reference:
        return said
    return f"{said} Normalisation multiplies the score by {result.normalization:.4f}."


def student_tail(t: float, df: int) -> float:
    """P(T > t) for Student's t with ``df`` (at least 1) degrees of freedom, to about 1e-14.

    The finite trigonometric series of Abramowitz & Stegun, Handbook of Mathematical Functions,
    26.7.3 (odd ``df``) and 26.7.4 (even ``df``).
    """
    angle = math.atan(t / math.sqrt(df))
    cosine, odd = math.cos(angle), df % 2
    term = cosine if odd else 1.0
    total = 0.0 if df == 1 else term
    for k in range(2 + odd, df, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    within = math.sin(angle) * total
    return (1 - (2 / math.pi * (angle + within) if odd else within)) / 2


def _compared(blank: RcpResult, point: ReferencePoint, allowance: float) -> RcpResult:
    """``blank`` completed by the comparison of its mean with ``point``."""
    mean = math.nan if blank.mean is None else blank.mean
    minimum = point.minimum - allowance
    factor = _divide(point.mean, mean)
    return replace(
        blank,
        official_pass=_reaches(mean, point.mean, minimum),
        normalization=1.0 if factor < 1 else factor,
        reference_mean=point.mean,
        minimum=minimum,
        points=(point.name,),
    )


def _reaches(mean: float, reference: float, minimum: float) -> bool:
    """Whether ``mean`` is acceptable; by the largest speedup, which rounds twice, as officially."""
    return mean >= _divide(reference, _divide(reference, minimum))


def _allowance(benchmark: str, ruleset: str) -> int:
    return EARLY_EVALUATION if benchmark == "llama31_405b" and version_of(ruleset) >= (5,) else 0


def _runs_of(record: dict[str, Any]) -> list[float]:
    unit = "samples" if record["Benchmark"] in _IN_SAMPLES else "Epochs"
    return list(record[f"{unit} to converge"])


@cache  # many sets lie between the same two points
def _smallest_acceptable(mean: float, stdev: float, count: int, runs: int) -> float:
    """The mean at which a submission is on the verge of being significantly faster, by bisection.

    The submission counts as ``runs - 2`` runs, whatever is dropped, with the reference's deviation.
    """
    if stdev == 0:
        return mean
    kept = runs - 2
    error = math.sqrt(stdev * stdev * (1.0 / count + 1.0 / kept))
    low, high = 0.0, mean
    middle = (low + high) / 2
    while high - low > TOLERANCE:
        if student_tail((mean - middle) / error, count + kept - 2) > ALPHA:
            high = middle
        else:
            low = middle
        middle = (low + high) / 2
    return middle


def numpy_mean(values: Sequence[float]) -> float:
    """The mean as ``numpy.mean`` rounds it; NaN of nothing."""
    return _divide(_pairwise_sum(values), len(values))


def _stdev(values: Sequence[float]) -> float:
    mean = numpy_mean(values)
    return math.sqrt(numpy_mean([(value - mean) * (value - mean) for value in values]))


def _pairwise_sum(values: Sequence[float]) -> float:
    """The sum in numpy's order: eight lanes up to 128 values, halves above (its ``add.reduce``)."""
    size = len(values)
    if size > 128:  # noqa: PLR2004 - numpy's block
        half = size // 16 * 8
        return _pairwise_sum(values[:half]) + _pairwise_sum(values[half:])
    whole = size - size % 8
    a, b, c, d, e, f, g, h = (reduce(add, values[lane:whole:8], 0.0) for lane in range(8))
    return reduce(add, values[whole:], ((a + b) + (c + d)) + ((e + f) + (g + h)))


def _on_line(at: float, low: ReferencePoint, high: ReferencePoint) -> tuple[float, float]:
    """Mean and deviation at batch size ``at``, with the operations of ``numpy.interp``."""
    width, along = high.batch_size - low.batch_size, at - low.batch_size
    mean = (high.mean - low.mean) / width * along + low.mean
    return mean, (high.stdev - low.stdev) / width * along + low.stdev


def _divide(dividend: float, divisor: float) -> float:
    """The IEEE 754 quotient: infinite or NaN where the divisor is zero."""
    return dividend / divisor if divisor != 0 else dividend * math.inf


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")
