"""Reference convergence points (RCPs): did a submission converge suspiciously fast?

The reference implementation was trained many times at several batch sizes. A result set may need
fewer epochs (or samples) than the reference, but not significantly fewer: a one-sided two-sample
t-test with equal variances at p = 0.05 gives the smallest acceptable mean
(training_rules.adoc, Reference Convergence Points).

The verdict is that of ``mlperf_logging.rcp_checker``, equal to the last bit, hence numpy's order
of summation below. The reference runs are read from the installed package without importing it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import add, attrgetter
from typing import Any, Self, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import word
from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.rulebook.load import newest_convergence
from mlperf_pkg.rulebook.model import Benchmark, Rcp, Round

ALPHA = 0.05
TOLERANCE = 1e-4  # the search for the smallest acceptable mean ends there, in the points' unit

NO_BATCH_SIZE = "Could not detect global_batch_size"
NOT_CONVERGED = "Insufficient convergence"
FOUND = "RCP found"
INTERPOLATED = "RCP Interpolation"
SMALLER = "RCP not found but slower convergence on smaller batch size"
MISSING = "Missing RCP, please submit RCP with BS = "
NO_POINTS = "Cannot find any RCPs"
BYPASS = " passed using rcp_bypass"

_BY_SIZE = attrgetter("batch_size")
_Records: TypeAlias = dict[str, dict[str, Any]]
_IN_SAMPLES = "samples to converge"
_IN_EPOCHS = "Epochs to converge"


def is_covered(usage: str, benchmark: str) -> bool:
    """Return whether the official checker knows the number of runs of a benchmark.

    Where it does not (dlrm, minigo, ...) it crashes with ``KeyError``, even if there is a file of
    reference points: there is no verdict. The checker does not look at the round. ``usage`` is
    ``training`` or ``hpc``.
    """
    section = newest_convergence(usage, benchmark)
    return bool(section) and Rcp(section.get("rcp", Rcp.TESTED)) is Rcp.TESTED


def allowance(usage: str, benchmark: str) -> int:
    """Return how much less than the smallest acceptable mean the official checker accepts.

    It is in the unit of the reference points, and 0 for most benchmarks.
    """
    units: int = newest_convergence(usage, benchmark).get("rcp_allowance", 0)
    return units


class ReferencePoint(Struct, frozen=True):
    """Convergence of the reference at one batch size, in the benchmark's own unit.

    ``to_converge`` holds the reference runs in ascending order (none for an interpolated point),
    ``mean`` is their olympic mean, ``stdev`` their population standard deviation, and ``count`` the
    number of reference runs in the t-test. ``runs`` (at least 3) is the number of runs that a
    submission needs.
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
        """The smallest mean that a submission may have without an allowance."""
        return _smallest_acceptable(self.mean, self.stdev, self.count, self.runs)

    @classmethod
    def from_runs(
        cls, name: str, batch_size: float, to_converge: Sequence[float], *, runs: int, drop: int
    ) -> Self:
        """Return the statistics of reference runs without the ``drop`` fastest and slowest.

        As in the official checker, the deviation is that of all runs; the worked example of
        training_rules.adoc takes that of the remaining runs.
        """
        ordered = tuple(sorted(to_converge))
        mean, stdev = _mean_and_stdev(ordered, drop)
        count = len(ordered) - 2 * drop
        return cls(name, batch_size, ordered, mean, stdev, count, runs)

    @classmethod
    def between(cls, low: Self, high: Self, batch_size: float, *, runs: int) -> Self:
        """Return the point on the line between two points, as if it had ``2 * runs`` runs."""
        mean, stdev = _on_line(batch_size, low, high)
        name = f"{low.name} to {high.name}"
        return cls(name, batch_size, (), mean, stdev, 2 * runs, runs)


class RcpComparison(Struct, frozen=True):
    """The reference point that sets of one batch size are compared with, measured or interpolated.

    ``message`` is what the official checker says of a set that passes. ``point`` is None where sets
    cannot be compared; ``points`` names the reference points behind it.
    """

    message: str
    point: ReferencePoint | None = None
    points: tuple[str, ...] = ()


