"""How a reader wants to see a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """``width`` in columns; ``color`` for a terminal; ``verbose`` shows all and folds nothing."""

    width: int = 80
    color: bool = False
    verbose: bool = False
