"""What a user may ask about by one name: a code, a family of codes, a key, a benchmark."""

from __future__ import annotations

from collections.abc import Set
from difflib import get_close_matches
from enum import StrEnum

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.infra.text import nearest
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.explain.describe import all_uses, rulebook_codes
from mlperf_pkg.rulebook.load import benchmarks_of, codes

_LIKENESS = 0.7


class Kind(StrEnum):
    """What a name means."""

    CODE = "code"
    FAMILY = "family"
    KEY = "key"
    BENCHMARK = "benchmark"


class Subject(Struct, frozen=True):
    """A name as the rulebook spells it, and what it means."""

    kind: Kind
    name: str


def subject_of(text: str) -> Subject:
    """Return what a name means, ignoring case.

    Raises:
        UserError: it means nothing. The message names the nearest.
    """
    lower, upper = text.lower(), text.upper()
    names = {
        Kind.CODE: _all_codes(),
        Kind.BENCHMARK: all_benchmarks(),
        Kind.KEY: keys(),
        Kind.FAMILY: families(),
    }
    for spelling in (text, upper, lower):  # SEED is a family, seed a key
        for kind, of_kind in names.items():
            if spelling in of_kind:
                return Subject(kind, spelling)
    raise UserError(f"no code, key or benchmark is called {text!r}{_nearest(upper, lower)}")


def _nearest(upper: str, lower: str) -> str:
    near = None
    if any(character.isdigit() for character in upper):
        near = nearest(upper, sorted(_all_codes()), _LIKENESS)
    near = near or nearest(lower, sorted(all_benchmarks()), _LIKENESS)
    near = near or nearest(lower, sorted(keys()), _LIKENESS)
    example = "; a code looks like SET101, a key like opt_name, a benchmark like bert"
    return f"; did you mean {near}?" if near else example


def _all_codes() -> Set[str]:
    return codes().keys() | rulebook_codes()


def families() -> frozenset[str]:
    """Return how the codes that do not belong to a rule begin: LOG, SET, SYS ..."""
    return frozenset(code.rstrip("0123456789") for code in codes())


@per_rulebook
def all_benchmarks() -> frozenset[str]:
    """Return the benchmarks of all rounds."""
    return frozenset(
        benchmark
        for usage in usages()
        for name in rounds(usage)
        for benchmark in benchmarks_of(usage, name)
    )


@per_rulebook
def keys() -> frozenset[str]:
    """Return the keys that any rule is about."""
    return frozenset(use.rule.key for use in all_uses())


# ---- codes as users type them -------------------------------------------------------------


def known_code(code: str) -> str:
    """Return a code of a finding in capital letters.

    Raises:
        UserError: there is no such code. The message names the nearest.
    """
    names = _all_codes()
    wanted = code.upper()
    if wanted in names:
        return wanted
    raise UserError(f"no finding has the code {code!r}: {_near(wanted, names)}")


def known_prefix(prefix: str) -> str:
    """Return a prefix of codes in capital letters.

    Raises:
        UserError: no code begins with it. The message names the nearest.
    """
    names = _all_codes()
    wanted = prefix.upper()
    if wanted and any(code.startswith(wanted) for code in names):
        return wanted
    families = {code.rstrip("0123456789") for code in names}
    raise UserError(f"no code begins with {prefix!r}: {_near(wanted, names | families)}")


def _near(wanted: str, names: Set[str]) -> str:
    near = get_close_matches(wanted, sorted(names), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(near)}?" if near else "a code looks like SET101 or BERT111"