class RcpResult(Struct, frozen=True):
    """The outcome of the RCP test of one result set.

    ``official_pass`` and ``message`` are the official checker's, ``normalization`` is its factor
    for the score (1.0 where none applies; infinite or NaN where it divides by zero). ``mean`` is
    the submission's olympic mean, NaN where no run is left, None where the runs did not converge.
    ``reference_mean`` and ``minimum`` (smallest acceptable mean) are None where there is nothing
    to compare with; ``points`` names the reference points used.
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
    def compared(self) -> tuple[float, float, float] | None:
        """The mean, that of the reference and the smallest acceptable one, if all are known."""
        if self.mean is None or self.reference_mean is None or self.minimum is None:
            return None
        if math.isnan(self.mean):
            return None
        return self.mean, self.reference_mean, self.minimum


@cache
def reference_points(
    usage: str, ruleset: str, benchmark: str, *, runs: int, drop: int
) -> tuple[ReferencePoint, ...]:
    """Return all reference points of a benchmark by ascending batch size, possibly none.

    ``usage`` is ``training`` or ``hpc``, ``ruleset`` is written like ``2.0.0``. ``runs`` (at least
    3) is the number of runs that a submission needs, ``drop`` how many are dropped at either end.
    Source: ``rcp_checker/<usage>_<ruleset>/rcps_<benchmark>.json`` of the installed mlperf-logging.
    """
    points = []
    for name, record in _records(usage, ruleset, benchmark).items():
        to_converge = record.get(_IN_SAMPLES) or record[_IN_EPOCHS]
        size = record["BS"]
        points.append(ReferencePoint.from_runs(name, size, to_converge, runs=runs, drop=drop))
    return by_size(points)


def by_size(points: Iterable[ReferencePoint]) -> tuple[ReferencePoint, ...]:
    """Return points by ascending batch size, as all functions here take them."""
    return tuple(sorted(points, key=_BY_SIZE))


def reference_hyperparameters(
    usage: str, ruleset: str, benchmark: str
) -> Mapping[float, Mapping[str, Any]]:
    """Return the hyperparameters of the reference points by batch size, possibly none.

    Their names are not always those of the logs. The source is that of ``reference_points``.
    """
    records = _records(usage, ruleset, benchmark).values()
    return {record["BS"]: record.get("Hyperparams", {}) for record in records}


@cache
def _records(usage: str, ruleset: str, benchmark: str) -> _Records:
    file = official_folder() / f"rcp_checker/{usage}_{ruleset}/rcps_{benchmark}.json"
    if not file.is_file():
        return {}
    return msgspec.json.decode(file.read_bytes(), type=_Records)


def prune(points: Sequence[ReferencePoint]) -> tuple[ReferencePoint, ...]:
    """Return the points that the official checker compares with, by ascending batch size.

    ``points`` are sorted. Points at smaller batches than the fastest one are removed, then points
    slower than the line between their neighbours (training_rules.adoc, RCP pruning). There is one
    pass, as in the official checker: no point is checked again after a later removal, so the
    result may not be convex.
    """
    if not points:
        return ()
    fastest = min(points, key=attrgetter("mean"))
    kept = [point for point in points if point.batch_size >= fastest.batch_size]
    index = 1
    while index < len(kept) - 1:
        before, point, after = kept[index - 1 : index + 2]
        if point.mean > _on_line(point.batch_size, before, after)[0]:
            del kept[index]
        else:
            index += 1
    return tuple(kept)


def judge(
    points: Sequence[ReferencePoint],
    batch_size: float,
    to_converge: Sequence[float] | None,
    *,
    runs: int,
    drop: int,
    allowance: float = 0,
) -> RcpResult:
    """Return the official verdict on a result set, without any bypass.

    ``points`` are those of ``prune`` for the package checker's test. ``batch_size`` is -1 where
    no log gives one. ``to_converge`` holds the epochs or samples of each run, 1e9 for one that
    did not converge, or is None where more than ``drop`` did not. All must be numbers: on
    anything else the official checker crashes. It also crashes, and this function does not, where
    ``is_covered`` is false, where there is no file of reference points, and where the logs
    disagree on the batch size or the benchmark.
    """
    if batch_size == -1:
        return RcpResult(False, NO_BATCH_SIZE, batch_size)
    if to_converge is None:
        return RcpResult(False, NOT_CONVERGED, batch_size)
    mean = numpy_mean(sorted(to_converge)[drop : len(to_converge) - drop])
    comparison = comparison_at(points, batch_size, runs=runs)
    if comparison.point is None:
        return RcpResult(False, comparison.message, batch_size, mean=mean)
    point = comparison.point
    message = comparison.message
    minimum = point.minimum - allowance
    passes = reaches(mean, point.mean, minimum)
    if message == SMALLER and not passes:
        message = MISSING + str(batch_size)
    factor = divide(point.mean, mean)
    return RcpResult(
        official_pass=passes,
        message=message,
        batch_size=batch_size,
        normalization=1.0 if factor < 1 else factor,
        mean=mean,
        reference_mean=point.mean,
        minimum=minimum,
        points=comparison.points,
        interpolated=len(comparison.points) > 1,
    )


def comparison_at(
    points: Sequence[ReferencePoint], batch_size: float, *, runs: int
) -> RcpComparison:
    """Return what sets of a batch size are compared with: a point, or the line between two.

    ``points`` are those of ``prune`` for the package checker's test. A batch size below all points
    is compared with the smallest, one above all with none.
    """
    below = [point for point in points if point.batch_size <= batch_size]
    above = [point for point in points if point.batch_size >= batch_size]
    low = max(below, key=_BY_SIZE, default=None)
    high = min(above, key=_BY_SIZE, default=None)
    if high is None:
        return RcpComparison(MISSING + str(batch_size) if low else NO_POINTS)
    if low is None:
        return RcpComparison(SMALLER, high, (high.name,))
    if low.batch_size == high.batch_size:
        return RcpComparison(FOUND, low, (low.name,))
    point = ReferencePoint.between(low, high, batch_size, runs=runs)
    return RcpComparison(INTERPOLATED, point, (low.name, high.name))


def is_too_large(values: Sequence[float]) -> bool:
    """Return whether one of the values is an integer too large for a double (Python raises)."""
    try:
        list(map(float, values))
    except OverflowError:
        return True
    return False


def bypassed(result: RcpResult) -> RcpResult:
    """Return ``result`` under ``--rcp_bypass``: a set that fails at a point or lacks one passes."""
    if result.official_pass or not result.message.startswith((FOUND, INTERPOLATED, MISSING)):
        return result
    return replace(result, official_pass=True, message=result.message + BYPASS)


def student_tail(t: float, df: int) -> float:
    """Return P(T > t) for Student's t with ``df`` (at least 1) degrees of freedom, to 1e-14.

    Source: Abramowitz & Stegun, Handbook of Mathematical Functions, the finite trigonometric
    series 26.7.3 (odd ``df``) and 26.7.4 (even ``df``).
    """
    angle = math.atan(t / math.sqrt(df))
    cosine = math.cos(angle)
    odd = df % 2
    square = cosine * cosine
    term = cosine if odd else 1.0
    total = 0.0 if df == 1 else term
    for k in range(2 + odd, df, 2):
        term *= square * (k - 1) / k
        total += term
    within = math.sin(angle) * total
    if odd:
        within = 2 / math.pi * (angle + within)
    return (1 - within) / 2


def reaches(mean: float, reference: float, minimum: float) -> bool:
    """Return whether ``mean`` is acceptable, by the largest speedup, which rounds twice."""
    return mean >= divide(reference, divide(reference, minimum))


@cache  # many sets are between the same two points
def _smallest_acceptable(mean: float, stdev: float, count: int, runs: int) -> float:
    """Return the mean below which a submission is significantly faster, by bisection.

    The submission counts as ``runs - 2`` runs, whatever is dropped, with the reference's deviation.
    """
    if stdev == 0:
        return mean
    kept = runs - 2
    error = math.sqrt(stdev * stdev * (1.0 / count + 1.0 / kept))
    critical = _critical(count + kept - 2)
    low = 0.0
    high = mean
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        is_acceptable = (mean - middle) / error < critical
        if is_acceptable:
            high = middle
        else:
            low = middle
    return (low + high) / 2


@cache
def _critical(df: int) -> float:
    """Return the least t, to the last bit, for which P(T > t) is at most ``ALPHA``.

    It decreases with the degrees of freedom ``df``; for 1 it is 6.31.
    """
    low = 0.0
    high = 8.0
    middle = (low + high) / 2
    while low < middle < high:
        if student_tail(middle, df) > ALPHA:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return high


def numpy_mean(values: Sequence[float]) -> float:
    """Return the mean as ``numpy.mean`` rounds it, NaN of no values."""
    return divide(_pairwise_sum(values), len(values))


@cache  # rounds share two thirds of the points
def _mean_and_stdev(ordered: tuple[float, ...], drop: int) -> tuple[float, float]:
    """Return the mean without ``drop`` values at each end, and the standard deviation of all."""
    return numpy_mean(ordered[drop : len(ordered) - drop]), _stdev(ordered)


def _stdev(values: Sequence[float]) -> float:
    mean = numpy_mean(values)
    return math.sqrt(numpy_mean([(value - mean) * (value - mean) for value in values]))


def _pairwise_sum(values: Sequence[float]) -> float:
    """Return the sum in numpy's order (``add.reduce``): eight lanes, halves above 128 values."""
    size = len(values)
    if size > 128:  # noqa: PLR2004 - numpy's block
        half = size // 16 * 8
        return _pairwise_sum(values[:half]) + _pairwise_sum(values[half:])
    whole = size - size % 8
    lanes = [0.0] * 8
    for start in range(0, whole, 8):
        lanes = list(map(add, lanes, values[start : start + 8]))
    first_half = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
    second_half = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
    return reduce(add, values[whole:], first_half + second_half)


