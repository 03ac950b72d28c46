"""What changed between two versions of a submission, of loose logs or of single result sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from mlperf_pkg.findings import Finding, Severity, Verdicts
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.report import ResultSetRow, as_json

_Thing = TypeVar("_Thing")
_Key = Callable[[_Thing], Hashable]


class Log(Struct, frozen=True):
    """The log of a run: its file's name, the digest of its bytes, its settings as JSON by key."""

    name: str
    digest: str
    settings: Mapping[str, str]


class System(Struct, frozen=True):
    """A system description; ``place`` is its path within the input, ``fields`` what it holds."""

    place: str
    id: str
    digest: str
    fields: Mapping[str, Any]


class Set(Struct, frozen=True):
    """A result set; ``place`` is its path within the input, whatever the input is called."""

    place: str
    row: ResultSetRow
    logs: tuple[Log, ...]
    findings: tuple[Finding, ...]


class Side(Struct, frozen=True):
    """One of the two versions.

    ``findings`` are those of no result set; ``files`` are the digests, by path within the input,
    of all files that are neither a system description nor a log of a result set.
    """

    verdict: Verdicts
    systems: tuple[System, ...]
    sets: tuple[Set, ...]
    findings: tuple[Finding, ...]
    files: Mapping[str, str]


class Change(Struct, frozen=True):
    """A value by name, before and after; None where there is none."""

    name: str
    old: Any
    new: Any


class SettingChange(Struct, frozen=True):
    """The values of a logged key as JSON, each with how many runs have it; None: not logged."""

    key: str
    old: tuple[tuple[str | None, int], ...]
    new: tuple[tuple[str | None, int], ...]


class FindingChange(Struct, frozen=True):
    """How many findings of a code there are, before and after; ``message`` is one of them."""

    code: str
    severity: Severity
    message: str
    old: int
    new: int


class Names(Struct, frozen=True):
    """What is unchanged to the byte, by number, and what was changed, removed or added, by name."""

    unchanged: int
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return bool(self.changed or self.removed or self.added)


class SystemChange(Struct, frozen=True):
    """A description before and after; without ``fields`` only its name or layout changed."""

    old: System
    new: System
    fields: tuple[Change, ...]


class SetChange(Struct, frozen=True):
    """A result set before and after."""

    old: Set
    new: Set
    results: tuple[Change, ...]
    settings: tuple[SettingChange, ...]
    findings: tuple[FindingChange, ...]
    runs: Names

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return bool(self.results or self.settings or self.findings or self.runs.any)


class Comparison(Struct, frozen=True):
    """Everything that changed; of ``sets`` also those that did not, in order of the new side."""

    verdicts: tuple[Change, ...]
    systems: tuple[SystemChange, ...]
    removed_systems: tuple[System, ...]
    added_systems: tuple[System, ...]
    sets: tuple[SetChange, ...]
    removed_sets: tuple[Set, ...]
    added_sets: tuple[Set, ...]
    findings: tuple[FindingChange, ...]
    files: Names

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        gone_or_new = (
            *self.removed_systems,
            *self.added_systems,
            *self.removed_sets,
            *self.added_sets,
        )
        changed = (self.verdicts, self.systems, gone_or_new, self.findings, self.files.any)
        return any(changed) or any(each.any for each in self.sets)


def compare(old: Side, new: Side) -> Comparison:
    """What changed from ``old`` to ``new``.

    Systems are paired by their path, result sets by path, system and benchmark. What is then left
    is paired where it is the only one of its kind on both sides: a system, or a result set of its
    benchmark (and division).
    """
    systems = _paired(old.systems, new.systems, _SYSTEM_KEYS)
    sets = _paired(old.sets, new.sets, _SET_KEYS)
    both = (_system_change(before, after) for before, after in systems if before and after)
    return Comparison(
        verdicts=tuple(_differing(_verdicts(old.verdict), _verdicts(new.verdict))),
        systems=tuple(each for each in both if each),
        removed_systems=tuple(before for before, after in systems if before and not after),
        added_systems=tuple(after for before, after in systems if after and not before),
        sets=tuple(_set_change(before, after) for before, after in sets if before and after),
        removed_sets=tuple(before for before, after in sets if before and not after),
        added_sets=tuple(after for before, after in sets if after and not before),
        findings=_finding_changes(old.findings, new.findings),
        files=_names(old.files, new.files),
    )


# ---- pairs --------------------------------------------------------------------------------

_SYSTEM_KEYS: tuple[_Key[System], ...] = (
    lambda system: system.place,
    lambda system: system.id,
    lambda _: "the only one",
)
_SET_KEYS: tuple[_Key[Set], ...] = (
    lambda each: (each.place, each.row.system, each.row.benchmark, each.row.division),
    lambda each: (each.place, each.row.system, each.row.benchmark),
    lambda each: (each.row.benchmark, each.row.division),
    lambda each: each.row.benchmark,
)


