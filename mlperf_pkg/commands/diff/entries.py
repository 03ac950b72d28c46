"""The changes to the entries of a round in its review, and the rules on them.

A kind of change is a member of ``ChangeKind``, which has its rule, and is found by a function here.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product, starmap

from msgspec import Struct

from mlperf_pkg.checks.descriptions import AVAILABLE, category
from mlperf_pkg.checks.resubmission import Outcome, judge
from mlperf_pkg.commands.diff.changes import (
    ChangeKind,
    ComparedSet,
    ComparedSide,
    EntryVerdict,
    SetChange,
    VersionComparison,
    paired,
    percent,
    set_change,
)
from mlperf_pkg.commands.diff.runs import BATCH_SIZES, NAMES, ComparedLog
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.submission.model import is_power_log
from mlperf_pkg.submission.submitters import is_same_submitter

_NODES = "number_of_nodes"
_SCALING = "scaling.json"
_OF_OTHERS = "moved here from"
_AGAINST_LOGS = ("SET111", "SET140", "SET141", "SET142")
_LEAST_CHANGE = 0.05  # percent; less is shown as 0.0


def entry_verdicts(
    comparison: VersionComparison,
    old: ComparedSide,
    new: ComparedSide,
    lenders: Sequence[ComparedSet],
) -> tuple[EntryVerdict, ...]:
    """Return the verdicts on the entries of submissions, in the order of their paths.

    ``lenders`` are the result sets from which hyperparameters may have been borrowed. Entries of
    different rounds are judged only by resubmission, withdrawal and availability. There are none
    if the sides have no common submitter, unless one of them is empty: they are not versions of
    each other.
    """
    if not _are_versions(old.sets, new.sets):
        return ()
    old_rounds = {result_set.row.round for result_set in old.sets}
    new_rounds = {result_set.row.round for result_set in new.sets}
    is_one_round = len(old_rounds | new_rounds) == 1
    entries = _paired_entries(comparison, one_round=is_one_round)
    owners = _owners(old.sets)

    verdicts: list[EntryVerdict] = []
    for change in entries.changed:
        copies = list(_copies(change.old, change.new, owners))
        verdicts += copies
        # Who has the runs of others has borrowed nothing.
        verdicts += _changes(change, old.sets, () if copies else lenders)
    for entry in entries.withdrawn:
        if entry.row.round in (new_rounds or old_rounds):
            kind = ChangeKind.WITHDRAWN
            verdicts.append(kind.verdict(entry.name, entry.in_short, allowed=True))
    for entry in entries.added:
        copies = list(_copies(None, entry, owners))
        verdicts += copies
        if not copies and entry.row.round in old_rounds:
            verdicts.append(ChangeKind.ADDED.verdict(entry.name, entry.in_short))
    if not is_one_round:
        for change in comparison.sets:
            verdicts += _availability(change)
    elif entries.any:
        verdicts += _files(comparison, old, new)
    kinds = tuple(ChangeKind)
    verdicts.sort(key=lambda verdict: (verdict.entry, kinds.index(verdict.kind)))
    return tuple(verdicts)


def _are_versions(old: Iterable[ComparedSet], new: Iterable[ComparedSet]) -> bool:
    """Return whether the sides have a common submitter, or one of them is empty."""
    old_submitters = {result_set.submitter_names for result_set in old}
    new_submitters = {result_set.submitter_names for result_set in new}
    if not old_submitters or not new_submitters:
        return True
    return any(starmap(is_same_submitter, product(old_submitters, new_submitters)))


def _owners(sets: Iterable[ComparedSet]) -> dict[Hashable, ComparedSet]:
    """Return the first set that has each run."""
    owners: dict[Hashable, ComparedSet] = {}
    for result_set in sets:
        for log in result_set.logs:
            owners.setdefault(log.run, result_set)
    return owners


# ---- pairs --------------------------------------------------------------------------------


class _PairedEntries(Struct, frozen=True):
    """The entries that changed, those that were withdrawn, and those that were added."""

    changed: list[SetChange]
    withdrawn: list[ComparedSet]
    added: list[ComparedSet]

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.changed or self.withdrawn or self.added)


def _paired_entries(comparison: VersionComparison, *, one_round: bool) -> _PairedEntries:
    """Return the entries, each with its counterpart of the same submitter and round."""
    changed: list[SetChange] = []
    removed = list(comparison.removed_sets)
    added = list(comparison.added_sets)
    for change in comparison.sets:
        old = change.old
        new = change.new
        is_same_round = old.row.round == new.row.round
        if is_same_round and is_same_submitter(old.submitter_names, new.submitter_names):
            changed.append(change)
        else:
            removed.append(old)
            added.append(new)
    if one_round:
        for key in (_runs, _benchmark):
            pairs, removed, added = paired(removed, added, [key])
            changed += [set_change(old, new) for old, new in pairs]
    return _PairedEntries(
        changed=[change for change in changed if change.old.submitter and change.new.submitter],
        withdrawn=[result_set for result_set in removed if result_set.submitter],
        added=[result_set for result_set in added if result_set.submitter],
    )


def _runs(result_set: ComparedSet) -> Hashable:
    runs = sorted(repr(log.run) for log in result_set.logs)
    return (result_set.submitter, *runs)


def _benchmark(result_set: ComparedSet) -> Hashable:
    row = result_set.row
    return (row.submitter, row.benchmark, row.division)


# ---- copies -------------------------------------------------------------------------------


def _copies(
    old: ComparedSet | None, new: ComparedSet, owners: Mapping[Hashable, ComparedSet]
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on runs of other entries of the old side."""
    own_runs: set[Hashable] = {None}
    if old:
        own_runs.update(log.run for log in old.logs)
    copied: dict[str, list[ComparedLog]] = {}  # by the name of the set that has the originals
    originals: dict[str, ComparedSet] = {}
    for log in new.logs:
        original = owners.get(log.run)
        if original and log.run not in own_runs:
            copied.setdefault(original.name, []).append(log)
            originals.setdefault(original.name, original)
    runs = wording.counted(len(new.logs), "run")
    for name, original in sorted(originals.items()):
        text = f"{len(copied[name])} of {runs} from {name}"
        if original.row.round == new.row.round:
            yield ChangeKind.COPIED.verdict(new.name, text, allowed=False, other=name)
        else:
            yield _resubmission(original, new, copied[name], text)


