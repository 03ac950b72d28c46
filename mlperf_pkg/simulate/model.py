"""What the simulator says of a run: how its hyperparameters are written, the way it ends."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

Value = Any
"""A value as it is logged: any that JSON has."""

Assigned = Mapping[str, Any]
"""The hyperparameters chosen so far, by key."""

Setting = Any
"""A value as recipes write it: plain, computed from those chosen before it, or candidates."""


class EpochRecords(StrEnum):
    """What is logged as an epoch of its own between two evaluations."""

    EACH = "each"
    WHOLE = "whole"
    NONE = "none"


class Flaw(StrEnum):
    """What is wrong with the hyperparameters that a run logs."""

    MISSING = "a required one is absent"
    WRONG = "one is outside its rule"


class Outcome(Struct, frozen=True, kw_only=True):
    """How a run ends, and the ``status`` that it then logs, where it logs its end at all.

    ``length`` is the number of evaluations, as a multiple of those that a converging run has.
    ``gap`` is the part of the way from the untrained metric to the target that always remains.
    An ``interrupted`` run stops in the middle of the training that follows. ``written`` is the
    part of the records that reach the file; where it is less than 1, the next one is cut.
    """

    status: str | None
    length: float = 1.0
    gap: float = 0.0
    interrupted: bool = False
    flaw: Flaw | None = None
    written: float = 1.0
