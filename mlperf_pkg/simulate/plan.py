"""Plans of runs, and all that they leave open: recipe, reference, rules and hyperparameters.

The recipe is the section ``simulation`` of a benchmark's rule file, in which everything has a
default. It says what the rules and the reference points do not. Its values are ``4``, ``{formula:
"0.1 * global_batch_size", digits: 3}`` or ``{candidates: [4, 5]}``; the parts of a list may be
computed as well.

Each key of a hyperparameter takes the first candidate that its rules accept: those of the recipe,
then those that the rules themselves suggest. A key comes after those that its rules or its formula
name, because the official checker reads in order.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from itertools import chain, product
from math import ceil, floor, inf, isfinite
from typing import Any, Literal

from msgspec import Struct, convert, field

from mlperf_pkg.errors import RulebookError, UserError
from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.results import rcp
from mlperf_pkg.rulebook.documents import ROUND, error_of, layers, rounds
from mlperf_pkg.rulebook.explain import candidates, fitting
from mlperf_pkg.rulebook.formula import NoAnswerError, Seen, evaluate, first_logged, names_in
from mlperf_pkg.rulebook.load import load_benchmark, load_round, simulation_of
from mlperf_pkg.rulebook.model import Benchmark, Rule, is_setting
from mlperf_pkg.rulebook.rounds import where_instead
from mlperf_pkg.rulebook.table import CompiledRule, KeyRules, rule_table

Number = int | float

Value = Any
"""A value as it is logged: any that JSON has."""

Assigned = Mapping[str, Any]
"""The hyperparameters chosen so far, by key."""

Setting = Any
"""A value as recipes write it: plain, computed from those chosen before it, or candidates."""

Settings = Mapping[str, Setting]
KeyedRules = Mapping[str, KeyRules]

# ---- the recipe -----------------------------------------------------------------------------


class Computed(Struct, frozen=True, forbid_unknown_fields=True):
    """A number from a formula, rounded to ``digits`` decimal places if these are set."""

    formula: str
    digits: int | None = None

    def number(self, values: Assigned) -> Number:
        """Return the number.

        Raises:
            ValueError: as ``evaluate``.
        """
        number = evaluate(self.formula, values)
        return number if self.digits is None else round(number, self.digits)


class Typical(Struct, frozen=True, forbid_unknown_fields=True):
    """A batch size, and how far runs of it train until they converge (``convergence.unit``)."""

    batch_size: int
    to_converge: tuple[Number, ...]


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one benchmark is trained, logged and evaluated, as far as the rules do not say.

    ``untrained`` is the metric of an untrained model, or each of several by its name. ``every``
    is the interval between evaluations and ``first`` (by default the same) where they begin, both
    in the unit of ``convergence``; where ``free_offset`` is set, they may begin anywhere in the
    first interval. Samples are rounded up to whole batches. ``epoch_records`` says what is logged
    as an epoch between two evaluations (by default each epoch, where convergence counts them, and
    else none), and ``in_each_epoch`` what else within it.

    ``always`` are logged in any case, ``values`` where the rules require the key; what neither
    says is taken from the reference's hyperparameters or from the rule. ``optimizers`` are those
    that the rules do not name, or their order, the default first. ``typical`` is for benchmarks
    without reference points. ``accelerator_minutes`` (on one accelerator) and
    ``samples_per_accelerator`` (of a batch) model a plausible machine. ``impossible`` says by
    division why the official checker accepts no log. ``of`` is the usage, round and benchmark.
    """

    untrained: Number | dict[str, Number] | None = None
    every: Number | Computed | None = None
    first: Number | Computed | None = None
    free_offset: bool = False
    epoch_records: Literal["each", "whole", "none"] | None = None
    in_each_epoch: dict[str, Value] = field(default_factory=dict)
    optimizers: tuple[str, ...] = ()
    always: dict[str, Setting] = field(default_factory=dict)
    values: dict[str, Setting] = field(default_factory=dict)
    typical: Typical | None = None
    accelerator_minutes: Number = 1000
    samples_per_accelerator: Number = 16
    impossible: dict[str, str] = field(default_factory=dict)
    of: tuple[str, str, str]

    def error(self, message: str, *steps: str) -> RulebookError:
        """Return an error about the part of the section that ``steps`` lead to, with its line."""
        return error_of(*self.of, ("simulation", *steps), message)


