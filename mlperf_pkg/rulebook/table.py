"""The rules of one run, compiled: what to check of the records of each key, and of their number.

Layers lie over one another as in the official checker: common rules, those of the division, of
the benchmark, of the optimizer. The topmost layer that names a key decides it alone.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, product
from typing import Any

import msgspec

from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, Constraint, RecordPart, Test, target_test
from mlperf_pkg.rulebook.formula import Formula, Seen, condition, names_in
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import SUBMISSION_KEYS, Joined, Rule, Rules

_ALWAYS = (*SUBMISSION_KEYS, "init_start", "run_start")  # followed, whether or not there are rules


class Check(msgspec.Struct, frozen=True):
    """One compiled constraint of a rule.

    ``holds`` is the test of the constraint's part of a record, ``test`` that of a record.
    """

    holds: Callable[..., Any]
    test: Test
    constraint: Constraint
    argument: Any


class CompiledRule(msgspec.Struct, frozen=True):
    """A rule with its tests.

    The formula ``in_passing`` is evaluated at every record and sees only what was logged before it,
    as in the official checker; one that only the written rules know is evaluated ``at_the_end`` and
    sees the final values of the whole run, unless it is about a record's metadata. ``by_position``
    says that such a formula is about the first record in training, or relates records to those
    before them, whatever the order of the log. ``has_more`` says that there is more to check of a
    record than ``checks``. ``tensors`` are those that a run must list.
    """

    rule: Rule
    checks: tuple[Check, ...]
    reaches: Test | None
    in_passing: Formula | None
    at_the_end: Formula | None
    by_position: bool
    has_more: bool
    tensors: frozenset[str]


class Checklist(msgspec.Struct, frozen=True):
    """The rules to check of a record.

    ``passes`` is all of their checks in one call; ``more`` are the rules with more than checks.
    """

    rules: tuple[CompiledRule, ...]
    passes: Test
    more: tuple[CompiledRule, ...]


class KeyRules(msgspec.Struct, frozen=True):
    """All rules of one key: those to check of its ``first`` record and of the ``later`` ones.

    Later ``submission_*`` records are not checked. ``quiet`` says that the later ones need only
    themselves, and which keys were logged before them. The rules need the values of the keys
    ``related``, and the order of those ``ordered``.
    """

    rules: tuple[CompiledRule, ...]
    first: Checklist
    later: Checklist
    quiet: bool
    related: frozenset[str]
    ordered: frozenset[str]


class RuleTable(msgspec.Struct, frozen=True):
    """The rules of a run: by key those of records, then those of the whole log.

    ``followed`` are all keys whose records the rules need, those of ``keys`` and others, and those
    that describe and count the runs of a log. Those in ``quiet`` need not be taken in the order of
    the log, by the rules of their later records. ``counted`` are the rules about how often their
    key is logged, ``concluded`` the others about the whole log; ``joined`` are the metrics to join
    before they are checked.
    """

    keys: Mapping[str, KeyRules]
    followed: frozenset[str]
    quiet: Mapping[str, tuple[CompiledRule, ...]]
    counted: tuple[Rule, ...]
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
    every = list(chain.from_iterable([of_key.rules for of_key in keys.values()]))
    joined = rules.joined if rules and division else None
    related = frozenset([joined.of] if joined else ()).union(*[k.related for k in keys.values()])
    return RuleTable(
        keys=keys,
        followed=related.union(keys, _ALWAYS, *[k.ordered for k in keys.values()]),
        quiet={key: k.later.rules for key, k in keys.items() if k.quiet and key not in related},
        counted=tuple([compiled.rule for compiled in every if compiled.rule.occurs]),
        concluded=tuple(filter(_concludes, every)),
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
            if compiled.rule.formula:
                condition(compiled.rule.formula)


# ---- what of the whole log ---------------------------------------------------------------


def _concludes(compiled: CompiledRule) -> bool:
    """Return whether a rule checks something of the whole run, besides the number of records."""
    rule = compiled.rule
    timed = bool(rule.no_later_than) or rule.covers_target
    return bool(compiled.reaches or rule.tensors is not None or compiled.at_the_end or timed)


# ---- what of a record ---------------------------------------------------------------------


def _compile(rules: Rules) -> dict[str, KeyRules]:
    return {key: _key_rules(of_key) for key, of_key in rules.items()}


def _related(rule: Rule) -> set[str]:
    """Return the other keys whose values a rule needs."""
    formulas = (rule.formula, (rule.reaches or {}).get("formula"))
    keys = filter(None, (rule.constraints.get("same_as"), rule.nth_since))
    return {*keys, *chain.from_iterable(map(names_in, filter(None, formulas)))}


def _is_quiet(compiled: CompiledRule) -> bool:
    rule = compiled.rule
    loud = rule.fatal, rule.reached, rule.occurs == "once", rule.formula, rule.reaches
    return not any(loud) and not rule.constraints.keys() & {"same_as", "within_minutes"}


def _key_rules(rules: tuple[Rule, ...]) -> KeyRules:
    compiled = tuple(map(_compiled, rules))
    of_records = [r for r in compiled if r.checks or r.has_more]
    rest = [
        r for r in of_records if r.by_position or not (r.rule.first or "submission_" in r.rule.key)
    ]
    first = _checklist(of_records)
    return KeyRules(
        rules=compiled,
        first=first,
        later=first if rest == of_records else _checklist(rest),
        quiet=all(map(_is_quiet, compiled)),
        related=frozenset().union(*map(_related, rules)),
        ordered=frozenset().union(
            *[rule.constraints.get(name, ()) for rule in rules for name in ("after", "before")]
        ),
    )


def _checklist(rules: Sequence[CompiledRule]) -> Checklist:
    checks = [check for rule in rules for check in rule.checks]
    return Checklist(
        rules=tuple(rules),
        passes=_all_of(checks),
        more=tuple([rule for rule in rules if rule.has_more]),
    )


def _all_of(checks: Sequence[Check]) -> Test:
    """Return all checks in one call."""
    if len(checks) == 1:
        return checks[0].test
    values, metadata = (
        [check.holds for check in checks if check.constraint.part is part]
        for part in (RecordPart.VALUE, RecordPart.METADATA)
    )
    tests = [check.test for check in checks if check.constraint.part is RecordPart.ALL]

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
    checks = [
        Check(constraint.compile(argument), constraint.test(argument), constraint, argument)
        for name, argument in rule.constraints.items()
        for constraint in [CONSTRAINTS[name]]
    ]
    official = rule.official
    formula = None
    if rule.formula:
        formula = Formula(rule.formula, reads_text=not official)
    of_each = official or bool(formula and formula.members and not rule.last)
    passing = formula if of_each else None
    related = formula and (formula.previous or (rule.first and formula.members))
    return CompiledRule(
        rule=rule,
        checks=tuple(checks),
        reaches=target_test(rule.reaches) if rule.reaches else None,
        in_passing=passing,
        at_the_end=None if of_each else formula,
        by_position=bool(related) and not official,
        has_more=bool(rule.tensors is not None or rule.reached or rule.reaches or passing),
        tensors=frozenset(rule.tensors or ()),
    )
