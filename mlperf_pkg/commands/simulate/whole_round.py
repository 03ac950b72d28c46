"""A simulated round: a submission of each submitter, written as one tree."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.simulate import RoundPlan, write_round
from mlperf_pkg.simulate.rounds import Written


class RoundOrder(Struct, frozen=True, kw_only=True):
    """The round to simulate, as ``RoundPlan`` defines the fields; None is the default.

    ``round`` is by default the newest of the usage. Where only one of ``systems`` and
    ``submitters`` is set, the other's default is changed to fit. ``jobs`` is the number of
    processes, by default one per core.
    """

    usage: str
    round: str | None
    division: str | None
    benchmarks: tuple[str, ...]
    submitters: int | None
    systems: int | None
    sets: int | None
    seed: int
    failures: tuple[str, ...]
    records: int
    power: bool
    code: bool
    jobs: int | None

    def plan(self) -> RoundPlan:
        """Return the plan with all defaults filled in."""
        defaults = RoundPlan(self.usage, self.round or rounds(self.usage)[-1])
        systems = self.systems or max(defaults.systems, self.submitters or 0)
        return RoundPlan(
            usage=self.usage,
            round=defaults.round,
            submitters=self.submitters or min(defaults.submitters, systems),
            systems=systems,
            sets=self.sets,
            seed=self.seed,
            divisions=(self.division,) if self.division else defaults.divisions,
            benchmarks=self.benchmarks,
            failures=self.failures,
            statistics=self.records,
            power=self.power,
            code=self.code,
        )


def write_whole_round(folder: Path, order: RoundOrder, *, force: bool) -> str:
    """Write the round into a new folder; return a summary of what was written.

    ``force`` replaces a round that was simulated before.

    Raises:
        UserError: as ``write_round``.
    """
    plan = order.plan()
    written = write_round(plan, folder, jobs=order.jobs or os.cpu_count() or 1, force=force)
    return _summary(folder, plan, written)


def _summary(folder: Path, plan: RoundPlan, written: Written) -> str:
    return (
        f"{folder}: {plan.usage} {plan.round}, {counted(written.systems, 'system')},"
        f" {counted(written.sets, 'result set')}, {written.logs:,} logs,"
        f" {written.size / 1e6:,.1f} MB"
    )
