"""The rules of one run, compiled: what to check of the records of each key, and of their number.

Layers lie over one another as in the official checker: common rules, those of the division, of
the benchmark, of the optimizer. The topmost layer that names a key decides it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, product
from typing import Any

import msgspec

from mlperf_pkg.findings import Basis
from mlperf_pkg.infra.rules_folders import per_rulebook
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.constraints import (
    CONSTRAINTS,
    OF_ONE,
    Constraint,
    Part,
    Test,
    target_test,
)
from mlperf_pkg.rulebook.formula import Answers, Formula, Operands, names_in, of_a_record
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.logged import Seen
from mlperf_pkg.rulebook.model import Joined, Rule, Rules
from mlperf_pkg.rulebook.row import RowChecks

_DECODER = msgspec.msgpack.Decoder(tuple[Rule, ...])


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

    ``passes`` is all of ``checks`` in one call; ``of_metadata`` are those of them that test a
    record's metadata. If these only require names in the metadata, they are ``names``.

    ``in_passing`` says that its formula is evaluated at every record and sees only what was logged
    before it, as in the official checker; a formula that only the written rules know sees the
    final values of the whole run, unless it is about a record's metadata. ``without_answer`` says
    whether a formula holds that lacks a value. ``has_more`` says that there is more to check of
    a record that passes the checks and the formula. ``tensors`` are those that a run must list.
    """

    rule: Rule
    checks: tuple[Check, ...]
    passes: Test
    of_metadata: tuple[Callable[[Any], Any], ...]
    names: tuple[str, ...]
    reaches: Test | None
    formula: Formula | None
    in_passing: bool
    without_answer: bool
    has_more: bool
    tensors: frozenset[str]

    def holds(self, operands: Operands) -> bool:
        """Return whether the formula, if there is one, holds for its operands."""
        answer = self.formula.evaluate(operands) if self.formula else True
        return self.without_answer if answer is None else answer


class Checklist(msgspec.Struct, frozen=True):
    """The rules to check of a record.

    ``passes`` is all of their checks in one call. ``refusing`` answers which of their formulas do
    not hold, without those ``alone``, which need the record's value or ``nth``. ``more`` are the
    rules with more to check than that. ``only_checks`` says that ``passes`` is all there is to
    check.
    """

    rules: tuple[CompiledRule, ...]
    only_checks: bool
    passes: Test
    refusing: Answers[tuple[CompiledRule, ...]] | None
    alone: tuple[CompiledRule, ...]
    more: tuple[CompiledRule, ...]


class Watched(msgspec.Struct, frozen=True):
    """The keys that rules watch: their ``values``, whether they were ``logged``, when first."""

    values: frozenset[str]
    logged: frozenset[str]
    timed: frozenset[str]


class KeyRules(msgspec.Struct, frozen=True):
    """All rules of one key: those to check of its ``first`` record and of the ``later`` ones.

    Later ``submission_*`` records are not checked. ``at_once`` says that all rules need only a
    record itself, and which of the ``watched`` keys were logged before it; ``in_row`` checks later
    records as a row. ``concluded`` are the rules about the whole log, except those about the number
    of records, which are ``counted``.
    """

    rules: tuple[CompiledRule, ...]
    first: Checklist
    later: Checklist
    watched: Watched
    at_once: bool
    in_row: RowChecks | None
    concluded: tuple[CompiledRule, ...]
    counted: tuple[CompiledRule, ...]


class Order(msgspec.Struct, frozen=True):
    """The keys whose records are read, and in which order.

    The records of the keys ``one_by_one`` are taken in the order of the log: rules of these or of
    other keys need their values in time. The records of the keys ``together`` may be checked as
    groups, by the rules in this mapping, all but the first record of a key. Those of the keys
    ``in_rows`` may be checked together where none of the others ``one_by_one`` comes between them.
    ``followed`` are the keys of all kinds, ``timed`` those whose earliest time is needed.
    """

    one_by_one: frozenset[str]
    together: Mapping[str, tuple[CompiledRule, ...]]
    in_rows: Mapping[str, RowChecks]
    followed: frozenset[str]
    timed: frozenset[str]


class Counting(msgspec.Struct, frozen=True):
    """The ``rules`` about how often their key is logged.

    Where all ``required`` keys are logged, and those of ``once`` once, only the ``special`` rules
    can be broken: those with limits, or with another key that will do.
    """

    rules: tuple[CompiledRule, ...]
    required: frozenset[str]
    once: frozenset[str]
    special: tuple[CompiledRule, ...]

    def to_check(self, seen: Seen) -> tuple[CompiledRule, ...]:
        """Return the rules that the records of a whole log may break."""
        usual = self.required <= seen.keys() and all(
            [seen[key].count == 1 for key in self.once]  # noqa: C419 - twice as fast
        )
        return self.special if usual else self.rules


class RuleTable(msgspec.Struct, frozen=True):
    """The rules of a run: by key those of records, then those of the whole log.

    ``concluded`` are the rules about the whole log that are not about a number of records;
    ``joined`` are the metrics to join before they are checked.
    """

    keys: Mapping[str, KeyRules]
    order: Order
    counting: Counting
    concluded: tuple[CompiledRule, ...]
    joined: Joined | None


