"""What a table of the simulator says: a benchmark, a round, the way a run ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Value = bool | int | float | str
Setting = Value | Callable[[int], Value]
"""A hyperparameter: its value, or the value that it takes at a global batch size."""


class Unit(StrEnum):
    """What ``epoch_num`` counts in a benchmark's logs."""

    EPOCHS = "epochs"
    SAMPLES = "samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One benchmark: how it is trained, logged and evaluated.

    A result set takes ``runs`` runs, of which the ``drop`` fastest and slowest are dropped. The
    metric, logged as ``eval_accuracy``, goes from ``untrained`` to ``target``, whichever is the
    larger. ``evaluate_every`` gives the units between evaluations at a global batch size; where
    ``free_offset``, the first evaluation may come at any unit of the first such interval.
    ``accelerator_minutes`` and ``samples_per_accelerator`` model a plausible machine.
    ``settings`` are logged whichever optimizer is used, ``optimizers`` adds those of each one,
    the default first.
    """

    name: str
    runs: int
    drop: int = 1
    unit: Unit
    untrained: float
    target: float
    evaluate_every: Callable[[int], int]
    free_offset: bool = False
    accelerator_minutes: float
    samples_per_accelerator: int
    settings: Mapping[str, Setting]
    optimizers: Mapping[str, Mapping[str, Setting]]

    def laps(self, after: int, until: int) -> Sequence[int]:
        """The ``epoch_num`` of each stretch of training that is logged between two evaluations."""
        return range(after + 1, until + 1) if self.unit is Unit.EPOCHS else (until,)


@dataclass(frozen=True, slots=True)
class Round:
    """One round: when its runs are made by default (ms since the epoch) and of which benchmarks."""

    start_ms: int
    benchmarks: Mapping[str, Benchmark]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ends, and the ``status`` that it then logs.

    ``length`` is the number of evaluations made, as a multiple of those that a converging run
    makes. ``gap`` is the part of the way from the untrained metric to the target that always
    remains. An ``interrupted`` run stops in the middle of the training that follows.
    """

    status: str
    length: float = 1.0
    gap: float = 0.0
    interrupted: bool = False
