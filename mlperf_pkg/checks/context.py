"""A result set with everything that its checks need to know."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct, field

from mlperf_pkg.checks.descriptions import DescribedSystems, SystemFile
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.paths import location_of, with_slashes
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.load import codes, finding_of
from mlperf_pkg.rulebook.model import Benchmark, Rcp, Round
from mlperf_pkg.rulebook.rounds import has_ruleset
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.run.relations import RunRelation
from mlperf_pkg.submission.membership import LogGroup, set_id
from mlperf_pkg.submission.model import Place, ResultSet
from mlperf_pkg.submission.submitters import SubmitterNames, is_same_submitter


class SetOrigin(StrEnum):
    """Where a result set was found, which decides what of it can be checked.

    SUBMISSION: in a submission, which has a system description and code. FOLDER: in a folder
    ``results/<system>/<benchmark>`` whose submission is not among the inputs. WORKSPACE: raw logs
    beside system descriptions. LOGS: raw logs in any other folder. PART: raw logs of a set that is
    not judged, as more logs may follow; its findings are for information only.
    """

    SUBMISSION = "submission"
    FOLDER = "folder"
    WORKSPACE = "workspace"
    LOGS = "logs"
    PART = "part"

    @property
    def has_folder(self) -> bool:
        """Whether the folder of the set has a meaning: its name, its place and its other files."""
        return self in (SetOrigin.SUBMISSION, SetOrigin.FOLDER)

    @property
    def has_name(self) -> bool:
        """Whether the submitter and the system of the set are known."""
        return self.has_folder or self is SetOrigin.WORKSPACE

    @property
    def is_judged(self) -> bool:
        """Whether the set is judged as a whole, and not only its runs."""
        return self is not SetOrigin.PART


class BenchmarkCode(Struct, frozen=True):
    """The paths of the files of a benchmark's code, and whether a README has a command."""

    files: tuple[str, ...]
    has_command: bool


NameInRound: TypeAlias = tuple[str, str, str]
"""The usage and round of a result set, and its name as in ``PublishedSet``."""


