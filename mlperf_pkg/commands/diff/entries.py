"""The changes to the entries of a round in its review, and the rules on them.

A kind of change is a member of ``Kind`` with its rule in ``_RULES``, and is found in ``_changes``,
``_copies``, ``_code`` or ``borrowings``.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import TypeAlias

from msgspec import Struct

from mlperf_pkg.checks.copies import AVAILABLE, is_same_submitter
from mlperf_pkg.checks.descriptions import PREVIEW, category
from mlperf_pkg.commands.diff.changes import NAMES, paired, set_change
from mlperf_pkg.commands.diff.model import (
    BATCH_SIZES,
    Comparison,
    EntryVerdict,
    Kind,
    ResultSet,
    SetChange,
    Side,
    different_fields,
)
from mlperf_pkg.findings import Verdict, in_words
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording

_NODES, _SCALING = "number_of_nodes", "scaling.json"
_AGAINST_LOGS = ("SET111", "SET140", "SET141", "SET142")
_LEAST_CHANGE = 0.05  # percent; less is shown as 0.0

_Pair: TypeAlias = SetChange | tuple[ResultSet | None, ResultSet | None]
"""An entry that changed, or one that was withdrawn or added: before and after."""


def entry_verdicts(
    comparison: Comparison, old: Side, new: Side, lenders: Sequence[ResultSet]
) -> tuple[EntryVerdict, ...]:
    """Return the verdicts on the entries of submissions, in the order of their paths.

    ``lenders`` are the result sets from which hyperparameters may have been borrowed. Entries of
    different rounds are only checked for resubmission.
    """
    rounds = [{result_set.row.round for result_set in side.sets} for side in (old, new)]
    one_round = len(rounds[0] | rounds[1]) == 1
    # They are if the sides have a common submitter, or one of them is empty.
    names = [{item.submitter for item in side.sets} for side in (old, new)]
    are_versions = not all(names) or any(is_same_submitter(*both) for both in product(*names))
    pairs = _pairs(comparison, one_round=one_round) if are_versions else []
    # The first set that has each run.
    owners: dict[Hashable, ResultSet] = {
        log.run: item for item in reversed(old.sets) for log in item.logs
    }
    verdicts = list(_files(comparison)) if pairs and one_round else []
    for pair in pairs:
        before, after = (pair.old, pair.new) if isinstance(pair, SetChange) else pair
        copies = list(_copies(before, after, owners)) if after else []
        verdicts += copies
        if isinstance(pair, SetChange):
            # Who has the runs of others has borrowed nothing.
            verdicts += _changes(pair, old.sets, () if copies else lenders)
        elif before and before.row.round in (rounds[1] or rounds[0]):
            verdicts.append(
                entry_verdict(Kind.WITHDRAWN, before.name, _in_short(before), allowed=True)
            )
        elif after and not copies and after.row.round in rounds[0]:
            verdicts.append(entry_verdict(Kind.ADDED, after.name, _in_short(after), allowed=None))
    if are_versions and not one_round:
        for change in comparison.sets:
            verdicts += _availability(change)
    kinds = tuple(Kind)
    return tuple(sorted(verdicts, key=lambda item: (item.entry, kinds.index(item.kind))))


# ---- pairs --------------------------------------------------------------------------------


def _pairs(comparison: Comparison, *, one_round: bool) -> list[_Pair]:
    """Return the entries, each with its counterpart of the same submitter and round."""
    pairs: list[SetChange] = []
    removed, added = list(comparison.removed_sets), list(comparison.added_sets)
    for change in comparison.sets:
        before, after = change.old, change.new
        names = (before.submitter, after.submitter)
        if before.row.round == after.row.round and is_same_submitter(*names):
            pairs.append(change)
        else:
            removed.append(before)
            added.append(after)
    for key in (_runs, _benchmark) if one_round else ():
        both, removed, added = paired(removed, added, [key])
        pairs += [set_change(*pair) for pair in both]
    pairs = [pair for pair in pairs if pair.old.submitter and pair.new.submitter]
    gone, come = ([item for item in items if item.submitter] for items in (removed, added))
    return [*pairs, *((old, None) for old in gone), *((None, new) for new in come)]


def _runs(result_set: ResultSet) -> Hashable:
    return (result_set.submitter, *sorted(repr(log.run) for log in result_set.logs))


def _benchmark(result_set: ResultSet) -> Hashable:
    row = result_set.row
    return (row.submitter, row.benchmark, row.division)


# ---- copies -------------------------------------------------------------------------------


def _copies(
    old: ResultSet | None, new: ResultSet, owners: dict[Hashable, ResultSet]
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on runs of other entries of the old side."""
    own = {None, *(log.run for log in old.logs)} if old else {None}
    runs_of_others = (log.run for log in new.logs if log.run in owners and log.run not in own)
    originals = by_key((owners[run].name, owners[run]) for run in runs_of_others)
    for name in sorted(originals):
        runs = f"{len(originals[name])} of {wording.counted(len(new.logs), 'run')}"
        yield _copy(originals[name][0], new, runs)


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
    if not is_same_submitter(original.submitter, new.submitter):
        return "of another submitter"
    if original.system is None or new.system is None:
        return "without a description"
    statuses = [category(str(item.fields.get("status"))) for item in (original, new)]
    if statuses[0] == PREVIEW != statuses[1]:
        return "of a Preview"
    if fields := different_fields(original, new):
        return f"with another description: {in_words(fields, 's')}"
    return "the logs fail the rules" if new.row.verdict.rules is Verdict.FAIL else ""


