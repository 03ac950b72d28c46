"""Whole rounds: what each submitter runs on which systems, as complete submission trees.

A round is dealt system by system. A system's files follow from the plan and its number alone, so
that any number of processes makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice, repeat
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.load import load_round, rounds, usages
from mlperf_pkg.rulebook.model import DIVISIONS, version_of
from mlperf_pkg.simulate.plan import (
    FAILURES,
    IMPOSSIBLE,
    RunPlan,
    look_up,
    optimizers,
    require_positive,
)
from mlperf_pkg.simulate.power import simulate_power
from mlperf_pkg.simulate.runs import SimulatedRun, simulate_runs
from mlperf_pkg.simulate.setup import resolve
from mlperf_pkg.simulate.texts import CODE, NOTICE, PER_NODE, description, notice

File = tuple[str, bytes]
"""A path relative to the round's folder, with ``/``, and its content."""

_ACCELERATORS = (8, 16, 64, 32, 128, 512, 256)
_OPEN_EVERY = 5
"""One system in five is of the Open division, about as in published rounds."""

_FAILING_EVERY = 10
_LONGEST_MINUTES = 240.0
_LONGEST_MEASURED = 60.0
_MEASURED_NODES = 4
"""Up to how many nodes power is measured; meters of more would fill the disk with samples."""

_PAUSE_MS = 3_600_000
_SCALINGS = ("strong", "weak")

_OFFICIALLY_JUDGED_FROM = (1, 0)
_DIES_OF_CLOSED = {"training": {"dlrm"}}
"""Benchmarks of which the official RCP checker does not know the number of runs, and dies."""


class RoundPlan(Struct, frozen=True):
    """A whole round to simulate.

    ``systems`` are those of all ``submitters`` together, ``sets`` the benchmarks on each (by
    default one or two in turn). ``divisions`` and ``benchmarks`` are those to take part, by
    default all that the official checker accepts. The last run of every tenth result set fails in
    one of the ways of ``failures``, in turn. ``statistics`` is as in ``RunPlan``; ``power`` adds
    the power logs of systems of at most four nodes, ``code`` a stub of each benchmark's code.
    """

    usage: str
    round: str
    submitters: int = 3
    systems: int = 10
    sets: int | None = None
    seed: int = 0
    divisions: tuple[str, ...] = DIVISIONS
    benchmarks: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    statistics: int = 0
    power: bool = False
    code: bool = False


