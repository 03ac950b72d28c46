"""What changed from one side to the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mlperf_pkg.commands.diff.model import (
    Change,
    Comparison,
    FindingChange,
    Log,
    NameChanges,
    ResultSet,
    SetChange,
    SettingChange,
    Side,
    System,
    SystemChange,
)
from mlperf_pkg.commands.diff.runs import same_runs
from mlperf_pkg.findings import Finding, Verdicts
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow, as_json

_Item = TypeVar("_Item")
_Key = Callable[[_Item], Hashable]


def compare(old: Side, new: Side) -> Comparison:
    """Return what changed from ``old`` to ``new``.

    Systems are paired by their path; result sets by their name, or by path, system and benchmark,
    or by identity. Each of the rest is paired if it is the only one of its kind on both sides: a
    system, or a result set of its benchmark (and division).
    """
    systems, removed_systems, added_systems = paired(old.systems, new.systems, _SYSTEM_KEYS)
    sets, removed_sets, added_sets = paired(old.sets, new.sets, _SET_KEYS)
    return Comparison(
        verdicts=tuple(_differing(_verdicts(old.verdict), _verdicts(new.verdict))),
        systems=tuple(filter(None, (_system_change(*pair) for pair in systems))),
        removed_systems=tuple(removed_systems),
        added_systems=tuple(added_systems),
        sets=tuple(set_change(*pair) for pair in sets),
        removed_sets=tuple(removed_sets),
        added_sets=tuple(added_sets),
        findings=_finding_changes(old.findings, new.findings),
        files=_names(old.files, new.files),
    )


# ---- pairs --------------------------------------------------------------------------------

_SYSTEM_KEYS: tuple[_Key[System], ...] = (
    lambda system: system.path,
    lambda system: system.id,
    lambda _: "the only one",
)
_SET_KEYS: tuple[_Key[ResultSet], ...] = (
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
    partners: dict[int, int] = {}
    for key in keys:
        before, after = _unique(old, key), _unique(new, key)
        taken = set(partners.values())
        for name, index in before.items():
            if name in after and index not in partners and after[name] not in taken:
                partners[index] = after[name]
    back = {index: partner for partner, index in partners.items()}
    pairs = [(old[back[i]], item) for i, item in enumerate(new) if i in back]
    removed = [item for i, item in enumerate(old) if i not in partners]
    return pairs, removed, [item for i, item in enumerate(new) if i not in back]


def _unique(items: Sequence[_Item], key: _Key[_Item]) -> dict[Hashable, int]:
    """Return the indices of items by key, without keys that several have."""
    counts = Counter(key(item) for item in items)
    return {key(item): index for index, item in enumerate(items) if counts[key(item)] == 1}


# ---- changes ------------------------------------------------------------------------------


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = as_json(old.get(name)), as_json(new.get(name))
        if before != after:
            yield Change(name, before, after)


def _system_change(old: System, new: System) -> SystemChange | None:
    if (old.path, old.digest) == (new.path, new.digest):
        return None
    return SystemChange(old, new, tuple(_differing(old.fields, new.fields)))


def set_change(old: ResultSet, new: ResultSet) -> SetChange:
    """Return what changed in a result set."""
    # Logs of equal bytes are the same run, whatever their names.
    before, after = (Counter(log.digest for log in logs) for logs in (old.logs, new.logs))
    same = before & after
    return SetChange(
        old=old,
        new=new,
        results=tuple(_differing(_results(old.row), _results(new.row))),
        settings=tuple(_setting_changes(old.logs, new.logs)),
        findings=_finding_changes(old.findings, new.findings),
        runs=_names(_without(old.logs, same), _without(new.logs, same), same.total()),
        same=same_runs(old.logs, new.logs),
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
        "rcp": wording.rcp_state(row),
        "rcp_margin_percent": row.rcp and row.rcp.margin_percent,
        **_verdicts(row.verdict),
    }


def _verdicts(verdicts: Verdicts) -> dict[str, Any]:
    return {"official": verdicts.official, "rules": verdicts.rules}


def _setting_changes(old: Sequence[Log], new: Sequence[Log]) -> Iterator[SettingChange]:
    """Yield keys with other values, or with the same in other runs if there are as many runs."""
    for key in sorted({key for log in (*old, *new) for key in log.settings}):
        before, after = (Counter(log.settings.get(key) for log in logs) for logs in (old, new))
        same = before == after if len(old) == len(new) else before.keys() == after.keys()
        if not same:
            yield SettingChange(key, _by_frequency(before), _by_frequency(after))


def _by_frequency(values: Counter[str | None]) -> tuple[tuple[str | None, int], ...]:
    return tuple(sorted(values.items(), key=lambda item: (-item[1], item[0] or "")))


def _finding_changes(old: Iterable[Finding], new: Iterable[Finding]) -> tuple[FindingChange, ...]:
    """Return the codes that were found more often, or less often, than before."""
    before, after = (by_key((f.code, f) for f in findings) for findings in (old, new))
    changes = []
    for code in sorted(before.keys() | after.keys()):
        old_count, new_count = (
            sum(finding.count for finding in side.get(code, ())) for side in (before, after)
        )
        if old_count != new_count:
            first = (after.get(code) or before[code])[0]
            words = (first.severity, first.text)
            changes.append(FindingChange(code, *words, old_count, new_count))
    return tuple(changes)


def _without(logs: Sequence[Log], digests: Counter[str]) -> dict[str, str]:
    """Return the digests of logs by name, without as many of each as ``digests`` counts."""
    left = Counter(digests)
    rest = {}
    for log in logs:
        if left[log.digest]:
            left[log.digest] -= 1
        else:
            rest[log.name] = log.digest
    return rest


def _names(old: Mapping[str, str], new: Mapping[str, str], unchanged: int = 0) -> NameChanges:
    both = old.keys() & new.keys()
    changed = sorted(name for name in both if old[name] != new[name])
    return NameChanges(
        unchanged=unchanged + len(both) - len(changed),
        changed=tuple(changed),
        removed=tuple(sorted(old.keys() - new.keys())),
        added=tuple(sorted(new.keys() - old.keys())),
    )
