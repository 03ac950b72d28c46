"""Checks of a row: records of one key without other records between them that a rule needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.constraints import Test
from mlperf_pkg.rulebook.formula import Answers
from mlperf_pkg.rulebook.logged import Seen
from mlperf_pkg.rulebook.model import Rule


class RowChecks(msgspec.Struct, frozen=True):
    """All that the rules check in the records of a row, part by part.

    ``refusing`` is as in ``Checklist``; ``reaches`` are the tests of the targets, and ``target``
    is the rule of the last one.
    """

    of_values: tuple[Callable[[Any], Any], ...]
    of_metadata: tuple[Callable[[Any], Any], ...]
    of_order: tuple[Test, ...]
    refusing: Answers[tuple[Any, ...]] | None
    reaches: tuple[Test, ...]
    target: Rule

    def to_check(self, row: Sequence[Record], seen: Seen) -> Sequence[int]:
        """Return the indexes of all records that may break a rule or reach a target.

        ``seen`` is what was logged before the row.
        """
        try:
            return self._to_check(row, seen) if self._pass(row, seen) else range(len(row))
        except Exception:  # noqa: BLE001 - checking them one by one shows which one is the reason
            return range(len(row))

    def _to_check(self, row: Sequence[Record], seen: Seen) -> Sequence[int]:
        indexes: set[int] = set()
        if self.refusing:
            refusing = self.refusing.of_row(row, seen)
            indexes.update([index for index, rules in enumerate(refusing) if rules])
        for reaches in self.reaches:
            indexes.update([index for index, record in enumerate(row) if reaches(record, seen)])
        return sorted(indexes)

    def _pass(self, row: Sequence[Record], seen: Seen) -> bool:
        """Return whether all records pass all checks."""
        values, metadata = [r.value for r in row], [r.metadata for r in row]
        return (
            all(all(map(holds, values)) for holds in self.of_values)
            and all(all(map(holds, metadata)) for holds in self.of_metadata)
            and all(holds(row[0], seen) for holds in self.of_order)
        )
