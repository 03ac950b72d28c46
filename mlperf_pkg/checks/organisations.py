"""Names of organisations, which logs, descriptions and folders spell in different ways."""

from __future__ import annotations

import re

from mlperf_pkg.infra.text import letters

_WORD = re.compile(r"[a-z0-9]+")


def are_same(name: str, other: str) -> bool:
    """Return whether two names differ in nothing but case, punctuation and order of words."""
    return _words(name) == _words(other) or letters(name) == letters(other)


def are_alike(name: str, other: str) -> bool:
    """Return whether one name is part of the other, or abbreviates it."""
    one, another = letters(name), letters(other)
    return one in another or another in one or are_related(name, other)


def are_related(name: str, other: str) -> bool:
    """Return whether one name begins the other, abbreviates it, or has all its words.

    Unlike for ``are_alike``, ``Eta`` and ``Beta`` are two organisations.
    """
    one, another = letters(name), letters(other)
    words = [set(_words(text)) for text in (name, other)]
    is_part = words[0] <= words[1] or words[1] <= words[0]
    begins = one.startswith(another) or another.startswith(one)
    initials = {"".join(word[0] for word in _WORD.findall(text.lower())) for text in (name, other)}
    return is_part or begins or not initials.isdisjoint({one, another})


def _words(name: str) -> list[str]:
    return sorted(_WORD.findall(name.lower()))
