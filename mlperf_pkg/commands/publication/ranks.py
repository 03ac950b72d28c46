"""The rounding and ranking of published numbers.

The rules round results "normally" and do not give a number of decimals; the published tables have
three (training_rules, Result rounding). The rules rank submitters by their number of results, for
the assignments of the review (submission_rules, Required reviews). They do not define ranks of
scores, and the columns of the tables are to be determined (submission_rules, Results table
content). Ranks are therefore not in the tables, but in other files. Equal values share a rank, and
the ranks after it are skipped: 1, 2, 2, 4.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from operator import itemgetter

from mlperf_pkg.results import wording


def rounded(value: float | None) -> float | None:
    """Return a number rounded for publication, None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(wording.minutes(value))


def ranks(values: Sequence[tuple[Hashable, float]]) -> list[tuple[int, int]]:
    """Return the rank of each value in its group, 1 for the smallest, and the size of the group."""
    groups: dict[Hashable, list[float]] = {}
    for group, value in sorted(values, key=itemgetter(1)):
        groups.setdefault(group, []).append(value)
    return [(1 + bisect_left(groups[g], value), len(groups[g])) for g, value in values]
