"""What the rules require of a change to an entry in the review."""

from __future__ import annotations

from mlperf_pkg.commands.diff.model import EntryVerdict, Kind

_BORROWING = "training_rules, Hyperparameter Borrowing"
_CHANGING = "submission_rules, Withdrawing results or changing division"
_FIXING = "submission_rules, Fixing objections"
_LIMIT = "until Wednesday of week 3"

_RULES = {
    Kind.BORROWED: (
        "once per entry; all hyperparameters but batch sizes as a group, with the same software,"
        " system and configuration; declared by Monday of week 3",
        _BORROWING,
    ),
    Kind.BORROWED_IN_PART: (
        "hyperparameters but batch sizes are replaced as a group; further changes are as few as"
        " possible, with evidence that the model converges worse without them",
        _BORROWING,
    ),
    Kind.HYPERPARAMETERS: (
        "in Closed, the review changes hyperparameters only by borrowing those of another"
        " submitter, or to fix an objection",
        _BORROWING,
    ),
    Kind.SCALE: (
        "with borrowed hyperparameters, the largest scale of a benchmark on a system may change:"
        " to a larger or faster one, up to the largest scale submitted on that system",
        _BORROWING,
    ),
    Kind.RESUBMITTED: (
        "logs of an earlier round may be submitted again if the system description is the same in"
        " both rounds and they pass the newer round's checker; they prove no Preview",
        "training_rules, Results Resubmission",
    ),
    Kind.COPIED: ("every result set has runs of its own", "training_rules, Benchmark Results"),
    Kind.RENAMED: ("the same logs and description under another name", _FIXING),
    Kind.WITHDRAWN: (f"{_LIMIT}, by amending the pull request", _CHANGING),
    Kind.ADDED: (
        "until the deadline and 60 minutes of grace",
        "submission_rules, Late Submissions",
    ),
    Kind.TO_OPEN: (_LIMIT, _CHANGING),
    Kind.TO_CLOSED: ("an entry moves from Closed to Open, not back", _CHANGING),
    Kind.DESCRIPTION: (
        f"corrections {_LIMIT}, if the fields describe the system on which the runs were made",
        "submission_rules, <system_desc_id>.json metadata",
    ),
    Kind.CODE: (
        f"{_LIMIT}, to fix an objection; borrowing changes only hyperparameters in it",
        _FIXING,
    ),
    Kind.EDITED: ("logs are as the runs wrote them; corrections need an objection", _FIXING),
    Kind.SCORE: (
        "by borrowed hyperparameters or the fix of an objection; final on Tuesday of week 3",
        "submission_rules, Schedule",
    ),
}


def entry_verdict(
    kind: Kind, entry: str, text: str, *, allowed: bool | None, other: str | None = None
) -> EntryVerdict:
    """Return a verdict with the rule of its kind; the other fields are those of the verdict."""
    rule, source = _RULES[kind]
    return EntryVerdict(kind, entry, text, rule, source, allowed, other)
