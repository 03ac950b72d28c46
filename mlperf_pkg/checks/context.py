"""A result set with all that is known of it: what the checks of sets are asked about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.findings import Finding
from mlperf_pkg.rulebook.model import Benchmark, Round
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.model import ResultSet

RULES = "training_rules, Benchmark results"
PACKAGE = "mlperf-logging, package_checker"


class SetContext(Struct, frozen=True):
    """A result set with all that is known of it. ``rules`` is None for a benchmark not covered.

    ``loose`` sets were formed of logs outside a submission: they are for information only.
    ``code`` holds the files of each benchmark's code, None where the submission has none at all.
    ``measured`` are the measurements of power by path.
    """

    files: ResultSet
    runs: tuple[Run, ...]
    round: Round
    rules: Benchmark | None
    submitter: str | None = None
    system: SystemFile | None = None
    loose: bool = False
    code: Mapping[str, tuple[str, ...]] | None = None
    measured: Mapping[str, PowerLog] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Its path in reports."""
        return self.files.place.label

    @property
    def division(self) -> str | None:
        """The division that decides which tests apply: the system's, for loose logs their own."""
        if self.system is not None:
            return self.system.division
        return self.runs[0].division if self.runs else None

    @property
    def closed(self) -> bool:
        """Whether the official seed and RCP tests apply."""
        return self.division == "closed" and self.round.version >= (1, 0)

    @property
    def rcp_tested(self) -> bool:
        """Whether the official package checker asks for the RCP test."""
        return self.closed and self.rules is not None and self.files.benchmark != "minigo"

    @property
    def known(self) -> bool:
        """Whether its folder is named after a benchmark of the round."""
        return self.loose or self.files.benchmark in self.round.benchmarks

    @property
    def skipped(self) -> bool:
        """Whether the official package checker passes over its folder without a word."""
        return not self.known or not (self.loose or self.files.at_level(self.round.usage))

    @property
    def weak(self) -> bool:
        """Whether it is one of weak scaling: many models trained at once."""
        return self.files.scaling_mode == "weak"

    def power_logs(self, run: Run) -> list[PowerLog]:
        """The measurements of a run's power."""
        logs = self.files.power.logs(run.path.rpartition("/")[2]) if self.files.power else ()
        return [self.measured[place.label] for place, _ in logs]

    @property
    def drop(self) -> int:
        """How many of the fastest, and of the slowest, are dropped."""
        return self.rules.runs.drop if self.rules else 1


def set_finding(case: SetContext, code: str, message: str, **more: Any) -> Finding:
    """A finding about the set as a whole, unless ``more`` names another path."""
    return Finding(code=code, message=message, **{"path": case.path, "source": RULES, **more})