def recipe_of(usage: str, round_name: str, benchmark: str) -> Recipe:
    """Return the recipe of a benchmark, with the values of its round below its own."""
    own = simulation_of(usage, round_name, benchmark)
    shared = simulation_of(usage, round_name, ROUND).get("values", {})
    values = {**shared, **own.get("values", {})}
    return convert({**own, "values": values, "of": (usage, round_name, benchmark)}, Recipe)


# ---- the plan of a run ----------------------------------------------------------------------

PER_NODE = 8
"""The most accelerators of a node, by default."""


class RunOutcome(Struct, frozen=True, kw_only=True):
    """How a run ends, and the ``status`` that it then logs, where it logs its end at all.

    ``length`` is the number of evaluations, as a multiple of those that a converging run has.
    ``gap`` is the part of the way from the untrained metric to the target that always remains.
    An ``interrupted`` run stops in the middle of the training that follows. ``flaw`` is what is
    wrong with the hyperparameters that it logs: a required one is ``missing``, or one is ``wrong``
    by its rule. ``written`` is the part of the records that reach the file; where it is less than
    1, the next one is cut.
    """

    status: str | None
    length: float = 1.0
    gap: float = 0.0
    interrupted: bool = False
    flaw: Literal["missing", "wrong"] | None = None
    written: float = 1.0


_LARGEST = 1e12  # of numbers that are asked for: a time is still a time then

SUCCESS = RunOutcome(status="success")
FAILURES: Mapping[str, RunOutcome] = {
    "diverged": RunOutcome(status="aborted", length=1.25, gap=0.2),
    "aborted": RunOutcome(status="aborted", length=0.0, interrupted=True),
    "missing_key": RunOutcome(status="success", flaw="missing"),
    "wrong_value": RunOutcome(status="success", flaw="wrong"),
    "no_run_stop": RunOutcome(status=None),
    "truncated": RunOutcome(status="success", written=0.8),
}
"""``diverged``: the metric stalls short of the target, and the run is stopped a quarter later than
it should have converged. ``aborted``: it is stopped before its first evaluation. ``missing_key``
and ``wrong_value``: it converges, but a hyperparameter is not logged or is outside its rule.
``no_run_stop``: it converges and does not log its end. ``truncated``: the file ends in the middle
of a record."""


class RunPlan(Struct, frozen=True):
    """One run to simulate.

    ``round`` is written like ``2.0``; ``division`` is ``closed`` or ``open``; ``system`` is the
    system's id, logged as ``submission_platform``. ``minutes`` is the time to train, by default
    from a simple model of the benchmark and the ``accelerators``; a run that fails keeps the pace
    but not the length. ``batch_size`` is global, by default that of the reference convergence
    point nearest to what suits the accelerators; above the largest reference point no Closed
    result can pass the RCP test. ``node_size`` is the most accelerators that a node has, and nodes
    are equal. ``optimizer`` is the benchmark's first by default (resnet:
    ``lars``, or ``sgd``). ``failure`` is one of ``FAILURES``, or None. ``start_ms`` is the time of
    the first record in milliseconds since the epoch, by default within the round's submission
    period. ``usage`` is ``training`` or ``hpc``. ``statistics`` is the number of records of
    throughput and loss that a run logs besides; no rule requires them, but published logs consist
    mostly of them.
    """

    round: str
    benchmark: str
    division: str
    system: str
    organization: str
    minutes: float | None = None
    accelerators: int = 16
    batch_size: int | None = None
    optimizer: str | None = None
    failure: str | None = None
    start_ms: int | None = None
    usage: str = "training"
    statistics: int = 0
    node_size: int = PER_NODE

    @property
    def accelerators_per_node(self) -> int:
        """The accelerators of each node: as many as ``node_size`` allows if all nodes are equal."""
        sizes = range(self.node_size, 0, -1)
        return next(size for size in sizes if self.accelerators % size == 0)

    @property
    def nodes(self) -> int:
        """The number of hosts."""
        return self.accelerators // self.accelerators_per_node


def newest_round(usage: str, benchmark: str) -> str:
    """Return the newest round that has a benchmark.

    Raises:
        UserError: no round has it.
    """
    benchmarks = {name: load_round(usage, name).benchmarks for name in rounds(usage)}
    names = sorted({name for of_round in benchmarks.values() for name in of_round})
    look_up(f"benchmark of {usage}", benchmark, names)
    return [name for name, of_round in benchmarks.items() if benchmark in of_round][-1]


