"""What a mistyped name may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like ``name``, whatever its case; None where none is."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    listed = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), listed, n=1)
    return listed[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean bert?``, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found}?" if found else ""
