"""What a table of the simulator says: how a benchmark trains, the way a run ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

Value = Any
"""A value as it is logged: any that JSON has."""

Known = Mapping[str, Any]
"""The hyperparameters chosen so far, by key."""

Setting = Value | Callable[[Known], Value] | tuple[Value | Callable[[Known], Value], ...]
"""A value, how it follows from those chosen before it, or several of these to try in turn."""


class Laps(StrEnum):
    """What is logged as an epoch of its own between two evaluations."""

    EACH = "each epoch"
    WHOLE = "the whole stretch"
    NONE = "nothing: blocks alone"


class Recipe(Struct, frozen=True, kw_only=True):
    """How one benchmark is trained, logged and evaluated, as far as the rulebook does not say.

    The metric goes from ``untrained`` to the rulebook's target, or each of several by its name.
    ``every`` gives the interval between evaluations at a global batch size and ``first`` (by
    default the same) where they begin, both in the unit of the logs; where ``free_offset``, they
    may begin at any unit of the first interval. ``laps`` says what is logged as an epoch, and
    ``lap_records`` what else within it.

    ``always`` are logged in any case, ``values`` where the rules ask for the key; what neither
    says is taken from the reference's hyperparameters or from the rule. ``optimizers`` names
    those that the rules do not, or in which order, the default first. ``typical`` is a batch size
    and how far runs of it trained, for want of reference points. ``accelerator_minutes`` and
    ``samples_per_accelerator`` model a plausible machine.
    """

    untrained: float | Mapping[str, float]
    every: Callable[[int], float]
    first: Callable[[int], float] | None = None
    free_offset: bool = False
    laps: Laps = Laps.NONE
    lap_records: Mapping[str, Value] = field(default_factory=dict)
    accelerator_minutes: float
    samples_per_accelerator: float
    optimizers: tuple[str, ...] = ()
    always: Mapping[str, Setting] = field(default_factory=dict)
    values: Mapping[str, Setting] = field(default_factory=dict)
    typical: tuple[int, tuple[float, ...]] | None = None


class Flaw(StrEnum):
    """What is wrong with the hyperparameters that a run logs."""

    MISSING = "a required one is absent"
    WRONG = "one is outside its rule"


class Outcome(Struct, frozen=True, kw_only=True):
    """How a run ends, and the ``status`` that it then logs, where it logs its end at all.

    ``length`` is the number of evaluations made, as a multiple of those that a converging run
    makes. ``gap`` is the part of the way from the untrained metric to the target that always
    remains. An ``interrupted`` run stops in the middle of the training that follows. ``written``
    is the part of the records that reach the file; where it is less than 1, the next is cut.
    """

    status: str | None
    length: float = 1.0
    gap: float = 0.0
    interrupted: bool = False
    flaw: Flaw | None = None
    written: float = 1.0