def refusal(usage: str, round_name: str, benchmark: str, division: str) -> str | None:
    """Return why the official checker accepts no log of a kind, None where it does."""
    return recipe_of(usage, round_name, benchmark).impossible.get(division)


def optimizers(usage: str, round_name: str, benchmark: str) -> tuple[str, ...]:
    """Return the optimizers that a run may name, the default first; none where it names none.

    Raises:
        UserError: the rulebook does not have the benchmark.
    """
    _, recipe = find_benchmark(usage, round_name, benchmark)
    rules = rule_table(usage, round_name, "closed", benchmark, frozenset()).keys.get("opt_name")
    constraints = rules.rules[0].rule.constraints if rules else {}
    allowed = constraints.get("one_of")
    if not allowed and "equals" in constraints:
        allowed = [constraints["equals"]]
    if not allowed:
        return recipe.optimizers
    preferred = [name for name in recipe.optimizers if name in allowed]
    return tuple(dict.fromkeys([*preferred, *allowed]))


def find_benchmark(usage: str, round_name: str, benchmark: str) -> tuple[Benchmark, Recipe]:
    """Return the rules and the recipe of a benchmark.

    Raises:
        UserError: the round does not have the benchmark.
        RulebookError: the round has it, but there is no rule file for it, or it is wrong.
    """
    look_up("round", round_name, rounds(usage))
    look_up_benchmark(usage, round_name, benchmark)
    rules = load_benchmark(usage, round_name, benchmark)
    if not rules:
        message = f"the list benchmarks has {benchmark}, but there is no file {benchmark}.yaml"
        raise error_of(usage, round_name, ROUND, ("benchmarks",), message)
    return rules, recipe_of(usage, round_name, benchmark)


def look_up_benchmark(usage: str, round_name: str, benchmark: str) -> None:
    """Raise UserError if a round does not have a benchmark; the message names one that does."""
    names = load_round(usage, round_name).benchmarks
    where = where_instead(usage, round_name, benchmark)
    look_up(f"benchmark of round {round_name}", benchmark, names, where)


def look_up(kind: str, name: str, names: Collection[str], where: str | None = None) -> None:
    """Raise UserError if ``name`` is not among ``names``.

    ``where`` ends the message; by default, that is the name that may be meant.
    """
    if name not in names:
        meant = did_you_mean(name, names) if where is None else where
        raise UserError(f"unknown {kind}: {name!r}; expected one of {', '.join(names)}{meant}")


def require_positive(name: str, number: float | None) -> None:
    """Raise UserError where ``number`` is given and is not positive, or no real one."""
    if number is not None and not 0 < number < inf:
        raise UserError(f"{name} is {number}; expected a positive number")
    if number is not None and number > _LARGEST:
        raise UserError(f"{name} is {number}; expected at most {_LARGEST:.0e}")


# ---- evaluations ----------------------------------------------------------------------------

_INTERVAL = re.compile(r"metadata\.(\w+) - previous\.\1 == ([^=<>?&|]+?)(?: \|\| .*)?")
"""A formula that fixes the interval between evaluations, its second group, or something else."""

_EVALUATIONS = 10
"""Evaluations until the reference converges, where nothing says how often there is one."""

_UNTRAINED_EXCESS = 3.0
"""An untrained loss relative to the target, where the recipe does not say it."""


def _schedule(
    recipe: Recipe, benchmark: Benchmark, point: rcp.ReferencePoint, batch_size: int
) -> tuple[Number, Number]:
    """Return the position of the first evaluation of a run, and the interval between two.

    Where the recipe does not say it, a rule may. Otherwise it is every epoch or, where convergence
    counts something else, ten times until ``point`` converges. A free offset is chosen as
    submitters do: an evaluation follows at once on the mean at which the reference converges.

    Raises:
        RulebookError: a formula is wrong, or the interval is not positive.
    """
    names: dict[str, Number] = {"global_batch_size": batch_size}

    def position(name: str, default: Number) -> Number:
        setting = getattr(recipe, name)
        try:
            number = setting.number(names) if isinstance(setting, Computed) else setting
        except ValueError as error:
            raise recipe.error(f"{name}: {error}", name) from error
        if number is None:
            number = default
        if benchmark.counted_by == "samples_count":
            return ceil(number / batch_size) * batch_size
        return number

    default = 1 if benchmark.unit == "epochs" else ceil(point.mean / _EVALUATIONS)
    every = position("every", next(_intervals(benchmark, names), default))
    if every <= 0:
        raise recipe.error(f"every is {every}; expected a positive number", "every")
    names["every"] = every
    first = position("first", every)
    if recipe.free_offset:
        first = (ceil(point.mean) - 1) % every + 1
    return first, every


