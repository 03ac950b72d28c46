"""Numbers among JSON values, of which a log or a file may hold any.

Two readings: Python's own, which decides the official verdict, and finite numbers, which figures
and charts can be computed from.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

_NUMBER = (int, float)


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether Python computes with a value as with a number.

    That includes ``true`` and ``false`` (1 and 0), NaN, infinities, and integers of any size.
    """
    return isinstance(value, _NUMBER)


def to_float(value: Any) -> float | None:
    """Return a number as a double, None for anything else; see ``is_number``.

    An integer too large for a double is an infinity of its sign.
    """
    if not isinstance(value, _NUMBER):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf if value > 0 else -math.inf


def to_finite(value: Any) -> float | None:
    """Return a finite number as a double, None for anything else.

    ``true`` and ``false``, NaN, infinities and integers too large for a double are not numbers
    here.
    """
    if isinstance(value, bool):
        return None
    number = to_float(value)
    return number if number is not None and math.isfinite(number) else None
