"""``review resubmitted``: result sets with the logs of an earlier round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mlperf_pkg.checks.copies import different_fields
from mlperf_pkg.checks.descriptions import PREVIEW, category, published_differences
from mlperf_pkg.checks.names import are_alike
from mlperf_pkg.commands.review.listing import Listing, listed_section
from mlperf_pkg.commands.review.model import Round, Section
from mlperf_pkg.commands.review.sides import Entry, Side, published_before
from mlperf_pkg.findings import Verdict, in_words
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.render.terminal import PLAIN, Column, Group, Span
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.rounds import first_name

NAMES = (
    "outcome",
    "round",
    "path",
    "old_round",
    "old_path",
    "runs",
    "shared_runs",
    "identical_files",
    "description",
    "different_fields",
    "official",
    "problems",
)
_BRIEF = (
    "outcome",
    "path",
    "old_round",
    "old_path",
    "problems",
    "runs",
    "shared_runs",
    "identical_files",
    "description",
)
_COLUMNS = (
    Column("Result set", whole=True),
    Column("Runs", 7, numbers=True),
    Column("From", 34),
    Column("Files", 14),
)
_MOST = 100  # sets with the same run that are compared
ALLOWED, NOT_ALLOWED = "allowed", "not allowed"
_COMPLETE, _PUBLISHED, _UNKNOWN = "same", "same as far as published", "not known"


class Resubmission(Struct, frozen=True):
    """A result set with runs of a result set of an earlier round.

    ``fields`` are the fields of the description that differ; ``description`` is how completely it
    was compared. ``problems`` are the violations of the rules.
    """

    old: Entry
    new: Entry
    runs: int
    identical: int
    description: str
    fields: tuple[str, ...]
    problems: tuple[str, ...]


def resubmissions(old: Side, new: Side) -> list[Resubmission]:
    """Return the sets of the new side with runs of the old one, one for each earlier round."""
    by_key: dict[Hashable, dict[int, Entry]] = {}
    for index, entry in enumerate(old.entries):
        for key in entry.keys:
            members = by_key.setdefault(key, {})
            if len(members) < _MOST:
                members[index] = entry
    pairs = []
    for entry in new.entries:
        alike: dict[int, Entry] = {}
        for key in entry.keys:
            alike |= by_key.get(key, {})
        by_round: dict[str, list[Entry]] = {}
        for candidate in (alike[index] for index in sorted(alike)):
            if candidate.row.usage == entry.row.usage and candidate.version < entry.version:
                by_round.setdefault(candidate.row.round, []).append(candidate)
        pairs += [
            _resubmission(_nearest(entry, candidates), entry) for candidates in by_round.values()
        ]
    return pairs


def resubmitted(old: Side, new: Side) -> Listing:
    """Return the sets of the new side that have logs of the old one."""
    rows = resubmissions(old, new)
    bad, good = [r for r in rows if r.problems], [r for r in rows if not r.problems]
    sides = old.name if old is new else f"{new.name}, from {old.name}"
    return Listing(
        name="resubmitted",
        title=f"Resubmitted logs in {sides}",
        summary=tuple(_summary(rows, old, new)),
        counts={ALLOWED: len(good), NOT_ALLOWED: len(bad)},
        columns=_COLUMNS,
        groups=tuple(_groups(bad)),
        others=tuple(_groups(good)),
        names=NAMES,
        fields=tuple(map(_fields, rows)),
        brief=_BRIEF,
        marked=tuple(index for index, row in enumerate(rows) if row.problems),
    )


def _nearest(new: Entry, candidates: Sequence[Entry]) -> Entry:
    """Return the origin of the runs: the set of the same name, else the one with most of them."""
    return max(candidates, key=lambda old: (old.row.name == new.row.name, new.shared(old)))


def _resubmission(old: Entry, new: Entry) -> Resubmission:
    hashes = set(old.logs)
    description, fields = _description(old, new)
    return Resubmission(
        old=old,
        new=new,
        runs=new.shared(old),
        identical=sum(log in hashes for log in new.logs),
        description=description,
        fields=fields,
        problems=tuple(_problems(old, new, fields)),
    )


def _description(old: Entry, new: Entry) -> tuple[str, tuple[str, ...]]:
    """Return how completely the descriptions were compared, and the fields that differ."""
    before, after = old.system, new.system
    if before and after and before.contents is not None and after.contents is not None:
        return _COMPLETE, tuple(different_fields(before, after))
    if not (old.row.system_name and new.row.system_name):
        return _UNKNOWN, ()
    now = msgspec.structs.asdict(new.row)
    return _PUBLISHED, tuple(published_differences(now, old.row))


def _problems(old: Entry, new: Entry, fields: Sequence[str]) -> Iterator[str]:
    """Yield the violations of the rules on resubmission."""
    before, after = old.row, new.row
    if not are_alike(before.submitter, after.submitter):
        yield f"runs of {before.submitter}"
    if _first_name(old) != _first_name(new):
        yield f"runs of {before.benchmark}"
    if category(before.status) == PREVIEW != category(after.status):
        yield "runs of a Preview, which prove nothing"
    if changed := [field for field in fields if not (field == "status" and _was_preview(old))]:
        yield f"the description differs in {in_words(changed, 's')}"
    if new.official is Verdict.FAIL:
        yield f"the logs fail the checker of {after.round}"


def _was_preview(entry: Entry) -> bool:
    return category(entry.row.status) == PREVIEW


def _first_name(entry: Entry) -> str:
    return first_name(entry.row.usage, entry.row.round, entry.row.benchmark)


# ---- the list -----------------------------------------------------------------------------


def _summary(rows: Sequence[Resubmission], old: Side, new: Side) -> Iterator[str]:
    number = len({row.new.name for row in rows})
    total = wording.counted(len(new.entries), "result set")
    allowed = sum(not row.problems for row in rows)
    yield f"{number} of {total} {'has' if number == 1 else 'have'} logs of an earlier round"
    if rows:
        pairs = f"{wording.counted(len(rows), 'pair')}: " if old is new else ""
        yield f"{pairs}{allowed} allowed, {len(rows) - allowed} not allowed"
    kinds = Counter(kind for row in rows for kind in _kinds(row))
    for kind, count in kinds.most_common():
        yield f"{count} {kind}"


def _kinds(row: Resubmission) -> Iterator[str]:
    if not row.identical:
        yield "with rewritten logs: the same number of runs and mean, but different files"
    if row.fields:
        yield "with a different system description"
    if row.description == _UNKNOWN:
        yield "without a description to compare"
    if row.new.official is Verdict.FAIL:
        yield "with logs that fail the checker of their new round"


def _groups(rows: Iterable[Resubmission]) -> Iterator[Group]:
    """Yield the rows by their problems or, if they are allowed, by their descriptions."""
    by_title: dict[str, list[Resubmission]] = {}
    for row in rows:
        allowed = f"{ALLOWED}; description: {row.description}"
        title = f"{NOT_ALLOWED}: {'; '.join(row.problems)}" if row.problems else allowed
        by_title.setdefault(title, []).append(row)
    for title, members in by_title.items():
        yield Group(f"{title} ({len(members)})", list(map(_cells, members)))


def _cells(row: Resubmission) -> list[Span]:
    number = row.new.row.runs
    files = f"{row.identical} identical" if row.identical else "rewritten"
    texts = [
        row.new.name,
        f"{row.runs}/{number}",
        _origin(row.old.row, row.new.row),
        "identical" if row.identical == number else files,
    ]
    return [(text, PLAIN) for text in texts]


def _origin(old: PublishedSet, new: PublishedSet) -> str:
    """Return the round of the old set, with its name as far as it differs."""
    if old.name == new.name:
        return old.round
    is_renamed = (old.submitter, old.benchmark) == (new.submitter, new.benchmark)
    return f"{old.round} {old.system if is_renamed else old.name}"


def _fields(row: Resubmission) -> dict[str, Any]:
    return {
        "outcome": NOT_ALLOWED if row.problems else ALLOWED,
        "round": row.new.row.round,
        "path": row.new.row.path,
        "old_round": row.old.row.round,
        "old_path": row.old.row.path,
        "runs": row.new.row.runs,
        "shared_runs": row.runs,
        "identical_files": row.identical,
        "description": "different" if row.fields else row.description,
        "different_fields": ", ".join(row.fields) or None,
        "official": row.new.official.value if row.new.official else None,
        "problems": "; ".join(row.problems) or None,
    }


# ---- in the review of a round -------------------------------------------------------------


def section(reviewed: Round) -> Section:
    """Return the sets of a round that have published logs of an earlier one."""
    old = Side("earlier rounds (published)", published_before(reviewed.side))
    listing = resubmitted(old, reviewed.side)
    return listed_section(listing, "Resubmitted logs")
