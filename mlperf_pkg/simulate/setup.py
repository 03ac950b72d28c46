"""A plan with everything decided that it leaves open: rules, reference, hyperparameters.

Each key of a hyperparameter takes the first candidate that its rules accept: those of the settings,
then those that the rules themselves suggest. A key comes after those that its rules or its formula
name, because the official checker reads in order.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from math import isfinite
from typing import Any

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.results.rcp import ReferencePoint
from mlperf_pkg.rulebook.formula import NoAnswerError, evaluate
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.logged import Seen, first_logged
from mlperf_pkg.rulebook.model import Benchmark, Rule
from mlperf_pkg.rulebook.table import CompiledRule, KeyRules, rule_table
from mlperf_pkg.simulate.plan import (
    FAILURES,
    SUCCESS,
    Assigned,
    EpochRecords,
    Flaw,
    Number,
    Outcome,
    Recipe,
    Reference,
    RunPlan,
    Schedule,
    Setting,
    Value,
    candidates,
    epoch_records_of,
    find_benchmark,
    names_of,
    optimizers,
    reference,
    require_sound,
    schedule_of,
    untrained_of,
)

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
    formula = compiled.in_passing or compiled.at_the_end
    tests = [*(check.test for check in compiled.checks), *([formula.holds] if formula else [])]
    try:
        return all(test(record, seen) for test in tests)
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


_SCALING = 0.9
"""N accelerators train N ** 0.9 times as fast as one."""

_BEFORE_SUBMISSION = timedelta(weeks=2)
_FLAWED = {Flaw.MISSING: without_required, Flaw.WRONG: with_wrong}
_LIFECYCLE = frozenset(
    {
        *("init_start", "init_stop", "run_start", "run_stop", "staging_start", "staging_stop"),
        *("block_start", "block_stop", "epoch_start", "epoch_stop", "eval_start", "eval_stop"),
        *("cache_clear", "seed", "weights_initialization", "eval_accuracy"),
    }
)
"""What a run logs besides its hyperparameters."""


class Track(Struct, frozen=True):
    """The way of one metric from an untrained model to the target."""

    untrained: float
    target: float


class Setup(Struct, frozen=True):
    """A plan whose names are looked up and whose defaults are filled in.

    ``demanded`` are the rules of the run's division, ``rules`` those and, for keys that they do
    not name, the Closed division's. ``metrics`` are the keys that log an evaluation's result,
    ``position`` is the metadata that counts the training before it, in the benchmark's unit.
    ``tracks`` has a metric by its name, which is empty where there is only one. ``point`` is the
    reference convergence point whose runs this one follows, ``settings`` are the hyperparameters
    to log, in order.
    """

    plan: RunPlan
    benchmark: Benchmark
    recipe: Recipe
    outcome: Outcome
    demanded: KeyedRules
    rules: KeyedRules
    metrics: tuple[str, ...]
    position: str
    epoch_records: EpochRecords
    schedule: Schedule
    tracks: Mapping[str, Track]
    point: ReferencePoint
    batch_size: int
    settings: Assigned
    minutes: float
    start_ms: int


def resolve(plan: RunPlan) -> Setup:
    """Look up the names of ``plan`` and fill in its defaults.

    Raises:
        UserError: an unknown usage, round, benchmark, division, optimizer or failure, a number
            that is not positive, a batch size that the rules forbid, or a run of which the
            official checker accepts no log.
        RulebookError: the recipe of the benchmark is wrong, or lacks something.
    """
    require_sound(plan)
    benchmark, recipe = find_benchmark(plan.usage, plan.round, plan.benchmark)
    points, batch_size = _reference(plan, benchmark, recipe)
    point = points.point(batch_size)
    sources = Sources(
        fixed={**_fixed(plan, batch_size), **recipe.always},
        settings=recipe.values,
        reference=points.hyperparameters.get(point.batch_size, {}),
        recipe=recipe,
    )
    demanded, rules = _rules(plan, benchmark, sources)
    outcome = FAILURES[plan.failure] if plan.failure is not None else SUCCESS
    metrics = tuple(dict.fromkeys(_metrics(demanded, benchmark)))
    keys = (*sources.fixed, *(key for key in required(rules) if _is_setting(key, rules, recipe)))
    settings = solve(rules, dict.fromkeys(keys), sources)
    return Setup(
        plan=plan,
        benchmark=benchmark,
        recipe=recipe,
        outcome=outcome,
        demanded=demanded,
        rules=rules,
        metrics=metrics,
        position=benchmark.counted_by,
        epoch_records=epoch_records_of(recipe, benchmark),
        schedule=schedule_of(recipe, benchmark, point, batch_size),
        tracks=_tracks(benchmark.target, untrained_of(recipe, benchmark)),
        point=point,
        batch_size=batch_size,
        settings=_FLAWED[outcome.flaw](settings, demanded) if outcome.flaw else settings,
        minutes=plan.minutes or recipe.accelerator_minutes / plan.accelerators**_SCALING,
        start_ms=_start_ms(plan),
    )


def _reference(plan: RunPlan, benchmark: Benchmark, recipe: Recipe) -> tuple[Reference, int]:
    """Return the reference points and the batch size, by default that of the nearest point."""
    preferred = plan.accelerators * recipe.samples_per_accelerator
    size = plan.batch_size or max(1, round(preferred))
    points = reference(plan.usage, plan.round, benchmark, recipe, size)
    return points, plan.batch_size or points.nearest(preferred)


def _fixed(plan: RunPlan, batch_size: int) -> dict[str, Setting]:
    """Return the hyperparameters that the plan decides."""
    names = optimizers(plan.usage, plan.round, plan.benchmark)
    fixed: dict[str, Setting] = {"global_batch_size": batch_size}
    if plan.optimizer or names:
        fixed["opt_name"] = plan.optimizer or names[0]
    if plan.usage == "hpc":
        fixed["number_of_nodes"] = plan.nodes
        fixed["accelerators_per_node"] = plan.accelerators_per_node
    return fixed


def _rules(plan: RunPlan, benchmark: Benchmark, sources: Sources) -> tuple[KeyedRules, KeyedRules]:
    """Return the rules of the division, and the Closed division's with those laid over."""

    def table(division: str, chosen: Iterable[tuple[str, Any]]) -> KeyedRules:
        kind = (plan.usage, plan.round, division, plan.benchmark)
        return rule_table(*kind, frozenset(chosen)).keys

    variants = solve(table("closed", ()), benchmark.variants, sources).items()
    demanded = table(plan.division, variants)
    return demanded, {**table("closed", variants), **demanded}


