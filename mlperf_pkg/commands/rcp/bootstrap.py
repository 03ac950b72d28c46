"""The confidence interval of a limit, by a bootstrap of its reference runs.

The runs of each point are resampled with replacement, and mean and limit computed again; the
2.5th and 97.5th percentiles are the interval (B. Efron, R. Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13). Pruning is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from random import Random

from msgspec import Struct
from msgspec.structs import asdict

from mlperf_pkg.commands.rcp.lines import add_item
from mlperf_pkg.commands.rcp.reference import Reference
from mlperf_pkg.commands.rcp.table import about, heading, number
from mlperf_pkg.errors import UserError
from mlperf_pkg.render import tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Table
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import ReferencePoint, numpy_mean, reaches
from mlperf_pkg.results.rcp_margin import has_limit
from mlperf_pkg.results.wording import counted

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
    resamples: int
    seed: int
    mean: Estimate
    limit: Estimate
    fails_percent: float | None
    error_percent: float | None


def bootstrap(reference: Reference, batch_size: float, *, resamples: int, seed: int) -> Bootstrap:
    """Resample the reference runs of the limit at a batch size.

    Equal arguments give equal results.

    Raises:
        UserError: the batch size is larger than that of all points.
    """
    comparison = reference.at(batch_size)
    if comparison.point is None:
        raise UserError(
            f"batch size {batch_size:.15g} is larger than all points of"
            f" {reference.benchmark} in {reference.round}: there is no limit to resample"
        )
    points = tuple(point for point in reference.used if point.name in comparison.points)
    random = Random(seed)  # noqa: S311 - for statistics
    samples = [_resampled(reference, points, batch_size, random) for _ in range(resamples)]
    # The runs of a pruned point are reference runs too, although its limit is not used.
    same_size = next((point for point in reference.points if point.batch_size == batch_size), None)
    share = (
        _failing(reference, same_size, comparison.point, resamples, random) if same_size else None
    )
    return Bootstrap(
        reference=reference,
        batch_size=batch_size,
        points=points,
        resamples=resamples,
        seed=seed,
        mean=_estimate(comparison.point.mean, [point.mean for point in samples]),
        limit=_estimate(comparison.point.minimum, [point.minimum for point in samples]),
        fails_percent=None if share is None else 100 * share,
        error_percent=None if share is None else 100 * sqrt(share * (1 - share) / resamples),
    )


def _resampled(
    reference: Reference, points: Sequence[ReferencePoint], batch_size: float, random: Random
) -> ReferencePoint:
    """Return one or two points with runs drawn from their own, interpolated if there are two."""
    runs = reference.runs
    samples = [
        ReferencePoint.from_runs(
            point.name,
            point.batch_size,
            random.choices(point.to_converge, k=len(point.to_converge)),
            runs=runs.required,
            drop=runs.drop,
        )
        for point in points
    ]
    if len(samples) == 1:
        return samples[0]
    return ReferencePoint.between(samples[0], samples[1], batch_size, runs=runs.required)


def _failing(
    reference: Reference,
    own: ReferencePoint,
    limit: ReferencePoint,
    number_of_sets: int,
    random: Random,
) -> float:
    """Return the share of sets of runs drawn from the point ``own`` that fail at ``limit``."""
    required, drop = reference.runs.required, reference.runs.drop
    minimum = limit.minimum - reference.allowance
    failing = 0
    for _ in range(number_of_sets):
        runs = sorted(random.choices(own.to_converge, k=required))
        mean = numpy_mean(runs[drop : required - drop])
        failing += not reaches(mean, limit.mean, minimum)
    return failing / number_of_sets


def _estimate(value: float, samples: Sequence[float]) -> Estimate:
    ordered = sorted(samples)
    last = len(ordered) - 1
    return Estimate(value, ordered[round(_TAIL * last)], ordered[round((1 - _TAIL) * last)])


# ---- output -------------------------------------------------------------------------------

_COLUMNS = (Column("", 20), Column("Estimate", 16, numbers=True), Column("95 % interval", 40))


def text(result: Bootstrap, view: View) -> str:
    """Render for a terminal."""
    terminal = Terminal(view)
    terminal.paragraph(
        (f"{heading(result.reference)}, batch size {result.batch_size:.15g}", HEADING)
    )
    terminal.line((f"source: {result.reference.source}", PLAIN))
    terminal.line()
    rows = [
        [(cell, PLAIN) for cell in (name, number(item.value), _interval(item))]
        for name, item in (("mean", result.mean), ("limit", result.limit))
    ]
    terminal.table(Table(_COLUMNS, [Group("", rows)]))
    for paragraph in _paragraphs(result):
        add_item(terminal, "", paragraph)
    return terminal.text()


def _interval(estimate: Estimate) -> str:
    return f"{number(estimate.low)} to {number(estimate.high)}"


def _paragraphs(result: Bootstrap) -> Iterator[str]:
    runs, points = result.reference.runs.required, result.points
    sizes = " and ".join(f"{point.batch_size:.15g}" for point in points)
    size = f"{result.batch_size:.15g}"
    counts = " and ".join(f"{len(point.to_converge)}" for point in points)
    if result.fails_percent is None or result.error_percent is None:
        yield (
            f"There are no reference runs at batch size {size}, so the share of fair sets that fail"
            f" is unknown; the limit is from the runs at {sizes}."
        )
    else:
        yield (
            f"A set of {runs} reference runs at batch size {size}, drawn at random, fails the test"
            f" with a probability of {result.fails_percent:.1f} % (standard error"
            f" {result.error_percent:.1f} %); the test aims at 5 %."
        )
    if any(len(point.to_converge) < _FEW for point in points):
        yield f"With {counts} reference runs, the true interval is wider than the one shown."
    if any(point.stdev == 0 for point in points):
        yield "All runs of a point are equal: resampling cannot estimate its uncertainty."
    if not all(map(has_limit, points)):
        yield "A point has no lower limit, as its runs differ too much."
    yield from result.reference.notes
    yield (
        f"Method: {METHOD}; {counted(result.resamples, 'resample')} of the runs at batch size"
        f" {sizes}, seed {result.seed}."
    )


def json(result: Bootstrap, _: View) -> str:
    """Render all fields."""
    return tables.json_text(
        {
            "format": FORMAT,
            **about(result.reference),
            "batch_size": result.batch_size,
            "points": [point.name for point in result.points],
            "mean": asdict(result.mean),
            "limit": asdict(result.limit),
            "fails_percent": result.fails_percent,
            "error_percent": result.error_percent,
            "method": METHOD,
            "resamples": result.resamples,
            "seed": result.seed,
        }
    )


BOOTSTRAP_FORMATS: Mapping[str, Callable[[Bootstrap, View], str]] = {"text": text, "json": json}
