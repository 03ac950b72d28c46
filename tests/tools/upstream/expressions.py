"""Our rules with an official basis, as the expressions that ``official.py`` makes of theirs."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mlperf_pkg.findings import Severity
from mlperf_pkg.rulebook.constraints import needed_in_words
from mlperf_pkg.rulebook.model import Joined, Rule
from mlperf_pkg.rulebook.table import rule_table
from tests.tools.upstream.official import WHOLE_LOG, conditions, either, joined

_NAME = re.compile(r"'(\w+)'")
_TYPES = {"integer": "int", "number": "(int, float)", "text": "str"}


def official_rules(
    usage: str, round_name: str, division: str, benchmark: str, chosen: frozenset[tuple[str, str]]
) -> dict[str, frozenset[str]]:
    """Return the conditions that our rules with an official basis set on each key of a run.

    Raises:
        UserError: the rulebook has no such round.
    """
    table = rule_table(usage, round_name, division, benchmark, chosen)
    whole = {key: [compiled.rule for compiled in of.rules] for key, of in table.keys.items()}
    rules = {
        key: [rule for rule in of_key if rule.official and rule.severity is Severity.ERROR]
        for key, of_key in whole.items()
    }
    of_keys = {
        key: joined(_merged_lists(part for rule in key_rules for part in _conditions(rule)))
        for key, key_rules in rules.items()
    }
    for key, parts in _of_whole_log(rules, table.joined).items():
        of_keys[key] = of_keys.get(key, frozenset()) | parts
    return of_keys


def _conditions(rule: Rule) -> Iterator[str]:
    """Yield the conditions of one rule."""
    match rule.occurs:
        case str():
            yield rule.occurs.replace("_", " ")
        case {"or": _} | None:
            pass
        case limits:
            yield f"{needed_in_words(limits)} times"
    prefix = "first: " if rule.first else ""
    for text in python_of(rule.constraints, rule.formula):
        yield from (prefix + part for part in conditions(text))
    for text in python_of(rule.reaches or {}, None):
        yield from (f"one record: {part}" for part in conditions(text))


def _merged_lists(parts: Iterable[str]) -> Iterator[str]:
    """Write ``in`` a list and ``not in`` another as one list."""
    whole = list(parts)
    refused = [part for part in whole if part.startswith("value not in ")]
    names = {name for part in refused for name in _NAME.findall(part)}
    for part in whole:
        if refused and part.startswith("value in "):
            yield f"value in {[name for name in _NAME.findall(part) if name not in names]}"
        elif part not in refused:
            yield part


def _of_whole_log(rules: Mapping[str, Iterable[Rule]], join: Joined | None) -> dict[str, set[str]]:
    """Return the conditions that no single key is about, by the key to report."""
    conditions_by_key: dict[str, set[str]] = {WHOLE_LOG: set()}
    if join:
        text = f"{join.of} by {join.by} and {join.name}, together as {join.key}"
        conditions_by_key[WHOLE_LOG].add(text)
    for rule in (rule for key_rules in rules.values() for rule in key_rules):
        if isinstance(rule.occurs, Mapping) and "or" in rule.occurs:
            key, text = either(rule.key, rule.occurs["or"])
            conditions_by_key.setdefault(key, set()).add(text)
        if rule.tensors is not None:
            names = ", ".join(map(repr, rule.tensors))
            text = f"sorted(collected({rule.key}.metadata.tensor)) == sorted([{names}])"
            conditions_by_key[WHOLE_LOG] |= conditions(text)
    return conditions_by_key


# ---- constraints as expressions -----------------------------------------------------------


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return "float('inf')" if isinstance(value, float) and math.isinf(value) else repr(value)


def _compares(sign: str) -> Callable[[str, Any], list[str]]:
    return lambda subject, argument: [f"{subject} {sign} {_literal(argument)}"]


def _fields(subject: str, fields: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    return [
        text
        for name, constraints in fields.items()
        for constraint, argument in constraints.items()
        for text in _EXPRESSIONS[constraint](f"{subject}[{name!r}]", argument)
    ]


def _where_present(_subject: str, fields: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        f"{text} if {name!r} in metadata else True"
        for name, constraints in fields.items()
        for text in _fields("metadata", {name: constraints})
    ]


def _within(_subject: str, argument: Mapping[str, Any]) -> list[str]:
    text = f"ll.timestamp - earliest({argument['of']!r}) < {argument['minutes'] * 60_000.0}"
    until = argument.get("until")
    return [f"{text} if not seen({until!r}) else True" if until else text]


_EXPRESSIONS: Mapping[str, Callable[[str, Any], list[str]]] = {
    "equals": _compares("=="),
    "one_of": _compares("in"),
    "none_of": _compares("not in"),
    "at_least": _compares(">="),
    "at_most": _compares("<="),
    "counts": lambda s, a: python_of(a, None),
    "above": _compares(">"),
    "below": _compares("<"),
    "close_to": lambda s, a: [f"math.isclose({s}, {a!r})"],
    "not_empty": lambda s, a: [f"{s} != ''"],
    "truthy": lambda s, a: [s if a else f"not {s}"],
    "type": lambda s, a: [f"isinstance({s}, {_TYPES[a]})"],
    "reads_as": lambda s, a: [f"int({s})"],
    "whole": lambda s, a: [f"is_integer({s})"],
    "multiple_of": lambda s, a: [f"is_integer({s} / {a!r})"],
    "power_of_two_times": lambda s, a: [f"is_integer(math.log2({s} / {a!r}))"],
    "length": lambda s, a: [f"len({s}) == {a}"],
    "length_at_least": lambda s, a: [f"len({s}) >= {a}"],
    "in_ratio": lambda s, a: [f"in_ratio({s}, {a})"],
    "any": lambda s, a: [" or ".join(f"({' and '.join(python_of(c, None))})" for c in a)],
    "each": lambda s, a: [f"all({' and '.join(python_of(a, None))} for value in each({s}))"],
    "has": lambda s, names: [f"{name!r} in {s}" for name in names],
    "fields": _fields,
    "metadata": lambda s, names: [f"{name!r} in metadata" for name in names],
    "metadata_any": lambda s, names: [" or ".join(f"{name!r} in metadata" for name in names)],
    "metadata_pairs": lambda s, pairs: [
        f"{other!r} in metadata if {name!r} in metadata else True" for name, other in pairs.items()
    ],
    "metadata_fields": _where_present,
    "same_as": lambda s, key: [f"{s} == {key}"],
    "after": lambda s, keys: [f"seen({key!r})" for key in keys],
    "before": lambda s, keys: [f"not seen({key!r})" for key in keys],
    "within_minutes": _within,
    # It differs from Python only in ``and`` and ``or``.
    "formula": lambda s, text: [text.replace("&&", " and ").replace("||", " or ")],
}
"""The Python expressions that mean the same as a constraint, by its name."""


def python_of(constraints: Mapping[str, Any], formula: str | None) -> list[str]:
    """Return constraints and a formula as Python expressions about a record."""
    arguments = {**constraints, **({"formula": formula} if formula else {})}
    return [
        text
        for name, argument in arguments.items()
        for text in _EXPRESSIONS[name]("value", argument)
    ]
