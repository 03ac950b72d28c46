"""The reference convergence points that simulated runs follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mlperf_pkg.results.rcp import (
    ReferencePoint,
    prune,
    reference_hyperparameters,
    reference_points,
)
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.simulate.recipe import Recipe, Typical

_EPOCHS, _STEPS = 5, 100
"""What a benchmark without reference points takes to converge, if its recipe does not say it."""


class Reference(Struct, frozen=True):
    """Reference points by ascending batch size, and the hyperparameters of each batch size."""

    points: tuple[ReferencePoint, ...]
    hyperparameters: Mapping[float, Mapping[str, Any]]

    def nearest(self, batch_size: float) -> int:
        """Return the batch size of the point that is nearest."""
        sizes = (int(point.batch_size) for point in self.points)
        return min(sizes, key=lambda size: abs(size - batch_size))

    def point(self, batch_size: float) -> ReferencePoint:
        """Return the slower of the points on either side: no interpolation is slower."""
        below = [point for point in self.points if point.batch_size <= batch_size]
        above = [point for point in self.points if point.batch_size >= batch_size]
        return max([*below[-1:], *above[:1]], key=lambda point: point.mean)


def reference(
    usage: str, round_name: str, benchmark: Benchmark, recipe: Recipe, batch_size: int
) -> Reference:
    """Return the points of the round, else of the nearest later or earlier one, else a typical one.

    ``batch_size`` is that of the typical point where the recipe does not say it.
    """
    runs, drop = benchmark.runs.required, benchmark.runs.drop
    names = rounds(usage)
    index = names.index(round_name)
    for name in (*names[index:], *reversed(names[:index])):
        ruleset = load_round(usage, name).ruleset
        if points := prune(reference_points(usage, ruleset, benchmark.name, runs=runs, drop=drop)):
            return Reference(points, reference_hyperparameters(usage, ruleset, benchmark.name))
    length = _EPOCHS if benchmark.unit == "epochs" else _STEPS * batch_size
    typical = recipe.typical or Typical(batch_size, (length,))
    drop = min(drop, (len(typical.to_converge) - 1) // 2)
    point = ReferencePoint.from_runs(
        "typical", typical.batch_size, typical.to_converge, runs=runs, drop=drop
    )
    return Reference((point,), {})
