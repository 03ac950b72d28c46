"""Published results next to the user's own, as text shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from mlperf_pkg.commands.compare.model import Row
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, Column, Group, Span
from mlperf_pkg.results.wording import NOTHING, counted

HYPERPARAMETERS = (
    Column("Hyperparameters", whole=True),
    Column("Baseline", 12),
    Column("Published (result sets)", 34),
)
_MOST_VALUES = 3  # of a key


def in_groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows by group."""
    return [list(members) for _, members in groupby(rows, key=lambda row: row.result.group)]


def shown_rows(rows: Sequence[Row], view: View) -> list[Row]:
    """Leave out published results on other numbers of accelerators than the user's own results.

    A group keeps all rows in a ``verbose`` view, without own results, or if no other rows remain.
    """
    groups = in_groups(rows)
    return [row for members in groups for row in (members if view.verbose else _near(members))]


def _near(rows: Sequence[Row]) -> Sequence[Row]:
    own = [row for row in rows if not row.result.published]
    numbers = {row.result.accelerators for row in own}
    near = [r for r in rows if r in own or r.baseline or r.result.accelerators in numbers]
    return near if own and len(near) > len(own) else rows


def hyperparameters(rows: Sequence[Row], view: View) -> list[Group]:
    """Return the hyperparameters of the groups that have published results.

    Values that all results share appear only in a ``verbose`` view.
    """
    groups = []
    for members in in_groups(rows):
        if any(row.result.published for row in members):
            cells = list(_cells(members, verbose=view.verbose))
            groups.append(Group(members[0].result.group.title, cells))
    return [group for group in groups if group.rows]


def _cells(rows: Sequence[Row], *, verbose: bool) -> Iterator[list[Span]]:
    baseline = next((row.result.hyperparameters for row in rows if row.baseline), {})
    published = [row.result.hyperparameters for row in rows if row.result.published]
    for key in sorted({*baseline, *(key for values in published for key in values)}):
        numbers = Counter(values[key] for values in published if key in values)
        values = {*numbers, *filter(None, [baseline.get(key)])}
        if verbose or len(values) > 1:
            texts = (key, _plain(baseline.get(key, NOTHING)), _in_words(numbers))
            yield [(text, PLAIN) for text in texts]


def _in_words(numbers: Counter[str]) -> str:
    """Return ``448 (4), 480 (2), 3 other values``."""
    values = [f"{_plain(value)} ({number})" for value, number in numbers.most_common(_MOST_VALUES)]
    others = len(numbers) - _MOST_VALUES
    return (
        ", ".join([*values, *([counted(others, "other value")] if others > 0 else [])]) or NOTHING
    )


def _plain(value: str) -> str:
    return value.strip('"')
