"""The plan of a run: its names looked up in the tables, its defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import TypeVar

from mlperf_pkg.errors import UserError
from mlperf_pkg.rcp import ReferencePoint, prune, reference_points
from mlperf_pkg.simulate.benchmarks import BERT, RESNET, RNNT
from mlperf_pkg.simulate.model import Benchmark, Outcome, Round, Setting, Value

_Row = TypeVar("_Row")

_SCALING = 0.9
"""N accelerators train N ** 0.9 times as fast as one."""

_BENCHMARKS = {benchmark.name: benchmark for benchmark in (RESNET, BERT, RNNT)}


def _midnight_ms(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 1000


ROUNDS: Mapping[str, Round] = {
    "1.0": Round(_midnight_ms(2021, 5, 3), _BENCHMARKS),
    "1.1": Round(_midnight_ms(2021, 10, 4), _BENCHMARKS),
    "2.0": Round(_midnight_ms(2022, 5, 2), _BENCHMARKS),
}
DIVISIONS = ("closed", "open")

SUCCESS = Outcome(status="success")
FAILURES: Mapping[str, Outcome] = {
    "diverged": Outcome(status="aborted", length=1.25, gap=0.2),
    "aborted": Outcome(status="aborted", length=0.0, interrupted=True),
}
"""``diverged``: the metric stalls short of the target and the run is given up a quarter later than
it should have converged. ``aborted``: it is stopped before its first evaluation."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run to simulate.

    ``round`` is written like ``2.0``; ``division`` is ``closed`` or ``open``; ``system`` is the
    system's id, logged as ``submission_platform``. ``minutes`` is the time to train, by default
    from a simple model of the benchmark and the ``accelerators``; a run that fails keeps the pace
    but not the length. ``batch_size`` is global, by default the reference convergence point's
    nearest to what the accelerators would take; above the largest reference point no Closed
    result can pass the RCP test. ``optimizer`` is the benchmark's first by default (resnet:
    ``lars``, or ``sgd``). ``failure`` is one of ``FAILURES``, or None. ``start_ms`` is the time of
    the first record in milliseconds since the epoch, by default within the round's submission
    period.
    """

    round: str
    benchmark: str
    division: str
    system: str
    organization: str
    minutes: float | None = None
    accelerators: int = 16
    batch_size: int | None = None
    optimizer: str | None = None
    failure: str | None = None
    start_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """A plan whose names are looked up and whose defaults are filled in.

    ``optimizer`` names the optimizer; ``reference`` is the reference convergence point whose runs
    this one is like.
    """

    plan: RunPlan
    benchmark: Benchmark
    optimizer: str
    outcome: Outcome
    reference: ReferencePoint
    batch_size: int
    minutes: float
    start_ms: int

    def settings(self) -> dict[str, Value]:
        """Every hyperparameter to log, in order, at this run's batch size."""
        several: dict[str, Setting] = {
            "global_batch_size": self.batch_size,
            **self.benchmark.settings,
            "opt_name": self.optimizer,
            **self.benchmark.optimizers[self.optimizer],
        }
        return {
            key: setting(self.batch_size) if callable(setting) else setting
            for key, setting in several.items()
        }


def resolve(plan: RunPlan) -> Setup:
    """Look up the names of ``plan`` and fill in its defaults.

    Raises:
        UserError: an unknown round, benchmark, division, optimizer or failure, or a number that
            is not positive.
    """
    this_round = _look_up("round", plan.round, ROUNDS)
    benchmark = _look_up(f"benchmark of round {plan.round}", plan.benchmark, this_round.benchmarks)
    _look_up("division", plan.division, dict.fromkeys(DIVISIONS))
    for name in ("minutes", "accelerators", "batch_size"):
        require_positive(name, getattr(plan, name))
    points = _points(plan.round, benchmark)
    batch_size = plan.batch_size or _usual_batch_size(points, benchmark, plan.accelerators)
    return Setup(
        plan=plan,
        benchmark=benchmark,
        optimizer=_optimizer(plan, benchmark),
        outcome=_outcome(plan),
        reference=_reference(points, batch_size),
        batch_size=batch_size,
        minutes=plan.minutes or benchmark.accelerator_minutes / plan.accelerators**_SCALING,
        start_ms=this_round.start_ms if plan.start_ms is None else plan.start_ms,
    )


def require_positive(name: str, number: float | None) -> None:
    """Raise UserError where ``number`` is given and is not positive and finite."""
    if number is not None and not 0 < number < inf:
        raise UserError(f"{name} must be a positive number, not {number}")


def _look_up(kind: str, name: str, table: Mapping[str, _Row]) -> _Row:
    if name not in table:
        raise UserError(f"unknown {kind}: {name!r} (known: {', '.join(table)})")
    return table[name]


def _optimizer(plan: RunPlan, benchmark: Benchmark) -> str:
    if plan.optimizer is None:
        return next(iter(benchmark.optimizers))
    _look_up(f"optimizer of {benchmark.name}", plan.optimizer, benchmark.optimizers)
    return plan.optimizer


def _outcome(plan: RunPlan) -> Outcome:
    return SUCCESS if plan.failure is None else _look_up("failure", plan.failure, FAILURES)


def _points(round_name: str, benchmark: Benchmark) -> Sequence[ReferencePoint]:
    ruleset = f"{round_name}.0"
    return prune(
        reference_points(
            "training", ruleset, benchmark.name, runs=benchmark.runs, drop=benchmark.drop
        )
    )


def _usual_batch_size(
    points: Sequence[ReferencePoint], benchmark: Benchmark, accelerators: int
) -> int:
    wanted = accelerators * benchmark.samples_per_accelerator
    return min((int(point.batch_size) for point in points), key=lambda size: abs(size - wanted))


def _reference(points: Sequence[ReferencePoint], batch_size: int) -> ReferencePoint:
    """The slower of the points on either side of ``batch_size``: no interpolation is slower."""
    below = [point for point in points if point.batch_size <= batch_size]
    above = [point for point in points if point.batch_size >= batch_size]
    return max([*below[-1:], *above[:1]], key=lambda point: point.mean)
