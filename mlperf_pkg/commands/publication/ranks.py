"""How published numbers are rounded and ranked.

The rules round results "normally", without a number of decimals; the published tables have three
(training_rules, Result rounding). The rules rank submitters by their number of results, for the
assignments of the review (submission_rules, Required reviews); of scores they define no rank, and
the columns of the tables are to be determined (submission_rules, Results table content). So ranks
are beside the tables, not in them. Equal values share a rank and the ranks after it are skipped:
1, 2, 2, 4.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from decimal import ROUND_HALF_UP, Decimal

DECIMALS = 3

_EXACT = 1e12  # larger doubles have no third decimal


def rounded(value: float | None, decimals: int = DECIMALS) -> float | None:
    """Return a number as it is published: halves are rounded up, in decimals.

    Python's formats round 9.8065 to 9.806, because its double is a little smaller.
    """
    if value is None or not math.isfinite(value):
        return None
    unit = Decimal(1).scaleb(-decimals)
    return (
        float(Decimal(repr(value)).quantize(unit, ROUND_HALF_UP)) if abs(value) < _EXACT else value
    )


def ranks(values: Sequence[tuple[Hashable, float]]) -> list[tuple[int, int]]:
    """Return the rank of each value in its group, 1 for the smallest, and the size of the group."""
    groups: dict[Hashable, list[float]] = {}
    for group, value in values:
        groups.setdefault(group, []).append(value)
    return [
        (1 + sum(other < value for other in groups[group]), len(groups[group]))
        for group, value in values
    ]
