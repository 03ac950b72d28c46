"""Add the rows of rounds to those of an earlier export."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from mlperf_pkg.commands.export.rows import RoundKey, Row, Rows, in_order, round_of
from mlperf_pkg.commands.export.schema import TABLES


def merged(old: Rows, new: Rows) -> Rows:
    """Return the sorted rows of both; rounds of ``new`` replace those of ``old``."""
    replaced = _rounds(new)
    return in_order(
        {name: _joined(old.get(name, ()), new.get(name, ()), replaced) for name in TABLES}
    )


def common_rounds(old: Rows, new: Rows) -> str:
    """Return the common rounds as text, which may be empty."""
    return ", ".join(" ".join(map(str, key)) for key in sorted(_rounds(old) & _rounds(new)))


def _rounds(rows: Rows) -> set[RoundKey]:
    return {round_of(row) for row in chain.from_iterable(rows.values()) if row[1] is not None}


def _joined(old: Sequence[Row], new: Sequence[Row], replaced: set[RoundKey]) -> list[Row]:
    return [*(row for row in old if round_of(row) not in replaced), *new]