def _on_line(size: float, low: ReferencePoint, high: ReferencePoint) -> tuple[float, float]:
    """Return mean and deviation at a batch size, with the operations of ``numpy.interp``."""
    width = high.batch_size - low.batch_size
    along = size - low.batch_size
    mean = (high.mean - low.mean) / width * along + low.mean
    stdev = (high.stdev - low.stdev) / width * along + low.stdev
    return mean, stdev


def divide(dividend: float, divisor: float) -> float:
    """Return the IEEE 754 quotient: infinite or NaN where the divisor is zero."""
    return dividend / divisor if divisor != 0 else dividend * math.inf


# ---- what the test of a set means: its margin, its lower limit, and both in words ---------

NO_LIMIT = "no lower limit"

# A smallest acceptable mean below this share of the reference mean limits nothing: it accepts
# models that train in half the time of the reference. The points of all rounds have at least
# 0.84, except one whose t-test has no power (gpt3 of 4.1 at batch size 3072: 3e-14), and what is
# interpolated from it.
_SMALLEST_SHARE = 0.5
_IN_WHOLE_UNITS = 1000  # means are shown without decimals from here on
_ANOTHER_UNIT = 100  # times the mean: BERT logs epochs or samples, its reference points samples
_OUTLIER = 2.0  # times the median
_WHOLE = 100  # percent: margins from here on are shown without decimals


