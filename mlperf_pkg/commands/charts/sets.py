"""A result set to be drawn: its row, its runs and their curves."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from mlperf_pkg.commands.charts.chart import BLUE, GREY, RED, Look, Spec, by_look
from mlperf_pkg.results.report import ResultSetRow, RunRow
from mlperf_pkg.results.scoring import NO_TIME, NOT_CONVERGED
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.evaluations import Curve

COUNTS, DROPPED, FAILED = "counts", "dropped", "did not converge"


_STATES = {
    COUNTS: Look(BLUE, "circle"),
    DROPPED: Look(GREY, "cross"),
    FAILED: Look(RED, "triangle-up"),
}


class DrawnRun(Struct, frozen=True):
    """A run and its curve."""

    row: RunRow
    curve: Curve

    @property
    def name(self) -> str:
        """The name of its log."""
        return self.row.path.rpartition("/")[2]

    @property
    def state(self) -> str:
        """Whether and how it counts in the score."""
        if self.row.dropped in (NOT_CONVERGED, NO_TIME):
            return FAILED
        return DROPPED if self.row.dropped else COUNTS


class DrawnSet(Struct, frozen=True):
    """A result set with its runs; ``rules`` are those of its benchmark, None if there are none.

    ``ruleset`` is the round as mlperf-logging spells it, such as ``2.0.0``.
    """

    row: ResultSetRow
    runs: tuple[DrawnRun, ...]
    usage: str
    ruleset: str
    rules: Benchmark | None

    @property
    def subject(self) -> str:
        """The set in words: ``ACME, dgx, bert (closed, round 2.0)``."""
        row = self.row
        details = [row.division or "no division", row.scaling or "", f"round {row.round}"]
        names = [row.submitter or "", row.system or "", row.benchmark]
        return f"{', '.join(filter(None, names))} ({', '.join(filter(None, details))})"

    @property
    def unit(self) -> str:
        """The unit in which convergence is counted."""
        return self.rules.unit if self.rules else "epochs or samples"


def by_state(channel: str, present: Collection[str]) -> Spec:
    """Return the encoding of a run's state as ``color`` or ``shape``; see ``by_look``."""
    return by_look("state", channel, _STATES, [name for name in _STATES if name in present])
