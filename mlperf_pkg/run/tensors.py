"""The tensors of a model that a run lists as it initialises them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

_SHOWN_NAMES = 3
_MOST_NAMES = 1 << 16  # that are told apart, more than any model has


class TensorList:
    """Counts the tensors that a log names."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._waiting: list[Any] = []  # to be counted, if ever
        self._counts: Counter[str] = Counter()
        self._nameless = 0

    def add(self, tensors: Sequence[Any]) -> None:
        """Take the next names; what is no text names no tensor."""
        self._waiting += tensors
        if len(self._waiting) > _MOST_NAMES:
            self._count()

    def compared(self, needed: Set[str]) -> str:
        """What is wrong, in words; empty where each of ``needed`` was named once, and no other."""
        uncounted = not self._counts and not self._nameless
        if uncounted and len(self._waiting) == len(needed) and _are(self._waiting, needed):
            return ""
        self._count()
        once = Counter(needed)
        parts = [
            f"{counted.total()} {word} ({', '.join(sorted(counted)[:_SHOWN_NAMES])}...)"
            for word, counted in (
                ("missing", once - self._counts),
                ("too many", self._counts - once),
            )
            if counted
        ]
        parts += [f"{self._nameless} without a name"] if self._nameless else []
        return ", ".join(parts)

    def has_too_many(self, needed: Set[str]) -> bool:
        """Whether something is wrong that no later record mends."""
        self._count()
        counts = self._counts
        return self._nameless > 0 or not counts.keys() <= needed or counts.total() > len(counts)

    def _count(self) -> None:
        named = [name for name in self._waiting if isinstance(name, str)]
        self._nameless += len(self._waiting) - len(named)
        self._waiting.clear()
        if len(self._counts) > _MOST_NAMES:
            named = [name if name in self._counts else "..." for name in named]
        self._counts.update(named)


def _are(names: Sequence[Any], needed: Set[str]) -> bool:
    try:
        return needed == set(names)
    except TypeError:  # a list or an object names nothing
        return False
