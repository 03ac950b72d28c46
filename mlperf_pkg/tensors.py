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
        self._counts: Counter[str] = Counter()
        self._nameless = 0

    def add(self, tensors: Sequence[Any]) -> None:
        """Take the next names; what is no text names no tensor."""
        named = [name for name in tensors if isinstance(name, str)]
        self._nameless += len(tensors) - len(named)
        if len(self._counts) > _MOST_NAMES:
            named = [name if name in self._counts else "..." for name in named]
        self._counts.update(named)

    def compared(self, needed: Set[str]) -> str:
        """What is wrong, in words; empty where each of ``needed`` was named once, and no other."""
        if not self.has_too_many(needed) and self._counts.keys() == needed:
            return ""
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
        counts = self._counts
        return self._nameless > 0 or not counts.keys() <= needed or counts.total() > len(counts)
