"""What changed between two sides: the values of a comparison, and how they are found."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, Self, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from mlperf_pkg.checks.descriptions import SystemFile, different_fields
from mlperf_pkg.checks.resubmission import SubmittedSet
from mlperf_pkg.commands.diff.runs import BATCH_SIZES, ComparedLog, SameRuns, same_runs
from mlperf_pkg.findings import Finding, Severity, Verdicts
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow, as_json
from mlperf_pkg.run.readers import is_hyperparameter
from mlperf_pkg.submission.submitters import SubmitterNames

_Item = TypeVar("_Item")
_Key = Callable[[_Item], Hashable]


def percent(old: float | None, new: float | None) -> float | None:
    """Return by how much ``new`` exceeds ``old``, in percent; None if there is no base."""
    return 100 * (new / old - 1) if old and new is not None else None


# ---- the sides ----------------------------------------------------------------------------


class ComparedSystem(Struct, frozen=True):
    """A system description: its path within the input, its id, digest and fields."""

    path: str
    id: str
    digest: str
    fields: Mapping[str, Any]


class ComparedSet(Struct, frozen=True):
    """A result set; ``path`` is its path within the input, without the input's own name.

    ``identity`` is as in ``SetContext``. It names a set that ``is_raw``, as several sets of raw
    logs may have the same path. ``submitter`` is the name of its submission; of a submission that
    is compared alone, whose folder may have any name, the one in its system description; of raw
    logs empty. ``submitted`` are the facts that decide whether it may have runs of another one.
    """

    path: str
    row: ResultSetRow
    logs: tuple[ComparedLog, ...]
    findings: tuple[Finding, ...]
    submitted: SubmittedSet
    system: SystemFile | None = None
    submitter: str = ""
    identity: str = ""
    is_raw: bool = False

    @property
    def name(self) -> str:
        """Its name on both sides: its path or, for raw logs, its identity."""
        return self.identity if self.is_raw else self.path

    @property
    def submitter_names(self) -> SubmitterNames:
        """The names of its submitter."""
        described = self.system.submitter if self.system else None
        return SubmitterNames(self.submitter, described or "")

    @property
    def in_short(self) -> str:
        """The number of its runs, and its score."""
        runs = wording.counted(self.row.runs_found, "run")
        return f"{runs}, {wording.minutes(self.row.score_minutes)} minutes"

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
        hyperparameters = {}
        for key in _keys(self.logs):
            if key in BATCH_SIZES or is_hyperparameter(key):
                hyperparameters[key] = frozenset(log.settings.get(key) for log in self.logs)
        return hyperparameters


class ComparedSide(Struct, frozen=True):
    """One of the two versions.

    ``findings`` are those outside the result sets; ``files`` are the digests, by path within the
    input, of all files other than system descriptions and the logs of result sets.
    """

    verdict: Verdicts
    systems: tuple[ComparedSystem, ...]
    sets: tuple[ComparedSet, ...]
    findings: tuple[Finding, ...]
    files: Mapping[str, str]


# ---- the changes --------------------------------------------------------------------------


class FieldChange(Struct, frozen=True):
    """A value by name, before and after; None if it is missing."""

    name: str
    old: Any
    new: Any


class SettingValue(Struct, frozen=True):
    """A value of a logged key as JSON, with its number of runs; None: not logged."""

    value: str | None
    runs: int


class SettingChange(Struct, frozen=True):
    """The values of a logged key, the most frequent first."""

    key: str
    old: list[SettingValue]
    new: list[SettingValue]


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

    old: ComparedSystem
    new: ComparedSystem
    fields: tuple[FieldChange, ...]


class SetChange(Struct, frozen=True, dict=True):
    """A result set before and after."""

    old: ComparedSet
    new: ComparedSet
    results: tuple[FieldChange, ...]
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
    def minutes(self) -> FieldChange:
        """The scores before and after; of a set that changed its division, without factors."""
        is_moved = self.old.row.division != self.new.row.division
        name = "unscaled_minutes" if is_moved else "score_minutes"
        return FieldChange(name, getattr(self.old.row, name), getattr(self.new.row, name))

    @property
    def percent(self) -> float | None:
        """By how much the score changed."""
        return percent(self.minutes.old, self.minutes.new)

    @property
    def fields(self) -> list[str]:
        """The fields of its description that changed, without a change of the division.

        There are none if one of the descriptions is missing.
        """
        if not (self.old.fields and self.new.fields):
            return []
        fields = different_fields(self.old.fields, self.new.fields)
        if self.old.row.division != self.new.row.division and "division" in fields:
            fields.remove("division")
        return fields

    @cached_property
    def hyperparameters(self) -> tuple[str, ...]:
        """The hyperparameters that changed, with batch sizes."""
        before = self.old.hyperparameters
        after = self.new.hyperparameters
        keys = sorted(before.keys() | after.keys())
        return tuple(key for key in keys if before.get(key) != after.get(key))

    @property
    def scales(self) -> tuple[int, int] | None:
        """The numbers of accelerators before and after, if they differ."""
        old = self.old.accelerators
        new = self.new.accelerators
        return (old, new) if old and new and old != new else None


_BORROWING = "training_rules, Hyperparameter Borrowing"
_CHANGING = "submission_rules, Withdrawing results or changing division"
_FIXING = "submission_rules, Fixing objections"
_LIMIT = "until Wednesday of week 3"


class ChangeKind(StrEnum):
    """The kind of a change to an entry in the review, with the rule on it and the rule's source."""

    def __new__(cls, name: str, rule: str, source: str) -> Self:
        """Return the kind of a name."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.rule = rule
        kind.source = source
        return kind

    rule: str
    source: str

    def verdict(
        self, entry: str, text: str, *, allowed: bool | None = None, other: str | None = None
    ) -> "EntryVerdict":
        """Return a verdict on a change of this kind; the arguments are its other fields."""
        return EntryVerdict(self, entry, text, self.rule, self.source, allowed, other)

    BORROWED = (
        "borrowed",
        "an entry may borrow once, and then borrows all hyperparameters except batch sizes;"
        " software, system and configuration stay the same; the submitter declares the borrowing"
        " by Monday of week 3",
        _BORROWING,
    )
    BORROWED_IN_PART = (
        "borrowed in part",
        "all hyperparameters except batch sizes must be borrowed together; other changes must be as"
        " few as possible, and the submitter must show that the model converges worse without these"
        " changes",
        _BORROWING,
    )
    HYPERPARAMETERS = (
        "hyperparameters changed",
        "in Closed, hyperparameters may change in the review only by borrowing from another"
        " submitter, or to fix an objection",
        _BORROWING,
    )
    SCALE = (
        "scale changed",
        "if hyperparameters were borrowed, an entry at another scale may replace the entry at the"
        " largest scale of a benchmark and system. The new entry must be larger or faster, and not"
        " larger than the largest entry of any benchmark on the system",
        _BORROWING,
    )
    NODES = (
        "nodes changed",
        "the results table multiplies the number of nodes by the accelerators per node, so the"
        " number of nodes must not change if the runs stay the same",
        "submission_rules, <system_desc_id>.json metadata",
    )
    RESUBMITTED = (
        "resubmitted",
        "logs of an earlier round may be submitted again if the system description is the same in"
        " both rounds and the logs pass the checker of the newer round; such logs do not prove a"
        " Preview",
        "training_rules, Results Resubmission",
    )
    COPIED = (
        "copied",
        "every result set must have runs of its own",
        "training_rules, Benchmark Results",
    )
    RENAMED = ("renamed", "a renamed entry must keep its logs and its description", _FIXING)
    WITHDRAWN = (
        "withdrawn",
        f"an entry may be withdrawn {_LIMIT}, by amending the pull request",
        _CHANGING,
    )
    AGAIN = (
        "withdrawn and added again",
        "an entry that is withdrawn may not be replaced after the deadline; only borrowing and"
        " objections permit new runs",
        "submission_rules, Late Submissions",
    )
    ADDED = (
        "added",
        "entries may be added until the deadline, with a grace period of 60 minutes",
        "submission_rules, Late Submissions",
    )
    TO_OPEN = ("moved to Open", f"an entry may move to Open {_LIMIT}", _CHANGING)
    TO_CLOSED = (
        "moved to Closed",
        "an entry may move from Closed to Open, but not back",
        _CHANGING,
    )
    AVAILABILITY = (
        "availability changed",
        "an Available system can be bought or rented on the day of the submission. A Preview"
        " will be available later, and becomes Available only with new runs. Parts of a research,"
        " development or internal system must become Available in the submission after next, or 221"
        " days later",
        "submission_rules, Research, Development, or Internal Systems",
    )
    DESCRIPTION = (
        "description changed",
        f"a description may be corrected {_LIMIT}, if its fields then describe the system that"
        " executed the runs",
        "submission_rules, <system_desc_id>.json metadata",
    )
    AGAINST_LOGS = (
        "description against logs",
        "the description must describe the system that executed the runs, and have the division of"
        " the logs; an entry that was moved to Open keeps its logs",
        "submission_rules, <system_desc_id>.json metadata",
    )
    SCALING = (
        "scaling.json changed",
        "the RCP checker writes the factor; only the review may decide on another factor",
        "training_rules, Score scaling",
    )
    CODE = (
        "code changed",
        f"code may change {_LIMIT}, to fix an objection; borrowing may change only the"
        " hyperparameters in the code",
        _FIXING,
    )
    EDITED = (
        "logs edited",
        "logs must stay as the runs wrote them; a correction needs an objection",
        _FIXING,
    )
    POWER = (
        "power logs changed",
        "each run must have power logs of its own, measured during the run",
        "power_measurement, Measure all Runs",
    )
    RUNS = (
        "runs replaced",
        "runs may be replaced only by borrowing or to fix an objection; then all runs of the entry"
        " must be replaced",
        _FIXING,
    )
    SCORE = (
        "score changed",
        "a score may change only by borrowing or to fix an objection; scores are final on Tuesday"
        " of week 3",
        "submission_rules, Schedule",
    )
    ENERGY = (
        "energy changed",
        "the energy is computed from the power logs of the runs, and changes only if the runs"
        " change",
        "power_measurement, Scoring",
    )


class EntryVerdict(Struct, frozen=True):
    """A change to an entry (a result set), and whether the rules allow it.

    ``entry`` is the name of the set on the new side, of a withdrawn set on the old side, or of the
    code of a benchmark. ``other`` is the name of the set on the old side that is the origin of runs
    or hyperparameters. ``allowed`` is None if the files do not show whether the ``rule`` allows it.
    """

    kind: ChangeKind
    entry: str
    text: str
    rule: str
    source: str
    allowed: bool | None
    other: str | None = None


class VersionComparison(Struct, frozen=True):
    """Everything that changed; ``sets`` also has the unchanged ones, in order of the new side.

    ``across_rounds`` are the findings between the sides, if they are of different rounds.
    ``entries`` are the verdicts on changes to single result sets of submissions.
    """

    verdicts: tuple[FieldChange, ...]
    systems: tuple[SystemChange, ...]
    removed_systems: tuple[ComparedSystem, ...]
    added_systems: tuple[ComparedSystem, ...]
    sets: tuple[SetChange, ...]
    removed_sets: tuple[ComparedSet, ...]
    added_sets: tuple[ComparedSet, ...]
    findings: tuple[FindingChange, ...]
    files: NameChanges
    across_rounds: tuple[Finding, ...] = ()
    entries: tuple[EntryVerdict, ...] = ()

    @property
    def old_rounds(self) -> str:
        """The names of the rounds of the old side."""
        return _rounds([*self.removed_sets, *(change.old for change in self.sets)])

    @property
    def new_rounds(self) -> str:
        """The names of the rounds of the new side."""
        return _rounds([*self.added_sets, *(change.new for change in self.sets)])

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        if self.verdicts or self.findings or self.files.any:
            return True
        if self.systems or self.removed_systems or self.added_systems:
            return True
        if self.removed_sets or self.added_sets:
            return True
        return any(change.any for change in self.sets)


def _rounds(sets: Iterable[ComparedSet]) -> str:
    rows = (result_set.row for result_set in sets)
    return ", ".join(sorted({wording.edition(row.usage, row.round) for row in rows}))


# ---- the comparison -----------------------------------------------------------------------


def compare(old: ComparedSide, new: ComparedSide) -> VersionComparison:
    """Return what changed from ``old`` to ``new``.

    Systems are paired by their path; result sets by their name, or by path, system and benchmark,
    or by identity. Each of the rest is paired if it is the only one of its kind on both sides: a
    system, or a result set of its benchmark (and division).
    """
    systems, removed_systems, added_systems = paired(old.systems, new.systems, _SYSTEM_KEYS)
    sets, removed_sets, added_sets = paired(old.sets, new.sets, _SET_KEYS)
    set_changes = [set_change(*pair) for pair in sets]
    verdicts = _differing(asdict(old.verdict), asdict(new.verdict))
    findings = _finding_changes(old.findings, new.findings)
    return VersionComparison(
        verdicts=tuple(verdicts),
        systems=tuple(_system_changes(systems)),
        removed_systems=tuple(removed_systems),
        added_systems=tuple(added_systems),
        sets=tuple(set_changes),
        removed_sets=tuple(removed_sets),
        added_sets=tuple(added_sets),
        findings=tuple(findings),
        files=_names(old.files, new.files),
    )


# ---- pairs --------------------------------------------------------------------------------

_SYSTEM_KEYS: tuple[_Key[ComparedSystem], ...] = (
    lambda system: system.path,
    lambda system: system.id,
    lambda _: "the only one",
)
_SET_KEYS: tuple[_Key[ComparedSet], ...] = (
    lambda result: (result.name, result.row.round, result.row.system, result.row.division),
    lambda result: (result.name, result.row.system, result.row.benchmark, result.row.division),
    lambda result: (result.path, result.row.system, result.row.benchmark),
    lambda result: result.identity or result.path,
    lambda result: (result.row.benchmark, result.row.division),
    lambda result: result.row.benchmark,
)


def paired(
    old: Sequence[_Item], new: Sequence[_Item], keys: Iterable[_Key[_Item]]
) -> tuple[list[tuple[_Item, _Item]], list[_Item], list[_Item]]:
    """Return the pairs of counterparts, the items that are only old, and those that are only new.

    The first key that is unique on both sides decides.
    """
    partners: dict[int, int] = {}  # of new items
    for key in keys:
        old_indices = _unique(old, key)
        new_indices = _unique(new, key)
        taken = set(partners.values())
        for value, index in new_indices.items():
            partner = old_indices.get(value)
            if partner is not None and index not in partners and partner not in taken:
                partners[index] = partner
    taken = set(partners.values())
    pairs = [(old[partner], new[index]) for index, partner in sorted(partners.items())]
    removed = [item for index, item in enumerate(old) if index not in taken]
    added = [item for index, item in enumerate(new) if index not in partners]
    return pairs, removed, added


def _unique(items: Sequence[_Item], key: _Key[_Item]) -> dict[Hashable, int]:
    """Return the indices of items by key, without keys that several have."""
    values = [key(item) for item in items]
    counts = Counter(values)
    return {value: index for index, value in enumerate(values) if counts[value] == 1}


# ---- changes ------------------------------------------------------------------------------


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldChange]:
    for name in dict.fromkeys([*old, *new]):
        before = as_json(old.get(name))
        after = as_json(new.get(name))
        if before != after:
            yield FieldChange(name, before, after)


def _system_changes(
    pairs: Iterable[tuple[ComparedSystem, ComparedSystem]],
) -> Iterator[SystemChange]:
    for old, new in pairs:
        if old.path != new.path or old.digest != new.digest:
            fields = _differing(old.fields, new.fields)
            yield SystemChange(old, new, tuple(fields))


def set_change(old: ComparedSet, new: ComparedSet) -> SetChange:
    """Return what changed in a result set."""
    # Logs of equal bytes are the same run, whatever their names.
    old_digests = Counter(log.digest for log in old.logs)
    new_digests = Counter(log.digest for log in new.logs)
    same = old_digests & new_digests
    results = _differing(_results(old.row), _results(new.row))
    settings = _setting_changes(old.logs, new.logs)
    findings = _finding_changes(old.findings, new.findings)
    old_names = _without(old.logs, same)
    new_names = _without(new.logs, same)
    return SetChange(
        old=old,
        new=new,
        results=tuple(results),
        settings=tuple(settings),
        findings=tuple(findings),
        runs=_names(old_names, new_names, same.total()),
        same=same_runs(old.logs, new.logs),
    )


_OF_SET = ("system", "scaling", "division", "round", "runs_found", "runs_required")
_OF_SCORE = ("score_minutes", "official_minutes", "scaling_factor", "energy_joules")


def _results(row: ResultSetRow) -> dict[str, Any]:
    results = {}
    for name in _OF_SET + _OF_SCORE:
        results[name.removesuffix("_found")] = getattr(row, name)
    results["rcp"] = wording.rcp_state(row)
    results["rcp_margin_percent"] = row.rcp and row.rcp.margin_percent
    return results | asdict(row.verdict)


def _keys(logs: Iterable[ComparedLog]) -> set[str]:
    """Return the keys of the settings of all logs."""
    keys: set[str] = set()
    for log in logs:
        keys.update(log.settings)
    return keys


def _setting_changes(
    old: Sequence[ComparedLog], new: Sequence[ComparedLog]
) -> Iterator[SettingChange]:
    """Yield keys with other values, or with the same in other runs if there are as many runs."""
    for key in sorted(_keys(old) | _keys(new)):
        old_runs = Counter(log.settings.get(key) for log in old)
        new_runs = Counter(log.settings.get(key) for log in new)
        if len(old) == len(new):
            is_same = old_runs == new_runs
        else:
            is_same = old_runs.keys() == new_runs.keys()
        if not is_same:
            yield SettingChange(key, _by_frequency(old_runs), _by_frequency(new_runs))


def _by_frequency(runs: Counter[str | None]) -> list[SettingValue]:
    """Return the values with their numbers of runs, the most frequent first."""
    values = [SettingValue(value, number) for value, number in runs.items()]
    return sorted(values, key=lambda setting: (-setting.runs, setting.value or ""))


def _finding_changes(old: Iterable[Finding], new: Iterable[Finding]) -> Iterator[FindingChange]:
    """Yield the codes that were found more often, or less often, than before."""
    old_findings = by_key((finding.code, finding) for finding in old)
    new_findings = by_key((finding.code, finding) for finding in new)
    for code in sorted(old_findings.keys() | new_findings.keys()):
        before = old_findings.get(code, [])
        after = new_findings.get(code, [])
        old_count = sum(finding.count for finding in before)
        new_count = sum(finding.count for finding in after)
        if old_count != new_count:
            first = [*after, *before][0]
            yield FindingChange(code, first.severity, first.text, old_count, new_count)


def _without(logs: Sequence[ComparedLog], digests: Counter[str]) -> dict[str, str]:
    """Return the digests of logs by name, without as many of each as ``digests`` counts."""
    names = by_key((log.digest, log.name) for log in logs)
    others = {}
    for digest, same in names.items():
        for name in same[digests[digest] :]:
            others[name] = digest
    return others


def _names(old: Mapping[str, str], new: Mapping[str, str], unchanged: int = 0) -> NameChanges:
    """Return the changes of files with these digests by name, and of more that are unchanged."""
    changed = []
    for name in sorted(old.keys() & new.keys()):
        if old[name] == new[name]:
            unchanged += 1
        else:
            changed.append(name)
    removed = sorted(old.keys() - new.keys())
    added = sorted(new.keys() - old.keys())
    return NameChanges(unchanged, tuple(changed), tuple(removed), tuple(added))