# ---- other files --------------------------------------------------------------------------


def _files(comparison: Comparison) -> Iterator[EntryVerdict]:
    """Yield the verdicts on benchmarks whose code changed, unless it was only removed.

    And those on sets of which a factor of the score was written or removed.
    """
    files = comparison.files
    there = list(map(_code_folder, (*files.changed, *files.added)))
    counts = Counter([*there, *map(_code_folder, files.removed)])
    for folder in sorted({*there} - {""}):
        text = wording.counted(counts[folder], "file")
        yield entry_verdict(Kind.CODE, folder, text, allowed=None)
    for word in ("changed", "added", "removed"):
        for path in getattr(files, word):
            folder, _, name = path.rpartition("/")
            if name == _SCALING:
                yield entry_verdict(Kind.SCALING, folder, f"{name} {word}", allowed=None)


def _code_folder(path: str) -> str:
    """Return the folder of the benchmark whose code contains a file, empty for other files."""
    match = re.match(r"(?:[^/]+/)?benchmarks/[^/]+(?=/)", path)
    return match[0] if match else ""


# ---- changes ------------------------------------------------------------------------------


def _changes(
    change: SetChange, originals: Sequence[ResultSet], lenders: Sequence[ResultSet]
) -> Iterator[EntryVerdict]:
    old, path = change.old, change.new.name
    divisions = [(item.row.division or "").lower() for item in (old, change.new)]
    if divisions == ["closed", "open"]:
        yield entry_verdict(Kind.TO_OPEN, path, _in_short(change.new), allowed=True)
    elif divisions == ["open", "closed"]:
        yield entry_verdict(Kind.TO_CLOSED, path, _in_short(change.new), allowed=False)
    if old.name != path and not change.scales:
        kind = Kind.RENAMED if len(change.new.logs) > change.same.new else Kind.AGAIN
        yield entry_verdict(kind, path, f"was {old.name}", allowed=None, other=old.name)
    borrowed = list(borrowings(change, originals, lenders))
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
        text = f"{' to '.join(numbers)} ({runs})"
        yield entry_verdict(Kind.NODES, path, text, allowed=None)
    if others := [field for field in change.fields if field not in (_NODES, "status")]:
        text = f"{in_words(others, 's')} ({runs})"
        yield entry_verdict(Kind.DESCRIPTION, path, text, allowed=None)
    before = {finding.code for finding in change.old.findings}
    for finding in change.new.findings:
        if finding.code in _AGAINST_LOGS and finding.code not in before:
            yield entry_verdict(Kind.AGAINST_LOGS, path, finding.text, allowed=None)


