"""A plan with everything decided that it leaves open: rules, reference, hyperparameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.results.rcp import ReferencePoint
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.rulebook.table import rule_table
from mlperf_pkg.simulate.hyperparameters import (
    KeyedRules,
    Sources,
    required,
    solve,
    with_wrong,
    without_required,
)
from mlperf_pkg.simulate.plan import (
    FAILURES,
    SUCCESS,
    Flaw,
    Outcome,
    RunPlan,
    find_benchmark,
    optimizers,
    require_sound,
)
from mlperf_pkg.simulate.recipe import (
    Assigned,
    EpochRecords,
    Number,
    Recipe,
    Reference,
    Schedule,
    Setting,
    epoch_records_of,
    reference,
    schedule_of,
    untrained_of,
)

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