def _is_setting(key: str, rules: KeyedRules, recipe: Recipe) -> bool:
    """Return whether a key is a hyperparameter."""
    return not (
        key in _LIFECYCLE
        or key in recipe.in_each_epoch
        or key.startswith("submission_")
        or any(compiled.reaches for compiled in rules[key].rules)
    )


def _metrics(demanded: KeyedRules, benchmark: Benchmark) -> Iterator[str]:
    """Yield the keys with which the division's rules require an evaluation's result."""
    joined = benchmark.joined
    for key, key_rules in demanded.items():
        if any(compiled.reaches for compiled in key_rules.rules):
            yield joined.of if joined and key == joined.key else key
    if "eval_accuracy" in required(demanded):
        yield "eval_accuracy"


def _tracks(
    target: Mapping[str, Any], untrained: Number | Mapping[str, Number]
) -> Mapping[str, Track]:
    """Return the track of each metric to that of its limits which is nearer to ``untrained``."""
    if isinstance(untrained, Mapping):
        fields = target["fields"]
        return {name: _tracks(fields[name], start)[""] for name, start in untrained.items()}
    limits = filter(is_number, target.values())
    return {"": Track(untrained, min(limits, key=lambda limit: abs(limit - untrained)))}


def _start_ms(plan: RunPlan) -> int:
    if plan.start_ms is not None:
        return plan.start_ms
    day = load_round(plan.usage, plan.round).submission_date - _BEFORE_SUBMISSION
    return int(datetime.combine(day, time(), UTC).timestamp()) * 1000