class SystemPlan(Struct, frozen=True):
    """One system of a round: its place, and how it runs which benchmarks.

    ``failures`` has for each of ``benchmarks`` how the last run of its set fails, if it does.
    """

    round: RoundPlan
    number: int
    submitter: str
    id: str
    division: str
    accelerators: int
    benchmarks: tuple[str, ...]
    failures: tuple[str | None, ...]

    @property
    def nodes(self) -> int:
        """How many hosts it has."""
        return -(-self.accelerators // PER_NODE)


def deal(plan: RoundPlan) -> list[SystemPlan]:
    """Every system of a round, in the order of their numbers.

    A division of which the official checker accepts none of the benchmarks has no systems.

    Raises:
        UserError: an unknown usage, round, division, benchmark or failure, a number that is not
            positive, fewer systems than submitters, or no benchmark that is accepted.
    """
    _require_sound(plan)
    decks = {name: deck for name in plan.divisions if (deck := _deck(plan, name))}
    if not decks:
        raise UserError(
            f"the official checker accepts no {' or '.join(plan.divisions)} result of"
            f" {', '.join(plan.benchmarks)} in round {plan.round}"
        )
    cards = {name: cycle(deck) for name, deck in decks.items()}
    failures = _failures(plan)
    dealt = []
    for number in range(plan.systems):
        division = [*decks][number % _OPEN_EVERY == 1 and len(decks) > 1]
        size = min(plan.sets or 1 + number % 2, len(decks[division]))
        accelerators = _ACCELERATORS[number % len(_ACCELERATORS)]
        system = SystemPlan(
            round=plan,
            number=number,
            submitter=_submitter(plan, number * plan.submitters // plan.systems),
            id=f"system{number + 1:0{len(str(plan.systems))}}_{accelerators}x",
            division=division,
            accelerators=accelerators,
            benchmarks=tuple(islice(cards[division], size)),
            failures=tuple(islice(failures, size)),
        )
        dealt.append(system)
    return dealt


def _failures(plan: RoundPlan) -> Iterator[str | None]:
    """How the last run of each set of the round fails, if it does."""
    for failure in cycle(plan.failures or (None,)):
        yield failure
        yield from repeat(None, _FAILING_EVERY - 1)


def common_files(plan: RoundPlan, systems: Sequence[SystemPlan]) -> Iterator[File]:
    """The files of a round that belong to no system: the notice at its top, and code."""
    yield NOTICE, notice(plan.usage, plan.round, plan.seed).encode()
    for submitter, benchmark in sorted({(s.submitter, b) for s in systems for b in s.benchmarks}):
        folder = f"{submitter}/benchmarks/{benchmark}/implementations/simulated"
        for name, text in CODE.items() if plan.code else ():
            yield f"{folder}/{name}", text.format(benchmark=benchmark).encode()


def system_files(system: SystemPlan) -> Iterator[File]:
    """Every file of one system: its description, its logs and its measured power.

    Raises:
        UserError: as ``setup.resolve``.
    """
    plan, start_ms = system.round, None
    name = f"Simulated system {system.number + 1}, {system.accelerators} accelerators"
    described = description(system.submitter, system.division, name, system.nodes)
    yield f"{system.submitter}/systems/{system.id}.json", described.encode()
    for index, (benchmark, failure) in enumerate(
        zip(system.benchmarks, system.failures, strict=True)
    ):
        dice = Random(f"{plan.seed}/{system.number}/{benchmark}")  # noqa: S311 - a simulation
        run_plan = replace(_run_plan(system, benchmark, dice), start_ms=start_ms)
        seed = dice.randrange(2**31)
        runs = simulate_runs(run_plan, seed, failures=(failure,) if failure else ())
        scaling = f"{_SCALINGS[(system.number + index) % 2]}/" if plan.usage == "hpc" else ""
        folder = f"{system.submitter}/results/{system.id}/{scaling}{benchmark}"
        for number, run in enumerate(runs):
            yield f"{folder}/result_{number}.txt", run.log
            if _is_measured(system):
                yield from _power(
                    f"{folder}/power/result_{number}", system, run_plan, seed + number, run
                )
        start_ms = runs[-1].stop_ms + _PAUSE_MS


def _require_sound(plan: RoundPlan) -> None:
    look_up("usage", plan.usage, usages())
    look_up("round", plan.round, rounds(plan.usage))
    for kind, names, known in (
        ("division", plan.divisions, DIVISIONS),
        (f"benchmark of round {plan.round}", plan.benchmarks, _benchmarks(plan)),
        ("failure", plan.failures, FAILURES),
    ):
        for name in names:
            look_up(kind, name, known)
    for name in ("submitters", "systems", "sets"):
        require_positive(name, getattr(plan, name))
    if plan.systems < plan.submitters:
        raise UserError(
            f"{plan.submitters} submitters need as many systems at least, not {plan.systems}"
        )


def _benchmarks(plan: RoundPlan) -> Sequence[str]:
    return load_round(plan.usage, plan.round).benchmarks


def _deck(plan: RoundPlan, division: str) -> list[str]:
    """The benchmarks that a division can have."""
    listed = [name for name in _benchmarks(plan) if name in (plan.benchmarks or _benchmarks(plan))]
    return [name for name in listed if _is_accepted(plan, name, division)]


def _is_accepted(plan: RoundPlan, benchmark: str, division: str) -> bool:
    judged = version_of(plan.round) >= _OFFICIALLY_JUDGED_FROM
    dies = judged and division == "closed" and benchmark in _DIES_OF_CLOSED.get(plan.usage, ())
    return not dies and (plan.usage, plan.round, benchmark, division) not in IMPOSSIBLE


def _submitter(plan: RoundPlan, number: int) -> str:
    return f"Submitter{number + 1:0{len(str(plan.submitters))}}"


def _run_plan(system: SystemPlan, benchmark: str, dice: Random) -> RunPlan:
    plan = RunPlan(
        round=system.round.round,
        benchmark=benchmark,
        division=system.division,
        system=system.id,
        organization=system.submitter,
        accelerators=system.accelerators,
        optimizer=dice.choice(
            optimizers(system.round.usage, system.round.round, benchmark) or (None,)
        ),
        usage=system.round.usage,
        statistics=system.round.statistics,
    )
    longest = _LONGEST_MEASURED if _is_measured(system) else _LONGEST_MINUTES
    return replace(plan, minutes=min(resolve(plan).minutes, longest) * dice.uniform(0.8, 1.0))


def _is_measured(system: SystemPlan) -> bool:
    return system.round.power and system.nodes <= _MEASURED_NODES


def _power(
    folder: str, system: SystemPlan, plan: RunPlan, seed: int, run: SimulatedRun
) -> Iterator[File]:
    span = (run.start_ms, run.stop_ms)
    logs = simulate_power(plan, seed, *span, nodes=system.nodes, switches=int(system.nodes > 1))
    for name, log in logs.items():
        yield f"{folder}/{name}", log
