"""Plans of runs, and how a benchmark is trained and evaluated, by the section ``simulation``.

That is a section of its rule file, in which everything has a default. It says what the rules and
the reference points do not. Its values are ``4``, ``{formula: "0.1 * global_batch_size", digits:
3}`` or ``{candidates: [4, 5]}``; the parts of a list may be computed as well.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import chain, product
from math import ceil, floor, inf
from typing import Any

from msgspec import Struct, convert, field
from msgspec.structs import replace

from mlperf_pkg.errors import RulebookError, UserError
from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.results.rcp import (
    ReferencePoint,
    prune,
    reference_hyperparameters,
    reference_points,
)
from mlperf_pkg.rulebook.documents import ROUND, error_of, layers, rounds, usages
from mlperf_pkg.rulebook.formula import evaluate, names_in
from mlperf_pkg.rulebook.load import load_benchmark, load_round, simulation_of
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark
from mlperf_pkg.rulebook.rounds import where_instead
from mlperf_pkg.rulebook.table import rule_table

# ---- values: plain, computed by a formula, or several to try in turn ------------------------

Value = Any
"""A value as it is logged: any that JSON has."""

Assigned = Mapping[str, Any]
"""The hyperparameters chosen so far, by key."""

Setting = Any
"""A value as recipes write it: plain, computed from those chosen before it, or candidates."""


class EpochRecords(StrEnum):
    """What is logged as an epoch of its own between two evaluations."""

    EACH = "each"
    WHOLE = "whole"
    NONE = "none"


class Computed(Struct, frozen=True, forbid_unknown_fields=True):
    """A number from a formula, rounded to ``digits`` decimal places if these are set."""

    formula: str
    digits: int | None = None

    def number(self, values: Assigned) -> int | float:
        """Return the number.

        Raises:
            ValueError: as ``evaluate``.
        """
        number = evaluate(self.formula, values)
        return number if self.digits is None else round(number, self.digits)


def candidates(setting: Setting, assigned: Assigned) -> Iterator[Value]:
    """Yield the values of a setting, the preferred one first.

    Raises:
        ValueError: a formula is wrong, or needs a key that is not in ``assigned``.
    """
    for option in _options(setting):
        yield _value(option, assigned)


def names_of(setting: Setting) -> frozenset[str]:
    """Return the names in the formulas of a setting."""
    if isinstance(setting, dict) and "formula" in setting:
        return names_in(setting["formula"])
    parts = _options(setting)
    if parts == [setting]:
        parts = setting if isinstance(setting, list) else []
    return frozenset().union(*map(names_of, parts))


def _options(setting: Setting) -> list[Setting]:
    if isinstance(setting, dict) and "candidates" in setting:
        return list(setting["candidates"])
    return [setting]


def _value(setting: Setting, assigned: Assigned) -> Value:
    if isinstance(setting, dict):
        return convert(setting, Computed).number(assigned)
    if isinstance(setting, list):
        return [_value(part, assigned) for part in setting]
    return setting


# ---- the recipe -----------------------------------------------------------------------------

Number = int | float
Quantity = Number | Computed

_INTERVAL = re.compile(r"metadata\.(\w+) - previous\.\1 == ([^=<>?&|]+?)(?: \|\| .*)?")
"""A formula that fixes the interval between evaluations, its second group, or something else."""

_EVALUATIONS = 10
"""Evaluations until the reference converges, where nothing says how often there is one."""

_UNTRAINED_EXCESS = 3.0
"""An untrained loss relative to the target, where the recipe does not say it."""


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
    as an epoch, and ``in_each_epoch`` what else within it.

    ``always`` are logged in any case, ``values`` where the rules require the key; what neither
    says is taken from the reference's hyperparameters or from the rule. ``optimizers`` are those
    that the rules do not name, or their order, the default first. ``typical`` is for benchmarks
    without reference points. ``accelerator_minutes`` (on one accelerator) and
    ``samples_per_accelerator`` (of a batch) model a plausible machine. ``impossible`` says by
    division why the official checker accepts no log. ``of`` is the usage, round and benchmark.
    """

    untrained: Number | dict[str, Number] | None = None
    every: Quantity | None = None
    first: Quantity | None = None
    free_offset: bool = False
    epoch_records: EpochRecords | None = None
    in_each_epoch: dict[str, Value] = field(default_factory=dict)
    optimizers: tuple[str, ...] = ()
    always: dict[str, Setting] = field(default_factory=dict)
    values: dict[str, Setting] = field(default_factory=dict)
    typical: Typical | None = None
    accelerator_minutes: Number = 1000
    samples_per_accelerator: Number = 16
    impossible: dict[str, str] = field(default_factory=dict)
    of: tuple[str, str, str]

    @property
    def file(self) -> str:
        """The rule file that says the most recent about the benchmark, for messages."""
        file, _ = next(layers(*self.of))
        return file.shown

    def error(self, message: str, *steps: str) -> RulebookError:
        """Return an error about the part of the section that ``steps`` lead to, with its line."""
        return error_of(*self.of, ("simulation", *steps), message)