def _logs(change: SetChange, expected: str, *, allowed: bool | None) -> Iterator[EntryVerdict]:
    """Yield the verdicts on the logs of an entry: copied, edited (but as expected), replaced."""
    old, new, same = change.old, change.new, change.same
    if same.copied:
        names = in_words([f"{run.old} as {run.new}" for run in same.copied], "s")
        text = f"{wording.counted(len(same.copied), 'run')} from this entry itself: {names}"
        yield entry_verdict(Kind.COPIED, new.name, text, allowed=False, other=old.name)
    edits = Counter(edit.what for run in same.edited for edit in run.edits)
    logs = {what: wording.counted(number, "log") for what, number in edits.items()}
    if texts := [f"{what} in {number}" for what, number in logs.items() if what != expected]:
        yield entry_verdict(Kind.EDITED, new.name, "; ".join(texts), allowed=None)
    if same.new or change.gone > len(same.copied):
        text = f"{same.new} of {wording.counted(len(new.logs), 'run')} new, {change.gone} gone"
        yield entry_verdict(Kind.RUNS, new.name, text, allowed=allowed)


def _availability(change: SetChange) -> Iterator[EntryVerdict]:
    """Yield the verdict on an entry whose system has another availability than before."""
    statuses = [str(item.fields.get("status")) for item in (change.old, change.new)]
    old, new = map(category, statuses)
    if old and new and old != new:
        is_of_one_round = change.old.row.round == change.new.row.round
        is_early = old == "research" and new in AVAILABLE and not is_of_one_round
        text = " to ".join(statuses)
        yield entry_verdict(
            Kind.AVAILABILITY, change.new.name, text, allowed=False if is_early else None
        )


def _score(change: SetChange, *, allowed: bool | None) -> Iterator[EntryVerdict]:
    old, new = (item.row.score_minutes for item in (change.old, change.new))
    share = change.percent
    if old != new and (share is None or abs(share) >= _LEAST_CHANGE):
        by = "" if share is None else f"by {share:+.1f} %: "
        runs = "" if change.same.new or change.gone else ", with the same runs"
        text = f"{by}{wording.minutes(old)} to {wording.minutes(new)} minutes{runs}"
        yield entry_verdict(Kind.SCORE, change.new.name, text, allowed=allowed)


def _in_short(result_set: ResultSet) -> str:
    runs = wording.counted(result_set.row.runs_found, "run")
    return f"{runs}, {wording.minutes(result_set.row.score_minutes)} minutes"


# ---- rules ----------------------------------------------------------------------------------

_BORROWING = "training_rules, Hyperparameter Borrowing"
_CHANGING = "submission_rules, Withdrawing results or changing division"
_FIXING = "submission_rules, Fixing objections"
_LIMIT = "until Wednesday of week 3"

