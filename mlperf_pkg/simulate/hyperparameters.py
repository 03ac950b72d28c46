"""Hyperparameters that the rules accept, found key by key.

Each key takes the first candidate that its rules accept, from the tables of values, then from
what the rule itself asks for. A key comes after those that its rules relate it to: the official
checker reads in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.constraints import Logged
from mlperf_pkg.rulebook.formula import NoAnswerError, names_in
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import CompiledRule, KeyRules
from mlperf_pkg.simulate.model import Known, Setting, Value

KeyedRules = Mapping[str, KeyRules]

_WRONG: tuple[Value, ...] = (-1, "", "wrong")
_MEETING: Mapping[str, Callable[[Any], Iterable[Value]]] = {
    **{
        name: lambda asked: [asked]
        for name in (
            *("equals", "close_to", "at_least", "at_most"),
            *("multiple_of", "power_of_two_times", "truthy"),
        )
    },
    "one_of": list,
    "above": lambda asked: [asked + 1],
    "below": lambda asked: [asked - 1],
    "length": lambda asked: [[1] * asked],
    "length_at_least": lambda asked: [[1] * asked],
    "not_empty": lambda asked: ["unspecified"],
    "type": lambda asked: ["unspecified" if asked == "text" else 1],
}
"""Values that a constraint suggests by itself."""


def solve(
    rules: KeyedRules, wanted: Iterable[str], sources: Sequence[Mapping[str, Setting]]
) -> dict[str, Value]:
    """A value for every key of ``wanted``, in an order in which the rules of each can be judged.

    A key that stands in the first of ``sources`` takes its value from there alone.

    Raises:
        UserError: no candidate for a key is within its rules.
    """
    known: dict[str, Value] = {}
    for key in _in_order(list(wanted), rules):
        known[key] = _allowed(key, rules.get(key), sources, known)
    return known


def broken(
    key: str, value: Value, asked: KeyRules | None, known: Known, official: bool = False
) -> Rule | None:
    """The first rule that ``value`` breaks after ``known`` was logged; None if it breaks none.

    With ``official``, of the rules that the official checker has.
    """
    seen = {name: Logged.of(Record(name, 0.0, setting, None)) for name, setting in known.items()}
    for compiled in asked.rules if asked else ():
        record = Record(key, 0.0, value, metadata_of(asked))
        if (not official or _is_official(compiled)) and not _holds(compiled, record, seen):
            return compiled.rule
    return None


def required(rules: KeyedRules, official: bool = False) -> Iterator[str]:
    """The keys that a run must log, with ``official`` as far as the official checker asks it."""
    for key, asked in rules.items():
        asking = (each for each in asked.rules if not official or _is_official(each))
        if any(isinstance(each.rule.occurs, str) for each in asking):
            yield key


def metadata_of(asked: KeyRules | None) -> dict[str, Value]:
    """The metadata that a record needs besides its value."""
    found: dict[str, Value] = {}
    for compiled in asked.rules if asked else ():
        fields = compiled.rule.constraints.get("metadata_fields", {})
        for name in compiled.rule.constraints.get("metadata", ()):
            found[name] = next(_suggested(fields.get(name, {}), {}), 1)
    return found


def without_required(settings: Known, rules: KeyedRules) -> dict[str, Value]:
    """The settings without the last one that the official checker requires."""
    needed = set(required(rules, official=True))
    gone = [key for key in settings if key in needed][-1]
    return {key: value for key, value in settings.items() if key != gone}


def with_wrong(settings: Known, rules: KeyedRules) -> dict[str, Value]:
    """The settings with a value that the official checker refuses, the last that can have one."""
    choices = [
        (key, value)
        for key in settings
        for value in _WRONG
        if (rule := broken(key, value, rules.get(key), settings, official=True)) and not rule.fatal
    ]
    last = choices[-1][0]
    return {**settings, last: next(value for key, value in choices if key == last)}


def _is_official(compiled: CompiledRule) -> bool:
    return compiled.rule.basis in (Basis.BOTH, Basis.OFFICIAL)


def _allowed(
    key: str, asked: KeyRules | None, sources: Sequence[Mapping[str, Setting]], known: Known
) -> Value:
    """The first candidate that the rules of the key allow."""
    refused = []
    for value in _candidates(key, asked, sources, known):
        rule = broken(key, value, asked, known)
        if rule is None:
            return value
        refused.append(f"{shown(value)} (rule {rule.code})")
    raise UserError(f"the rules do not allow {key} {refused[0]}")


def _holds(compiled: CompiledRule, record: Record, seen: Mapping[str, Logged]) -> bool:
    try:
        return all(check.test(record, seen) for check in compiled.checks) and (
            compiled.formula is None or compiled.formula.holds(record, seen)
        )
    except (TypeError, ValueError, LookupError, ArithmeticError, NoAnswerError):
        return False


def _in_order(wanted: Sequence[str], rules: KeyedRules) -> list[str]:
    """The keys, each after those that its rules name."""
    placed: dict[str, None] = {}

    def place(key: str, above: frozenset[str]) -> None:
        for other in wanted:
            if other not in above and other in _related(rules.get(key)):
                place(other, above | {other})
        placed.setdefault(key)

    for key in wanted:
        place(key, frozenset((key,)))
    return list(placed)


def _related(asked: KeyRules | None) -> frozenset[str]:
    names: set[str] = set()
    for rule in (compiled.rule for compiled in asked.rules) if asked else ():
        names |= names_in(rule.formula or "")
        names.update(rule.constraints.get("after", ()), [rule.constraints.get("same_as", "")])
    return frozenset(names)


def _candidates(
    key: str, asked: KeyRules | None, sources: Sequence[Mapping[str, Setting]], known: Known
) -> Iterator[Value]:
    for number, source in enumerate(sources):
        if key in source:
            setting = source[key]
            for each in setting if isinstance(setting, tuple) else (setting,):
                yield each(known) if callable(each) else each
            if number == 0:
                return
    for compiled in asked.rules if asked else ():
        yield from _suggested(compiled.rule.constraints, known)
    yield 1


def _suggested(constraints: Mapping[str, Any], known: Known) -> Iterator[Value]:
    """Values that meet one or the other of the constraints."""
    for name, argument in constraints.items():
        if name == "same_as" and argument in known:
            yield known[argument]
        elif name in _MEETING:
            yield from _MEETING[name](argument)
