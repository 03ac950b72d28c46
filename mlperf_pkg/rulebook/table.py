"""The rules of one run, compiled: what to check of the records of each key, and of their number.

Layers lie over one another as in the official checker: common rules, those of the division, of
the benchmark, of the optimizer. The topmost layer that names a key decides it alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.constraints import (
    CONSTRAINTS,
    Constraint,
    PartTest,
    RecordPart,
    Test,
    target_test,
)
from mlperf_pkg.rulebook.formula import Formula, Seen, StepMemory, names_in
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import SUBMISSION_KEYS, Benchmark, Joined, Rule, Rules

_ALWAYS = (*SUBMISSION_KEYS, "init_start", "run_start")  # followed, whether or not there are rules
_VARYING = ("seed",)  # keys whose values differ even where logs begin alike


class Check(msgspec.Struct, frozen=True):
    """One compiled constraint of a rule.

    ``holds`` is the test of the constraint's part of a record, ``test`` that of a record.
    """

    holds: Callable[..., Any]
    test: Test
    constraint: Constraint
    argument: Any

    @property
    def is_after(self) -> bool:
        """Whether this asks for records of other keys before a record."""
        return self.constraint is CONSTRAINTS["after"]

    @property
    def is_order(self) -> bool:
        """Whether this is about the place of a record in the file."""
        return self.is_after or self.constraint is CONSTRAINTS["before"]


class CompiledRule(msgspec.Struct, frozen=True):
    """A rule with its tests.

    The formula ``in_passing`` is evaluated at every record and sees only what was logged before it,
    as in the official checker; one that only the written rules know is evaluated ``at_the_end`` and
    sees the final values of the whole run, unless it is about a record's metadata. ``by_position``
    says that such a formula, the only thing to check of a record, is about the first record in
    training, or relates records to those before them, whatever the order of the log. ``has_more``
    says that there is more to check of a record, in the order of the log, than ``checks`` and
    ``reaches``. ``tensors`` are those that a run must list.
    """

    rule: Rule
    checks: tuple[Check, ...]
    reaches: Test | None
    in_passing: Formula | None
    at_the_end: Formula | None
    by_position: bool
    has_more: bool
    tensors: frozenset[str]


Target: TypeAlias = tuple[Rule, Test]
"""A rule with a target, and the test of its ``reaches``."""


class Checklist(msgspec.Struct, frozen=True):
    """The rules to check of a record.

    ``of_value`` to ``of_record`` are all of their checks, by the part of a record that they are
    about, and ``passes`` is these in one call; ``more`` are the rules with more than checks, and
    ``targets`` those with a target. ``tensors`` says that the records name tensors.
    """

    rules: tuple[CompiledRule, ...]
    of_value: tuple[PartTest, ...]
    of_names: tuple[PartTest, ...]
    of_metadata: tuple[PartTest, ...]
    of_record: tuple[Check, ...]
    passes: Test
    more: tuple[CompiledRule, ...]
    targets: tuple[Target, ...]
    tensors: bool


class KeyRules(msgspec.Struct, frozen=True):
    """All rules of one key: those to check of its ``first`` record and of the ``later`` ones.

    Later ``submission_*`` records are not checked. Those ``by_position`` are checked of all records
    once the log has ended. ``quiet`` says that the later ones need only themselves, and which keys
    were logged before them. The rules need the values of the keys ``related``, and the order of
    those ``ordered``. The others are as in ``RuleTable``.
    """

    rules: tuple[CompiledRule, ...]
    first: Checklist
    later: Checklist
    by_position: tuple[CompiledRule, ...]
    steps: StepMemory | None
    quiet: bool
    apart: bool
    cumulative: bool
    limited: bool
    related: frozenset[str]
    ordered: frozenset[str]
    counted: tuple[Rule, ...]
    concluded: tuple[CompiledRule, ...]


class RuleTable(msgspec.Struct, frozen=True):
    """The rules of a run: by key those of records, then those of the whole log.

    ``followed`` are all keys whose records the rules need, those of ``keys`` and others, and those
    that describe and count the runs of a log. Those in ``quiet`` need not be taken in the order of
    the log, by the rules of their later records; those ``apart`` have nothing to do with others.
    Of those that are ``cumulative``, more than a record and those before it matters; of those that
    are ``limited``, the time matters. ``heads`` remembers what logs began with that broke none of
    the rules, by its text without times. ``counted`` are the rules about how often their key is
    logged, ``concluded`` the others about the whole log; ``joined`` are the metrics to join before
    they are checked.
    """

    keys: Mapping[str, KeyRules]
    followed: frozenset[str]
    quiet: Mapping[str, Checklist]
    apart: frozenset[str]
    cumulative: frozenset[str]
    limited: frozenset[str]
    heads: dict[bytes, list[Record]]
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
    rules = load_benchmark(usage, round_name, benchmark)
    keys: dict[str, KeyRules] = {}
    for layer in _layers(usage, round_name, division, rules, chosen):
        keys.update(layer)
    if benchmark and not rules:
        # Its own layer might replace any of these rules, so only those of its identity hold.
        keys = {key: keys[key] for key in keys if key.startswith("submission_")}
    joined = rules.joined if rules and division else None
    joined_keys = [joined.of] if joined else []
    related = set(joined_keys).union(*[key_rules.related for key_rules in keys.values()])
    ordered = _ordered(keys)
    quiet = _keys_with(attrgetter("quiet"), keys) - related
    apart = _keys_with(attrgetter("apart"), keys) - related - ordered
    return RuleTable(
        keys=keys,
        followed=frozenset(related).union(keys, _ALWAYS, ordered),
        quiet={key: keys[key].later for key in quiet},
        apart=apart,
        cumulative=_keys_with(attrgetter("cumulative"), keys).union(joined_keys) - apart,
        limited=_keys_with(attrgetter("limited"), keys),
        heads={},
        counted=tuple(chain.from_iterable([key_rules.counted for key_rules in keys.values()])),
        concluded=tuple(chain.from_iterable([key_rules.concluded for key_rules in keys.values()])),
        joined=joined,
    )


def _keys_with(test: Callable[[KeyRules], bool], keys: Mapping[str, KeyRules]) -> frozenset[str]:
    """Return the keys whose rules meet a test."""
    return frozenset([key for key, key_rules in keys.items() if test(key_rules)])


def _ordered(keys: Mapping[str, KeyRules]) -> frozenset[str]:
    """Return the keys whose order the rules need."""
    return frozenset(chain.from_iterable([key_rules.ordered for key_rules in keys.values()]))


def _layers(
    usage: str,
    round_name: str,
    division: str,
    benchmark: Benchmark | None,
    chosen: frozenset[tuple[str, str]],
) -> Iterator[Mapping[str, KeyRules]]:
    """Yield the layers of rules that hold for a run, the topmost last."""
    yield _of_round(usage, round_name, "common")
    if not division:
        return
    yield _of_round(usage, round_name, division)
    if not benchmark:
        return
    yield _compile(benchmark.sections[division])
    if division == "closed":
        for key, value in sorted(chosen):
            yield _compile(benchmark.variants.get(key, {}).get(value, {}))


@per_rulebook
def _of_round(usage: str, round_name: str, part: str) -> Mapping[str, KeyRules]:
    return _compile(load_round(usage, round_name).sections[part])


# ---- what of the whole log ---------------------------------------------------------------


def _concludes(compiled: CompiledRule) -> bool:
    """Return whether a rule checks something of the whole run, besides the number of records."""
    rule = compiled.rule
    is_about_times = bool(rule.no_later_than) or rule.covers_target
    is_about_records = bool(compiled.reaches or compiled.at_the_end or rule.tensors is not None)
    return is_about_times or is_about_records


# ---- what of a record ---------------------------------------------------------------------


@per_rulebook
def _compiled_before() -> dict[bytes, KeyRules]:
    """Return the memory of compiled rules by their text: two thirds are those of other rounds."""
    return {}


def _compile(rules: Rules) -> dict[str, KeyRules]:
    memory = _compiled_before()
    compiled: dict[str, KeyRules] = {}
    for key, rules_of_key in rules.items():
        text = _text_of(rules_of_key)
        if text not in memory:
            memory[text] = _key_rules(rules_of_key)
        compiled[key] = memory[text]
    return compiled


def _text_of(rules: tuple[Rule, ...]) -> bytes:
    """Return rules as text, which is the same only for equal ones."""
    try:
        return msgspec.msgpack.encode(rules)
    except OverflowError:  # an integer of more than 64 bits
        return repr(rules).encode()


def _key_rules(rules: tuple[Rule, ...]) -> KeyRules:
    compiled = tuple(map(_compiled, rules))
    of_records = [item for item in compiled if item.checks or item.has_more or item.reaches]
    of_later_records = list(filter(_is_checked_later, of_records))
    first = _checklist(of_records)
    later = first if of_later_records == of_records else _checklist(of_later_records)
    by_position = tuple([item for item in compiled if item.by_position])
    related: set[str] = set()
    ordered: set[str] = set()
    for rule in rules:
        related |= related_keys(rule)
        ordered |= _ordered_by(rule.constraints)
    quiet = all(map(_is_quiet, compiled))
    return KeyRules(
        rules=compiled,
        first=first,
        later=later,
        by_position=by_position,
        steps=_steps(by_position),
        quiet=quiet,
        apart=not ordered and (quiet or _differs_alone(compiled)),
        cumulative=any(map(_is_cumulative, compiled)),
        limited=any(map(_is_limited, compiled)),
        related=frozenset(related),
        ordered=frozenset(ordered),
        counted=tuple([rule for rule in rules if rule.occurs]),
        concluded=tuple(filter(_concludes, compiled)),
    )


def _ordered_by(constraints: Mapping[str, Any]) -> set[str]:
    """Return the other keys whose order the constraints of a rule need."""
    within = constraints.get("within_minutes", {})
    limits = [within[name] for name in ("of", "until") if name in within]
    return {*constraints.get("after", ()), *constraints.get("before", ()), *limits}


def _steps(by_position: Sequence[CompiledRule]) -> StepMemory | None:
    """Return an empty memory for rules of a key that relate records to those before them."""
    if not by_position:
        return None
    formulas = [compiled.in_passing for compiled in by_position if compiled.in_passing]
    return StepMemory(by_position[0].rule.key, formulas)


def _is_checked_later(compiled: CompiledRule) -> bool:
    """Return whether a rule is also about records of its key after the first."""
    rule = compiled.rule
    return not (rule.first or "submission_" in rule.key)


def _differs_alone(rules: Sequence[CompiledRule]) -> bool:
    """Return whether the records of a key differ between logs, and its rules need only them."""
    is_varying = any(compiled.rule.key in _VARYING for compiled in rules)
    return is_varying and all(map(_is_alone, rules))


def _is_alone(compiled: CompiledRule) -> bool:
    """Return whether a rule needs of a record only itself, and what is before it."""
    rule = compiled.rule
    if rule.fatal or rule.reached or rule.formula or rule.reaches:
        return False
    return "same_as" not in rule.constraints and not _is_limited(compiled)


def _is_quiet(compiled: CompiledRule) -> bool:
    """Return whether a rule needs of later records only themselves, and what is before them."""
    if not _is_alone(compiled) or compiled.rule.occurs == "once":
        return False
    names = [
        check.argument for check in compiled.checks if check.constraint.part is RecordPart.NAMES
    ]
    return not any(map(str.isdecimal, str(names)))  # where digits do not matter


def _is_cumulative(compiled: CompiledRule) -> bool:
    """Return whether more than a record, and those before it, matters to a rule."""
    rule = compiled.rule
    about_run = rule.reaches or rule.reached or rule.nth_since or rule.tensors is not None
    return bool(about_run) or compiled.by_position


def _is_limited(compiled: CompiledRule) -> bool:
    """Return whether a rule limits the time of a record."""
    return "within_minutes" in compiled.rule.constraints


def related_keys(rule: Rule) -> set[str]:
    """Return the other keys whose values a rule needs."""
    keys = set(filter(None, (rule.constraints.get("same_as"), rule.nth_since)))
    for formula in (rule.formula, (rule.reaches or {}).get("formula")):
        if formula:
            keys |= names_in(formula)
    return keys


def _checklist(rules: Sequence[CompiledRule]) -> Checklist:
    checks = [check for rule in rules for check in rule.checks]
    of_value = _tests_of(RecordPart.VALUE, checks)
    of_names = _tests_of(RecordPart.NAMES, checks)
    of_metadata = _tests_of(RecordPart.METADATA, checks)
    of_record = _tests_of(RecordPart.ALL, checks)
    passes = _all_of(of_value, of_names + of_metadata, of_record)
    return Checklist(
        rules=tuple(rules),
        of_value=of_value,
        of_names=of_names,
        of_metadata=of_metadata,
        of_record=tuple([check for check in checks if check.constraint.part is RecordPart.ALL]),
        passes=checks[0].test if len(checks) == 1 else passes,
        more=tuple([rule for rule in rules if rule.has_more]),
        targets=tuple([(rule.rule, rule.reaches) for rule in rules if rule.reaches]),
        tensors=any(rule.rule.tensors is not None for rule in rules),
    )


def _all_of(
    of_value: Sequence[PartTest], of_metadata: Sequence[PartTest], of_record: Sequence[Test]
) -> Test:
    """Return all tests of a record in one call."""

    def passes(record: Record, seen: Seen) -> bool:
        for holds in of_value:
            if not holds(record.value):
                return False
        for holds in of_metadata:
            if not holds(record.metadata):
                return False
        for test in of_record:  # noqa: SIM110 - all() of a generator takes twice as long
            if not test(record, seen):
                return False
        return True

    return passes


def _tests_of(part: RecordPart, checks: Sequence[Check]) -> tuple[Callable[..., Any], ...]:
    return tuple([check.holds for check in checks if check.constraint.part is part])


def _compiled(rule: Rule) -> CompiledRule:
    in_passing = None
    at_the_end = None
    by_position = False
    if rule.formula:
        formula = Formula(rule.formula, reads_text=not rule.official)
        relates_positions = formula.previous or (rule.first and formula.members)
        is_alone = not (rule.official or rule.constraints)
        by_position = bool(relates_positions) and is_alone
        if rule.official or (formula.members and not rule.last):
            in_passing = formula
        else:
            at_the_end = formula
    is_about_run = rule.tensors is not None or rule.reached
    return CompiledRule(
        rule=rule,
        checks=tuple([_check(name, argument) for name, argument in rule.constraints.items()]),
        reaches=target_test(rule.reaches) if rule.reaches else None,
        in_passing=in_passing,
        at_the_end=at_the_end,
        by_position=by_position,
        has_more=is_about_run or (in_passing is not None and not by_position),
        tensors=frozenset(rule.tensors or ()),
    )


def _check(name: str, argument: Any) -> Check:
    constraint = CONSTRAINTS[name]
    return Check(constraint.compile(argument), constraint.test(argument), constraint, argument)
