"""The changes to the entries of a round in its review, and the rules on them.

A kind of change is a member of ``Kind``, which has its rule, and is found by a function here.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product

from msgspec import Struct

from mlperf_pkg.checks.copies import AVAILABLE, is_same_submitter
from mlperf_pkg.checks.descriptions import PREVIEW, category
from mlperf_pkg.commands.diff import changes
from mlperf_pkg.commands.diff.changes import EntryVerdict, Kind, ResultSet, SetChange, Side
from mlperf_pkg.commands.diff.runs import BATCH_SIZES, NAMES
from mlperf_pkg.findings import Verdict, in_words
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording

_NODES = "number_of_nodes"
_SCALING = "scaling.json"
_AGAINST_LOGS = ("SET111", "SET140", "SET141", "SET142")
_LEAST_CHANGE = 0.05  # percent; less is shown as 0.0


def entry_verdicts(
    comparison: changes.Comparison, old: Side, new: Side, lenders: Sequence[ResultSet]
) -> tuple[EntryVerdict, ...]:
    """Return the verdicts on the entries of submissions, in the order of their paths.

    ``lenders`` are the result sets from which hyperparameters may have been borrowed. Entries of
    different rounds are judged only by resubmission, withdrawal and availability. There are none
    if the sides have no common submitter, unless one of them is empty: they are not versions of
    each other.
    """
    names = [{item.submitter for item in side.sets} for side in (old, new)]
    if all(names) and not any(is_same_submitter(*both) for both in product(*names)):
        return ()
    before, after = ({result_set.row.round for result_set in side.sets} for side in (old, new))
    one_round = len(before | after) == 1
    changed, withdrawn, added = _pairs(comparison, one_round=one_round)
    # The first set that has each run.
    owners = {log.run: item for item in reversed(old.sets) for log in item.logs}
    verdicts: list[EntryVerdict] = []
    for change in changed:
        copies = list(_copies(change.old, change.new, owners))
        # Who has the runs of others has borrowed nothing.
        verdicts += copies + list(_changes(change, old.sets, () if copies else lenders))
    for item in withdrawn:
        if item.row.round in (after or before):
            verdicts.append(Kind.WITHDRAWN.verdict(item.name, item.in_short, allowed=True))
    for item in added:
        copies = list(_copies(None, item, owners))
        if not copies and item.row.round in before:
            copies = [Kind.ADDED.verdict(item.name, item.in_short)]
        verdicts += copies
    if not one_round:
        verdicts += chain.from_iterable(map(_availability, comparison.sets))
    elif changed or withdrawn or added:
        verdicts += _files(comparison)
    kinds = tuple(Kind)
    return tuple(sorted(verdicts, key=lambda item: (item.entry, kinds.index(item.kind))))


# ---- pairs --------------------------------------------------------------------------------


def _pairs(
    comparison: changes.Comparison, *, one_round: bool
) -> tuple[list[SetChange], list[ResultSet], list[ResultSet]]:
    """Return the entries that changed, each with its counterpart of the same submitter and round.

    With them come the entries that were withdrawn, and those that were added.
    """
    changed: list[SetChange] = []
    removed = list(comparison.removed_sets)
    added = list(comparison.added_sets)
    for change in comparison.sets:
        before = change.old
        after = change.new
        names = (before.submitter, after.submitter)
        if before.row.round == after.row.round and is_same_submitter(*names):
            changed.append(change)
        else:
            removed.append(before)
            added.append(after)
    for key in (_runs, _benchmark) if one_round else ():
        both, removed, added = changes.paired(removed, added, [key])
        changed += [changes.set_change(*pair) for pair in both]
    gone, come = ([item for item in items if item.submitter] for items in (removed, added))
    return [one for one in changed if one.old.submitter and one.new.submitter], gone, come


def _runs(result_set: ResultSet) -> Hashable:
    return (result_set.submitter, *sorted(repr(log.run) for log in result_set.logs))


def _benchmark(result_set: ResultSet) -> Hashable:
    row = result_set.row
    return (row.submitter, row.benchmark, row.division)


# ---- copies -------------------------------------------------------------------------------


def _copies(
    old: ResultSet | None, new: ResultSet, owners: Mapping[Hashable, ResultSet]
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on runs of other entries of the old side."""
    own = {None, *(log.run for log in old.logs)} if old else {None}
    runs_of_others = (log.run for log in new.logs if log.run in owners and log.run not in own)
    originals = by_key((owners[run].name, owners[run]) for run in runs_of_others)
    for name, (original, *more) in sorted(originals.items()):
        text = f"{1 + len(more)} of {wording.counted(len(new.logs), 'run')} from {name}"
        if original.row.round == new.row.round:
            yield Kind.COPIED.verdict(new.name, text, allowed=False, other=name)
            continue
        problem = _problem_of_resubmission(original, new)
        text += f" of round {original.row.round}; {problem or 'with the same description'}"
        yield Kind.RESUBMITTED.verdict(new.name, text, allowed=not problem, other=name)


