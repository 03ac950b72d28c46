"""The changes to the entries of a round in its review, and the rules on them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import TypeAlias

from mlperf_pkg.checks.copies import is_same_submitter
from mlperf_pkg.checks.descriptions import PREVIEW, category
from mlperf_pkg.commands.diff.borrowing import Change, borrowings, different_fields
from mlperf_pkg.commands.diff.entry_rules import entry_verdict
from mlperf_pkg.commands.diff.model import Comparison, EntryVerdict, Kind, ResultSet, Side
from mlperf_pkg.findings import Verdict, in_words
from mlperf_pkg.results import wording

_LEAST_CHANGE = 0.05  # percent; less is shown as 0.0

_Key: TypeAlias = Callable[[ResultSet], Hashable]
_Pair: TypeAlias = tuple[ResultSet | None, ResultSet | None]
"""An entry before and after; None where it is missing."""


def entry_verdicts(
    comparison: Comparison, old: Side, new: Side, lenders: Sequence[ResultSet]
) -> tuple[EntryVerdict, ...]:
    """Return the verdicts on the entries of submissions, in the order of their paths.

    ``lenders`` are the result sets from which hyperparameters may have been borrowed. Entries of
    different rounds are only checked for resubmission.
    """
    rounds = [{result_set.row.round for result_set in side.sets} for side in (old, new)]
    one_round = len(rounds[0] | rounds[1]) == 1
    pairs = _pairs(comparison, one_round=one_round) if _are_versions(old, new) else []
    owners = _owners(old.sets)
    verdicts = list(_code(comparison)) if pairs and one_round else []
    for before, after in pairs:
        copies = list(_copies(before, after, owners)) if after else []
        verdicts += copies
        if before and after:
            verdicts += _changes(Change(before, after), old.sets, lenders)
        elif before and before.row.round in (rounds[1] or rounds[0]):
            verdicts.append(
                entry_verdict(Kind.WITHDRAWN, before.name, _in_short(before), allowed=True)
            )
        elif after and not copies and after.row.round in rounds[0]:
            verdicts.append(entry_verdict(Kind.ADDED, after.name, _in_short(after), allowed=None))
    kinds = tuple(Kind)
    return tuple(sorted(verdicts, key=lambda item: (item.entry, kinds.index(item.kind))))


def _are_versions(old: Side, new: Side) -> bool:
    """Return whether the sides have a common submitter, or one of them is empty."""
    names = [{item.submitter for item in side.sets} for side in (old, new)]
    return not all(names) or any(is_same_submitter(*both) for both in product(*names))


# ---- pairs --------------------------------------------------------------------------------


def _pairs(comparison: Comparison, *, one_round: bool) -> list[_Pair]:
    """Return the entries, each with its counterpart of the same submitter and round."""
    pairs: list[_Pair] = []
    removed, added = list(comparison.removed_sets), list(comparison.added_sets)
    for change in comparison.sets:
        if _is_same_entry(change.old, change.new):
            pairs.append((change.old, change.new))
        else:
            removed.append(change.old)
            added.append(change.new)
    if one_round:
        for key in (_runs, _benchmark):
            pairs += _taken(removed, added, key)
    pairs += [(old, None) for old in removed] + [(None, new) for new in added]
    return [pair for pair in pairs if all(side is None or side.submitter for side in pair)]


def _is_same_entry(old: ResultSet, new: ResultSet) -> bool:
    submitters = (old.submitter, new.submitter)
    return old.row.round == new.row.round and is_same_submitter(*submitters)


def _runs(result_set: ResultSet) -> Hashable:
    return (result_set.submitter, *sorted(repr(log.run) for log in result_set.logs))


def _benchmark(result_set: ResultSet) -> Hashable:
    row = result_set.row
    return (row.submitter, row.benchmark, row.division)


def _taken(removed: list[ResultSet], added: list[ResultSet], key: _Key) -> list[_Pair]:
    """Move the pairs whose key is unique on both sides out of ``removed`` and ``added``."""
    before, after = (Counter(map(key, sets)) for sets in (removed, added))
    partners = {key(new): new for new in added if after[key(new)] == 1}
    pairs: list[_Pair] = [
        (old, partners[key(old)])
        for old in removed
        if before[key(old)] == 1 and key(old) in partners
    ]
    for sets, index in ((removed, 0), (added, 1)):
        sets[:] = [item for item in sets if all(item is not pair[index] for pair in pairs)]
    return pairs


# ---- copies -------------------------------------------------------------------------------


def _owners(sets: Iterable[ResultSet]) -> dict[bytes | str, ResultSet]:
    """Return the first set that has each run."""
    owners: dict[bytes | str, ResultSet] = {}
    for result_set in sets:
        for log in result_set.logs:
            owners.setdefault(log.run, result_set)
    return owners


def _copies(
    old: ResultSet | None, new: ResultSet, owners: dict[bytes | str, ResultSet]
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on runs of other entries of the old side."""
    own = {log.run for log in old.logs} if old else set()
    counts: dict[str, int] = defaultdict(int)
    originals = {}
    for log in new.logs:
        original = owners.get(log.run)
        if original is not None and log.run not in own:
            counts[original.name] += 1
            originals[original.name] = original
    for path, original in sorted(originals.items()):
        runs = f"{counts[path]} of {wording.counted(len(new.logs), 'run')}"
        yield _copy(original, new, runs)