def _intervals(benchmark: Benchmark, names: Mapping[str, Number]) -> Iterator[Number]:
    """Yield the intervals between evaluations that rules of the Closed division fix."""
    for rule in chain.from_iterable(benchmark.sections["closed"].values()):
        match = _INTERVAL.fullmatch(rule.formula or "")
        if match:
            with suppress(ValueError, OverflowError):  # it needs another key, or is not finite
                interval = evaluate(match[2], names)
                yield int(interval) if interval == floor(interval) else interval


def _tracks(recipe: Recipe, benchmark: Benchmark) -> dict[str, tuple[Number, Number]]:
    """Return the metric of an untrained model, and the limit of the target nearest to it.

    Where a benchmark has several metrics, they are by name, else by an empty one. By default an
    untrained metric is 0 where the target is a lower limit, and three times an upper limit.

    Raises:
        RulebookError: the recipe does not say it, and the target has both or neither limit.
    """
    targets: Mapping[str, Any] = benchmark.target.get("fields") or {"": benchmark.target}
    if not all(any(map(is_number, target.values())) for target in targets.values()):
        raise error_of(
            *recipe.of, ("target",), "the target has no number that a run can train towards"
        )
    starts: Any = recipe.untrained
    if starts is None:
        starts = {name: _untrained(target) for name, target in targets.items()}
    elif not isinstance(starts, dict):
        starts = {"": starts}
    if None in starts.values():
        raise recipe.error(
            "simulation lacks the field untrained, and the target does not say whether training"
            " begins below or above the target"
        )
    tracks = {}
    for name, start in starts.items():
        limits = filter(is_number, targets[name].values())
        tracks[name] = (start, min(limits, key=lambda limit: abs(limit - start)))
    return tracks


def _untrained(target: Mapping[str, Any]) -> Number | None:
    """Return a default; a strict limit opposite to an inclusive one only excludes nonsense."""
    upper = target.get("at_most")
    lower = target.get("at_least")
    if upper is None and lower is None:
        upper = target.get("below")
        lower = target.get("above")
    if lower is None and upper is not None:
        return upper * _UNTRAINED_EXCESS  # type: ignore[no-any-return]
    if upper is None and lower is not None:
        return 0.0
    return None


# ---- reference points ----------------------------------------------------------------------

_EPOCHS = 5
_STEPS = 100
"""What a benchmark without reference points takes to converge, if its recipe does not say it."""


def _followed(
    plan: RunPlan, benchmark: Benchmark, recipe: Recipe
) -> tuple[rcp.ReferencePoint, int, Settings]:
    """Return the reference point that a run follows, its batch size, and hyperparameters.

    The batch size is by default that of the nearest point. Of the points on either side of it, the
    slower is followed: no interpolation is slower.
    """
    preferred = plan.accelerators * recipe.samples_per_accelerator
    typical_size = plan.batch_size or max(1, round(preferred))
    points, hyperparameters = _references(plan, benchmark, recipe, typical_size)
    sizes = (int(point.batch_size) for point in points)
    batch_size = plan.batch_size or min(sizes, key=lambda size: abs(size - preferred))
    below = [point for point in points if point.batch_size <= batch_size]
    above = [point for point in points if point.batch_size >= batch_size]
    point = max([*below[-1:], *above[:1]], key=lambda point: point.mean)
    return point, batch_size, hyperparameters.get(point.batch_size, {})