_RULES = {
    Kind.BORROWED: (
        "once per entry; all hyperparameters except batch sizes as a group, with the same software,"
        " system and configuration; declared by Monday of week 3",
        _BORROWING,
    ),
    Kind.BORROWED_IN_PART: (
        "hyperparameters except batch sizes are replaced as a group; other changes are kept to a"
        " minimum, with evidence that the model converges worse without them",
        _BORROWING,
    ),
    Kind.HYPERPARAMETERS: (
        "in Closed, hyperparameters change in the review only by borrowing from another submitter,"
        " or to fix an objection",
        _BORROWING,
    ),
    Kind.SCALE: (
        "with borrowed hyperparameters, the largest scale of a benchmark on a system may change:"
        " to a larger or faster one, up to the largest scale submitted on that system",
        _BORROWING,
    ),
    Kind.RESUBMITTED: (
        "logs of an earlier round may be submitted again if the system description is the same in"
        " both rounds and they pass the newer round's checker; they do not prove a Preview",
        "training_rules, Results Resubmission",
    ),
    Kind.COPIED: ("every result set has its own runs", "training_rules, Benchmark Results"),
    Kind.NODES: (
        "the results table multiplies them by the accelerators in a node; the same runs ran on the"
        " same nodes",
        "submission_rules, <system_desc_id>.json metadata",
    ),
    Kind.AVAILABILITY: (
        "Available systems can be bought or rented at the submission; a Preview, which promises"
        " that, needs new runs to become Available; parts of research, development or internal"
        " systems become Available in the submission after next, or 221 days later",
        "submission_rules, Research, Development, or Internal Systems",
    ),
    Kind.AGAINST_LOGS: (
        "the description is of the system that executed the runs, and the division is that of the"
        " logs; an entry that was moved to Open keeps its logs",
        "submission_rules, <system_desc_id>.json metadata",
    ),
    Kind.SCALING: (
        "the RCP checker writes the factor; another one is a decision of the review",
        "training_rules, Score scaling",
    ),
    Kind.AGAIN: (
        "an entry that is withdrawn is not replaced after the deadline: new runs come only from"
        " borrowing or from an objection",
        "submission_rules, Late Submissions",
    ),
    Kind.RUNS: (
        "new runs only by borrowing or to fix an objection, all runs of an entry together",
        _FIXING,
    ),
    Kind.RENAMED: ("the same logs and description under another name", _FIXING),
    Kind.WITHDRAWN: (f"{_LIMIT}, by amending the pull request", _CHANGING),
    Kind.ADDED: (
        "until the deadline, with a grace period of 60 minutes",
        "submission_rules, Late Submissions",
    ),
    Kind.TO_OPEN: (_LIMIT, _CHANGING),
    Kind.TO_CLOSED: ("an entry moves from Closed to Open, not back", _CHANGING),
    Kind.DESCRIPTION: (
        f"corrections {_LIMIT}, if the fields describe the system that executed the runs",
        "submission_rules, <system_desc_id>.json metadata",
    ),
    Kind.CODE: (
        f"{_LIMIT}, to fix an objection; borrowing changes only hyperparameters in it",
        _FIXING,
    ),
    Kind.EDITED: ("logs are as the runs wrote them; corrections need an objection", _FIXING),
    Kind.SCORE: (
        "only by borrowing or to fix an objection; final on Tuesday of week 3",
        "submission_rules, Schedule",
    ),
}


def entry_verdict(
    kind: Kind, entry: str, text: str, *, allowed: bool | None, other: str | None = None
) -> EntryVerdict:
    """Return a verdict with the rule of its kind; the arguments are its other fields."""
    rule, source = _RULES[kind]
    return EntryVerdict(kind, entry, text, rule, source, allowed, other)


# ---- borrowed hyperparameters ---------------------------------------------------------------

_NOT_LENT = frozenset({"gpt3", "llama31_405b"})
_SOFTWARE = ("framework", "operating_system", "other_software_stack")
_NO_SYSTEM = frozenset({*_SOFTWARE, "division", "hw_notes", "notes", "status", "sw_notes"})
_OF_SCALE = frozenset({"number_of_nodes", "system_name"})


class _Loan(Struct, frozen=True):
    """The hyperparameters that a set and its ``lender`` have in common, and those that differ.

    ``taken`` is the number of those in common that changed in the review.
    """

    lender: ResultSet
    taken: int
    same: int
    different: tuple[str, ...]