class Schedule(Struct, frozen=True):
    """The positions of the first evaluation and of each that follows, in the benchmark's unit."""

    first: Number
    every: Number


def recipe_of(usage: str, round_name: str, benchmark: str) -> Recipe:
    """Return the recipe of a benchmark, with the values of its round below its own."""
    own = simulation_of(usage, round_name, benchmark)
    shared = simulation_of(usage, round_name, ROUND).get("values", {})
    document = {
        **own,
        "values": {**shared, **own.get("values", {})},
        "of": (usage, round_name, benchmark),
    }
    return convert(document, Recipe)


def epoch_records_of(recipe: Recipe, benchmark: Benchmark) -> EpochRecords:
    """Return what is logged as an epoch: by default each, where convergence counts epochs."""
    counts_epochs = benchmark.unit == "epochs"
    return recipe.epoch_records or (EpochRecords.EACH if counts_epochs else EpochRecords.NONE)


def schedule_of(
    recipe: Recipe, benchmark: Benchmark, point: ReferencePoint, batch_size: int
) -> Schedule:
    """Return when a run of a batch size is evaluated.

    Where the recipe does not say it, a rule may. Otherwise it is every epoch or, where convergence
    counts something else, ten times until ``point`` converges. A free offset is chosen as
    submitters do: an evaluation follows at once on the mean at which the reference converges.

    Raises:
        RulebookError: a formula is wrong, or the interval is not positive.
    """
    names: dict[str, Number] = {"global_batch_size": batch_size}
    default = 1 if benchmark.unit == "epochs" else ceil(point.mean / _EVALUATIONS)
    interval = next(_intervals(benchmark, names), default)
    every = _position(recipe, benchmark, "every", interval, names)
    if every <= 0:
        raise recipe.error(f"every is {every}; expected a positive number", "every")
    first = _position(recipe, benchmark, "first", every, {**names, "every": every})
    if recipe.free_offset:
        first = (ceil(point.mean) - 1) % every + 1
    return Schedule(first, every)


def _intervals(benchmark: Benchmark, names: Mapping[str, Number]) -> Iterator[Number]:
    """Yield the intervals between evaluations that rules of the Closed division fix."""
    for rule in chain.from_iterable(benchmark.sections["closed"].values()):
        if match := _INTERVAL.fullmatch(rule.formula or ""):
            with suppress(ValueError, OverflowError):  # it needs another key, or is not finite
                interval = evaluate(match[2], names)
                yield int(interval) if interval == floor(interval) else interval


def untrained_of(recipe: Recipe, benchmark: Benchmark) -> Number | Mapping[str, Number]:
    """Return the metric of an untrained model, or each of several by its name.

    By default it is 0 where the target is a lower limit, and three times an upper limit.

    Raises:
        RulebookError: the recipe does not say it, and the target has both or neither limit.
    """
    fields: Mapping[str, Any] = benchmark.target.get("fields", {})
    targets = list(fields.values()) or [benchmark.target]
    if not all(any(map(is_number, target.values())) for target in targets):
        raise error_of(*recipe.of, ("target",), "target has no number to train towards")
    if recipe.untrained is not None:
        return recipe.untrained
    defaults = [_untrained(target) for target in targets]
    starts = [start for start in defaults if start is not None]
    if len(starts) < len(defaults):
        raise recipe.error(
            "simulation has no untrained, and the target does not say whether training begins"
            " below or above it"
        )
    return dict(zip(fields, starts, strict=True)) if fields else starts[0]


