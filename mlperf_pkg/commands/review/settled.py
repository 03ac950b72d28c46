"""The objections that a corrected tree settles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from mlperf_pkg.commands.review.objection_file import Entry
from mlperf_pkg.commands.review.objections import Examined
from mlperf_pkg.findings import Basis


class Standing(StrEnum):
    """The standing of an objection in a tree. REMOVED: its subjects are not in the tree."""

    SETTLED = "settled"
    STANDS = "stands"
    REMOVED = "removed"


class Judged(Struct, frozen=True):
    """An objection in the file, and its ``standing`` in a tree.

    ``standing`` is None if there is no tree, or only one of another submitter. ``left`` are the
    subjects that still have the finding.
    """

    entry: Entry
    standing: Standing | None = None
    left: tuple[str, ...] = ()


class NewError(Struct, frozen=True):
    """Errors of a code by the rules that no objection against the submitter names."""

    against: str
    code: str
    message: str
    about: tuple[str, ...]


class Outcome(Struct, frozen=True):
    """All objections, and the errors without an objection."""

    objections: tuple[Judged, ...]
    new: tuple[NewError, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether no objection stands, except withdrawn and waived ones."""
        return not any(
            item.standing is Standing.STANDS and not item.entry.state.is_dropped
            for item in self.objections
        )


def judge(entries: Sequence[Entry], examined: Examined) -> Outcome:
    """Return the standing of the objections in a checked tree, and the errors without one."""
    by_code = defaultdict(set)
    for _, finding in examined.findings:
        by_code[finding.code].add(finding.about)
    subjects, alone = examined.subjects, examined.alone
    judged = (
        _judged(entry, by_code[entry.code], subjects)
        if alone is None or alone.name == entry.against
        else Judged(entry)
        for entry in entries
    )
    return Outcome(tuple(judged), tuple(_new_errors(entries, examined)))


def _judged(entry: Entry, remaining: set[str], subjects: set[str]) -> Judged:
    left = tuple(path for path in entry.about if path in remaining)
    if left:
        return Judged(entry, Standing.STANDS, left)
    is_there = any(path in subjects for path in entry.about)
    return Judged(entry, Standing.SETTLED if is_there else Standing.REMOVED)


def _new_errors(entries: Iterable[Entry], examined: Examined) -> Iterator[NewError]:
    named = {(entry.code, path) for entry in entries for path in entry.about}
    errors = defaultdict(list)
    for submitter, finding in examined.findings:
        if finding.fails(Basis.RULES) and (finding.code, finding.about) not in named:
            errors[submitter, finding.code].append(finding)
    for (submitter, code), findings in sorted(errors.items()):
        about = tuple(dict.fromkeys(finding.about for finding in findings))
        yield NewError(submitter, code, findings[0].text, about)
