"""What the RCP test of a result set means: its margin, its lower limit, and both in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlperf_pkg.results.rcp import RcpResult, ReferencePoint, divide, reaches

NO_LIMIT = "no lower limit"

# A smallest acceptable mean below this share of the reference mean limits nothing: it accepts
# models that train in half the time of the reference. The points of all rounds have at least
# 0.84, except one whose t-test has no power (gpt3 of 4.1 at batch size 3072: 3e-14), and what is
# interpolated from it.
_SMALLEST_SHARE = 0.5
_OUTLIER = 2.0  # times the median
_WHOLE = 100  # percent: margins from here on are shown without decimals


def margin_percent(result: RcpResult) -> float | None:
    """Return the RCP margin: by how much the mean exceeds the smallest acceptable mean, in percent.

    It is negative for a set that converges too fast, and None where there is nothing to compare
    with or where the smallest acceptable mean limits nothing.
    """
    if result.mean is None or result.minimum is None or not _limits(result):
        return None
    margin = 100 * (divide(result.mean, result.minimum) - 1)
    return margin if math.isfinite(margin) else None


def no_limit_reason(result: RcpResult, points: Sequence[ReferencePoint]) -> str | None:
    """Return why the smallest acceptable mean limits nothing; None where it does.

    ``points`` are those that ``result`` was judged by. The verdict remains the official one.
    """
    if _limits(result):
        return None
    return _spread_in_words(max((p for p in points if p.name in result.points), key=_spread))


def has_limit(point: ReferencePoint) -> bool:
    """Return whether the smallest acceptable mean of a point limits anything."""
    return point.minimum >= _SMALLEST_SHARE * point.mean


def explain(result: RcpResult, points: Sequence[ReferencePoint]) -> str:
    """Return one or two sentences for people: what was compared, the margin, the effect."""
    minimum, mean, reference = result.minimum, result.mean, result.reference_mean
    if minimum is None or reference is None or mean is None or math.isnan(mean):
        return f"{result.message}: convergence was not compared with the reference."
    accepted = reaches(mean, reference, minimum)
    sentence = f"{_comparison(result, points, accepted=accepted)} ({_basis(result, reference)})."
    if not accepted or mean >= reference:
        return sentence
    return f"{sentence} Normalisation multiplies the score by {result.normalization:.4f}."


def margin_in_words(margin: float) -> str:
    """Return a margin in percent with its sign: ``+3.2 %``, ``+175 %``."""
    return f"{margin:+,.0f} %" if abs(margin) >= _WHOLE else f"{margin:+.1f} %"


def _limits(result: RcpResult) -> bool:
    if result.minimum is None or result.reference_mean is None:
        return True
    return result.minimum >= _SMALLEST_SHARE * result.reference_mean


def _comparison(result: RcpResult, points: Sequence[ReferencePoint], *, accepted: bool) -> str:
    subject = f"The mean to converge is {_number(result.mean or 0)}"
    place = f"at batch size {_size(result.batch_size)}"
    if reason := no_limit_reason(result, points):
        return f"{subject}, with {NO_LIMIT} {place}: {reason}"
    margin = margin_percent(result)
    shown = "" if margin is None else f": RCP margin {margin_in_words(margin)}"
    minimum = _number(result.minimum or 0)
    separator = "," if accepted else "; expected"
    return f"{subject}{separator} at least {minimum} {place}{shown}"


def _basis(result: RcpResult, reference: float) -> str:
    """Return the reference mean and where it is from."""
    source = "interpolated between" if result.interpolated else "from"
    return f"reference mean {_number(reference)}, {source} {' and '.join(result.points)}"


def _spread(point: ReferencePoint) -> float:
    """Return the slowest reference run over the median of all."""
    from statistics import median  # noqa: PLC0415 - slow to import; few points need it

    return divide(point.to_converge[-1], median(point.to_converge))


def _spread_in_words(point: ReferencePoint) -> str:
    subject = f"the reference point at batch size {_size(point.batch_size)}"
    if _spread(point) >= _OUTLIER:
        return f"{subject} holds a value {_spread(point):.0f} times its median"
    least, most = point.to_converge[0], point.to_converge[-1]
    return f"{subject} holds values from {_number(least)} to {_number(most)}"


def _size(batch_size: float) -> str:
    return _number(batch_size).replace(",", "")


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")
