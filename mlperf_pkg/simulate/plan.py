"""Plans of runs: what the simulator can do, and every kind of run that there is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from itertools import product
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.rulebook.documents import ROUND, error_of, rounds, usages
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark
from mlperf_pkg.rulebook.rounds import where_instead
from mlperf_pkg.rulebook.table import rule_table
from mlperf_pkg.simulate.recipe import Recipe, recipe_of

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
