"""The values of a comparison: the two sides, and what changed between them."""

from collections.abc import Hashable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.descriptions import SystemFile, differing
from mlperf_pkg.findings import Finding, Severity, Verdicts
from mlperf_pkg.infra.source import Source
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.run.readers import is_hyperparameter


def percent(old: float | None, new: float | None) -> float | None:
    """Return by how much ``new`` exceeds ``old``, in percent; None if there is no base."""
    return 100 * (new / old - 1) if old and new is not None else None


# ---- the sides ----------------------------------------------------------------------------


class Log(Struct, frozen=True):
    """The log of a run: its file name, the digest of its bytes, its settings as JSON by key.

    Logs of one run have the same ``run``, whatever was edited in them: see ``consistency``;
    ``source`` is the file.
    """

    name: str
    digest: str
    settings: Mapping[str, str]
    run: Hashable = None
    source: Source | None = None


class System(Struct, frozen=True):
    """A system description: its path within the input, its id, digest and fields."""

    path: str
    id: str
    digest: str
    fields: Mapping[str, Any]


class ResultSet(Struct, frozen=True):
    """A result set; ``path`` is its path within the input, without the input's own name.

    ``identity`` is as in ``SetContext``. It names a set that ``is_raw``, as several sets of raw
    logs may have the same path. ``submitter`` is the name of its submission; of a submission that
    is compared alone, whose folder may have any name, the one in its system description; of raw
    logs empty.
    """

    path: str
    row: ResultSetRow
    logs: tuple[Log, ...]
    findings: tuple[Finding, ...]
    system: SystemFile | None = None
    submitter: str = ""
    identity: str = ""
    is_raw: bool = False

    @property
    def name(self) -> str:
        """Its name on both sides: its path or, for raw logs, its identity."""
        return self.identity if self.is_raw else self.path

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of its system description; empty if there is none."""
        return (self.system.contents if self.system else None) or {}

    @property
    def accelerators(self) -> int | None:
        """The accelerators of its system over all nodes."""
        return self.system.accelerators if self.system else None

    @property
    def hyperparameters(self) -> Mapping[str, frozenset[str | None]]:
        """The values in its runs as JSON, with its batch sizes; None for runs that log none."""
        keys = {key for log in self.logs for key in log.settings}
        return {
            key: frozenset(log.settings.get(key) for log in self.logs)
            for key in keys
            if key in BATCH_SIZES or is_hyperparameter(key)
        }


def different_fields(old: ResultSet, new: ResultSet) -> list[str]:
    """Return the names of the fields in which the descriptions of two sets differ.

    There are none if one is missing.
    """
    return differing(old.fields, new.fields) if old.fields and new.fields else []


class Side(Struct, frozen=True):
    """One of the two versions.

    ``findings`` are those outside the result sets; ``files`` are the digests, by path within the
    input, of all files other than system descriptions and the logs of result sets.
    """

    verdict: Verdicts
    systems: tuple[System, ...]
    sets: tuple[ResultSet, ...]
    findings: tuple[Finding, ...]
    files: Mapping[str, str]


# ---- the changes --------------------------------------------------------------------------


class Change(Struct, frozen=True):
    """A value by name, before and after; None if it is missing."""

    name: str
    old: Any
    new: Any


class SettingChange(Struct, frozen=True):
    """The values of a logged key as JSON, each with its number of runs; None: not logged."""

    key: str
    old: tuple[tuple[str | None, int], ...]
    new: tuple[tuple[str | None, int], ...]


class Edit(Struct, frozen=True):
    """What was edited in a log, "evaluations removed", and the details with the lines."""

    what: str
    details: str


class EditedRun(Struct, frozen=True):
    """A run whose log was edited, by the names of its logs."""

    old: str
    new: str
    edits: tuple[Edit, ...]


class SameRuns(Struct, frozen=True):
    """The runs that two versions of a set have in common.

    ``identical`` is the number of logs with the same bytes; ``edited`` are other logs of runs that
    have no such log, and ``copied`` those of runs that the new version has twice. ``new`` is the
    number of runs that are only in the new version.
    """

    identical: int
    edited: tuple[EditedRun, ...] = ()
    copied: tuple[EditedRun, ...] = ()
    new: int = 0


class FindingChange(Struct, frozen=True):
    """How many findings have a code, before and after; ``message`` is that of one of them."""

    code: str
    severity: Severity
    message: str
    old: int
    new: int


class NameChanges(Struct, frozen=True):
    """The number of unchanged files, and the names of those changed, removed and added."""

    unchanged: int
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return bool(self.changed or self.removed or self.added)


class SystemChange(Struct, frozen=True):
    """A description before and after; without ``fields``, only its name or layout changed."""

    old: System
    new: System
    fields: tuple[Change, ...]


BATCH_SIZES = frozenset(
    {
        "batchnorm_group_size",
        "global_batch_size",
        "gradient_accumulation_frequency",
        "gradient_accumulation_steps",
        "local_batch_size",
        "model_bn_span",
        "opt_gradient_accumulation_steps",
    }
)


class SetChange(Struct, frozen=True, dict=True):
    """A result set before and after."""

    old: ResultSet
    new: ResultSet
    results: tuple[Change, ...]
    settings: tuple[SettingChange, ...]
    findings: tuple[FindingChange, ...]
    runs: NameChanges
    same: SameRuns

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return bool(self.results or self.settings or self.findings or self.runs.any)

    @property
    def gone(self) -> int:
        """The number of runs that only the old version has."""
        return len(self.old.logs) - self.same.identical - len(self.same.edited)

    @property
    def percent(self) -> float | None:
        """By how much the score changed."""
        return percent(self.old.row.score_minutes, self.new.row.score_minutes)

    @property
    def fields(self) -> list[str]:
        """The fields of its description that changed, without a change of the division."""
        fields = different_fields(self.old, self.new)
        same_division = self.old.row.division == self.new.row.division
        return [field for field in fields if same_division or field != "division"]

    @cached_property
    def hyperparameters(self) -> tuple[str, ...]:
        """The hyperparameters that changed, with batch sizes."""
        before, after = self.old.hyperparameters, self.new.hyperparameters
        keys = sorted(before.keys() | after.keys())
        return tuple(key for key in keys if before.get(key) != after.get(key))

    @property
    def scales(self) -> tuple[int, int] | None:
        """The numbers of accelerators before and after, if they differ."""
        old, new = self.old.accelerators, self.new.accelerators
        return (old, new) if old and new and old != new else None


class Kind(StrEnum):
    """The kind of a change to an entry in the review."""

    BORROWED = "borrowed"
    BORROWED_IN_PART = "borrowed in part"
    HYPERPARAMETERS = "hyperparameters changed"
    SCALE = "scale changed"
    NODES = "nodes changed"
    RESUBMITTED = "resubmitted"
    COPIED = "copied"
    RENAMED = "renamed"
    WITHDRAWN = "withdrawn"
    AGAIN = "withdrawn and added again"
    ADDED = "added"
    TO_OPEN = "moved to Open"
    TO_CLOSED = "moved to Closed"
    AVAILABILITY = "availability changed"
    DESCRIPTION = "description changed"
    AGAINST_LOGS = "description against logs"
    SCALING = "scaling.json changed"
    CODE = "code changed"
    EDITED = "logs edited"
    RUNS = "runs replaced"
    SCORE = "score changed"


class EntryVerdict(Struct, frozen=True):
    """A change to an entry (a result set), and whether the rules allow it.

    ``entry`` is the name of the set on the new side, of a withdrawn set on the old side, or of the
    code of a benchmark. ``other`` is the name of the set on the old side that is the origin of runs
    or hyperparameters. ``allowed`` is None if the files do not show whether the ``rule`` allows it.
    """

    kind: Kind
    entry: str
    text: str
    rule: str
    source: str
    allowed: bool | None
    other: str | None = None


class Comparison(Struct, frozen=True):
    """Everything that changed; ``sets`` also has the unchanged ones, in order of the new side.

    ``across_rounds`` are the findings between the sides, if they are of different rounds.
    ``entries`` are the verdicts on changes to single result sets of submissions.
    """

    verdicts: tuple[Change, ...]
    systems: tuple[SystemChange, ...]
    removed_systems: tuple[System, ...]
    added_systems: tuple[System, ...]
    sets: tuple[SetChange, ...]
    removed_sets: tuple[ResultSet, ...]
    added_sets: tuple[ResultSet, ...]
    findings: tuple[FindingChange, ...]
    files: NameChanges
    across_rounds: tuple[Finding, ...] = ()
    entries: tuple[EntryVerdict, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        systems = (*self.systems, *self.removed_systems, *self.added_systems)
        sets = (*self.removed_sets, *self.added_sets)
        changed = (self.verdicts, systems, sets, self.findings, self.files.any)
        return any(changed) or any(change.any for change in self.sets)