def _problem_of_resubmission(original: ResultSet, new: ResultSet) -> str:
    if not is_same_submitter(original.submitter, new.submitter):
        return "of another submitter"
    if original.system is None or new.system is None:
        return "without a description"
    statuses = [category(str(item.fields.get("status"))) for item in (original, new)]
    if statuses[0] == PREVIEW != statuses[1]:
        return "of a Preview"
    fields = changes.different_fields(original, new)
    if fields:
        return f"with another description: {in_words(fields, 's')}"
    return "the logs fail the rules" if new.row.verdict.rules is Verdict.FAIL else ""


# ---- other files --------------------------------------------------------------------------


def _files(comparison: changes.Comparison) -> Iterator[EntryVerdict]:
    """Yield the verdicts on benchmarks whose code changed, unless it was only removed.

    Also yield those on sets whose factor of the score was written, changed or removed.
    """
    files = comparison.files
    there = list(map(_code_folder, (*files.changed, *files.added)))
    counts = Counter([*there, *map(_code_folder, files.removed)])
    for folder in sorted({*there} - {""}):
        yield Kind.CODE.verdict(folder, wording.counted(counts[folder], "file"))
    for word in ("changed", "added", "removed"):
        for path in getattr(files, word):
            folder, _, name = path.rpartition("/")
            if name == _SCALING:
                yield Kind.SCALING.verdict(folder, f"{name} {word}")


def _code_folder(path: str) -> str:
    """Return the folder of the benchmark whose code contains a file, empty for other files."""
    match = re.match(r"(?:[^/]+/)?benchmarks/[^/]+(?=/)", path)
    return match[0] if match else ""


# ---- changes ------------------------------------------------------------------------------


def _changes(
    change: SetChange, originals: Sequence[ResultSet], lenders: Sequence[ResultSet]
) -> Iterator[EntryVerdict]:
    old = change.old
    path = change.new.name
    divisions = [(item.row.division or "").lower() for item in (old, change.new)]
    if divisions == ["closed", "open"]:
        yield Kind.TO_OPEN.verdict(path, change.new.in_short, allowed=True)
    elif divisions == ["open", "closed"]:
        yield Kind.TO_CLOSED.verdict(path, change.new.in_short, allowed=False)
    if old.name != path and not change.scales:
        kind = Kind.RENAMED if len(change.new.logs) > change.same.new else Kind.AGAIN
        yield kind.verdict(path, f"was {old.name}", other=old.name)
    borrowed = list(_borrowings(change, originals, lenders))
    yield from borrowed
    yield from _description(change)
    is_allowed = any(item.kind is Kind.BORROWED and item.allowed for item in borrowed) or None
    # Moving to another division edits what the logs say of it.
    expected = f"{NAMES} altered" if divisions[0] != divisions[1] else ""
    yield from _logs(change, expected, allowed=is_allowed)
    yield from _score(change, allowed=is_allowed)


