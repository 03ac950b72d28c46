"""Whole rounds: what each submitter runs on which systems, as complete submission trees.

A round is dealt out system by system. The files of a system depend on the plan and its number
alone, so that any number of processes writes the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle, islice, repeat
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.files import new_folder
from mlperf_pkg.infra.parallel import pool
from mlperf_pkg.infra.paths import open_file
from mlperf_pkg.results.rcp import is_covered, reference_points
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import load_round, simulation_of
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.simulate import plan as planning
from mlperf_pkg.simulate.plan import PER_NODE, RunPlan, look_up
from mlperf_pkg.simulate.runs import simulate_power, simulate_runs

File = tuple[str, bytes]
"""A path relative to the round's folder, with ``/``, and its content."""

_ACCELERATORS = (8, 16, 64, 32, 128, 512, 256)
_OPEN_EVERY = 5
"""One system in five is of the Open division, about as in published rounds."""

_FAILING_EVERY = 10
_LONGEST_MINUTES = 240.0
_LONGEST_MEASURED = 60.0
_MEASURED_NODES = 4
"""The nodes up to which power is measured; the meters of more would fill the disk."""

_PAUSE_MS = 3_600_000

_FIRST_WITH_REFERENCE = (1, 0)


class RoundPlan(Struct, frozen=True):
    """A whole round to simulate.

    ``systems`` is the number of systems of all ``submitters`` together, ``sets`` the number of
    benchmarks on each (by default one or two in turn). ``divisions`` and ``benchmarks`` take
    part, by default all that the official checker accepts. The last run of every tenth result set
    fails in one of the ways of ``failures``, in turn. ``statistics`` is as in ``RunPlan``;
    ``power`` adds the power logs of systems of at most four nodes, ``code`` a stub of each
    benchmark's code.
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
    """One system of a round, with the result sets on it.

    ``sets`` has for each its benchmark, how its last run fails, or None, and whether it is in the
    folder of strong or of weak scaling (HPC).
    """

    round: RoundPlan
    number: int
    submitter: str
    id: str
    division: str
    accelerators: int
    sets: tuple[tuple[str, str | None, str], ...]

    @property
    def nodes(self) -> int:
        """The number of hosts."""
        return -(-self.accelerators // PER_NODE)

    @property
    def is_measured(self) -> bool:
        """Whether its power is measured."""
        return self.round.power and self.nodes <= _MEASURED_NODES


def deal(plan: RoundPlan) -> list[SystemPlan]:
    """Return every system of a round, in the order of their numbers.

    A division of which the official checker accepts none of the benchmarks has no systems.

    Raises:
        UserError: an unknown round or benchmark, fewer systems than submitters, or no benchmark
            that the checker accepts.
    """
    _require_sound(plan)
    dealer = _Dealer(plan)
    return [dealer.system(number) for number in range(plan.systems)]


class _Dealer:
    """Deals out the benchmarks of a round in turn, system by system."""

    def __init__(self, plan: RoundPlan) -> None:
        """Start before the first system; raise UserError as ``_decks``."""
        self._plan = plan
        self._decks = _decks(plan)
        self._next = {division: cycle(deck) for division, deck in self._decks.items()}
        self._failures = _failures(plan)
        self._timed: set[tuple[str, str]] = set()  # the submitters and benchmarks of all sets

    def system(self, number: int) -> SystemPlan:
        """Return the next system, by its number from 0."""
        plan = self._plan
        divisions = list(self._decks)
        is_open = len(divisions) > 1 and number % _OPEN_EVERY == 1
        division = divisions[1] if is_open else divisions[0]
        submitter = _submitter(plan, number)
        accelerators = _ACCELERATORS[number % len(_ACCELERATORS)]
        width = len(str(plan.systems))
        return SystemPlan(
            round=plan,
            number=number,
            submitter=submitter,
            id=f"system{number + 1:0{width}}_{accelerators}x",
            division=division,
            accelerators=accelerators,
            sets=tuple(self._sets(number, submitter, division)),
        )

    def _sets(
        self, number: int, submitter: str, division: str
    ) -> Iterator[tuple[str, str | None, str]]:
        """Yield the result sets on a system; see ``SystemPlan``."""
        wanted = self._plan.sets or 1 + number % 2
        size = min(wanted, len(self._decks[division]))
        for index, benchmark in enumerate(islice(self._next[division], size), number):
            # Weak scaling only if the submitter also has strong scaling.
            is_weak = (submitter, benchmark) in self._timed and index % 2 == 1
            yield benchmark, next(self._failures), "weak" if is_weak else "strong"
            self._timed.add((submitter, benchmark))


def _decks(plan: RoundPlan) -> dict[str, list[str]]:
    """Return the benchmarks of each division that can have any.

    Raises:
        UserError: no division has one.
    """
    decks = {}
    for division in plan.divisions:
        deck = _deck(plan, division)
        if deck:
            decks[division] = deck
    if not decks:
        raise UserError(
            f"the official checker accepts no {' or '.join(plan.divisions)} result of"
            f" {', '.join(plan.benchmarks)} in round {plan.round}"
        )
    return decks


def _failures(plan: RoundPlan) -> Iterator[str | None]:
    """Yield how the last run of each result set fails, or None; without end."""
    for failure in cycle(plan.failures or (None,)):
        yield failure
        yield from repeat(None, _FAILING_EVERY - 1)


def _submitter(plan: RoundPlan, number: int) -> str:
    """Return the submitter of the system with this number, from 0."""
    submission = number * plan.submitters // plan.systems + 1
    width = len(str(plan.submitters))
    return f"Submitter{submission:0{width}}"


def common_files(plan: RoundPlan, systems: Sequence[SystemPlan]) -> Iterator[File]:
    """Yield the files that belong to no system: the notice at the top, and code."""
    notice = (
        f"{NOTICE_BEGINS}\n\nMLPerf {plan.usage} {plan.round}, seed {plan.seed}. No result in this"
        " folder was measured: submitters, systems and logs are made up.\n"
    )
    yield NOTICE, notice.encode()  # which allows another round to replace the tree
    if not plan.code:
        return
    recipe_values = simulation_of(plan.usage, plan.round, "round").get("values", {})
    config = recipe_values.get(CONFIG_KEY)
    trained: set[tuple[str, str]] = set()
    for system in systems:
        trained.update((system.submitter, benchmark) for benchmark, *_ in system.sets)
    for submitter, benchmark in sorted(trained):
        folder = f"{submitter}/benchmarks/{benchmark}/implementations/simulated"
        stubs = code(benchmark, config)
        yield from _within(folder, {name: text.encode() for name, text in stubs.items()})


def system_files(system: SystemPlan) -> Iterator[File]:
    """Yield every file of one system: its description, its logs and its measured power.

    Raises:
        UserError: as ``plan.resolve``.
    """
    yield f"{system.submitter}/systems/{system.id}.json", _description_of(system).encode()
    start_ms = None
    for benchmark, failure, scaling in system.sets:
        dice = Random(f"{system.round.seed}/{system.number}/{benchmark}")  # noqa: S311 - a simulation
        run_plan = replace(_run_plan(system, benchmark, dice), start_ms=start_ms)
        seed = dice.randrange(2**31)
        runs = simulate_runs(run_plan, seed, failures=(failure,) if failure else ())
        folder = _set_folder(system, benchmark, scaling)
        for number, run in enumerate(runs):
            yield f"{folder}/result_{number}.txt", run.log
            if system.is_measured:
                power = simulate_power(run_plan, seed + number, run.start_ms, run.stop_ms)
                yield from _within(f"{folder}/power/result_{number}", power)
        start_ms = runs[-1].stop_ms + _PAUSE_MS


def _within(folder: str, files: Mapping[str, bytes]) -> Iterator[File]:
    """Yield the files of a folder."""
    for name, content in files.items():
        yield f"{folder}/{name}", content


def _description_of(system: SystemPlan) -> str:
    name = f"Simulated system {system.number + 1}, {system.accelerators} accelerators"
    return description(
        {
            "submitter": system.submitter,
            "division": system.division,
            "system_name": name,
            "number_of_nodes": str(system.nodes),
        }
    )


def _set_folder(system: SystemPlan, benchmark: str, scaling: str) -> str:
    folder = f"{system.submitter}/results/{system.id}"
    if system.round.usage == "hpc":
        return f"{folder}/{scaling}/{benchmark}"
    return f"{folder}/{benchmark}"


def _require_sound(plan: RoundPlan) -> None:
    look_up("round", plan.round, rounds(plan.usage))
    for name in plan.benchmarks:
        planning.look_up_benchmark(plan.usage, plan.round, name)
    if plan.systems < plan.submitters:
        raise UserError(
            f"{plan.systems} systems of {plan.submitters} submitters; expected at least as many"
        )


def _deck(plan: RoundPlan, division: str) -> list[str]:
    """Return the benchmarks that a division can have."""
    deck = []
    for name in load_round(plan.usage, plan.round).benchmarks:
        if plan.benchmarks and name not in plan.benchmarks:
            continue
        if division == "closed" and _crashes_the_rcp_checker(plan, name):
            continue
        if not planning.refusal(plan.usage, plan.round, name, division):
            deck.append(name)
    return deck


def _crashes_the_rcp_checker(plan: RoundPlan, benchmark: str) -> bool:
    """Return whether it has reference points of a benchmark, but does not know it."""
    round_ = load_round(plan.usage, plan.round)
    rules, _ = planning.find_benchmark(plan.usage, plan.round, benchmark)
    if round_.version < _FIRST_WITH_REFERENCE or is_covered(plan.usage, benchmark):
        return False
    runs = rules.runs.required
    drop = rules.runs.drop
    return bool(reference_points(plan.usage, round_.ruleset, benchmark, runs=runs, drop=drop))


def _run_plan(system: SystemPlan, benchmark: str, dice: Random) -> RunPlan:
    usage = system.round.usage
    name = system.round.round
    plan = RunPlan(
        round=name,
        benchmark=benchmark,
        division=system.division,
        system=system.id,
        organization=system.submitter,
        accelerators=system.accelerators,
        optimizer=dice.choice(planning.optimizers(usage, name, benchmark) or (None,)),
        usage=usage,
        statistics=system.round.statistics,
    )
    longest = _LONGEST_MEASURED if system.is_measured else _LONGEST_MINUTES
    minutes = min(planning.resolve(plan).minutes, longest) * dice.uniform(0.8, 1.0)
    return replace(plan, minutes=minutes)


# ---- invented files: notice, code, system descriptions -------------------------------------

NOTICE = "README.md"
NOTICE_BEGINS = "# Simulated by mlperf-pkg"

CONFIG_KEY = "config_filename"
_CONFIG = "config.sh"
_NOTHING_TO_DO = "#!/bin/bash\n# Simulated: nothing to do.\n"

SYSTEM: Mapping[str, Any] = {
    "submitter": "Simulated",
    "division": "closed",
    "status": "Available on-premise",
    "system_name": "Simulated system",
    "number_of_nodes": "1",
    "host_processors_per_node": "2",
    "host_processor_model_name": "Simulated processor",
    "host_processor_core_count": "64",
    "host_processor_vcpu_count": "",
    "host_processor_frequency": "2.5 GHz",
    "host_processor_caches": "",
    "host_processor_interconnect": "",
    "host_memory_capacity": "1024 GiB",
    "host_storage_type": "NVMe SSD",
    "host_storage_capacity": "4 x 3.84 TB",
    "host_networking": "8 x InfiniBand 200 Gb/s",
    "host_networking_topology": "Fat tree",
    "host_memory_configuration": "16 x 64 GiB DDR4",
    "accelerators_per_node": str(PER_NODE),
    "accelerator_model_name": "Simulated accelerator",
    "accelerator_host_interconnect": "PCIe Gen5 x16",
    "accelerator_frequency": "1.5 GHz",
    "accelerator_on-chip_memories": "",
    "accelerator_memory_configuration": "HBM3",
    "accelerator_memory_capacity": "80 GB",
    "accelerator_interconnect": "Simulated links",
    "accelerator_interconnect_topology": "",
    "cooling": "Air",
    "hw_notes": "Simulated: no such system was measured",
    "framework": "Simulated framework 1.0",
    "other_software_stack": {"simulated library": "1.0"},
    "operating_system": "Linux",
    "sw_notes": "",
    "system_type": "datacenter",
    "host_network_card_count": "8",
}
"""The description of a system of one node, with a status that every round has."""


def description(values: Mapping[str, str], system: Mapping[str, Any] = SYSTEM) -> str:
    """Return the description of ``system``, with other ``values`` of some fields."""
    return f"{json.dumps({**system, **values}, indent=2)}\n"


def code(benchmark: str, config: str | None) -> dict[str, str]:
    """Return stubs of a benchmark's code by file name; ``config`` names the one that logs name."""
    readme = f"# {benchmark}\n\nSimulated: there is no code. `bash run_and_time.sh` says so.\n"
    script = f"#!/bin/bash\necho 'simulated: {benchmark} is not trained' >&2\nexit 1\n"
    return {
        "README.md": readme,
        "run_and_time.sh": script,
        "setup.sh": _NOTHING_TO_DO,
        "init_datasets.sh": _NOTHING_TO_DO,
        config or _CONFIG: "# Simulated: nothing is configured.\n",
    }