def _paired(
    old: Sequence[_Thing], new: Sequence[_Thing], keys: Iterable[_Key[_Thing]]
) -> list[tuple[_Thing | None, _Thing | None]]:
    """Each thing with its counterpart: the first key that is unique on both sides decides."""
    partners: dict[int, int] = {}
    for key in keys:
        before, after = _unique(old, key), _unique(new, key)
        taken = set(partners.values())
        for name, index in before.items():
            if name in after and index not in partners and after[name] not in taken:
                partners[index] = after[name]
    back = {index: partner for partner, index in partners.items()}
    removed = [(each, None) for index, each in enumerate(old) if index not in partners]
    kept = [(old[back[i]] if i in back else None, each) for i, each in enumerate(new)]
    return [*removed, *kept]


def _unique(things: Sequence[_Thing], key: _Key[_Thing]) -> dict[Hashable, int]:
    """The indices of things by key, as far as no other has the same."""
    counted = Counter(key(each) for each in things)
    return {key(each): i for i, each in enumerate(things) if counted[key(each)] == 1}


# ---- changes ------------------------------------------------------------------------------


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = as_json(old.get(name)), as_json(new.get(name))
        if before != after:
            yield Change(name, before, after)


def _system_change(old: System, new: System) -> SystemChange | None:
    if (old.place, old.digest) == (new.place, new.digest):
        return None
    return SystemChange(old, new, tuple(_differing(old.fields, new.fields)))


def _set_change(old: Set, new: Set) -> SetChange:
    return SetChange(
        old=old,
        new=new,
        results=tuple(_differing(_results(old.row), _results(new.row))),
        settings=tuple(_setting_changes(old.logs, new.logs)),
        findings=_finding_changes(old.findings, new.findings),
        runs=_run_names(old.logs, new.logs),
    )


def _results(row: ResultSetRow) -> dict[str, Any]:
    return {
        "system": row.system,
        "scaling": row.scaling,
        "division": row.division,
        "round": row.round,
        "runs": row.runs_found,
        "runs_required": row.runs_required,
        "score_minutes": row.score_minutes,
        "official_minutes": row.official_minutes,
        "scaling_factor": row.scaling_factor,
        "energy_joules": row.energy_joules,
        "rcp": words.rcp_state(row),
        "rcp_margin_percent": words.rcp_margin_percent(row.rcp),
        **_verdicts(row.verdict),
    }


def _verdicts(verdicts: Verdicts) -> dict[str, Any]:
    return {"official": verdicts.official, "rules": verdicts.rules}


def _setting_changes(old: Sequence[Log], new: Sequence[Log]) -> Iterator[SettingChange]:
    """Keys with other values; that equally many runs spread otherwise over the same is a change."""
    for key in sorted({key for log in (*old, *new) for key in log.settings}):
        before, after = (Counter(log.settings.get(key) for log in logs) for logs in (old, new))
        same = before == after if len(old) == len(new) else before.keys() == after.keys()
        if not same:
            yield SettingChange(key, _by_frequency(before), _by_frequency(after))


def _by_frequency(values: Counter[str | None]) -> tuple[tuple[str | None, int], ...]:
    return tuple(sorted(values.items(), key=lambda item: (-item[1], item[0] or "")))


def _finding_changes(old: Iterable[Finding], new: Iterable[Finding]) -> tuple[FindingChange, ...]:
    """Codes that are found more or less often."""
    before, after = _by_code(old), _by_code(new)
    changes = []
    for code in sorted(before.keys() | after.keys()):
        counts = len(before.get(code, ())), len(after.get(code, ()))
        if counts[0] != counts[1]:
            first = (after.get(code) or before[code])[0]
            changes.append(FindingChange(code, first.severity, first.message, *counts))
    return tuple(changes)


def _by_code(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.code, []).append(finding)
    return found


def _run_names(old: Sequence[Log], new: Sequence[Log]) -> Names:
    """Logs of equal bytes are the same run, whatever their names."""
    before, after = (Counter(log.digest for log in logs) for logs in (old, new))
    same = before & after
    return _names(_without(old, same), _without(new, same), same.total())


def _without(logs: Sequence[Log], digests: Counter[str]) -> dict[str, str]:
    """The digests of logs by name, less those of ``digests``."""
    left = Counter(digests)
    rest = {}
    for log in logs:
        if left[log.digest]:
            left[log.digest] -= 1
        else:
            rest[log.name] = log.digest
    return rest


def _names(old: Mapping[str, str], new: Mapping[str, str], unchanged: int = 0) -> Names:
    both = old.keys() & new.keys()
    changed = sorted(name for name in both if old[name] != new[name])
    return Names(
        unchanged=unchanged + len(both) - len(changed),
        changed=tuple(changed),
        removed=tuple(sorted(old.keys() - new.keys())),
        added=tuple(sorted(new.keys() - old.keys())),
    )
