"""Our rules with an official basis, in the normal form of ``normal_form.py``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.rulebook.constraints import needed_in_words
from mlperf_pkg.rulebook.model import Joined, Rule
from mlperf_pkg.rulebook.table import rule_table
from mlperf_pkg.rulebook.upstream.normal_form import WHOLE_LOG, conditions, either, joined

_NAME = re.compile(r"'(\w+)'")
_TYPES = {"integer": "int", "number": "(int, float)", "text": "str"}
_OCCURS = {"once": "once", "at_least_once": "at least once"}


def official_rules(
    usage: str, round_name: str, division: str, benchmark: str, chosen: frozenset[tuple[str, str]]
) -> dict[str, frozenset[str]]:
    """Return the conditions that our rules with an official basis set on each key of a run.

    Raises:
        UserError: the rulebook has no such round.
    """
    table = rule_table(usage, round_name, division, benchmark, chosen)
    rules = {
        key: [compiled.rule for compiled in key_rules.rules if _official(compiled.rule)]
        for key, key_rules in table.keys.items()
    }
    of_keys = {
        key: joined(_merged_lists(part for rule in key_rules for part in _conditions(rule)))
        for key, key_rules in rules.items()
    }
    whole = {key: frozenset(parts) for key, parts in _of_whole_log(rules, table.joined).items()}
    return {
        key: of_keys.get(key, frozenset()) | whole.get(key, frozenset()) for key in of_keys | whole
    }


def _official(rule: Rule) -> bool:
    return rule.basis in (Basis.BOTH, Basis.OFFICIAL) and rule.severity is Severity.ERROR


def _conditions(rule: Rule) -> Iterator[str]:
    """Yield the conditions of one rule."""
    match rule.occurs:
        case None:
            pass
        case str():
            yield _OCCURS[rule.occurs]
        case {"or": _}:
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
    conditions_by_key: dict[str, set[str]] = {WHOLE_LOG: set(_joined(join)) if join else set()}
    for rule in (rule for key_rules in rules.values() for rule in key_rules):
        if isinstance(rule.occurs, Mapping) and "or" in rule.occurs:
            key, text = either(rule.key, rule.occurs["or"])
            conditions_by_key.setdefault(key, set()).add(text)
        if rule.tensors is not None:
            conditions_by_key[WHOLE_LOG] |= _tensors(rule)
    return conditions_by_key


def _tensors(rule: Rule) -> frozenset[str]:
    names = ", ".join(map(repr, rule.tensors or ()))
    return conditions(f"sorted(collected({rule.key}.metadata.tensor)) == sorted([{names}])")


def _joined(joined_: Joined) -> frozenset[str]:
    return frozenset(
        {f"{joined_.of} by {joined_.by} and {joined_.name}, together as {joined_.key}"}
    )


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
    "counts_at_least": _compares(">="),
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
    "formula": lambda s, text: [_python(text)],
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


def _python(formula: str) -> str:
    """Return a formula as Python, from which it differs only in ``and`` and ``or``."""
    return formula.replace("&&", " and ").replace("||", " or ")
