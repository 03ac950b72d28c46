"""What can be asked of the simulator: plans of runs, and which of them there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.rulebook.load import load_benchmark, load_round, rounds, usages
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark
from mlperf_pkg.rulebook.table import rule_table
from mlperf_pkg.simulate.benchmarks import recipe_of
from mlperf_pkg.simulate.model import Flaw, Outcome, Recipe

SUCCESS = Outcome(status="success")
FAILURES: Mapping[str, Outcome] = {
    "diverged": Outcome(status="aborted", length=1.25, gap=0.2),
    "aborted": Outcome(status="aborted", length=0.0, interrupted=True),
    "missing_key": Outcome(status="success", flaw=Flaw.MISSING),
    "wrong_value": Outcome(status="success", flaw=Flaw.WRONG),
    "no_run_stop": Outcome(status=None),
    "truncated": Outcome(status="success", written=0.8),
}
"""``diverged``: the metric stalls short of the target and the run is given up a quarter later than
it should have converged. ``aborted``: it is stopped before its first evaluation. ``missing_key``
and ``wrong_value``: it converges, but a hyperparameter is not logged or is outside its rule.
``no_run_stop``: it converges and never logs its end. ``truncated``: the file ends in the middle
of a record."""

_NO_FILE = "it has no rule file for them, and dies"
_NOT_LISTED = "its list of benchmarks lacks this one"
_BELOW_ONE = "it asks for a log perplexity below 1.0, where the Closed target is 3.3"

IMPOSSIBLE: Mapping[tuple[str, str, str, str], str] = {
    ("training", "3.0", "gpt3", "open"): _NO_FILE,
    ("training", "3.1", "gpt3", "open"): _NO_FILE,
    ("training", "4.0", "llama2_70b_lora", "open"): _NOT_LISTED,
    ("training", "4.1", "llama2_70b_lora", "open"): _NOT_LISTED,
    ("training", "5.1", "llama31_8b", "open"): _BELOW_ONE,
    ("training", "6.0", "llama31_8b", "open"): _BELOW_ONE,
    ("training", "6.1", "llama31_8b", "open"): _BELOW_ONE,
}
"""Usage, round, benchmark and division of which the official checker accepts no log, and why."""


class RunPlan(Struct, frozen=True):
    """One run to simulate.

    ``round`` is written like ``2.0``; ``division`` is ``closed`` or ``open``; ``system`` is the
    system's id, logged as ``submission_platform``. ``minutes`` is the time to train, by default
    from a simple model of the benchmark and the ``accelerators``; a run that fails keeps the pace
    but not the length. ``batch_size`` is global, by default the reference convergence point's
    nearest to what the accelerators would take; above the largest reference point no Closed
    result can pass the RCP test. ``optimizer`` is the benchmark's first by default (resnet:
    ``lars``, or ``sgd``). ``failure`` is one of ``FAILURES``, or None. ``start_ms`` is the time of
    the first record in milliseconds since the epoch, by default within the round's submission
    period. ``usage`` is ``training`` or ``hpc``. ``statistics`` is how many records of throughput
    and loss a run logs besides: none is asked for, but published logs are mostly made of such.
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


def plans(system: str, organization: str) -> Iterator[RunPlan]:
    """One plan of every kind of run that there is, in the order of the rulebook.

    A kind is a usage, round, benchmark, division and optimizer, without those of ``IMPOSSIBLE``.
    """
    kinds = (
        (usage, name, benchmark, division)
        for usage in usages()
        for name in rounds(usage)
        for benchmark, division in product(load_round(usage, name).benchmarks, DIVISIONS)
    )
    for usage, name, benchmark, division in kinds:
        if (usage, name, benchmark, division) not in IMPOSSIBLE:
            plan = RunPlan(name, benchmark, division, system, organization, usage=usage)
            for optimizer in optimizers(usage, name, benchmark) or (None,):
                yield replace(plan, optimizer=optimizer)


def newest_round(usage: str, benchmark: str) -> str:
    """The newest round that has a benchmark.

    Raises:
        UserError: none has it.
    """
    look_up("usage", usage, usages())
    several = {name: load_round(usage, name).benchmarks for name in rounds(usage)}
    known = sorted({each for listed in several.values() for each in listed})
    look_up(f"benchmark of {usage}", benchmark, known)
    return [name for name, listed in several.items() if benchmark in listed][-1]


def optimizers(usage: str, round_name: str, benchmark: str) -> tuple[str, ...]:
    """The optimizers that a run may name, the default first; none where it names none.

    Raises:
        UserError: the rulebook or the simulator does not have the benchmark.
    """
    _, recipe = find_benchmark(usage, round_name, benchmark)
    rules = rule_table(usage, round_name, "closed", benchmark, frozenset()).keys.get("opt_name")
    asked = rules.rules[0].rule.constraints if rules else {}
    allowed = asked.get("one_of") or [asked["equals"]] if asked else recipe.optimizers
    listed = [name for name in recipe.optimizers if name in allowed]
    return tuple(dict.fromkeys([*listed, *allowed]))


def find_benchmark(usage: str, round_name: str, benchmark: str) -> tuple[Benchmark, Recipe]:
    """The rules and the recipe of a benchmark.

    Raises:
        UserError: the rulebook or the simulator does not have it.
    """
    look_up("usage", usage, usages())
    look_up("round", round_name, rounds(usage))
    look_up(f"benchmark of round {round_name}", benchmark, load_round(usage, round_name).benchmarks)
    found, recipe = load_benchmark(usage, round_name, benchmark), recipe_of(benchmark, round_name)
    if not found or not recipe:
        missing = "simulator has no recipe" if found else "rulebook has no rules"
        raise UserError(f"the {missing} for {benchmark} of round {round_name}")
    return found, recipe


def look_up(kind: str, name: str, known: Collection[str]) -> None:
    """Raise UserError where ``name`` is not among the ``known`` ones."""
    if name not in known:
        meant = did_you_mean(name, known)
        raise UserError(f"unknown {kind}: {name!r} (known: {', '.join(known)}){meant}")


def require_positive(name: str, number: float | None) -> None:
    """Raise UserError where ``number`` is given and is not positive and finite."""
    if number is not None and not 0 < number < inf:
        raise UserError(f"{name} must be a positive number, not {number}")


def require_sound(plan: RunPlan) -> None:
    """Raise UserError where a name of ``plan`` is unknown or a number is not positive."""
    find_benchmark(plan.usage, plan.round, plan.benchmark)
    look_up("division", plan.division, DIVISIONS)
    if plan.optimizer is not None:
        known = optimizers(plan.usage, plan.round, plan.benchmark)
        look_up(f"optimizer of {plan.benchmark}", plan.optimizer, known)
    if plan.failure is not None:
        look_up("failure", plan.failure, FAILURES)
    for name in ("minutes", "accelerators", "batch_size"):
        require_positive(name, getattr(plan, name))
    if plan.statistics < 0:
        raise UserError(f"statistics must not be negative, as {plan.statistics} is")
    reason = IMPOSSIBLE.get((plan.usage, plan.round, plan.benchmark, plan.division))
    if reason:
        raise UserError(
            f"the official checker accepts no {plan.division} run of {plan.benchmark}"
            f" in round {plan.round}: {reason}"
        )
