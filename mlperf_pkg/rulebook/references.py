"""The keys that rules refer to: some rule of the same runs must be about each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from msgspec import Struct

from mlperf_pkg.rulebook.definitions import DEFINE
from mlperf_pkg.rulebook.files import ROUND, rounds, usages
from mlperf_pkg.rulebook.formula import names_in
from mlperf_pkg.rulebook.inheritance import inherited, problem_of
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import DIVISIONS, SECTIONS, Benchmark, Round, Rule, Rules
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, suggestion
from mlperf_pkg.rulebook.strictyaml import parse, problem_at

_OWN_NAMES = frozenset({"value", "nth"})  # of a formula
_DIVISION_OF_VARIANTS = "closed"


class _Section(Struct, frozen=True):
    """Rules by key, and the steps that lead to them in their file."""

    steps: Steps
    rules: Rules


def problems_of_references() -> Iterator[Problem]:
    """Yield the references to keys that no rule of the same round and division is about.

    ``after`` and ``before`` may name any key.
    """
    for usage in usages():
        for name, division in product(rounds(usage), DIVISIONS):
            yield from _of_division(load_round(usage, name), division)


def _of_division(round_: Round, division: str) -> Iterator[Problem]:
    common = [_Section((part,), round_.sections[part]) for part in ("common", division)]
    keys_of_all = _keys(common)
    for name in round_.benchmarks:
        rules = load_benchmark(round_.usage, round_.name, name)
        assert rules  # noqa: S101 - checked before
        own = list(_sections(rules, division))
        keys = _keys(common) | _keys(own) | _joined_keys(rules)
        yield from _unknown(round_, name, own, keys)
        keys_of_all |= keys
    yield from _unknown(round_, ROUND, common, keys_of_all)


def _sections(rules: Benchmark, division: str) -> Iterator[_Section]:
    yield _Section((division,), rules.sections[division])
    if division == _DIVISION_OF_VARIANTS:
        for key, choices in rules.variants.items():
            for value, section in choices.items():
                yield _Section(("variants", key, value), section)


def _keys(sections: Iterable[_Section]) -> set[str]:
    return {key for section in sections for key in section.rules}


def _joined_keys(rules: Benchmark) -> set[str]:
    return {rules.joined.key, rules.joined.of} if rules.joined else set()


def _unknown(
    round_: Round, stem: str, sections: Sequence[_Section], keys: set[str]
) -> Iterator[Problem]:
    for section in sections:
        for key, key_rules in section.rules.items():
            for index, rule in enumerate(key_rules):
                for field, name in _references(rule):
                    if name not in keys:
                        message = f"{field} of {rule.code} uses {_no_key(name, round_, stem, keys)}"
                        steps = (*section.steps, key, index, field)
                        yield problem_of(round_.usage, round_.name, stem, steps, message)


def _no_key(name: str, round_: Round, stem: str, keys: Iterable[str]) -> str:
    owner = f"round {round_.name}" if stem == ROUND else stem
    return f"{name!r}, which is not a key of {owner}{suggestion(name, keys)}"


def _references(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the keys that a rule refers to, each with the field that does."""
    for field, text in (
        ("formula", rule.formula),
        ("reaches", (rule.reaches or {}).get("formula")),
    ):
        yield from ((field, name) for name in sorted(names_in(text or "") - _OWN_NAMES))
    for field, argument in (*rule.constraints.items(), ("nth_since", rule.nth_since)):
        match field, argument:
            case (("same_as" | "nth_since"), str()):
                yield field, argument
            case "within_minutes", {"of": str(start), **more}:
                yield field, start
                yield from ((field, str(name)) for name in [more.get("until")] if name)
    yield from (("no_later_than", name) for name in rule.no_later_than)
    match rule.occurs:
        case {"or": name}:
            yield "occurs", name


# ---- names that a file defines ------------------------------------------------------------


def problems_of_definitions(files: Iterable[RuleFile]) -> Iterator[Problem]:
    """Yield the names that files define although the same name is a key."""
    for file in files:
        usage, round_name, stem = *file.path.parts[-3:-1], file.path.stem
        if DEFINE in (document := parse(file, file.path.read_bytes())):
            for name in document[DEFINE].keys() & _all_keys(usage, round_name, stem):
                message = f"define must not use the name {name!r}, which is a key"
                yield problem_at(file, (DEFINE, name), message)


def _all_keys(usage: str, round_name: str, stem: str) -> set[str]:
    """Return the keys of a benchmark or, for the file of a round, of all its benchmarks."""
    names = load_round(usage, round_name).benchmarks if stem == ROUND else (stem,)
    documents = [inherited(usage, round_name, name) for name in (ROUND, *names)]
    return {key for document in documents for key in _keys_of(document)}


def _keys_of(document: Mapping[str, Any]) -> Iterator[str]:
    for name in SECTIONS:
        yield from document.get(name, {})
    for choices in document.get("variants", {}).values():
        for section in choices.values():
            yield from section
