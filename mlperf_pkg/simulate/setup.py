"""A plan with everything decided that it leaves open: rules, reference, hyperparameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

from msgspec import Struct

from mlperf_pkg.results.rcp import ReferencePoint
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.rulebook.table import rule_table
from mlperf_pkg.simulate import settings
from mlperf_pkg.simulate.hyperparameters import (
    KeyedRules,
    required,
    solve,
    with_wrong,
    without_required,
)
from mlperf_pkg.simulate.model import Flaw, Known, Outcome, Recipe, Setting
from mlperf_pkg.simulate.plan import (
    FAILURES,
    SUCCESS,
    RunPlan,
    find_benchmark,
    optimizers,
    require_sound,
)
from mlperf_pkg.simulate.reference import reference

_SCALING = 0.9
"""N accelerators train N ** 0.9 times as fast as one."""

_BEFORE_SUBMISSION = timedelta(weeks=2)
_PER_NODE = 8
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
    """One metric's way, from an untrained model to the target."""

    untrained: float
    target: float


class Setup(Struct, frozen=True):
    """A plan whose names are looked up and whose defaults are filled in.

    ``demanded`` are the rules of the run's division, ``rules`` those and, where they ask nothing
    of a key, the Closed division's. ``metrics`` names the keys that log an evaluation's result,
    ``position`` the metadata that counts the training before it, in the benchmark's unit.
    ``tracks`` has a metric by its name, which is empty where there is but one. ``point`` is the
    reference convergence point whose runs this one is like, ``settings`` the hyperparameters to
    log, in order.
    """

    plan: RunPlan
    benchmark: Benchmark
    recipe: Recipe
    outcome: Outcome
    demanded: KeyedRules
    rules: KeyedRules
    metrics: tuple[str, ...]
    position: str
    tracks: Mapping[str, Track]
    point: ReferencePoint
    batch_size: int
    settings: Known
    minutes: float
    start_ms: int


def resolve(plan: RunPlan) -> Setup:
    """Look up the names of ``plan`` and fill in its defaults.

    Raises:
        UserError: an unknown usage, round, benchmark, division, optimizer or failure, a number
            that is not positive, a batch size that the rules forbid, or a run of which the
            official checker accepts no log (``IMPOSSIBLE``).
    """
    require_sound(plan)
    benchmark, recipe = find_benchmark(plan.usage, plan.round, plan.benchmark)
    points = reference(plan.usage, plan.round, benchmark, recipe)
    batch_size = plan.batch_size or points.nearest(
        plan.accelerators * recipe.samples_per_accelerator
    )
    point = points.point(batch_size)
    tables = (recipe.values, settings.COMMON, points.hyperparameters.get(point.batch_size, {}))
    sources = ({**_fixed(plan, batch_size), **recipe.always}, *tables)
    demanded, rules = _rules(plan, benchmark, sources)
    outcome = FAILURES[plan.failure] if plan.failure is not None else SUCCESS
    metrics = tuple(dict.fromkeys(_metrics(demanded, benchmark)))
    wanted = (*sources[0], *(key for key in required(rules) if _is_setting(key, rules, recipe)))
    chosen = solve(rules, dict.fromkeys(wanted), sources)
    return Setup(
        plan=plan,
        benchmark=benchmark,
        recipe=recipe,
        outcome=outcome,
        demanded=demanded,
        rules=rules,
        metrics=metrics,
        position=_position(benchmark),
        tracks=_tracks(benchmark.target, recipe.untrained),
        point=point,
        batch_size=batch_size,
        settings=_FLAWED[outcome.flaw](chosen, demanded) if outcome.flaw else chosen,
        minutes=plan.minutes or recipe.accelerator_minutes / plan.accelerators**_SCALING,
        start_ms=_start_ms(plan),
    )


def _fixed(plan: RunPlan, batch_size: int) -> dict[str, Setting]:
    """The hyperparameters that the plan decides."""
    names = optimizers(plan.usage, plan.round, plan.benchmark)
    fixed: dict[str, Setting] = {"global_batch_size": batch_size}
    if plan.optimizer or names:
        fixed["opt_name"] = plan.optimizer or names[0]
    if plan.usage == "hpc":
        fixed["number_of_nodes"] = -(-plan.accelerators // _PER_NODE)
        fixed["accelerators_per_node"] = min(plan.accelerators, _PER_NODE)
    return fixed


def _rules(
    plan: RunPlan, benchmark: Benchmark, sources: tuple[Mapping[str, Setting], ...]
) -> tuple[KeyedRules, KeyedRules]:
    """The rules of the division, and the Closed division's with those laid over."""

    def table(division: str, chosen: Iterable[tuple[str, Any]]) -> KeyedRules:
        kind = (plan.usage, plan.round, division, plan.benchmark)
        return rule_table(*kind, frozenset(chosen)).keys

    variants = solve(table("closed", ()), benchmark.variants, sources).items()
    demanded = table(plan.division, variants)
    return demanded, {**table("closed", variants), **demanded}


def _is_setting(key: str, rules: KeyedRules, recipe: Recipe) -> bool:
    """Whether a key is a hyperparameter."""
    return not (
        key in _LIFECYCLE
        or key in recipe.lap_records
        or key.startswith("submission_")
        or any(each.reaches for each in rules[key].rules)
    )


def _metrics(demanded: KeyedRules, benchmark: Benchmark) -> Iterator[str]:
    """The keys by which the division's rules ask for an evaluation's result."""
    joined = benchmark.joined
    for key, asked in demanded.items():
        if any(each.reaches for each in asked.rules):
            yield joined.of if joined and key == joined.key else key
    if "eval_accuracy" in required(demanded):
        yield "eval_accuracy"


def _position(benchmark: Benchmark) -> str:
    if benchmark.joined:
        return benchmark.joined.by
    rules = (rule for several in benchmark.sections["closed"].values() for rule in several)
    return next(str(rule.constraints["metadata"][0]) for rule in rules if rule.reaches)


def _tracks(
    target: Mapping[str, Any], untrained: float | Mapping[str, float]
) -> Mapping[str, Track]:
    """Each metric's track to that of its bounds which is nearer to an untrained model."""
    if isinstance(untrained, Mapping):
        several = target["fields"]
        return {name: _tracks(several[name], start)[""] for name, start in untrained.items()}
    return {"": Track(untrained, min(target.values(), key=lambda bound: abs(bound - untrained)))}


def _start_ms(plan: RunPlan) -> int:
    if plan.start_ms is not None:
        return plan.start_ms
    day = load_round(plan.usage, plan.round).submission_date - _BEFORE_SUBMISSION
    return int(datetime.combine(day, time(), UTC).timestamp()) * 1000
