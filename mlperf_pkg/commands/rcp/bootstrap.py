"""The confidence interval of a limit, by a bootstrap of its reference runs.

The runs of each point are resampled with replacement, and mean and limit computed again; the
2.5th and 97.5th percentiles are the interval (B. Efron, R. Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13). Pruning is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from mlperf_pkg.commands.rcp.reference import Reference
from mlperf_pkg.commands.rcp.table import about, add_heading, add_item, number, size
from mlperf_pkg.errors import UserError
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import Column, json_text, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import ALPHA, ReferencePoint, has_limit, reaches
from mlperf_pkg.results.wording import counted

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    _Values = NDArray[float64]

FORMAT = "mlperf-pkg/rcp-bootstrap/1"
METHOD = (
    "bootstrap of the reference runs, percentile interval (Efron and Tibshirani, An Introduction"
    " to the Bootstrap, 1993, chapter 13)"
)
_TAIL = 0.025  # on either side of an interval of 95 %
_FEW = 20  # runs, below which the interval is too narrow


class Estimate(Struct, frozen=True):
    """A value computed from the reference runs, and its 95 % confidence interval."""

    value: float
    low: float
    high: float


class Bootstrap(Struct, frozen=True):
    """The confidence intervals of the mean and the limit at a batch size; see the module.

    ``limit`` does not include the allowance of the official checker. ``fails_percent`` is the share
    of sets of runs drawn from the reference that fail the test, and ``error_percent`` its standard
    error; None if there are no reference runs at this batch size.
    """

    reference: Reference
    batch_size: float
    points: tuple[ReferencePoint, ...]
    mean: Estimate
    limit: Estimate
    fails_percent: float | None
    error_percent: float | None
    method: str
    resamples: int
    seed: int


def bootstrap(reference: Reference, batch_size: float, *, resamples: int, seed: int) -> Bootstrap:
    """Resample the reference runs of the limit at a batch size.

    Equal arguments give equal results.

    Raises:
        UserError: the batch size is larger than that of all points.
    """
    comparison = reference.at(batch_size)
    if comparison.point is None:
        raise UserError(
            f"batch size {batch_size:,.15g} is larger than that of any point of"
            f" {reference.benchmark} in {reference.round}: there is no limit to resample"
        )
    from numpy.random import default_rng

    limit = comparison.point
    drop = reference.runs.drop
    random = default_rng(seed)

    def draw(point: ReferencePoint, runs: int) -> tuple[_Values, _Values]:
        """Return the olympic means and the deviations of sets of runs of a point."""
        drawn = random.choice(point.to_converge, (resamples, runs))
        drawn.sort(axis=1)
        return drawn[:, drop : runs - drop].mean(axis=1), drawn.std(axis=1)

    points = tuple(point for point in reference.used if point.name in comparison.points)
    means, limits = _interpolated(limit, points, [draw(p, len(p.to_converge)) for p in points])
    # The runs of a pruned point are reference runs too, although its limit is not used.
    own = next((point for point in reference.points if point.batch_size == batch_size), None)
    fails = error = None
    if own:
        of_sets, _ = draw(own, reference.runs.required)
        minimum = limit.minimum - reference.allowance
        passing = [reaches(mean, limit.mean, minimum) for mean in of_sets.tolist()]
        share = passing.count(False) / resamples
        fails = 100 * share
        error = 100 * sqrt(share * (1 - share) / resamples)
    estimates = (_estimate(limit.mean, means), _estimate(limit.minimum, limits))
    shares = (fails, error)
    return Bootstrap(reference, batch_size, points, *estimates, *shares, METHOD, resamples, seed)


def _interpolated(
    limit: ReferencePoint,
    points: Sequence[ReferencePoint],
    drawn: Sequence[tuple[_Values, _Values]],
) -> tuple[_Values, _Values]:
    """Return means and limits, of the means and deviations drawn from one or two points.

    A limit is the ``minimum`` of the runs drawn, by the quantile of the t distribution instead of
    the search of the official checker, which ends within 1e-4 of it.
    """
    from scipy.special import stdtrit

    low, high = points[0], points[-1]  # the limit is on the line between the two
    span = high.batch_size - low.batch_size
    along = (limit.batch_size - low.batch_size) / span if span else 0
    means, deviations = (
        (1 - along) * one + along * other for one, other in zip(drawn[0], drawn[-1], strict=True)
    )
    kept = limit.runs - 2
    critical = stdtrit(limit.count + kept - 2, 1 - ALPHA)
    limits = means - critical * deviations * sqrt(1 / limit.count + 1 / kept)
    return means, limits.clip(min=0)


def _estimate(value: float, samples: _Values) -> Estimate:
    ordered = sorted(samples.tolist())
    last = len(ordered) - 1
    return Estimate(value, ordered[round(_TAIL * last)], ordered[round((1 - _TAIL) * last)])


# ---- output -------------------------------------------------------------------------------

_COLUMNS = (
    Column("", 20, of=itemgetter(0)),
    Column("Estimate", 16, numbers=True, of=lambda row: row[1].value, show=number),
    Column("95 % interval", 40, of=lambda row: f"{number(row[1].low)} to {number(row[1].high)}"),
)


def text(result: Bootstrap, view: View) -> str:
    """Render for a terminal."""
    terminal = Terminal(view)
    add_heading(terminal, result.reference, f", batch size {size(result.batch_size)}")
    terminal.table(table_of(_COLUMNS, [("mean", result.mean), ("limit", result.limit)]))
    for paragraph in _paragraphs(result):
        add_item(terminal, "", paragraph)
    return terminal.text()


def _paragraphs(result: Bootstrap) -> Iterator[str]:
    runs = result.reference.runs.required
    points = result.points
    own = size(result.batch_size)
    sizes = " and ".join(size(point.batch_size) for point in points)
    if result.fails_percent is None or result.error_percent is None:
        yield (
            f"There are no reference runs at batch size {own}, so the share of fair sets that fail"
            f" is unknown; the limit is from the runs at {sizes}."
        )
    else:
        yield (
            f"A set of {runs} reference runs at batch size {own}, drawn at random, fails the test"
            f" with a probability of {result.fails_percent:.1f} % (standard error"
            f" {result.error_percent:.1f} %); the test aims at 5 %."
        )
    if any(len(point.to_converge) < _FEW for point in points):
        counts = " and ".join(f"{len(point.to_converge)}" for point in points)
        yield f"With {counts} reference runs, the true interval is wider than the one shown."
    if any(point.stdev == 0 for point in points):
        yield "All runs of a point are equal: resampling cannot estimate its uncertainty."
    if not all(map(has_limit, points)):
        yield "A point has no lower limit, as its runs differ too much."
    yield from result.reference.notes
    drawn = f"{counted(result.resamples, 'resample')} of the runs at batch size {sizes}"
    yield f"Method: {result.method}; {drawn}, seed {result.seed}."


def json(result: Bootstrap, _: View) -> str:
    """Render all fields."""
    fields = asdict(result) | {"points": [point.name for point in result.points]}
    del fields["reference"]
    return json_text({"format": FORMAT, **about(result.reference), **fields})


BOOTSTRAP_FORMATS = {"text": text, "json": json}