def _description(change: SetChange) -> Iterator[EntryVerdict]:
    """Yield the verdicts on the description of an entry: its fields, and what the logs say."""
    path = change.new.name
    runs = "new runs" if change.same.new else "the same runs"
    yield from _availability(change)
    if _NODES in change.fields:
        numbers = (str(item.fields.get(_NODES)) for item in (change.old, change.new))
        yield Kind.NODES.verdict(path, f"{' to '.join(numbers)} ({runs})")
    others = [field for field in change.fields if field not in (_NODES, "status")]
    if others:
        yield Kind.DESCRIPTION.verdict(path, f"{in_words(others, 's')} ({runs})")
    before = {finding.code for finding in change.old.findings}
    for finding in change.new.findings:
        if finding.code in _AGAINST_LOGS and finding.code not in before:
            yield Kind.AGAINST_LOGS.verdict(path, finding.text)


def _logs(change: SetChange, expected: str, *, allowed: bool | None) -> Iterator[EntryVerdict]:
    """Yield the verdicts on the logs of an entry: copied, edited (but as expected), replaced."""
    old = change.old
    new = change.new
    same = change.same
    if same.copied:
        names = in_words([f"{run.old} as {run.new}" for run in same.copied], "s")
        text = f"{wording.counted(len(same.copied), 'run')} from this entry itself: {names}"
        yield Kind.COPIED.verdict(new.name, text, allowed=False, other=old.name)
    edits = Counter(edit.what for run in same.edited for edit in run.edits)
    logs = {what: wording.counted(number, "log") for what, number in edits.items()}
    texts = [f"{what} in {number}" for what, number in logs.items() if what != expected]
    if texts:
        yield Kind.EDITED.verdict(new.name, "; ".join(texts))
    if same.new or change.gone > len(same.copied):
        text = f"{same.new} of {wording.counted(len(new.logs), 'run')} new, {change.gone} gone"
        yield Kind.RUNS.verdict(new.name, text, allowed=allowed)


def _availability(change: SetChange) -> Iterator[EntryVerdict]:
    """Yield the verdict on an entry whose system has another availability than before."""
    statuses = [str(item.fields.get("status")) for item in (change.old, change.new)]
    old, new = map(category, statuses)
    if old and new and old != new:
        is_of_one_round = change.old.row.round == change.new.row.round
        is_early = old == "research" and new in AVAILABLE and not is_of_one_round
        allowed = False if is_early else None
        yield Kind.AVAILABILITY.verdict(change.new.name, " to ".join(statuses), allowed=allowed)


def _score(change: SetChange, *, allowed: bool | None) -> Iterator[EntryVerdict]:
    old, new = (item.row.score_minutes for item in (change.old, change.new))
    share = change.percent
    if old != new and (share is None or abs(share) >= _LEAST_CHANGE):
        by = "" if share is None else f"by {share:+.1f} %: "
        runs = "" if change.same.new or change.gone else ", with the same runs"
        text = f"{by}{wording.minutes(old)} to {wording.minutes(new)} minutes{runs}"
        yield Kind.SCORE.verdict(change.new.name, text, allowed=allowed)


# ---- borrowed hyperparameters ---------------------------------------------------------------

_NOT_LENT = frozenset({"gpt3", "llama31_405b"})
_SOFTWARE = ("framework", "operating_system", "other_software_stack")
_NO_SYSTEM = frozenset({*_SOFTWARE, "division", "hw_notes", "notes", "status", "sw_notes"})
_OF_SCALE = frozenset({"number_of_nodes", "system_name"})


class _Loan(Struct, frozen=True):
    """The hyperparameters that a set and its ``lender`` have in common, and those that differ.

    ``number`` is that of both, and ``taken`` that of those in common that changed in the review.
    """

    lender: ResultSet
    number: int
    taken: int
    different: list[str]


