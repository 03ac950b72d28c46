"""Hyperparameters that the rules accept, key by key.

Each key takes the first candidate that its rules accept: those of the settings, then those that
the rules themselves suggest. A key comes after those that its rules or its formula name, because
the official checker reads in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.formula import NoAnswerError, evaluate
from mlperf_pkg.rulebook.logged import Seen, first_logged
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import CompiledRule, KeyRules
from mlperf_pkg.simulate.recipe import Assigned, Recipe, Setting, Value, candidates, names_of

KeyedRules = Mapping[str, KeyRules]
Settings = Mapping[str, Setting]

_WRONG: tuple[Value, ...] = (-1, "", "wrong")
_SUGGESTIONS: Mapping[str, Callable[[Any], Iterable[Value]]] = {
    **{
        name: lambda argument: [argument]
        for name in (
            *("equals", "close_to", "at_least", "at_most"),
            *("multiple_of", "power_of_two_times", "truthy"),
        )
    },
    "one_of": list,
    "above": lambda argument: [argument + 1],
    "below": lambda argument: [argument - 1],
    "length": lambda argument: [[1] * argument],
    "length_at_least": lambda argument: [[1] * argument],
    "not_empty": lambda _: ["unspecified"],
    "type": lambda argument: ["unspecified" if argument == "text" else 1],
}
"""Values that a constraint suggests by its argument."""

_EQUATION = re.compile(r"value == ([^=<>?&|]+)|math\.abs\(value - ([^=<>?&|]+)\) <=? [^=<>?&|]+")
"""A formula that allows one value, exactly or nearly: the value, as a formula."""


class Sources(Struct, frozen=True):
    """Where values come from.

    A key of ``fixed`` takes its value from there alone. Others prefer ``settings``, then those of
    the ``reference``, then what their rules suggest. The ``recipe`` is for messages.
    """

    fixed: Settings
    settings: Settings
    reference: Settings
    recipe: Recipe

    def names(self, key: str) -> frozenset[str]:
        """Return the keys that must be known before a value for ``key`` is."""
        return names_of(self.fixed.get(key, self.settings.get(key)))

    def options(self, key: str, key_rules: KeyRules | None, assigned: Assigned) -> Iterator[Value]:
        """Yield the candidates for a key.

        Raises:
            RulebookError: a formula of the recipe is wrong.
        """
        tables = (self.fixed,) if key in self.fixed else (self.settings, self.reference)
        try:
            for setting in (table[key] for table in tables if key in table):
                yield from candidates(setting, assigned)
        except ValueError as error:
            raise self.recipe.error(f"{key}: {error}", "values", key) from error
        if key not in self.fixed:
            yield from _suggestions(key_rules, assigned)


def solve(rules: KeyedRules, keys: Iterable[str], sources: Sources) -> dict[str, Value]:
    """Return a value for each of ``keys``, in an order in which the rules can be checked.

    Raises:
        UserError: the rules of a key refuse all candidates.
        RulebookError: a formula of the recipe is wrong.
    """
    assigned: dict[str, Value] = {}
    for key in _in_order(list(keys), rules, sources):
        assigned[key] = _allowed(key, rules.get(key), sources, assigned)
    return assigned


def broken(
    key: str,
    value: Value,
    key_rules: KeyRules | None,
    assigned: Assigned,
    *,
    official: bool = False,
) -> Rule | None:
    """Return the first rule that ``value`` breaks after ``assigned`` was logged, or None.

    With ``official``, only rules that the official checker has are checked.
    """
    seen = {
        name: first_logged(Record(name, 0.0, setting, None)) for name, setting in assigned.items()
    }
    for compiled in key_rules.rules if key_rules else ():
        record = Record(key, 0.0, value, metadata_of(key_rules))
        if (not official or compiled.rule.official) and not _holds(compiled, record, seen):
            return compiled.rule
    return None


def required(rules: KeyedRules, *, official: bool = False) -> Iterator[str]:
    """Yield the keys that a run must log, with ``official`` by the rules of the checker alone."""
    for key, key_rules in rules.items():
        relevant = (c.rule for c in key_rules.rules if not official or c.rule.official)
        if any(isinstance(rule.occurs, str) for rule in relevant):
            yield key


def metadata_of(key_rules: KeyRules | None) -> dict[str, Value]:
    """Return the metadata that a record needs besides its value."""
    metadata: dict[str, Value] = {}
    for compiled in key_rules.rules if key_rules else ():
        fields = compiled.rule.constraints.get("metadata_fields", {})
        for name in compiled.rule.constraints.get("metadata", ()):
            metadata[name] = next(_suggested(fields.get(name, {}), {}), 1)
    return metadata


def without_required(settings: Assigned, rules: KeyedRules) -> dict[str, Value]:
    """Return the settings without the last one that the official checker requires."""
    needed = set(required(rules, official=True))
    gone = [key for key in settings if key in needed][-1]
    return {key: value for key, value in settings.items() if key != gone}


def with_wrong(settings: Assigned, rules: KeyedRules) -> dict[str, Value]:
    """Return the settings with the last value that can be one the official checker refuses."""
    choices = [
        (key, value)
        for key in settings
        for value in _WRONG
        if (rule := broken(key, value, rules.get(key), settings, official=True)) and not rule.fatal
    ]
    last = choices[-1][0]
    return {**settings, last: next(value for key, value in choices if key == last)}


def _allowed(key: str, key_rules: KeyRules | None, sources: Sources, assigned: Assigned) -> Value:
    """Return the first candidate that the rules of the key allow."""
    refused = []
    for value in sources.options(key, key_rules, assigned):
        rule = broken(key, value, key_rules, assigned)
        if rule is None:
            return value
        refused.append(f"{shown(value)} (rule {rule.code})")
    remedy = f"; give a value in simulation.values of {sources.recipe.file}"
    raise UserError(
        f"the rules do not allow {key} {refused[0]}{'' if key in sources.fixed else remedy}"
    )


def _holds(compiled: CompiledRule, record: Record, seen: Seen) -> bool:
    try:
        return all(check.test(record, seen) for check in compiled.checks) and (
            compiled.formula is None or compiled.formula.holds(record, seen)
        )
    except (TypeError, ValueError, LookupError, ArithmeticError, NoAnswerError):
        return False


def _in_order(wanted: Sequence[str], rules: KeyedRules, sources: Sources) -> list[str]:
    """Return the keys, each after those that its rules and its formula name."""
    ordered: dict[str, None] = {}

    def append(key: str, above: frozenset[str]) -> None:
        names = sources.names(key)
        if of_key := rules.get(key):
            names |= of_key.related | of_key.ordered
        for other in wanted:
            if other not in above and other in names:
                append(other, above | {other})
        ordered.setdefault(key)

    for key in wanted:
        append(key, frozenset((key,)))
    return list(ordered)


def _suggestions(key_rules: KeyRules | None, assigned: Assigned) -> Iterator[Value]:
    """Yield values that rules suggest, finally 1."""
    for compiled in key_rules.rules if key_rules else ():
        yield from _suggested(compiled.rule.constraints, assigned)
        yield from _solutions(compiled.rule.formula or "", assigned)
    yield 1


def _suggested(constraints: Mapping[str, Any], assigned: Assigned) -> Iterator[Value]:
    """Yield values that meet one or the other of the constraints."""
    for name, argument in constraints.items():
        if name == "same_as" and argument in assigned:
            yield assigned[argument]
        elif name in _SUGGESTIONS:
            yield from _SUGGESTIONS[name](argument)


def _solutions(formula: str, assigned: Assigned) -> Iterator[Value]:
    """Yield the value that a formula fixes, as an integer first where it is whole."""
    if equation := _EQUATION.fullmatch(formula):
        try:
            number = evaluate(equation[1] or equation[2], assigned)
        except ValueError:  # another key is absent
            return
        if isfinite(number):
            yield from ([int(number)] if number == int(number) else [])
            yield number
