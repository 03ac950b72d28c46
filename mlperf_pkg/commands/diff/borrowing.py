"""Hyperparameters that an entry borrowed from another submitter in the review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from mlperf_pkg.checks.copies import is_same_submitter
from mlperf_pkg.commands.diff.entry_rules import entry_verdict
from mlperf_pkg.commands.diff.model import EntryVerdict, Kind, ResultSet, System, percent
from mlperf_pkg.findings import in_words
from mlperf_pkg.results import wording
from mlperf_pkg.run.readers import is_hyperparameter

_NOT_LENT = frozenset({"gpt3", "llama31_405b"})
_SOFTWARE = ("framework", "operating_system", "other_software_stack")
_NO_SYSTEM = frozenset({*_SOFTWARE, "division", "hw_notes", "notes", "status", "sw_notes"})
_OF_SCALE = frozenset({"number_of_nodes", "system_name"})
_BATCH_SIZES = frozenset(
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

_Values: TypeAlias = Mapping[str, frozenset[str | None]]
"""The values in the runs of a set as JSON, by key; None for runs that do not log it."""


class Change(Struct, frozen=True, dict=True):
    """An entry before and after."""

    old: ResultSet
    new: ResultSet

    @property
    def percent(self) -> float | None:
        """By how much the score changed."""
        return percent(self.old.row.score_minutes, self.new.row.score_minutes)

    @cached_property
    def fields(self) -> list[str]:
        """The fields of its description that changed, without a change of the division."""
        fields = different_fields(self.old.system, self.new.system)
        same_division = self.old.row.division == self.new.row.division
        return [field for field in fields if same_division or field != "division"]

    @cached_property
    def new_runs(self) -> int:
        """The number of runs that were not in the entry before."""
        before = {log.run for log in self.old.logs}
        return sum(log.run not in before for log in self.new.logs)

    @cached_property
    def edited_logs(self) -> int:
        """The number of logs of earlier runs with other bytes."""
        before = {log.digest for log in self.old.logs}
        new_bytes = sum(log.digest not in before for log in self.new.logs)
        return new_bytes - self.new_runs

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """The hyperparameters that changed, with batch sizes."""
        before, after = _values(self.old), _values(self.new)
        keys = sorted(before.keys() | after.keys())
        return tuple(key for key in keys if before.get(key) != after.get(key))

    @cached_property
    def hyperparameters(self) -> tuple[str, ...]:
        """The hyperparameters that changed, other than batch sizes."""
        return tuple(key for key in self.settings if key not in _BATCH_SIZES)

    @property
    def scales(self) -> tuple[int, int] | None:
        """The numbers of accelerators before and after, if they differ."""
        old, new = (_accelerators(item) for item in (self.old, self.new))
        return (old, new) if old and new and old != new else None


class _Loan(Struct, frozen=True):
    """The hyperparameters that a set and its ``lender`` have in common, and those that differ.

    ``taken`` is the number of those in common that changed in the review.
    """

    lender: ResultSet
    taken: int
    same: int
    different: tuple[str, ...]

    @property
    def rank(self) -> tuple[int, int, str]:
        """The sort key: the most likely lender first."""
        return (len(self.different), -self.taken, self.lender.name)


def different_fields(old: System | None, new: System | None) -> list[str]:
    """Return the names of the fields in which two descriptions differ."""
    before, after = (system.fields if system else {} for system in (old, new))
    if not before or not after:
        return []
    keys = sorted(before.keys() | after.keys())
    return [k for k in keys if (k in before, before.get(k)) != (k in after, after.get(k))]


def borrowings(
    change: Change, originals: Sequence[ResultSet], lenders: Iterable[ResultSet]
) -> Iterator[EntryVerdict]:
    """Yield the verdicts on changes of the hyperparameters and the scale of an entry.

    ``originals`` are the sets of the old side, ``lenders`` those of the whole round.
    """
    loan, is_open = None, (change.new.row.division or "").lower() == "open"
    if change.hyperparameters and not is_open:
        loan = _find_loan(change, lenders)
    if change.settings:
        yield _borrowed(change, loan) if loan else _changed(change, allowed=is_open or None)
    if change.scales and is_open:
        old, new = change.scales
        text = f"{old} to {new} accelerators"
        yield entry_verdict(Kind.SCALE, change.new.name, text, allowed=None)
    elif change.scales:
        yield _scaled(change, change.scales, originals, borrowed=loan is not None)


def _changed(change: Change, *, allowed: bool | None) -> EntryVerdict:
    before, after = _values(change.old), _values(change.new)
    words = [f"{key} {_words(before, key)} -> {_words(after, key)}" for key in change.settings]
    text = in_words(words, "s")
    return entry_verdict(Kind.HYPERPARAMETERS, change.new.name, text, allowed=allowed)


def _words(values: _Values, key: str) -> str:
    return in_words(sorted(value or "not logged" for value in values.get(key, (None,))), "s")


def _borrowed(change: Change, loan: _Loan) -> EntryVerdict:
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


def _problems(change: Change) -> Iterator[str]:
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
    if old := len(change.new.logs) - change.new_runs:
        yield f"{wording.counted(old, 'run')} of the earlier entry"


def _scaled(
    change: Change, scales: tuple[int, int], originals: Sequence[ResultSet], *, borrowed: bool
) -> EntryVerdict:
    of_system = [item for item in originals if _family(item) == _family(change.old)]
    sizes = [(item.row.benchmark, _accelerators(item) or 0) for item in of_system]
    (old, new), benchmark = scales, change.old.row.benchmark
    is_faster = change.percent is not None and change.percent < 0
    problems = [
        text
        for text, is_problem in (
            ("without borrowed hyperparameters", not borrowed),
            (
                f"{old} was not the largest scale",
                any(name == benchmark and size > old for name, size in sizes),
            ),
            ("neither larger nor faster", new < old and not is_faster),
            (
                f"the largest scale submitted is {max(size for _, size in sizes)}",
                all(size < new for _, size in sizes),
            ),
        )
        if is_problem
    ]
    text = "; ".join([f"{old} to {new} accelerators", *problems])
    return entry_verdict(Kind.SCALE, change.new.name, text, allowed=not problems)


def _family(result_set: ResultSet) -> tuple[str | None, str]:
    """Return the key of a system at all scales: submitter and accelerator."""
    fields = result_set.system.fields if result_set.system else {}
    return result_set.submitter, str(fields.get("accelerator_model_name"))


def _accelerators(result_set: ResultSet) -> int | None:
    return result_set.system.accelerators if result_set.system else None


# ---- lenders ------------------------------------------------------------------------------


def _values(result_set: ResultSet) -> _Values:
    """Return the hyperparameters of a set, with its batch sizes."""
    logs = result_set.logs
    keys = {key for log in logs for key in log.settings}
    return {
        key: frozenset(log.settings.get(key) for log in logs)
        for key in keys
        if key in _BATCH_SIZES or is_hyperparameter(key)
    }


def _find_loan(change: Change, lenders: Iterable[ResultSet]) -> _Loan | None:
    """Return the most likely loan; None if there is no lender.

    The lender is another submitter's set that has at least one of the new values.
    """
    loans = (_loan(change, lender) for lender in lenders if _may_lend(lender, change.new))
    return min((loan for loan in loans if loan.taken), key=lambda loan: loan.rank, default=None)


def _may_lend(lender: ResultSet, new: ResultSet) -> bool:
    submitters = (lender.submitter, new.submitter)
    return lender.row.benchmark == new.row.benchmark and not is_same_submitter(*submitters)


def _loan(change: Change, lender: ResultSet) -> _Loan:
    """Compare the keys that both sets log, and the changed keys that only one of them logs."""
    own, others = _values(change.new), _values(lender)
    both = (own.keys() & others.keys()) - _BATCH_SIZES
    compared = sorted(both.union(change.hyperparameters))
    same = [key for key in compared if own.get(key) == others.get(key)]
    return _Loan(
        lender=lender,
        taken=len(set(same).intersection(change.hyperparameters)),
        same=len(same),
        different=tuple(key for key in compared if key not in same),
    )