# ---- the tree: all of it or nothing ---------------------------------------------------------


def write_round(
    plan: RoundPlan, target: Path, *, jobs: int = 1, force: bool = False
) -> tuple[int, int, int]:
    """Simulate a round into the folder ``target``, which appears only once it is complete.

    With ``force``, a simulated round there is replaced, never anything else. Return the numbers of
    result sets and of logs that were written, and the bytes of all files.

    Raises:
        UserError: as ``deal``; ``target`` exists and may not be replaced, or cannot be written.
    """
    systems = deal(plan)
    exists = target.exists() or target.is_symlink()
    if exists and not _is_ours(target):
        raise UserError(
            f"{target}: exists and is not a round that mlperf-pkg simulated; it is not replaced"
        )
    if exists and not force:
        raise UserError(f"{target} exists already; --force replaces it")
    try:
        with new_folder(target, lambda there: force and _is_ours(there)) as folder:
            counts = [_write(folder, common_files(plan, systems))]
            counts += _write_systems(folder, systems, min(jobs, len(systems)))
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {reason_of(error)}") from error
    sets = sum(len(system.sets) for system in systems)
    logs = sum(written for written, _ in counts)
    size = sum(written for _, written in counts)
    return sets, logs, size


def _is_ours(target: Path) -> bool:
    try:
        with open_file(target / NOTICE) as stream:
            beginning = stream.read(len(NOTICE_BEGINS))
    except OSError:
        return False
    return beginning == NOTICE_BEGINS.encode() and not target.is_symlink()


def _write_systems(folder: Path, systems: Sequence[SystemPlan], jobs: int) -> list[tuple[int, int]]:
    """Write the files of systems with ``jobs`` processes; return what ``_write`` does of each."""
    write = partial(_write_system, folder)
    if jobs <= 1:
        return list(map(write, systems))
    with pool(jobs) as workers:
        return list(workers.map(write, systems))


def _write_system(folder: Path, system: SystemPlan) -> tuple[int, int]:
    return _write(folder, system_files(system))


def _write(folder: Path, files: Iterable[File]) -> tuple[int, int]:
    """Write the files; return the number of logs among them, and the bytes of all."""
    logs = 0
    size = 0
    for name, content in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.name.startswith("result_"):
            logs += 1
        size += len(content)
    return logs, size
