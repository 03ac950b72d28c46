"""A result set with all that its charts show."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from mlperf_pkg.commands.charts.chart import BLUE, GREY, RED, Spec
from mlperf_pkg.commands.charts.curve_reader import Curve
from mlperf_pkg.results.report import ResultSetRow, RunRow
from mlperf_pkg.results.scoring import NO_TIME, NOT_CONVERGED
from mlperf_pkg.rulebook.model import Benchmark

COUNTS, DROPPED, FAILED = "counts", "dropped", "did not converge"
_STATES = {COUNTS: (BLUE, "circle"), DROPPED: (GREY, "cross"), FAILED: (RED, "triangle-up")}


class DrawnRun(Struct, frozen=True):
    """A run and its curve."""

    row: RunRow
    curve: Curve

    @property
    def name(self) -> str:
        """Its file."""
        return self.row.path.rpartition("/")[2]

    @property
    def state(self) -> str:
        """Whether it counts in the score."""
        if self.row.dropped in (NOT_CONVERGED, NO_TIME):
            return FAILED
        return DROPPED if self.row.dropped else COUNTS


class DrawnSet(Struct, frozen=True):
    """A result set, its runs, and its benchmark's rules, None where there are none.

    ``ruleset`` is the round as mlperf-logging spells it, such as ``2.0.0``.
    """

    row: ResultSetRow
    runs: tuple[DrawnRun, ...]
    usage: str
    ruleset: str
    rules: Benchmark | None

    @property
    def unit(self) -> str:
        """What convergence is counted in."""
        return self.rules.unit if self.rules else "epochs or samples"


def by_state(channel: str, present: Collection[str]) -> Spec:
    """The encoding of a run's state as ``color`` or ``shape``: never told by colour alone."""
    index = {"color": 0, "shape": 1}[channel]
    states = {name: each[index] for name, each in _STATES.items() if name in present}
    return {
        "field": "state",
        "type": "nominal",
        "scale": {"domain": list(states), "range": list(states.values())},
    }
