"""Brace expansion: one short pattern for many similar names, as in a shell."""

from __future__ import annotations

import re

_RANGE = re.compile(r"(\d+)\.\.(\d+)")


def expand_braces(pattern: str) -> list[str]:
    """Return all strings that a pattern means; the rightmost brace varies fastest.

    ``{a,b,c}`` means each alternative, which may be empty or have braces of its own; ``{0..23}``
    each whole number of the range, both ends included. A comma outside braces is a comma.

    Raises:
        ValueError: a brace is not balanced, or a range ends before it starts.
    """
    words, end = _product(pattern, 0, "}")
    if end < len(pattern):
        raise ValueError(f"unbalanced braces in {pattern!r}: '}}' at {end} closes nothing")
    return words


def _product(pattern: str, at: int, stops: str) -> tuple[list[str], int]:
    """Return the words from ``at`` to an unnested character of ``stops``, and its index."""
    words = [""]
    while at < len(pattern) and pattern[at] not in stops:
        if pattern[at] == "{":
            options, at = _alternatives(pattern, at + 1)
        else:
            options, at = [pattern[at]], at + 1
        words = [word + option for word in words for option in options]
    return words, at


def _alternatives(pattern: str, start: int) -> tuple[list[str], int]:
    """Return the words of the brace whose content begins at ``start``, and the index after it."""
    options, at = _product(pattern, start, ",}")
    while pattern[at : at + 1] == ",":
        more, at = _product(pattern, at + 1, ",}")
        options += more
    if at == len(pattern):
        raise ValueError(f"unbalanced braces in {pattern!r}: '{{' at {start - 1} is never closed")
    bounds = _RANGE.fullmatch(pattern, start, at)
    return (_numbers(pattern, *bounds.groups()) if bounds else options), at + 1


def _numbers(pattern: str, first: str, last: str) -> list[str]:
    if int(last) < int(first):
        raise ValueError(f"the range {first}..{last} in {pattern!r} ends before it starts")
    return [str(number) for number in range(int(first), int(last) + 1)]