def _copy(original: ResultSet, new: ResultSet, runs: str) -> EntryVerdict:
    if original.row.round == new.row.round:
        text = f"{runs} from {original.name}"
        return entry_verdict(Kind.COPIED, new.name, text, allowed=False, other=original.name)
    text = f"{runs} from {original.name} of round {original.row.round}"
    problem = _problem_of_resubmission(original, new)
    return entry_verdict(
        Kind.RESUBMITTED,
        new.name,
        f"{text}; {problem or 'with the same description'}",
        allowed=not problem,
        other=original.name,
    )


def _problem_of_resubmission(original: ResultSet, new: ResultSet) -> str:
    before, after = original.system, new.system
    if not is_same_submitter(original.submitter, new.submitter):
        return "of another submitter"
    if before is None or after is None:
        return "without a description"
    statuses = [category(str(system.fields.get("status"))) for system in (before, after)]
    if statuses[0] == PREVIEW != statuses[1]:
        return "of a Preview"
    if fields := different_fields(before, after):
        return f"with another description: {in_words(fields, 's')}"
    return "the logs fail the rules" if new.row.verdict.rules is Verdict.FAIL else ""


# ---- code ---------------------------------------------------------------------------------


def _code(comparison: Comparison) -> Iterator[EntryVerdict]:
    """Yield the verdicts on benchmarks whose code changed, unless it was only removed."""
    files = comparison.files
    counts = Counter(_code_folder(path) for path in (*files.changed, *files.added, *files.removed))
    changed = {_code_folder(path) for path in (*files.changed, *files.added)} - {""}
    for folder in sorted(changed):
        text = wording.counted(counts[folder], "file")
        yield entry_verdict(Kind.CODE, folder, text, allowed=None)


def _code_folder(path: str) -> str:
    """Return the folder of the benchmark whose code contains a file, empty for other files."""
    match = re.match(r"(?:[^/]+/)?benchmarks/[^/]+(?=/)", path)
    return match[0] if match else ""


# ---- changes ------------------------------------------------------------------------------


def _changes(
    change: Change, originals: Sequence[ResultSet], lenders: Sequence[ResultSet]
) -> Iterator[EntryVerdict]:
    old, path = change.old, change.new.name
    divisions = [(item.row.division or "").lower() for item in (old, change.new)]
    if divisions == ["closed", "open"]:
        yield entry_verdict(Kind.TO_OPEN, path, _in_short(change.new), allowed=True)
    elif divisions == ["open", "closed"]:
        yield entry_verdict(Kind.TO_CLOSED, path, _in_short(change.new), allowed=False)
    if old.name != path and not change.scales:
        yield entry_verdict(Kind.RENAMED, path, f"was {old.name}", allowed=None, other=old.name)
    borrowed = list(borrowings(change, originals, lenders))
    yield from borrowed
    if change.fields:
        runs = "new runs" if change.new_runs else "the same runs"
        text = f"{in_words(change.fields, 's')} ({runs})"
        yield entry_verdict(Kind.DESCRIPTION, path, text, allowed=None)
    if change.edited_logs and divisions[0] == divisions[1]:
        text = f"{wording.counted(change.edited_logs, 'log')} with the same times and evaluations"
        yield entry_verdict(Kind.EDITED, path, text, allowed=None)
    is_allowed = any(item.kind is Kind.BORROWED and item.allowed for item in borrowed)
    yield from _score(change, allowed=is_allowed or None)


def _score(change: Change, *, allowed: bool | None) -> Iterator[EntryVerdict]:
    old, new = (item.row.score_minutes for item in (change.old, change.new))
    percent = change.percent
    if old != new and (percent is None or abs(percent) >= _LEAST_CHANGE):
        by = "" if percent is None else f"by {percent:+.1f} %: "
        runs = "" if change.new_runs else ", with the same runs"
        text = f"{by}{wording.minutes(old)} to {wording.minutes(new)} minutes{runs}"
        yield entry_verdict(Kind.SCORE, change.new.name, text, allowed=allowed)


def _in_short(result_set: ResultSet) -> str:
    runs = wording.counted(result_set.row.runs_found, "run")
    return f"{runs}, {wording.minutes(result_set.row.score_minutes)} minutes"