def borrowings(
    change: SetChange, originals: Sequence[ResultSet], lenders: Iterable[ResultSet]
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on changes of the hyperparameters and the scale of an entry.

    ``originals`` are the sets of the old side, ``lenders`` those of the whole round.
    """
    loan, is_open = None, (change.new.row.division or "").lower() == "open"
    if not (is_open or BATCH_SIZES.issuperset(change.hyperparameters)):
        loan = _find_loan(change, lenders)
    if change.hyperparameters:
        yield _borrowed(change, loan) if loan else _changed(change, allowed=is_open or None)
    if change.scales and is_open:
        old, new = change.scales
        text = f"{old} to {new} accelerators"
        yield entry_verdict(Kind.SCALE, change.new.name, text, allowed=None)
    elif change.scales:
        yield _scaled(change, change.scales, originals, borrowed=loan is not None)


def _changed(change: SetChange, *, allowed: bool | None) -> EntryVerdict:
    sides = [item.hyperparameters for item in (change.old, change.new)]
    words = []
    for key in change.hyperparameters:
        values = (sorted(v or "not logged" for v in side.get(key, (None,))) for side in sides)
        words.append(f"{key} {' -> '.join(in_words(of_side, 's') for of_side in values)}")
    text = in_words(words, "s")
    return entry_verdict(Kind.HYPERPARAMETERS, change.new.name, text, allowed=allowed)


def _borrowed(change: SetChange, loan: _Loan) -> EntryVerdict:
    path = loan.lender.name
    total = loan.same + len(loan.different)
    if loan.different:
        kind = Kind.BORROWED_IN_PART
        text = f"{loan.same} of {total} from {path}; different: {in_words(loan.different, 's')}"
    else:
        kind, text = Kind.BORROWED, f"all {total} hyperparameters of {path}"
    problems = list(_problems(change))
    allowed = not problems and kind is Kind.BORROWED
    text = "; ".join([text, *problems])
    return entry_verdict(kind, change.new.name, text, allowed=allowed, other=path)


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
    if old := len(change.new.logs) - change.same.new:
        yield f"{wording.counted(old, 'run')} of the earlier entry"


def _scaled(
    change: SetChange, scales: tuple[int, int], originals: Sequence[ResultSet], *, borrowed: bool
) -> EntryVerdict:
    of_system = [item for item in originals if _family(item) == _family(change.old)]
    sizes = [(item.row.benchmark, item.accelerators or 0) for item in of_system]
    (old, new), benchmark = scales, change.old.row.benchmark
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
    return entry_verdict(Kind.SCALE, change.new.name, text, allowed=not problems)


def _family(result_set: ResultSet) -> tuple[str | None, str]:
    """Return the key of a system at all scales: submitter and accelerator."""
    return result_set.submitter, str(result_set.fields.get("accelerator_model_name"))


# ---- lenders ------------------------------------------------------------------------------


def _find_loan(change: SetChange, lenders: Iterable[ResultSet]) -> _Loan | None:
    """Return the most likely loan; None if there is no lender.

    The lender is another submitter's set that has at least one of the new values.
    """
    new = change.new
    of_benchmark = (lender for lender in lenders if lender.row.benchmark == new.row.benchmark)
    others = (o for o in of_benchmark if not is_same_submitter(o.submitter, new.submitter))
    loans = (_loan(change, lender) for lender in others)
    return min(
        (loan for loan in loans if loan.taken),
        key=lambda loan: (len(loan.different), -loan.taken, loan.lender.name),
        default=None,
    )


def _loan(change: SetChange, lender: ResultSet) -> _Loan:
    """Compare the keys that both sets log, and the changed keys that only one of them logs."""
    own, others = change.new.hyperparameters, lender.hyperparameters
    changed = {*change.hyperparameters} - BATCH_SIZES
    compared = sorted((own.keys() & others.keys()) - BATCH_SIZES | changed)
    same = [key for key in compared if own.get(key) == others.get(key)]
    return _Loan(
        lender=lender,
        taken=len(changed.intersection(same)),
        same=len(same),
        different=tuple(key for key in compared if key not in same),
    )
