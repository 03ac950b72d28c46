"""How a benchmark is trained and evaluated: the section ``simulation`` of its rule file.

Everything in it has a default. A recipe says what the rules and the reference points do not. Its
values are ``4``, ``{formula: "0.1 * global_batch_size", digits: 3}`` or ``{candidates: [4, 5]}``;
the parts of a list may be computed as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import chain
from math import ceil, floor
from typing import Any

from msgspec import Struct, convert, field

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.results.rcp import (
    ReferencePoint,
    prune,
    reference_hyperparameters,
    reference_points,
)
from mlperf_pkg.rulebook.documents import ROUND, error_of, layers, rounds
from mlperf_pkg.rulebook.formula import evaluate, names_in
from mlperf_pkg.rulebook.load import load_round, simulation_of
from mlperf_pkg.rulebook.model import Benchmark

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
