"""The rules of one run, compiled: for each key what to ask of its records and of their number.

Layers lie over one another as in the official checker: common rules, those of the division, of
the benchmark, of the optimizer. The topmost layer that names a key decides it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from mlperf_pkg.findings import Basis
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.constraints import (
    CONSTRAINTS,
    OF_ONE,
    Constraint,
    Part,
    Seen,
    Test,
    target_test,
)
from mlperf_pkg.rulebook.formula import Formula, names_in, of_a_record
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Benchmark, Joined, Rule, Rules


class Check(msgspec.Struct, frozen=True):
    """One compiled constraint of a rule, by its ``name``.

    ``holds`` is the test of the constraint's part of a record, ``test`` that of a record.
    """

    name: str
    holds: Callable[..., Any]
    test: Test
    constraint: Constraint
    argument: Any


class CompiledRule(msgspec.Struct, frozen=True):
    """A rule with its tests.

    ``passes`` is all of ``checks`` at once, None without any; ``of_metadata`` are the tests of a
    record's metadata among them.

    ``in_passing`` says that its formula is asked of every record and sees only what was logged
    before it, as in the official checker; a formula that only the written rules know sees the
    final values of the whole run, unless it is about a record's metadata. ``without_answer`` says
    whether a formula holds that lacks a value. ``asks_more`` says that a record that passes the
    checks is asked for more. ``tensors`` are those that must be listed.
    """

    rule: Rule
    checks: tuple[Check, ...]
    passes: Test | None
    of_metadata: tuple[Callable[[Any], Any], ...]
    reaches: Test | None
    formula: Formula | None
    in_passing: bool
    without_answer: bool
    asks_more: bool
    tensors: frozenset[str]


class Asked(msgspec.Struct, frozen=True):
    """The rules that ask something of a record.

    ``passes`` is all of their checks at once, None without any; ``more`` are those that ask more.
    """

    rules: tuple[CompiledRule, ...]
    passes: Test | None
    more: tuple[CompiledRule, ...]


class KeyRules(msgspec.Struct, frozen=True):
    """All rules of one key, and what its first record is asked.

    ``later`` is what the others are asked: of ``submission_*`` keys nothing.
    """

    rules: tuple[CompiledRule, ...]
    first: Asked
    later: Asked


class RuleTable(msgspec.Struct, frozen=True):
    """The rules of a run, by key.

    ``followed`` are the keys whose records are needed: by their own rules, by others', or to be
    ``joined``; ``in_order`` those of them whose records have to be taken one by one.
    ``together`` are the keys whose records may be asked many at once, but for the first: nothing
    needs each of their values in its time. It holds the rules that these are asked; ``timed`` are
    keys whose earliest time is needed.
    ``counted`` are the rules that ask how often their key was logged, ``concluded`` those that ask
    something else of the whole run. Where all ``needed`` keys were logged, and those of ``once``
    no more than once, most of ``counted`` need not be asked: only ``intricate`` ones.
    """

    keys: Mapping[str, KeyRules]
    followed: frozenset[str]
    in_order: frozenset[str]
    counted: tuple[CompiledRule, ...]
    intricate: tuple[CompiledRule, ...]
    needed: frozenset[str]
    once: frozenset[str]
    concluded: tuple[CompiledRule, ...]
    together: Mapping[str, tuple[CompiledRule, ...]]
    timed: frozenset[str]
    benchmark: Benchmark | None
    joined: Joined | None


@lru_cache
def rule_table(
    usage: str, round_name: str, division: str, benchmark: str, chosen: frozenset[tuple[str, str]]
) -> RuleTable:
    """The rules of a run as it describes itself; layers it names wrongly are left out.

    ``chosen`` holds the keys that choose variants (``opt_name``), each with the run's value.

    Raises:
        UserError: the rulebook has no such round.
        RulebookError: a file of the rulebook is wrong.
    """
    found = load_benchmark(usage, round_name, benchmark)
    layers = [load_round(usage, round_name).sections[part] for part in ("common", division) if part]
    if found and division:
        layers.append(found.sections[division])
        if division == "closed":
            layers += [found.variants.get(key, {}).get(value, {}) for key, value in sorted(chosen)]
    merged = {key: rules for layer in layers for key, rules in layer.items()}
    if benchmark and not found:
        # Its own layer might replace any of these rules, so none but its identity is asked.
        merged = {key: rules for key, rules in merged.items() if key.startswith("submission_")}
    joined = found.joined if found and division else None
    keys = _compile(merged)
    rules = [each for several in keys.values() for each in several.rules]
    values = frozenset(_watched_values(merged, joined))
    followed = values.union(keys, *map(_watched_presence, rules))
    together = {
        k: each.later.rules for k, each in keys.items() if k not in values and _at_once(each)
    }
    counted = tuple(each for each in rules if each.rule.occurs)
    return RuleTable(
        keys=keys,
        followed=followed,
        in_order=followed - together.keys(),
        counted=counted,
        intricate=tuple(each for each in counted if isinstance(each.rule.occurs, Mapping)),
        needed=frozenset(each.rule.key for each in counted if isinstance(each.rule.occurs, str)),
        once=frozenset(each.rule.key for each in counted if each.rule.occurs == "once"),
        concluded=tuple(each for each in rules if _concludes(each)),
        together=together,
        timed=frozenset(_timed(rules)),
        benchmark=found,
        joined=joined,
    )


def _concludes(each: CompiledRule) -> bool:
    at_last = each.formula is not None and not each.in_passing
    return each.reaches is not None or each.rule.tensors is not None or at_last


def _watched_values(rules: Rules, joined: Joined | None) -> Iterator[str]:
    """The keys whose values other keys' rules need."""
    if joined:
        yield joined.of
    for rule in (rule for several in rules.values() for rule in several):
        for formula in (rule.formula, (rule.reaches or {}).get("formula")):
            yield from names_in(formula) if formula else ()
        if "same_as" in rule.constraints:
            yield rule.constraints["same_as"]
        if rule.nth_since:
            yield rule.nth_since