def _resubmission(
    original: ComparedSet, new: ComparedSet, copies: Sequence[ComparedLog], text: str
) -> EntryVerdict:
    """Return the verdict on the runs of an earlier round."""
    digests = {log.digest for log in original.logs}
    judgement = judge(
        original.submitted,
        new.submitted,
        runs=len(copies),
        rewritten=sum(log.digest not in digests for log in copies),
    )
    text = f"{judgement.text} (round {original.row.round}: {text})"
    kind = ChangeKind.RESUBMITTED
    allowed = _ALLOWED.get(judgement.outcome)
    return kind.verdict(new.name, text, allowed=allowed, other=original.name)


_ALLOWED = {Outcome.ALLOWED: True, Outcome.NOT_ALLOWED: False}  # of others, it is not known


def _status(result_set: ComparedSet) -> str | None:
    """Return the category of the availability of a system."""
    return category(str(result_set.fields.get("status")))


# ---- other files --------------------------------------------------------------------------


def _files(
    comparison: VersionComparison, old: ComparedSide, new: ComparedSide
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on benchmarks whose code changed, unless all of it was removed.

    Also yield those on sets whose factor of the score was written, changed or removed, and on those
    whose power logs are not the same.
    """
    texts: dict[str, list[str]] = {}  # by the folder of the code
    for word in ("changed", "added", "removed"):
        for path in getattr(comparison.files, word):
            code_folder = _code_folder(path)
            folder, _, name = path.rpartition("/")
            if name == _SCALING:
                yield ChangeKind.SCALING.verdict(folder, f"{name} {word}")
            elif code_folder:
                file = path.removeprefix(f"{code_folder}/")
                texts.setdefault(code_folder, []).append(f"{file} {word}")
    present = {_code_folder(path) for path in new.files}
    for folder, changes in sorted(texts.items()):
        if folder in present:
            files = wording.counted(len(changes), "file")
            yield ChangeKind.CODE.verdict(folder, f"{files}: {', '.join(changes)}")
    yield from _power(comparison, old, new)


def _power(
    comparison: VersionComparison, old: ComparedSide, new: ComparedSide
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on power logs that moved, changed, are new or missing.

    Those that moved have the bytes of a log of another run, or of another entry.
    """
    names = {change.old.path: change.new.path for change in comparison.sets}
    old_logs = _power_logs(old, names)
    new_logs = _power_logs(new, {})
    origins = {digest: path for path, digest in old_logs.items()}
    changes = []
    for path, digest in new_logs.items():
        if digest != old_logs.get(path):
            changes.append((_power_set(path), _power_change(path, origins.get(digest), old_logs)))
    kept = set(new_logs.values())
    for path, digest in old_logs.items():
        if path not in new_logs and digest not in kept:
            changes.append((_power_set(path), "removed"))
    changes_by_set = by_key(changes)
    for entry in sorted({result_set.path for result_set in new.sets} & changes_by_set.keys()):
        yield _power_verdict(entry, changes_by_set[entry])


def _power_verdict(entry: str, changes: Sequence[str]) -> EntryVerdict:
    texts = []
    for change, number in sorted(Counter(changes).items()):
        texts.append(f"{wording.counted(number, 'log')} {change}")
    is_copied = any(change.startswith(_OF_OTHERS) for change in changes)
    allowed = False if is_copied else None
    return ChangeKind.POWER.verdict(entry, "; ".join(texts), allowed=allowed)


def _power_logs(side: ComparedSide, names: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of power logs by path; ``names`` has the new paths of renamed sets."""
    logs = {}
    for path, digest in side.files.items():
        entry, folder, file = path.rpartition("/power/")
        if folder and is_power_log(file.rpartition("/")[2]):
            logs[f"{names.get(entry, entry)}/power/{file}"] = digest
    return logs


def _power_set(path: str) -> str:
    """Return the path of the set of a power log."""
    return path.rpartition("/power/")[0]


def _power_change(path: str, origin: str | None, old_logs: Mapping[str, str]) -> str:
    """Return what happened to a power log; ``origin`` is the old path of its bytes."""
    if origin is None:
        return "changed" if path in old_logs else "added"
    entry = _power_set(path)
    if _power_set(origin) != entry:
        return f"{_OF_OTHERS} {_power_set(origin)}"
    old_folder = origin.rpartition("/")[0].removeprefix(f"{entry}/")
    new_folder = path.rpartition("/")[0].removeprefix(f"{entry}/")
    if old_folder == new_folder:
        return f"renamed in {new_folder}"
    return f"moved from {old_folder} to {new_folder}"


def _code_folder(path: str) -> str:
    """Return the folder of the benchmark whose code contains a file, empty for other files."""
    match = re.match(r"(?:[^/]+/)?benchmarks/[^/]+(?=/)", path)
    return match[0] if match else ""


# ---- changes ------------------------------------------------------------------------------


def _changes(
    change: SetChange, originals: Sequence[ComparedSet], lenders: Sequence[ComparedSet]
) -> Iterator[EntryVerdict]:
    old = change.old
    new = change.new
    yield from _division(change)
    if old.name != new.name and not change.scales:
        has_old_runs = len(new.logs) > change.same.new
        kind = ChangeKind.RENAMED if has_old_runs else ChangeKind.AGAIN
        yield kind.verdict(new.name, f"was {old.name}", other=old.name)
    borrowings = list(_borrowings(change, originals, lenders))
    yield from borrowings
    yield from _description(change)
    allowed = None
    for verdict in borrowings:
        if verdict.kind is ChangeKind.BORROWED and verdict.allowed:
            allowed = True
    yield from _logs(change, allowed=allowed)
    yield from _score(change, allowed=allowed)
    yield from _energy(change, allowed=allowed)


def _division_of(result_set: ComparedSet) -> str:
    return (result_set.row.division or "").lower()


def _division(change: SetChange) -> Iterator[EntryVerdict]:
    """Yield the verdict on an entry that moved to the other division."""
    new = change.new
    divisions = (_division_of(change.old), _division_of(new))
    if divisions == ("closed", "open"):
        yield ChangeKind.TO_OPEN.verdict(new.name, new.in_short, allowed=True)
    elif divisions == ("open", "closed"):
        yield ChangeKind.TO_CLOSED.verdict(new.name, new.in_short, allowed=False)


def _description(change: SetChange) -> Iterator[EntryVerdict]:
    """Yield the verdicts on the description of an entry: its fields, and what the logs say."""
    old = change.old
    new = change.new
    runs = "new runs" if change.same.new else "the same runs"
    yield from _availability(change)
    other_fields = list(change.fields)
    if _NODES in other_fields:
        other_fields.remove(_NODES)
        nodes = f"{old.fields.get(_NODES)} to {new.fields.get(_NODES)}"
        yield ChangeKind.NODES.verdict(new.name, f"{nodes} ({runs})")
    if "status" in other_fields:
        other_fields.remove("status")  # see _availability
    if other_fields:
        names = ", ".join(other_fields)
        yield ChangeKind.DESCRIPTION.verdict(new.name, f"{names} ({runs})")
    old_codes = {finding.code for finding in old.findings}
    for finding in new.findings:
        if finding.code in _AGAINST_LOGS and finding.code not in old_codes:
            yield ChangeKind.AGAINST_LOGS.verdict(new.name, finding.text)


def _logs(change: SetChange, *, allowed: bool | None) -> Iterator[EntryVerdict]:
    """Yield the verdicts on the logs of an entry: copied, edited, replaced."""
    old = change.old
    new = change.new
    same = change.same
    copied = len(same.copied)
    if copied:
        names = ", ".join([f"{run.old} as {run.new}" for run in same.copied])
        text = f"{wording.counted(copied, 'run')} from this entry itself: {names}"
        yield ChangeKind.COPIED.verdict(new.name, text, allowed=False, other=old.name)
    edits = _edits(change)
    if edits:
        yield ChangeKind.EDITED.verdict(new.name, edits)
    if same.new or change.gone > copied:
        runs = wording.counted(len(new.logs), "run")
        text = f"{same.new} of {runs} new, {change.gone} gone"
        yield ChangeKind.RUNS.verdict(new.name, text, allowed=allowed)


def _edits(change: SetChange) -> str:
    """Return what was edited in how many logs, except what a move to another division edits."""
    counts: Counter[str] = Counter()
    for run in change.same.edited:
        counts.update(edit.what for edit in run.edits)
    if _division_of(change.old) != _division_of(change.new):
        del counts[f"{NAMES} altered"]
    texts = [f"{what} in {wording.counted(number, 'log')}" for what, number in counts.items()]
    return "; ".join(texts)


def _availability(change: SetChange) -> Iterator[EntryVerdict]:
    """Yield the verdict on an entry whose system has another availability than before."""
    old = _status(change.old)
    new = _status(change.new)
    if old and new and old != new:
        is_of_one_round = change.old.row.round == change.new.row.round
        is_early = old == "research" and new in AVAILABLE and not is_of_one_round
        allowed = False if is_early else None
        text = f"{change.old.fields.get('status')} to {change.new.fields.get('status')}"
        yield ChangeKind.AVAILABILITY.verdict(change.new.name, text, allowed=allowed)


def _score(change: SetChange, *, allowed: bool | None) -> Iterator[EntryVerdict]:
    growth = change.percent
    before = change.minutes.old
    after = change.minutes.new
    if before == after or (growth is not None and abs(growth) < _LEAST_CHANGE):
        return
    text = f"{wording.minutes(before)} to {wording.minutes(after)} minutes"
    if growth is not None:
        text = f"by {growth:+.1f} %: {text}"
    if not change.same.new and not change.gone:
        text += ", although the runs are the same"
    yield ChangeKind.SCORE.verdict(change.new.name, text, allowed=allowed)


def _energy(change: SetChange, *, allowed: bool | None) -> Iterator[EntryVerdict]:
    """Yield the verdict on an entry whose energy changed, or which has none any more."""
    before = change.old.row.energy_joules
    after = change.new.row.energy_joules
    if before == after:
        return
    amounts = []
    for energy in (before, after):
        amounts.append("none" if energy is None else f"{energy / 1000:,.1f} kJ")
    text = " to ".join(amounts)
    growth = percent(before, after)
    if growth is not None:
        text = f"by {growth:+.2f} %: {text}"
    yield ChangeKind.ENERGY.verdict(change.new.name, text, allowed=allowed)


# ---- borrowed hyperparameters ---------------------------------------------------------------

_NOT_LENT = frozenset({"gpt3", "llama31_405b"})
_SOFTWARE = ("framework", "operating_system", "other_software_stack")
_NO_SYSTEM = frozenset({*_SOFTWARE, "division", "hw_notes", "notes", "status", "sw_notes"})
_OF_SCALE = frozenset({"number_of_nodes", "system_name"})


class _Loan(Struct, frozen=True):
    """The hyperparameters that a set and its ``lender`` have in common, and those that differ.

    ``number`` is that of both, and ``taken`` that of those in common that changed in the review.
    """

    lender: ComparedSet
    number: int
    taken: int
    different: list[str]


def _borrowings(
    change: SetChange, originals: Sequence[ComparedSet], lenders: Iterable[ComparedSet]
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on changes of the hyperparameters and the scale of an entry.

    ``originals`` are the sets of the old side, ``lenders`` those of the whole round.
    """
    loan = None
    is_open = _division_of(change.new) == "open"
    if not (is_open or BATCH_SIZES.issuperset(change.hyperparameters)):
        loan = _find_loan(change, lenders)
    if loan:
        yield _borrowed(change, loan)
    elif change.hyperparameters:
        yield _changed(change, allowed=is_open or None)
    scales = change.scales
    if scales and is_open:
        text = f"{scales[0]} to {scales[1]} accelerators"
        yield ChangeKind.SCALE.verdict(change.new.name, text)
    elif scales:
        yield _scaled(change, scales, originals, borrowed=loan is not None)


def _changed(change: SetChange, *, allowed: bool | None) -> EntryVerdict:
    old = change.old.hyperparameters
    new = change.new.hyperparameters
    texts = []
    for key in change.hyperparameters:
        old_values = _logged_values(old.get(key))
        new_values = _logged_values(new.get(key))
        texts.append(f"{key} {old_values} -> {new_values}")
    text = ", ".join(texts)
    return ChangeKind.HYPERPARAMETERS.verdict(change.new.name, text, allowed=allowed)


def _logged_values(values: Iterable[str | None] | None) -> str:
    """Return the values of a key in words; None is that of runs that do not log it."""
    if values is None:
        return "not logged"
    texts = sorted(value or "not logged" for value in values)
    return ", ".join(texts)


def _borrowed(change: SetChange, loan: _Loan) -> EntryVerdict:
    path = loan.lender.name
    different = loan.different
    problems = list(_problems(change))
    if different:
        kind = ChangeKind.BORROWED_IN_PART
        same = loan.number - len(different)
        text = f"{same} of {loan.number} from {path}; different: {', '.join(different)}"
    else:
        kind = ChangeKind.BORROWED
        text = f"all {loan.number} hyperparameters of {path}"
    text = "; ".join([text, *problems])
    allowed = not problems and not different
    return kind.verdict(change.new.name, text, allowed=allowed, other=path)


def _problems(change: SetChange) -> Iterator[str]:
    """Yield the reasons why a loan is against the rules, except its contents."""
    benchmark = change.new.row.benchmark
    if benchmark in _NOT_LENT:
        yield f"borrowing is not allowed for {benchmark}"
    software = [field for field in change.fields if field in _SOFTWARE]
    if software:
        yield f"the software changed in {', '.join(software)}"
    ignored = _NO_SYSTEM
    if change.scales:
        ignored |= _OF_SCALE
    system = [field for field in change.fields if field not in ignored]
    if system:
        yield f"the system changed in {', '.join(system)}"
    old_runs = len(change.new.logs) - change.same.new
    if old_runs:
        yield f"still has {wording.counted(old_runs, 'run')} of the earlier entry"


def _scaled(
    change: SetChange, scales: tuple[int, int], originals: Iterable[ComparedSet], *, borrowed: bool
) -> EntryVerdict:
    old, new = scales
    problems = list(_scale_problems(change, scales, originals))
    if not borrowed:
        problems.insert(0, "without borrowed hyperparameters")
    text = "; ".join([f"{old} to {new} accelerators", *problems])
    return ChangeKind.SCALE.verdict(change.new.name, text, allowed=not problems)


def _scale_problems(
    change: SetChange, scales: tuple[int, int], originals: Iterable[ComparedSet]
) -> Iterator[str]:
    """Yield why the rules do not allow to change from a scale to another, even by borrowing."""
    old, new = scales
    largest = 0
    largest_of_benchmark = 0
    for result_set in originals:
        if _family(result_set) == _family(change.old):
            size = result_set.accelerators or 0
            largest = max(largest, size)
            if result_set.row.benchmark == change.old.row.benchmark:
                largest_of_benchmark = max(largest_of_benchmark, size)
    if largest_of_benchmark > old:
        yield f"the entry on {old} accelerators was not at the largest scale"
    is_faster = change.percent is not None and change.percent < 0
    if new < old and not is_faster:
        yield "the new scale is neither larger nor faster"
    if largest < new:
        yield f"the new scale is larger than the largest scale submitted ({largest} accelerators)"


def _family(result_set: ComparedSet) -> tuple[str | None, str]:
    """Return the key of a system at all scales: submitter and accelerator."""
    return result_set.submitter, str(result_set.fields.get("accelerator_model_name"))


# ---- lenders ------------------------------------------------------------------------------


def _find_loan(change: SetChange, lenders: Iterable[ComparedSet]) -> _Loan | None:
    """Return the most likely loan; None if there is no lender.

    The lender is another submitter's set that has at least one of the new values.
    """
    new = change.new
    loans = []
    for lender in lenders:
        is_of_benchmark = lender.row.benchmark == new.row.benchmark
        if is_of_benchmark and not is_same_submitter(lender.submitter_names, new.submitter_names):
            loan = _loan(change, lender)
            if loan.taken:
                loans.append(loan)
    return min(
        loans, key=lambda loan: (len(loan.different), -loan.taken, loan.lender.name), default=None
    )


def _loan(change: SetChange, lender: ComparedSet) -> _Loan:
    """Compare the keys that both sets log, and the changed keys that only one of them logs."""
    borrower_values = change.new.hyperparameters
    lender_values = lender.hyperparameters
    changed = set(change.hyperparameters) - BATCH_SIZES
    common = borrower_values.keys() & lender_values.keys()
    compared = sorted(common - BATCH_SIZES | changed)
    different = [key for key in compared if borrower_values.get(key) != lender_values.get(key)]
    taken = len(changed.difference(different))
    return _Loan(lender, len(compared), taken, different)
