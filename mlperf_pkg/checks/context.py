"""A result set with everything that its checks need to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.findings import Finding
from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.rulebook.model import Benchmark, Rcp, Round
from mlperf_pkg.rulebook.rounds import has_ruleset
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.model import ResultSet

PACKAGE_CHECKER = "mlperf-logging, package_checker"


class SetContext(Struct, frozen=True):
    """A result set with its runs, its rules, and what the submission says about it.

    ``rules`` is None for a benchmark that the round does not have. ``loose`` sets consist of logs
    outside a submission; their findings are for information only. ``code`` maps each benchmark to
    the files of its code, None for a submission without any code. ``power_logs`` maps paths to
    power logs.
    """

    files: ResultSet
    runs: tuple[Run, ...]
    round: Round
    rules: Benchmark | None
    submitter: str | None = None
    system: SystemFile | None = None
    loose: bool = False
    code: Mapping[str, tuple[str, ...]] | None = None
    power_logs: Mapping[str, PowerLog] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path of the set in reports."""
        return self.files.place.label

    @property
    def division(self) -> str | None:
        """The division that decides which tests apply: the system's; the logs' in a loose set."""
        if self.system is not None:
            return self.system.division
        return self.runs[0].division if self.runs else None

    @property
    def closed(self) -> bool:
        """Whether the official seed and RCP tests apply: a Closed set of round 1.0 or later."""
        return self.division == "closed" and self.round.version >= (1, 0)

    @property
    def rcp_required(self) -> bool:
        """Whether the official package checker runs the RCP test on this set."""
        tested = self.rules is not None and self.rules.rcp is not Rcp.SKIPPED
        return self.closed and tested and has_ruleset(self.round.usage, self.round.name)

    @property
    def in_round(self) -> bool:
        """Whether the folder has the name of a benchmark of the round; loose sets always count."""
        return self.loose or self.files.benchmark in self.round.benchmarks

    @property
    def officially_skipped(self) -> bool:
        """Whether the official package checker silently skips the folder."""
        return not self.in_round or not (self.loose or self.files.at_level(self.round.usage))

    @property
    def weak(self) -> bool:
        """Whether this is a set of weak scaling: many models trained at once."""
        return self.files.scaling_mode == "weak"

    @property
    def drop(self) -> int:
        """The number of fastest runs, and of slowest runs, that the score drops."""
        return self.rules.runs.drop if self.rules else 1

    def power_of(self, run: Run) -> list[PowerLog]:
        """Return the power logs of a run."""
        logs = self.files.power.logs(run.path.rpartition("/")[2]) if self.files.power else ()
        return [self.power_logs[place.label] for place, _ in logs]


def set_finding(context: SetContext, code: str, message: str, **fields: Any) -> Finding:
    """Return a finding about the set; ``fields`` may name another path and source."""
    defaults = {"path": context.path, "source": codes()[code].source}
    return Finding(code=code, message=message, **{**defaults, **fields})