def margin_percent(result: RcpResult) -> float | None:
    """Return the RCP margin: by how much the mean exceeds the smallest acceptable mean, in percent.

    It is negative for a set that converges too fast, and None where there is nothing to compare
    with, where the smallest acceptable mean limits nothing, or where the units differ.
    """
    if (
        result.mean is None
        or result.minimum is None
        or not _limits(result)
        or is_in_another_unit(result)
    ):
        return None
    margin = 100 * (divide(result.mean, result.minimum) - 1)
    return margin if math.isfinite(margin) else None


def no_limit_reason(result: RcpResult, points: Sequence[ReferencePoint]) -> str | None:
    """Return why the smallest acceptable mean limits nothing; None where it does.

    ``points`` are those that ``result`` was judged by. The verdict remains the official one.
    """
    if _limits(result):
        return None
    point = max((p for p in points if p.name in result.points), key=_spread)
    subject = f"the reference point at batch size {_number(point.batch_size)}"
    if _spread(point) >= _OUTLIER:
        return f"{subject} has a value of {_spread(point):.0f} times its median"
    least = point.to_converge[0]
    most = point.to_converge[-1]
    return f"{subject} has values from {_number(least)} to {_number(most)}"


def has_limit(point: ReferencePoint) -> bool:
    """Return whether the smallest acceptable mean of a point limits anything."""
    return point.minimum >= _SMALLEST_SHARE * point.mean