def _references(
    plan: RunPlan, benchmark: Benchmark, recipe: Recipe, batch_size: int
) -> tuple[tuple[rcp.ReferencePoint, ...], Mapping[float, Settings]]:
    """Return points by ascending batch size, and the hyperparameters of each batch size.

    They are those of the round, else of the nearest later or earlier one, else a typical one, of
    ``batch_size`` where the recipe does not say it.
    """
    runs = benchmark.runs.required
    drop = benchmark.runs.drop
    names = rounds(plan.usage)
    index = names.index(plan.round)
    for name in (*names[index:], *reversed(names[:index])):
        ruleset = load_round(plan.usage, name).ruleset
        points = rcp.prune(
            rcp.reference_points(plan.usage, ruleset, benchmark.name, runs=runs, drop=drop)
        )
        if points:
            return points, rcp.reference_hyperparameters(plan.usage, ruleset, benchmark.name)
    length = _EPOCHS if benchmark.unit == "epochs" else _STEPS * batch_size
    typical = recipe.typical or Typical(batch_size, (length,))
    size = typical.batch_size
    lengths = typical.to_converge
    drop = min(drop, (len(lengths) - 1) // 2)
    return (rcp.ReferencePoint.from_runs("typical", size, lengths, runs=runs, drop=drop),), {}


# ---- hyperparameters that the rules accept --------------------------------------------------

_WRONG: tuple[Value, ...] = (-1, "", "wrong")
_TEXT = "unspecified"

_EQUATION = re.compile(r"value == ([^=<>?&|]+)|math\.abs\(value - ([^=<>?&|]+)\) <=? [^=<>?&|]+")
"""A formula that allows one value, exactly or nearly: the value, as a formula."""


class ValueSources(Struct, frozen=True):
    """Where values come from.

    A key of ``fixed`` takes its value from there alone. Others prefer the values of the ``recipe``,
    then those of the ``reference``, then what their rules suggest.
    """

    fixed: Settings
    reference: Settings
    recipe: Recipe

    def options(self, key: str, key_rules: KeyRules | None, assigned: Assigned) -> Iterator[Value]:
        """Yield the candidates for a key.

        Raises:
            RulebookError: a formula of the recipe is wrong.
        """
        is_fixed = key in self.fixed
        try:
            for table in (self.fixed,) if is_fixed else (self.recipe.values, self.reference):
                for option in _options(table[key]) if key in table else ():
                    yield _value(option, assigned)
        except ValueError as error:
            raise self.recipe.error(f"{key}: {error}", "values", key) from error
        if is_fixed:
            return
        for compiled in key_rules.rules if key_rules else ():
            constraints = compiled.rule.constraints
            if constraints.get("same_as") in assigned:
                yield assigned[constraints["same_as"]]
            yield from candidates(constraints)
            if "not_empty" in constraints or constraints.get("type") == "text":
                yield _TEXT
            yield from _solutions(compiled.rule.formula or "", assigned)
        yield 1


def _options(setting: Setting) -> Sequence[Setting]:
    """Return the candidates of a setting, or the setting where it has none."""
    if isinstance(setting, dict) and "candidates" in setting:
        candidates: Sequence[Setting] = setting["candidates"]
        return candidates
    return [setting]


def _solved(rules: KeyedRules, keys: Iterable[str], sources: ValueSources) -> dict[str, Value]:
    """Return a value for each of ``keys``, in an order in which the rules can be checked.

    That is the first candidate that the rules of the key allow.

    Raises:
        UserError: the rules of a key refuse all candidates.
        RulebookError: a formula of the recipe is wrong.
    """
    assigned: dict[str, Value] = {}
    for key in _in_order(list(keys), rules, sources):
        refused = []
        for value in sources.options(key, rules.get(key), assigned):
            rule = _broken(rules, key, value, assigned)
            if rule is None:
                assigned[key] = value
                break
            refused.append(f"{shown(value)} (rule {rule.code})")
        else:
            file, _ = next(layers(*sources.recipe.of))
            remedy = f"; give a value in simulation.values of {file.shown}"
            raise UserError(
                f"the rules do not allow {key} {refused[0]}{'' if key in sources.fixed else remedy}"
            )
    return assigned


def _in_order(wanted: Sequence[str], rules: KeyedRules, sources: ValueSources) -> list[str]:
    """Return the keys, each after those that its rules and its formula name."""
    ordered: dict[str, None] = {}

    def append(key: str, above: frozenset[str]) -> None:
        names = _names_of(sources.fixed.get(key, sources.recipe.values.get(key)))
        of_key = rules.get(key)
        if of_key:
            names |= of_key.related | of_key.ordered
        for other in wanted:
            if other not in above and other in names:
                append(other, above | {other})
        ordered.setdefault(key)

    for key in wanted:
        append(key, frozenset((key,)))
    return list(ordered)


def _value(setting: Setting, assigned: Assigned) -> Value:
    """Return the value of a setting without candidates.

    Raises:
        ValueError: a formula is wrong, or needs a key that is not in ``assigned``.
    """
    if isinstance(setting, dict):
        return convert(setting, Computed).number(assigned)
    if isinstance(setting, list):
        return [_value(part, assigned) for part in setting]
    return setting


def _names_of(setting: Setting) -> frozenset[str]:
    """Return the names in the formulas of a setting."""
    if isinstance(setting, dict):
        if "formula" in setting:
            return names_in(setting["formula"])
        setting = setting.get("candidates")
    return frozenset().union(*map(_names_of, setting if isinstance(setting, list) else ()))


def _solutions(formula: str, assigned: Assigned) -> Iterator[Value]:
    """Yield the value that a formula fixes, as an integer first where it is whole."""
    equation = _EQUATION.fullmatch(formula)
    if equation:
        with suppress(ValueError):  # another key is absent
            number = evaluate(equation[1] or equation[2], assigned)
            if isfinite(number):
                if number == int(number):
                    yield int(number)
                yield number


def _broken(
    rules: KeyedRules, key: str, value: Value, assigned: Assigned, *, official: bool = False
) -> Rule | None:
    """Return the first rule that ``value`` breaks after ``assigned`` was logged, or None.

    With ``official``, only rules that the official checker has are checked.
    """
    key_rules = rules.get(key)
    if key_rules is None:
        return None
    seen = {
        name: first_logged(Record(name, 0.0, setting, None)) for name, setting in assigned.items()
    }
    record = Record(key, 0.0, value, metadata_of(key_rules))
    for compiled in key_rules.rules:
        if official and not compiled.rule.official:
            continue
        if not _holds(compiled, record, seen):
            return compiled.rule
    return None


def _holds(compiled: CompiledRule, record: Record, seen: Seen) -> bool:
    tests = [check.test for check in compiled.checks]
    formula = compiled.in_passing or compiled.at_the_end
    if formula:
        tests.append(formula.holds)
    try:
        return all(test(record, seen) for test in tests)
    except (TypeError, ValueError, LookupError, ArithmeticError, NoAnswerError):
        return False


def _required(rules: KeyedRules, *, official: bool = False) -> Iterator[str]:
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
            metadata[name] = next(fitting(fields.get(name, {})), 1)
    return metadata


def _flawed(settings: Assigned, rules: KeyedRules, flaw: str) -> Assigned:
    """Return the settings with a flaw that the official checker refuses, in the last possible.

    A required one is ``missing``, or has the first of the ``wrong`` values that a rule refuses.
    """
    if flaw == "missing":
        needed = set(_required(rules, official=True))
        gone = [key for key in settings if key in needed][-1]
        return {key: value for key, value in settings.items() if key != gone}
    wrong: dict[str, Any] = {}
    for key, value in product(settings, _WRONG):
        rule = _broken(rules, key, value, settings, official=True)
        if rule and not rule.fatal:
            wrong.setdefault(key, value)
    last = [*wrong][-1]
    return {**settings, last: wrong[last]}


# ---- everything decided ---------------------------------------------------------------------

_SCALING = 0.9
"""N accelerators train N ** 0.9 times as fast as one."""

_BEFORE_SUBMISSION = timedelta(weeks=2)


class Setup(Struct, frozen=True):
    """A plan whose names are looked up and whose defaults are filled in.

    ``demanded`` are the rules of the run's division, ``rules`` those and, for keys that they do
    not name, the Closed division's. ``metrics`` are the keys that log an evaluation's result.
    ``schedule`` has the position of the first evaluation and the interval between two. ``tracks``
    has the way of a metric, from an untrained model to the target, by its name, which is empty
    where there is only one. ``point`` is the reference convergence point whose runs this one
    follows, ``settings`` are the hyperparameters to log, in order.
    """

    plan: RunPlan
    benchmark: Benchmark
    recipe: Recipe
    outcome: RunOutcome
    demanded: KeyedRules
    rules: KeyedRules
    metrics: tuple[str, ...]
    schedule: tuple[Number, Number]
    tracks: Mapping[str, tuple[Number, Number]]
    point: rcp.ReferencePoint
    settings: Assigned
    minutes: float
    start_ms: int


def resolve(plan: RunPlan) -> Setup:
    """Look up the names of ``plan`` and fill in its defaults.

    Raises:
        UserError: an unknown round, benchmark or optimizer, minutes that are not positive, a batch
            size that the rules forbid, or a run of which the official checker accepts no log.
        RulebookError: the recipe of the benchmark is wrong, or lacks something.
    """
    benchmark, recipe = find_benchmark(plan.usage, plan.round, plan.benchmark)
    require_positive("minutes", plan.minutes)
    _require_possible(plan, recipe)
    point, batch_size, hyperparameters = _followed(plan, benchmark, recipe)
    sources = ValueSources({**_fixed(plan, batch_size), **recipe.always}, hyperparameters, recipe)
    demanded, rules = _rules(plan, benchmark, sources)
    outcome = FAILURES[plan.failure] if plan.failure is not None else SUCCESS
    settings: Assigned = _solved(rules, _settings(rules, sources), sources)
    if outcome.flaw:
        settings = _flawed(settings, demanded, outcome.flaw)
    return Setup(
        plan=plan,
        benchmark=benchmark,
        recipe=recipe,
        outcome=outcome,
        demanded=demanded,
        rules=rules,
        metrics=tuple(dict.fromkeys(_metrics(demanded, benchmark))),
        schedule=_schedule(recipe, benchmark, point, batch_size),
        tracks=_tracks(recipe, benchmark),
        point=point,
        settings=settings,
        minutes=plan.minutes or recipe.accelerator_minutes / plan.accelerators**_SCALING,
        start_ms=_start_ms(plan) if plan.start_ms is None else plan.start_ms,
    )


def _require_possible(plan: RunPlan, recipe: Recipe) -> None:
    reason = recipe.impossible.get(plan.division)
    if reason:
        raise UserError(
            f"the official checker accepts no {plan.division} run of {plan.benchmark}"
            f" in round {plan.round}: {reason}"
        )


def _settings(rules: KeyedRules, sources: ValueSources) -> list[str]:
    """Return the keys of the hyperparameters that a run logs."""
    required = []
    for key in _required(rules):
        key_rules = [compiled.rule for compiled in rules[key].rules]
        if key not in sources.recipe.in_each_epoch and is_setting(key, key_rules):
            required.append(key)
    return list(dict.fromkeys([*sources.fixed, *required]))


def _start_ms(plan: RunPlan) -> int:
    """Return the midnight of a day in the submission period of the round."""
    day = load_round(plan.usage, plan.round).submission_date - _BEFORE_SUBMISSION
    return int(datetime.combine(day, time(), UTC).timestamp()) * 1000


def _fixed(plan: RunPlan, batch_size: int) -> dict[str, Setting]:
    """Return the hyperparameters that the plan decides.

    Raises:
        UserError: an unknown optimizer.
    """
    names = optimizers(plan.usage, plan.round, plan.benchmark)
    fixed: dict[str, Setting] = {"global_batch_size": batch_size}
    if plan.optimizer is not None:
        look_up(f"optimizer of {plan.benchmark}", plan.optimizer, names)
    if names:
        fixed["opt_name"] = plan.optimizer or names[0]
    if plan.usage == "hpc":
        fixed["number_of_nodes"] = plan.nodes
        fixed["accelerators_per_node"] = plan.accelerators_per_node
    return fixed


def _rules(
    plan: RunPlan, benchmark: Benchmark, sources: ValueSources
) -> tuple[KeyedRules, KeyedRules]:
    """Return the rules of the division, and the Closed division's with those laid over."""

    def table(division: str, chosen: Iterable[tuple[str, Any]]) -> KeyedRules:
        kind = (plan.usage, plan.round, division, plan.benchmark)
        return rule_table(*kind, frozenset(chosen)).keys

    variants = _solved(table("closed", ()), benchmark.variants, sources).items()
    demanded = table(plan.division, variants)
    return demanded, {**table("closed", variants), **demanded}


def _metrics(demanded: KeyedRules, benchmark: Benchmark) -> Iterator[str]:
    """Yield the keys with which the division's rules require an evaluation's result."""
    joined = benchmark.joined
    for key, key_rules in demanded.items():
        if any(compiled.reaches for compiled in key_rules.rules):
            yield joined.of if joined and key == joined.key else key
    if "eval_accuracy" in _required(demanded):
        yield "eval_accuracy"
