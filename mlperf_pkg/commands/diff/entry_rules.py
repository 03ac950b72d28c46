"""The rules on changes to an entry in the review."""

from __future__ import annotations

from mlperf_pkg.commands.diff.model import EntryVerdict, Kind

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