def is_missing(message: str) -> bool:
    """Return whether the message of a test says that there is no point to compare with."""
    return message.startswith((MISSING, NO_POINTS))


def failure(result: RcpResult, points: Sequence[ReferencePoint], unit: str) -> str:
    """Return why a set did not pass, for the middle of a sentence."""
    outcome = _outcome(result, points, unit)
    if is_missing(result.message):
        return f"RCP missing: {outcome}"
    if result.compared is None:
        return outcome
    return f"RCP test failed: {outcome}"


def explain(result: RcpResult, points: Sequence[ReferencePoint], unit: str) -> str:
    """Return one or two sentences for people: what was compared, the margin, the effect.

    ``unit`` is what the reference points count: epochs, samples or tokens.
    """
    outcome = _outcome(result, points, unit)
    sentence = f"{outcome[:1].upper()}{outcome[1:]}."
    if result.compared is None:
        return sentence
    mean, reference, minimum = result.compared
    if mean >= reference or not reaches(mean, reference, minimum):
        return sentence
    return f"{sentence} The test gives the scaling factor {result.normalization:.4f}."


def _outcome(result: RcpResult, points: Sequence[ReferencePoint], unit: str) -> str:
    """Return what was compared, and the margin, or why nothing was, in a part of a sentence."""
    if result.compared is None:
        return _not_compared(result)
    mean, reference, minimum = result.compared
    accepted = reaches(mean, reference, minimum)
    decimals = _decimals(mean, minimum)
    basis = _basis_in_words(result, f"{reference:,.{decimals}f}")
    compared = _compared_in_words(result, points, decimals, accepted=accepted)
    amount = f"{mean:,.{decimals}f}"
    if decimals == 1:
        amount = amount.removesuffix(".0")
    counted = unit.removesuffix("s") if amount == "1" else unit
    convergence = f"the runs converge after {amount} {counted} on average, {compared} ({basis})"
    if is_in_another_unit(result):
        convergence = f"{convergence}; perhaps the logs count in a unit other than {unit}"
    return f"the test passes: {convergence}" if accepted else convergence


def _not_compared(result: RcpResult) -> str:
    """Return why nothing was compared."""
    if is_missing(result.message):
        size = _number(result.batch_size)
        return f"there is no reference point for batch size {size}, so nothing was compared"
    reason = "no"
    if result.message == NOT_CONVERGED:
        reason = "too few runs converged to compute a mean, so no"
    elif result.mean is not None:
        reason = "there are too few runs to compute a mean, so no"
    verdict = "the official checker counts this as failed, although it prints only"
    return f'{reason} RCP test was possible; {verdict} "{result.message}"'


def _basis_in_words(result: RcpResult, reference: str) -> str:
    """Return the margin of a test, if any, its ``reference`` mean and the points of it."""
    source = "interpolated between" if result.interpolated else "from"
    basis = f"reference mean {reference}, {source} {' and '.join(result.points)}"
    margin = margin_percent(result)
    if margin is None:
        return basis
    return f"RCP margin {margin_in_words(margin)}; {basis}"


