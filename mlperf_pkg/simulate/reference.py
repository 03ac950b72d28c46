"""The reference convergence points that a simulated run is like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.results.rcp import ReferencePoint, prune, reference_points
from mlperf_pkg.rulebook.load import load_round, rounds
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.simulate.model import Recipe


class Reference(Struct, frozen=True):
    """Reference points by ascending batch size, and the hyperparameters of each batch size."""

    points: tuple[ReferencePoint, ...]
    hyperparameters: Mapping[float, Mapping[str, Any]]

    def nearest(self, batch_size: float) -> int:
        """The batch size of the point that is nearest."""
        sizes = (int(point.batch_size) for point in self.points)
        return min(sizes, key=lambda size: abs(size - batch_size))

    def point(self, batch_size: float) -> ReferencePoint:
        """The slower of the points on either side: no interpolation is slower."""
        below = [point for point in self.points if point.batch_size <= batch_size]
        above = [point for point in self.points if point.batch_size >= batch_size]
        return max([*below[-1:], *above[:1]], key=lambda point: point.mean)


def reference(usage: str, round_name: str, benchmark: Benchmark, recipe: Recipe) -> Reference:
    """The points of the round, else of the next one that has some, else the recipe's own."""
    runs, drop = benchmark.runs.required, benchmark.runs.drop
    known = rounds(usage)
    for later in known[known.index(round_name) :]:
        ruleset = load_round(usage, later).ruleset
        if points := prune(reference_points(usage, ruleset, benchmark.name, runs=runs, drop=drop)):
            return Reference(points, _hyperparameters(usage, ruleset, benchmark.name))
    batch_size, to_converge = recipe.typical or (1, (1.0,))
    point = ReferencePoint.from_runs("typical", batch_size, to_converge, runs=runs, drop=drop)
    return Reference((point,), {})


@cache
def _hyperparameters(usage: str, ruleset: str, benchmark: str) -> Mapping[float, Any]:
    """Of each batch size; source: the same file as that of ``reference_points``."""
    name = f"rcp_checker/{usage}_{ruleset}/rcps_{benchmark}.json"
    text = (official_folder() / name).read_text(encoding="utf-8")
    return {record["BS"]: record.get("Hyperparams", {}) for record in json.loads(text).values()}
