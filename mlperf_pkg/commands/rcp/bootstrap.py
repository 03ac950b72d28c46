"""How sure a limit is: the bootstrap of the reference runs behind it.

The runs of each point are resampled with replacement, and mean and limit computed anew; their
2.5th and 97.5th percentiles are the interval (B. Efron, R. Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13). Pruning stays as it is.
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
from mlperf_pkg.render.terminal import HEADING, PLAIN, Column, Group, Terminal
from mlperf_pkg.render.view import View
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
    """A value computed from the reference runs, and the interval that holds it with 95 %."""

    value: float
    low: float
    high: float


class Bootstrap(Struct, frozen=True):
    """How sure the limit at a batch size is; see the module.

    ``limit`` is without, ``allowance`` is what the official checker subtracts from it.
    ``fails_percent`` is how often a set of runs drawn from the reference fails the test, and
    ``error_percent`` its standard error; None where there are no reference runs of this batch size.
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
    """Resample the reference runs behind the limit of a batch size.

    Equal arguments give equal results.

    Raises:
        UserError: the batch size is larger than that of all points.
    """
    comparison = reference.at(batch_size)
    if comparison.point is None:
        raise UserError(
            f"batch size {batch_size:.15g} is larger than that of all points of"
            f" {reference.benchmark} in {reference.round}: there is no limit to resample"
        )
    behind = tuple(point for point in reference.used if point.name in comparison.points)
    random = Random(seed)  # noqa: S311 - for statistics
    drawn = [_resampled(reference, behind, batch_size, random) for _ in range(resamples)]
    # The runs of a pruned point are reference runs too, although its limit is not used.
    own = next((point for point in reference.points if point.batch_size == batch_size), None)
    share = _failing(reference, own, comparison.point, resamples, random) if own else None
    return Bootstrap(
        reference=reference,
        batch_size=batch_size,
        points=behind,
        resamples=resamples,
        seed=seed,
        mean=_estimate(comparison.point.mean, [point.mean for point in drawn]),
        limit=_estimate(comparison.point.minimum, [point.minimum for point in drawn]),
        fails_percent=None if share is None else 100 * share,
        error_percent=None if share is None else 100 * sqrt(share * (1 - share) / resamples),
    )


def _resampled(
    reference: Reference, behind: Sequence[ReferencePoint], batch_size: float, random: Random
) -> ReferencePoint:
    """Return the point, or the point between two, of runs drawn from those of each."""
    runs = reference.runs
    points = [
        ReferencePoint.from_runs(
            point.name,
            point.batch_size,
            random.choices(point.to_converge, k=len(point.to_converge)),
            runs=runs.required,
            drop=runs.drop,
        )
        for point in behind
    ]
    if len(points) == 1:
        return points[0]
    return ReferencePoint.between(points[0], points[1], batch_size, runs=runs.required)


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


def _estimate(value: float, drawn: Sequence[float]) -> Estimate:
    ordered = sorted(drawn)
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
    terminal.table(_COLUMNS, [Group("", rows)])
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
            f"The limit is that of batch size {sizes}: how often a fair set fails is unknown, as"
            f" there are no reference runs of batch size {size}."
        )
    else:
        yield (
            f"A set of {runs} runs drawn from those of the reference at batch size {size} fails the"
            " test with a probability of"
            f" {result.fails_percent:.1f} % (standard error {result.error_percent:.1f} %); the"
            " test aims at 5 %."
        )
    if any(len(point.to_converge) < _FEW for point in points):
        yield f"With {counts} reference runs, the interval is too narrow; the true one is wider."
    if any(point.stdev == 0 for point in points):
        yield "All runs of a point are equal: resampling cannot show how sure it is."
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