class SetContext(Struct, frozen=True, dict=True):
    """A result set with its runs, its rules, and what the submission says about it.

    ``rules`` is None for a benchmark that the round does not have. ``systems`` are all systems of
    the submission. ``code`` is by benchmark, None for a submission without code.
    ``power_logs`` maps paths to power logs.
    ``timed`` are the benchmarks of which the submission has a set of strong scaling (HPC), None
    outside of a submission. ``together`` names all sets of submissions that are checked together.
    ``sources`` are the logs of the runs, and perhaps others, by path.

    ``id`` is as in ``submission.membership.set_id``. For raw logs, ``group`` says why they are one
    set, ``organizations`` are other names of the submitter, and ``repeats`` are the paths of logs
    that are not among the ``runs``, as another log of their run is more complete. ``pruned`` are
    the runs of weak scaling (HPC) that do not count.
    """

    files: ResultSet
    runs: tuple[Run, ...]
    round: Round
    rules: Benchmark | None
    submitter: str | None = None
    system: SystemFile | None = None
    origin: SetOrigin = SetOrigin.SUBMISSION
    systems: DescribedSystems = DescribedSystems()
    code: Mapping[str, BenchmarkCode] | None = None
    power_logs: Mapping[str, PowerLog] = field(default_factory=dict)
    timed: frozenset[str] | None = None
    together: frozenset[NameInRound] = frozenset()
    sources: Mapping[str, Source] = field(default_factory=dict)
    id: str = ""
    group: LogGroup | None = None
    organizations: tuple[str, ...] = ()
    repeats: Mapping[str, RunRelation] = field(default_factory=dict)
    pruned: tuple[Run, ...] = ()

    @property
    def identity(self) -> str:
        """The id of the set, before it is made unique."""
        files = self.files
        submitter = self.submitter
        if submitter is None and self.origin.has_folder:
            submitter = self.tree.name
        elif submitter is None:
            orgs = (run.text("org") for run in self.runs)
            submitter = next(filter(None, orgs), None)
        division = self.division or next((run.division for run in self.runs), None)
        return set_id(submitter, files.system, files.benchmark, division, files.scaling_mode)

    @property
    def submitter_names(self) -> SubmitterNames:
        """The names of its submitter: those of its submission, and of its description."""
        described = self.system.submitter if self.system else None
        return SubmitterNames(self.submitter or self.tree.name, described or "")

    def is_submitted_by(self, organisation: str) -> bool:
        """Return whether an organisation is its submitter, by its folder or its description."""
        named = SubmitterNames(organisation)
        names = self.submitter_names
        by_folder = is_same_submitter(named, SubmitterNames(names.folder))
        return by_folder or is_same_submitter(named, names)

    @property
    def path(self) -> str:
        """The path of the set in reports."""
        return self.files.place.label or "."

    @property
    def in_workspace(self) -> bool:
        """Whether the runs are raw logs beside system descriptions."""
        return self.group is not None and self.files.tree is not None

    @property
    def label(self) -> str:
        """The name of the set in messages: its path or, for raw logs, its id."""
        return self.path if self.origin.has_folder else self.id

    @cached_property
    def tree(self) -> Place:
        """The folder of its submission, links resolved."""
        if self.files.tree is not None:
            return self.files.tree
        results = self.files.place.path.resolve().parent.parent
        if self.files.scaling_mode is not None:
            results = results.parent
        tree = results.parent
        return Place(location_of(tree), with_slashes(tree))

    @cached_property
    def division(self) -> str | None:
        """The division that decides which tests apply: the system's, else that of the logs."""
        if self.system is not None:
            return self.system.division
        return self.runs[0].division if self.runs else None

    @cached_property
    def division_by_rules(self) -> str | None:
        """The division in lower case, as the rules spell it in either case."""
        return self.division and self.division.lower()

    @property
    def closed(self) -> bool:
        """Whether the official seed and RCP tests apply: a Closed set of round 1.0 or later."""
        return self.division == "closed" and self.round.version >= (1, 0)

    @property
    def closed_by_rules(self) -> bool:
        """Whether these tests apply by the rules: also where a description spells it "Closed"."""
        return self.division_by_rules == "closed" and self.round.version >= (1, 0)

    @property
    def rcp_required(self) -> bool:
        """Whether the official package checker runs the RCP test on this set."""
        return self.closed and self.rcp_required_by_rules

    @property
    def rcp_required_by_rules(self) -> bool:
        """Whether the convergence of this set is compared with the reference."""
        tested = self.rules is not None and self.rules.rcp is not Rcp.SKIPPED
        return self.closed_by_rules and tested and has_ruleset(self.round.usage, self.round.name)

    @property
    def in_round(self) -> bool:
        """Whether the folder, if it has a meaning, has the name of a benchmark of the round."""
        return not self.origin.has_folder or self.files.benchmark in self.round.benchmarks

    @property
    def officially_skipped(self) -> bool:
        """Whether the official package checker silently skips the folder."""
        is_read = not self.origin.has_folder or self.files.at_level(self.round.usage)
        return not self.in_round or not is_read

    @property
    def weak(self) -> bool:
        """Whether this is a set of weak scaling: many models trained at once."""
        return self.files.scaling_mode == "weak"

    @property
    def required_runs(self) -> int | None:
        """The number of runs that the rules require; None without rules."""
        return self.rules.runs.required if self.rules else None

    @property
    def drop(self) -> int:
        """The number of fastest runs, and of slowest runs, that the score drops."""
        return self.rules.runs.drop if self.rules else 1

    def is_converged(self, run: Run) -> bool:
        """Return whether a run counts as converged; in Open, each with a time does, but in 0.7."""
        if self.division_by_rules != "open" or (self.rules and self.rules.open_needs_target):
            return run.converged
        return run.minutes is not None

    def power_of(self, run: Run) -> list[PowerLog]:
        """Return the power logs of a run."""
        folder = self.files.power
        if folder is None:
            return []
        return [self.power_logs[log.label] for log in folder.logs_of(run.path)]

    def is_written(self, code: str) -> bool:
        """Return whether the rule of a code was written when the round was submitted."""
        return codes()[code].applies_in(self.round)

    def finding(self, code: str, message: str, **fields: Any) -> Finding:
        """Return a finding about the set; ``fields`` are as for ``finding_of``, or another path."""
        return finding_of(code, message, **{"path": self.path, **fields})
