"""What a user may ask about by one name: a code, a family of codes, a key, a benchmark."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.infra.text import nearest
from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.rulebook.explain.describe import all_uses, rulebook_codes
from mlperf_pkg.rulebook.files import rounds, usages
from mlperf_pkg.rulebook.load import benchmarks_of

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
        Kind.CODE: codes().keys() | rulebook_codes(),
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
        near = nearest(upper, sorted(codes().keys() | rulebook_codes()), _LIKENESS)
    near = near or nearest(lower, sorted(all_benchmarks()), _LIKENESS)
    near = near or nearest(lower, sorted(keys()), _LIKENESS)
    example = "; a code looks like SET101, a key like opt_name, a benchmark like bert"
    return f"; did you mean {near}?" if near else example


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