@per_rulebook
def rule_table(
    usage: str, round_name: str, division: str, benchmark: str, chosen: frozenset[tuple[str, str]]
) -> RuleTable:
    """Return the rules of a run as it describes itself; layers it names wrongly are left out.

    ``chosen`` holds the keys that choose variants (``opt_name``), each with the run's value.

    Raises:
        UserError: the rulebook has no such round.
        RulebookError: a file of the rulebook is wrong.
    """
    layers = [_of_round(usage, round_name, part) for part in ("common", division) if part]
    rules = load_benchmark(usage, round_name, benchmark)
    if rules and division:
        layers.append(_compile(rules.sections[division]))
        variants = sorted(chosen) if division == "closed" else ()
        layers += [_compile(rules.variants.get(key, {}).get(name, {})) for key, name in variants]
    keys = dict(chain.from_iterable(layer.items() for layer in layers))
    if benchmark and not rules:
        # Its own layer might replace any of these rules, so only those of its identity hold.
        keys = {key: keys[key] for key in keys if key.startswith("submission_")}
    joined = rules.joined if rules and division else None
    return RuleTable(
        keys=keys,
        order=_order(keys, joined),
        counting=_counting([rule for of_key in keys.values() for rule in of_key.counted]),
        concluded=tuple([rule for of_key in keys.values() for rule in of_key.concluded]),
        joined=joined,
    )


@per_rulebook
def _of_round(usage: str, round_name: str, part: str) -> Mapping[str, KeyRules]:
    return _compile(load_round(usage, round_name).sections[part])


def compile_tables(usage: str, round_name: str, benchmark: str) -> None:
    """Compile the rules of Closed runs of a benchmark before this process forks.

    Raises:
        UserError: the rulebook has no such round.
        RulebookError, ValueError: a file of the rulebook is invalid.
    """
    rules = load_benchmark(usage, round_name, benchmark)
    if rules is None:
        return
    choices = [[(key, value) for value in values] for key, values in rules.variants.items()]
    for chosen in product(*choices):
        table = rule_table(usage, round_name, "closed", benchmark, frozenset(chosen))
        for compiled in chain.from_iterable(key.rules for key in table.keys.values()):
            if compiled.formula:
                compiled.formula.prepare()


# ---- in which order -----------------------------------------------------------------------


def _order(keys: Mapping[str, KeyRules], joined: Joined | None) -> Order:
    watched = [rules.watched for rules in keys.values()]
    values = frozenset([joined.of] if joined else ()).union(*[of_key.values for of_key in watched])
    timed = frozenset().union(*[of_key.timed for of_key in watched])
    followed = values.union(keys, *[of_key.logged for of_key in watched])
    items = [item for item in keys.items() if item[0] not in values]
    together = {key: rules.later.rules for key, rules in items if rules.at_once}
    return Order(
        one_by_one=followed - together.keys(),
        together=together,
        in_rows={key: rules.in_row for key, rules in items if rules.in_row and key not in timed},
        followed=followed,
        timed=timed,
    )


def _watched(rules: Iterable[Rule]) -> Watched:
    values, logged, timed = set[str](), set[str](), set[str]()
    for rule in rules:
        constraints = rule.constraints
        values.update(*map(names_in, _formulas(rule)))
        values.update(filter(None, (constraints.get("same_as"), rule.nth_since)))
        logged.update(constraints.get("after", ()), constraints.get("before", ()))
        if limit := constraints.get("within_minutes"):
            timed.add(limit["of"])
        if rule.no_later_than:
            timed.update((rule.key, *rule.no_later_than))
    return Watched(frozenset(values), frozenset(logged), frozenset(timed))


def _concludes(compiled: CompiledRule) -> bool:
    """Return whether a rule checks something of the whole run, besides the number of records."""
    rule = compiled.rule
    at_the_end = compiled.formula is not None and not compiled.in_passing
    timed = bool(rule.no_later_than) or rule.covers_target
    return compiled.reaches is not None or rule.tensors is not None or at_the_end or timed


def _at_once(compiled: CompiledRule) -> bool:
    """Return whether a rule needs only a record itself, and which keys were logged before it."""
    rule = compiled.rule
    return (
        not compiled.reaches
        and not compiled.formula
        and rule.constraints.keys() <= OF_ONE | {"after", "before"}
        and not (rule.fatal or rule.reached or rule.occurs == "once")
    )


def _row_checks(checklist: Checklist) -> RowChecks | None:
    """Return the checks of a row of evaluations, None if they need the state after each record.

    Rows of other keys are not worth it: their records are few, or are not checked in order.
    """
    rules, refusing = checklist.rules, checklist.refusing
    targets = {rule.reaches: rule.rule for rule in rules if rule.reaches}
    if not targets:
        return None
    checks = [check for rule in rules for check in rule.checks]
    if (
        checklist.alone
        or any(rule.has_more or rule.rule.occurs == "once" for rule in rules)
        or not {check.name for check in checks} <= OF_ONE | {"after", "before"}
        or not (refusing is None or refusing.formula.of_metadata)
    ):
        return None
    of_values, of_metadata, of_order = (
        tuple([check.holds for check in checks if check.constraint.part is part]) for part in Part
    )
    *_, target = targets.values()
    return RowChecks(of_values, of_metadata, of_order, refusing, tuple(targets), target)