def _borrowings(
    change: SetChange, originals: Sequence[ResultSet], lenders: Iterable[ResultSet]
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on changes of the hyperparameters and the scale of an entry.

    ``originals`` are the sets of the old side, ``lenders`` those of the whole round.
    """
    loan = None
    is_open = (change.new.row.division or "").lower() == "open"
    if not (is_open or BATCH_SIZES.issuperset(change.hyperparameters)):
        loan = _find_loan(change, lenders)
    if change.hyperparameters:
        yield _borrowed(change, loan) if loan else _changed(change, allowed=is_open or None)
    if change.scales and is_open:
        old, new = change.scales
        yield Kind.SCALE.verdict(change.new.name, f"{old} to {new} accelerators")
    elif change.scales:
        yield _scaled(change, change.scales, originals, borrowed=loan is not None)


def _changed(change: SetChange, *, allowed: bool | None) -> EntryVerdict:
    sides = [item.hyperparameters for item in (change.old, change.new)]
    words = []
    for key in change.hyperparameters:
        values = (sorted(v or "not logged" for v in side.get(key, (None,))) for side in sides)
        words.append(f"{key} {' -> '.join(in_words(of_side, 's') for of_side in values)}")
    return Kind.HYPERPARAMETERS.verdict(change.new.name, in_words(words, "s"), allowed=allowed)


def _borrowed(change: SetChange, loan: _Loan) -> EntryVerdict:
    path = loan.lender.name
    different = loan.different
    kind = Kind.BORROWED
    text = f"all {loan.number} hyperparameters of {path}"
    if different:
        kind = Kind.BORROWED_IN_PART
        same = loan.number - len(different)
        text = f"{same} of {loan.number} from {path}; different: {in_words(different, 's')}"
    problems = list(_problems(change))
    allowed = not problems and not different
    text = "; ".join([text, *problems])
    return kind.verdict(change.new.name, text, allowed=allowed, other=path)


def _problems(change: SetChange) -> Iterator[str]:
    """Yield the reasons why a loan is against the rules, except its contents."""
    benchmark = change.new.row.benchmark
    if benchmark in _NOT_LENT:
        yield f"not allowed for {benchmark}"
    ignored = _NO_SYSTEM | (_OF_SCALE if change.scales else frozenset())
    for word, fields in (
        ("software", [field for field in change.fields if field in _SOFTWARE]),
        ("system", [field for field in change.fields if field not in ignored]),
    ):
        if fields:
            yield f"{word} changed: {in_words(fields, 's')}"
    old = len(change.new.logs) - change.same.new
    if old:
        yield f"{wording.counted(old, 'run')} of the earlier entry"


def _scaled(
    change: SetChange, scales: tuple[int, int], originals: Sequence[ResultSet], *, borrowed: bool
) -> EntryVerdict:
    of_system = [item for item in originals if _family(item) == _family(change.old)]
    sizes = [(item.row.benchmark, item.accelerators or 0) for item in of_system]
    old, new = scales
    benchmark = change.old.row.benchmark
    is_faster = change.percent is not None and change.percent < 0
    largest = max(size for _, size in sizes)
    checks = {
        "without borrowed hyperparameters": not borrowed,
        f"{old} was not the largest scale": any(n == benchmark and size > old for n, size in sizes),
        "neither larger nor faster": new < old and not is_faster,
        f"the largest scale submitted is {largest}": largest < new,
    }
    problems = [text for text, is_problem in checks.items() if is_problem]
    text = "; ".join([f"{old} to {new} accelerators", *problems])
    return Kind.SCALE.verdict(change.new.name, text, allowed=not problems)


def _family(result_set: ResultSet) -> tuple[str | None, str]:
    """Return the key of a system at all scales: submitter and accelerator."""
    return result_set.submitter, str(result_set.fields.get("accelerator_model_name"))


# ---- lenders ------------------------------------------------------------------------------


def _find_loan(change: SetChange, lenders: Iterable[ResultSet]) -> _Loan | None:
    """Return the most likely loan; None if there is no lender.

    The lender is another submitter's set that has at least one of the new values. Compared are the
    keys that both sets log, and the changed keys that only one of them logs.
    """
    new = change.new
    own = change.new.hyperparameters
    changed = {*change.hyperparameters} - BATCH_SIZES
    loans = []
    of_benchmark = (lender for lender in lenders if lender.row.benchmark == new.row.benchmark)
    for lender in (o for o in of_benchmark if not is_same_submitter(o.submitter, new.submitter)):
        others = lender.hyperparameters
        compared = sorted((own.keys() & others.keys()) - BATCH_SIZES | changed)
        different = [key for key in compared if own.get(key) != others.get(key)]
        taken = len(changed.difference(different))
        if taken:
            loans.append(_Loan(lender, len(compared), taken, different))
    return min(
        loans, key=lambda loan: (len(loan.different), -loan.taken, loan.lender.name), default=None
    )