def _decimals(mean: float, minimum: float) -> int:
    """Return how many decimals show that a mean differs from the smallest acceptable one."""
    for decimals in (0 if max(mean, minimum) >= _IN_WHOLE_UNITS else 1, 2):
        if round(mean, decimals) != round(minimum, decimals):
            return decimals
    return 4


def _compared_in_words(
    result: RcpResult, points: Sequence[ReferencePoint], decimals: int, *, accepted: bool
) -> str:
    """Return how a mean compares with the smallest acceptable one, after its number."""
    place = f"at batch size {_number(result.batch_size)}"
    reason = no_limit_reason(result, points)
    if reason:
        return f"with {NO_LIMIT} {place}, as {reason}"
    limit = f"the limit of {result.minimum:,.{decimals}f} {place}"
    if is_in_another_unit(result):
        return f"far below {limit}"
    return f"no earlier than {limit}" if accepted else f"below {limit}"


def margin_in_words(margin: float) -> str:
    """Return a margin in percent with its sign: ``+3.2 %``, ``+175 %``."""
    if abs(margin) >= _WHOLE:
        return f"{margin:+,.0f} %"
    return f"{margin:+.1f} %"


def is_in_another_unit(result: RcpResult) -> bool:
    """Return whether a mean is so small that it has another unit: epochs, not samples."""
    return (result.mean or 0) * _ANOTHER_UNIT < (result.minimum or 0)


def _limits(result: RcpResult) -> bool:
    if result.minimum is None or result.reference_mean is None:
        return True
    return result.minimum >= _SMALLEST_SHARE * result.reference_mean


def _spread(point: ReferencePoint) -> float:
    """Return the slowest reference run over the median of all."""
    from statistics import median  # noqa: PLC0415 - slow to import; few points need it

    return divide(point.to_converge[-1], median(point.to_converge))


def _number(value: float) -> str:
    if isinstance(value, int):
        return word(value, ",")
    return f"{value:,.4f}".rstrip("0").rstrip(".")


# ---- what changed in the reference points between two rounds ------------------------------


class ReferenceRuns(Struct, frozen=True):
    """The reference runs at one batch size: how many, and the olympic mean to convergence."""

    runs: int
    mean: float


class PointChange(Struct, frozen=True):
    """A reference point that was added (``old`` is None), removed (``new`` is None) or changed.

    Means are in the ``unit`` of the benchmark, such as samples.
    """

    benchmark: str
    unit: str
    batch_size: float
    old: ReferenceRuns | None
    new: ReferenceRuns | None


def changed_points(
    before: Round, old: Benchmark | None, after: Round, new: Benchmark
) -> Iterator[PointChange]:
    """Yield the changed points of a benchmark by batch size; all are new where ``old`` is None.

    Nothing is yielded if the installed mlperf-logging has no points of one of the rounds: whether
    they changed is then unknown.
    """
    was = _points(before, old) if old else {}
    now = _points(after, new)
    if not now or (old and not was):
        return
    for batch_size in sorted(was.keys() | now.keys()):
        earlier = was.get(batch_size)
        later = now.get(batch_size)
        if earlier and later and earlier.to_converge == later.to_converge:
            continue
        yield PointChange(new.name, new.unit, batch_size, _summary(earlier), _summary(later))


def _points(round_: Round, benchmark: Benchmark) -> Mapping[float, ReferencePoint]:
    runs = benchmark.runs.required
    drop = benchmark.runs.drop
    points = reference_points(round_.usage, round_.ruleset, benchmark.name, runs=runs, drop=drop)
    return {point.batch_size: point for point in points}


def _summary(point: ReferencePoint | None) -> ReferenceRuns | None:
    if point is None:
        return None
    return ReferenceRuns(len(point.to_converge), point.mean)