def _counting(rules: Sequence[CompiledRule]) -> Counting:
    return Counting(
        rules=tuple(rules),
        required=frozenset([r.rule.key for r in rules if isinstance(r.rule.occurs, str)]),
        once=frozenset([r.rule.key for r in rules if r.rule.occurs == "once"]),
        special=tuple([r for r in rules if isinstance(r.rule.occurs, Mapping)]),
    )


# ---- what of a record ---------------------------------------------------------------------


def _compile(rules: Rules) -> dict[str, KeyRules]:
    return {key: _compile_once(of_key) for key, of_key in rules.items()}


def _compile_once(rules: tuple[Rule, ...]) -> KeyRules:
    """Compile the rules of a key once for all rounds that have the same ones."""
    try:
        return _compile_encoded(msgspec.msgpack.encode(rules))
    except OverflowError:  # an integer of more than 64 bits, in a user's own rules
        return _key_rules(rules)


@cache
def _compile_encoded(encoded: bytes) -> KeyRules:
    return _key_rules(_DECODER.decode(encoded))


def _formulas(rule: Rule) -> list[str]:
    formulas = (rule.formula, (rule.reaches or {}).get("formula"))
    return [formula for formula in formulas if formula]


def _key_rules(rules: tuple[Rule, ...]) -> KeyRules:
    compiled = tuple(map(_compiled, rules))
    of_records = [r for r in compiled if r.checks or r.in_passing or r.has_more or r.reaches]
    rest = [r for r in of_records if not (r.rule.first or "submission_" in r.rule.key)]
    first = _checklist(of_records)
    later = first if rest == of_records else _checklist(rest)
    return KeyRules(
        rules=compiled,
        first=first,
        later=later,
        watched=_watched(rules),
        at_once=all(map(_at_once, compiled)),
        in_row=_row_checks(later),
        concluded=tuple(filter(_concludes, compiled)),
        counted=tuple([rule for rule in compiled if rule.rule.occurs]),
    )


def _checklist(rules: Sequence[CompiledRule]) -> Checklist:
    checks = [check for rule in rules for check in rule.checks]
    formulas = [(rule, rule.formula) for rule in rules if rule.formula and rule.in_passing]
    more = tuple([rule for rule in rules if rule.has_more or rule.reaches])
    return Checklist(
        rules=tuple(rules),
        only_checks=not formulas and not more,
        passes=rules[0].passes if len(rules) == 1 else _all_of(checks),
        refusing=_refusing([rule for rule, formula in formulas if not formula.of_a_record]),
        alone=tuple([rule for rule, formula in formulas if formula.of_a_record]),
        more=more,
    )


def _refusing(rules: Sequence[CompiledRule]) -> Answers[tuple[CompiledRule, ...]] | None:
    """Return what evaluates the formulas of several rules, whose values are looked up once."""

    if not rules:
        return None
    together = Formula(" && ".join([rule.formula.text for rule in rules if rule.formula]))

    def refusing(operands: Operands) -> tuple[CompiledRule, ...]:
        return tuple([rule for rule in rules if not rule.holds(operands)])

    return Answers(together, refusing)


def _all_of(checks: Sequence[Check]) -> Test:
    """Return all checks in one call."""
    if len(checks) == 1:
        return checks[0].test
    values, metadata = (
        [check.holds for check in checks if check.constraint.part is part]
        for part in (Part.VALUE, Part.METADATA)
    )
    tests = [check.test for check in checks if check.constraint.part is Part.ALL]

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
    checks = tuple([_check(name, argument) for name, argument in rule.constraints.items()])
    of_metadata = [check for check in checks if check.constraint.part is Part.METADATA]
    names = [check.argument for check in of_metadata if check.name == "metadata"]
    official = rule.basis in (Basis.BOTH, Basis.OFFICIAL)
    of_each = official or (of_a_record(rule.formula or "") and not rule.last)
    in_passing = bool(rule.formula) and of_each
    return CompiledRule(
        rule=rule,
        checks=checks,
        passes=_all_of(checks),
        of_metadata=tuple([check.holds for check in of_metadata]),
        names=tuple(chain(*names)) if len(names) == len(of_metadata) else (),
        reaches=target_test(rule.reaches) if rule.reaches else None,
        formula=Formula(rule.formula) if rule.formula else None,
        in_passing=in_passing,
        without_answer=not official,
        has_more=rule.tensors is not None or rule.reached,
        tensors=frozenset(rule.tensors or ()),
    )


def _check(name: str, argument: Any) -> Check:
    constraint = CONSTRAINTS[name]
    return Check(
        name, constraint.compile(argument), constraint.test(argument), constraint, argument
    )
