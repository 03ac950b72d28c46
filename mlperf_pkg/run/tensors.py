"""The tensors of a model that a run lists as it initialises them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

_SHOWN_NAMES = 3
_MOST_NAMES = 1 << 16  # counted separately, more than any model has


class TensorList:
    """Counts the tensors that a log names."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._uncounted: list[Any] = []  # counted only if necessary
        self._counts: Counter[str] = Counter()
        self._nameless = 0

    def add(self, tensors: Sequence[Any]) -> None:
        """Take the next names; a value that is not text does not name a tensor."""
        self._uncounted += tensors
        if len(self._uncounted) > _MOST_NAMES:
            self._count()

    def differences(self, expected: Set[str]) -> str:
        """Return the differences in words; empty if each ``expected`` name occurs once."""
        names, is_all = self._uncounted, not self._counts and not self._nameless
        if is_all and len(names) == len(expected) and _equal(names, expected):
            return ""
        self._count()
        once = Counter(expected)
        parts = [
            f"{names.total()} {word} ({', '.join(sorted(names)[:_SHOWN_NAMES])}...)"
            for word, names in (("missing", once - self._counts), ("too many", self._counts - once))
            if names
        ]
        parts += [f"{self._nameless} without a name"] if self._nameless else []
        return ", ".join(parts)

    def has_too_many(self, expected: Set[str]) -> bool:
        """Return whether a name is surplus, which no later record can change."""
        self._count()
        counts = self._counts
        return self._nameless > 0 or not counts.keys() <= expected or counts.total() > len(counts)

    def _count(self) -> None:
        names = [name for name in self._uncounted if isinstance(name, str)]
        self._nameless += len(self._uncounted) - len(names)
        self._uncounted.clear()
        if len(self._counts) > _MOST_NAMES:
            names = [name if name in self._counts else "..." for name in names]
        self._counts.update(names)


def _equal(names: Sequence[Any], expected: Set[str]) -> bool:
    try:
        return expected == set(names)
    except TypeError:  # a list or an object does not name a tensor
        return False