def _untrained(target: Mapping[str, Any]) -> Number | None:
    """Return a default; a strict limit opposite to an inclusive one only excludes nonsense."""
    upper, lower = target.get("at_most"), target.get("at_least")
    if upper is None and lower is None:
        upper, lower = target.get("below"), target.get("above")
    if upper is None and lower is not None:
        return 0.0
    return upper * _UNTRAINED_EXCESS if lower is None and upper is not None else None


def _position(
    recipe: Recipe,
    benchmark: Benchmark,
    name: str,
    default: Number,
    names: Mapping[str, Number],
) -> Number:
    """Return the position that a field of the recipe gives."""
    quantity: Quantity | None = getattr(recipe, name)
    if quantity is None:
        quantity = default
    try:
        number = quantity.number(names) if isinstance(quantity, Computed) else quantity
    except ValueError as error:
        raise recipe.error(f"{name}: {error}", name) from error
    if benchmark.counted_by != "samples_count":
        return number
    batch_size = names["global_batch_size"]
    return ceil(number / batch_size) * batch_size


# ---- reference points ----------------------------------------------------------------------

_EPOCHS, _STEPS = 5, 100
"""What a benchmark without reference points takes to converge, if its recipe does not say it."""


class Reference(Struct, frozen=True):
    """Reference points by ascending batch size, and the hyperparameters of each batch size."""

    points: tuple[ReferencePoint, ...]
    hyperparameters: Mapping[float, Mapping[str, Any]]

    def nearest(self, batch_size: float) -> int:
        """Return the batch size of the point that is nearest."""
        sizes = (int(point.batch_size) for point in self.points)
        return min(sizes, key=lambda size: abs(size - batch_size))

    def point(self, batch_size: float) -> ReferencePoint:
        """Return the slower of the points on either side: no interpolation is slower."""
        below = [point for point in self.points if point.batch_size <= batch_size]
        above = [point for point in self.points if point.batch_size >= batch_size]
        return max([*below[-1:], *above[:1]], key=lambda point: point.mean)


