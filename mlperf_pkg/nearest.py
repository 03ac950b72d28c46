"""What a mistyped name may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is most like ``name``, whatever its case; None where none is.

    ``likeness`` is how much it must be, from 0 to 1 for the same.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    listed = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), listed, 1, likeness)
    return listed[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean bert?``, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found}?" if found else ""
