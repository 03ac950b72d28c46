"""The goal of a run: the bounds of its metrics, and how far the reference trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mlperf_pkg.results.rcp import ReferencePoint, prune, reference_points
from mlperf_pkg.rulebook.explain import describe
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.model import Run

_LOWER, _UPPER = ("at_least", "above"), ("at_most", "below")


class Goal(Struct, frozen=True):
    """The target in words, the bounds of each metric by its name, and the unit of convergence.

    ``reference`` is how far the reference trains at the run's batch size, None if no reference
    point says.
    """

    target: str
    bounds: Mapping[str, Mapping[str, Any]]
    unit: str
    reference: ReferencePoint | None = None

    def met(self, values: Mapping[str, float]) -> bool:
        """Return whether an evaluation meets each bound."""
        return all(
            name in values and _violated(values[name], bounds) is None
            for name, bounds in self.bounds.items()
        )

    def limit(self, name: str, value: float) -> float | None:
        """Return the bound of a metric that ``value`` violates, None if it violates none."""
        return _violated(value, self.bounds.get(name, {}))


def goal_of(run: Run, rules: Benchmark, batch_size: float | None) -> Goal:
    """Return the goal of a run, as far as its log describes it, by the rules of its benchmark.

    Raises:
        UserError: the rulebook has no such round.
    """
    bounds = rules.target.get("fields", {"": rules.target})
    target = describe.target(rules)
    return Goal(target, bounds, rules.unit, _reference(run, rules, batch_size))


def _reference(run: Run, rules: Benchmark, batch_size: float | None) -> ReferencePoint | None:
    """Return the reference point at a batch size, interpolated between two, else the nearest.

    None for Open runs, which may train differently from the reference.
    """
    runs, ruleset = rules.runs, load_round(run.usage, run.round).ruleset
    points = prune(
        reference_points(run.usage, ruleset, rules.name, runs=runs.required, drop=runs.drop)
    )
    if not points or batch_size is None or run.division != "closed":
        return None
    low = next((p for p in reversed(points) if p.batch_size <= batch_size), points[0])
    high = next((p for p in points if p.batch_size >= batch_size), points[-1])
    if low.batch_size >= high.batch_size:
        return low if low.batch_size <= batch_size else high
    return ReferencePoint.between(low, high, batch_size, runs=runs.required)


def _violated(value: float, bounds: Mapping[str, Any]) -> float | None:
    lower = next((bounds[name] for name in _LOWER if name in bounds), None)
    upper = next((bounds[name] for name in _UPPER if name in bounds), None)
    if lower is not None and value < lower:
        return float(lower)
    return float(upper) if upper is not None and value > upper else None