def reference(
    usage: str, round_name: str, benchmark: Benchmark, recipe: Recipe, batch_size: int
) -> Reference:
    """Return the points of the round, else of the nearest later or earlier one, else a typical one.

    ``batch_size`` is that of the typical point where the recipe does not say it.
    """
    runs, drop = benchmark.runs.required, benchmark.runs.drop
    names = rounds(usage)
    index = names.index(round_name)
    for name in (*names[index:], *reversed(names[:index])):
        ruleset = load_round(usage, name).ruleset
        if points := prune(reference_points(usage, ruleset, benchmark.name, runs=runs, drop=drop)):
            return Reference(points, reference_hyperparameters(usage, ruleset, benchmark.name))
    length = _EPOCHS if benchmark.unit == "epochs" else _STEPS * batch_size
    typical = recipe.typical or Typical(batch_size, (length,))
    drop = min(drop, (len(typical.to_converge) - 1) // 2)
    point = ReferencePoint.from_runs(
        "typical", typical.batch_size, typical.to_converge, runs=runs, drop=drop
    )
    return Reference((point,), {})


PER_NODE = 8
"""The most accelerators of a node, by default."""


class Flaw(StrEnum):
    """What is wrong with the hyperparameters that a run logs."""

    MISSING = "a required one is absent"
    WRONG = "one is outside its rule"


class Outcome(Struct, frozen=True, kw_only=True):
    """How a run ends, and the ``status`` that it then logs, where it logs its end at all.

    ``length`` is the number of evaluations, as a multiple of those that a converging run has.
    ``gap`` is the part of the way from the untrained metric to the target that always remains.
    An ``interrupted`` run stops in the middle of the training that follows. ``written`` is the
    part of the records that reach the file; where it is less than 1, the next one is cut.
    """

    status: str | None
    length: float = 1.0
    gap: float = 0.0
    interrupted: bool = False
    flaw: Flaw | None = None
    written: float = 1.0


_LARGEST = 1e12  # of numbers that are asked for: a time is still a time then

SUCCESS = Outcome(status="success")
FAILURES: Mapping[str, Outcome] = {
    "diverged": Outcome(status="aborted", length=1.25, gap=0.2),
    "aborted": Outcome(status="aborted", length=0.0, interrupted=True),
    "missing_key": Outcome(status="success", flaw=Flaw.MISSING),
    "wrong_value": Outcome(status="success", flaw=Flaw.WRONG),
    "no_run_stop": Outcome(status=None),
    "truncated": Outcome(status="success", written=0.8),
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


def plans(system: str, organization: str) -> Iterator[RunPlan]:
    """Yield a plan of every kind of run that there is, in the order of the rulebook.

    A kind is a usage, round, benchmark, division and optimizer. Kinds of which the official
    checker accepts no log are left out.
    """
    kinds = (
        (usage, name, benchmark, division)
        for usage in usages()
        for name in rounds(usage)
        for benchmark, division in product(load_round(usage, name).benchmarks, DIVISIONS)
    )
    for usage, name, benchmark, division in kinds:
        if not refusal(usage, name, benchmark, division):
            plan = RunPlan(name, benchmark, division, system, organization, usage=usage)
            for optimizer in optimizers(usage, name, benchmark) or (None,):
                yield replace(plan, optimizer=optimizer)


def newest_round(usage: str, benchmark: str) -> str:
    """Return the newest round that has a benchmark.

    Raises:
        UserError: no round has it.
    """
    look_up("usage", usage, usages())
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
    allowed = constraints.get("one_of") or [
        constraints[name] for name in ("equals",) if name in constraints
    ]
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
    look_up("usage", usage, usages())
    look_up("round", round_name, rounds(usage))
    names = load_round(usage, round_name).benchmarks
    where = where_instead(usage, round_name, benchmark)
    look_up(f"benchmark of round {round_name}", benchmark, names, where)
    rules = load_benchmark(usage, round_name, benchmark)
    if not rules:
        message = f"benchmarks lists {benchmark}, which has no file {benchmark}.yaml"
        raise error_of(usage, round_name, ROUND, ("benchmarks",), message)
    return rules, recipe_of(usage, round_name, benchmark)


def look_up(kind: str, name: str, names: Collection[str], where: str | None = None) -> None:
    """Raise UserError if ``name`` is not among ``names``.

    ``where`` ends the message; by default, that is the name that may be meant.
    """
    if name not in names:
        meant = did_you_mean(name, names) if where is None else where
        raise UserError(f"unknown {kind}: {name!r} (known: {', '.join(names)}){meant}")


def require_positive(name: str, number: float | None) -> None:
    """Raise UserError where ``number`` is given and is not positive, or no real one."""
    if number is not None and not 0 < number < inf:
        raise UserError(f"{name} must be a positive number, not {number}")
    if number is not None and number > _LARGEST:
        raise UserError(f"{name} must be at most {_LARGEST:.0e}, not {number}")


def require_sound(plan: RunPlan) -> None:
    """Raise UserError where a name of ``plan`` is unknown or a number is not positive."""
    find_benchmark(plan.usage, plan.round, plan.benchmark)
    look_up("division", plan.division, DIVISIONS)
    if plan.optimizer is not None:
        names = optimizers(plan.usage, plan.round, plan.benchmark)
        look_up(f"optimizer of {plan.benchmark}", plan.optimizer, names)
    if plan.failure is not None:
        look_up("failure", plan.failure, FAILURES)
    for name in ("minutes", "accelerators", "batch_size"):
        require_positive(name, getattr(plan, name))
    if plan.statistics < 0:
        raise UserError(f"statistics must not be negative, not {plan.statistics}")
    if reason := refusal(plan.usage, plan.round, plan.benchmark, plan.division):
        raise UserError(
            f"the official checker accepts no {plan.division} run of {plan.benchmark}"
            f" in round {plan.round}: {reason}"
        )