def _watched_presence(each: CompiledRule) -> set[str]:
    """The keys of which a rule needs to know whether they were logged before."""
    return {key for name in ("after", "before") for key in each.rule.constraints.get(name, ())}


def _timed(rules: Iterable[CompiledRule]) -> Iterator[str]:
    asked = (each.rule.constraints.get("within_minutes") for each in rules)
    return (limit["of"] for limit in asked if limit)


def _at_once(several: KeyRules) -> bool:
    """Whether the rules of a key ask of a record no more than what it says and its place."""
    return all(
        not each.reaches
        and not each.formula
        and each.rule.constraints.keys() <= OF_ONE | {"after", "before"}
        and not (each.rule.fatal or each.rule.reached or each.rule.occurs == "once")
        for each in several.rules
    )


def _compile(rules: Rules) -> dict[str, KeyRules]:
    return {key: _key_rules(key, several) for key, several in rules.items()}


def _key_rules(key: str, several: Iterable[Rule]) -> KeyRules:
    rules = tuple(_compiled(rule) for rule in several)
    asked = [each for each in rules if each.checks or each.asks_more or each.reaches]
    later = [] if "submission_" in key else [each for each in asked if not each.rule.first]
    return KeyRules(rules, _asked(asked), _asked(later))


def _asked(rules: Sequence[CompiledRule]) -> Asked:
    checks = [check for each in rules for check in each.checks]
    more = tuple(each for each in rules if each.asks_more or each.reaches)
    return Asked(tuple(rules), _all_of(checks), more)


def _all_of(checks: Sequence[Check]) -> Test | None:
    """All checks in one call, None without any."""
    if not checks:
        return None
    of_value, of_metadata, others = (
        [each for each in checks if each.constraint.part is part]
        for part in (Part.VALUE, Part.METADATA, Part.ALL)
    )
    values, metadata = ([check.holds for check in each] for each in (of_value, of_metadata))
    tests = [check.test for check in others]

    def passes(record: Record, seen: Seen) -> bool:
        for holds in values:
            if not holds(record.value):
                return False
        for holds in metadata:
            if not holds(record.metadata):
                return False
        for test in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not test(record, seen):
                return False
        return True

    return passes


def _compiled(rule: Rule) -> CompiledRule:
    checks = tuple(
        Check(name, word.compile(argument), word.test(argument), word, argument)
        for name, argument in rule.constraints.items()
        for word in (CONSTRAINTS[name],)
    )
    official = rule.basis in (Basis.BOTH, Basis.OFFICIAL)
    in_passing = bool(rule.formula) and (official or of_a_record(rule.formula or ""))
    return CompiledRule(
        rule=rule,
        checks=checks,
        passes=_all_of(checks),
        of_metadata=tuple([c.holds for c in checks if c.constraint.part is Part.METADATA]),
        reaches=target_test(rule.reaches) if rule.reaches else None,
        formula=Formula(rule.formula) if rule.formula else None,
        in_passing=in_passing,
        without_answer=not official,
        asks_more=in_passing or rule.tensors is not None or rule.reached,
        tensors=frozenset(rule.tensors or ()),
    )
