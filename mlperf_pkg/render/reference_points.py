"""The review of reference convergence points as text for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import asdict

from mlperf_pkg.render.rules import table, wrapped
from mlperf_pkg.rulebook.upstream.points import LEDGER, Kind, KnownPoint, PointProblem, PointReview


def review_text(review: PointReview) -> str:
    """Return the new and the stale mistakes; where there are none, how many are known."""
    if not review.fails:
        return "\n".join(_known(review.known)) + "\n"
    lines = [line for problem in review.new for line in _new(problem)]
    lines += [f"{entry.problem(_stale(entry))}" for entry in review.stale]
    lines += [""] if review.stale else []
    return "\n".join([*lines, _count(review)]) + "\n"


def review_fields(review: PointReview) -> dict[str, Any]:
    """Return the same as ``review_text`` for JSON, with all known mistakes."""
    return {
        "new": list(map(asdict, review.new)),
        "stale": list(map(_fields, review.stale)),
        "known": list(map(_fields, review.known)),
    }


def _known(entries: Sequence[KnownPoint]) -> Iterator[str]:
    count = f"{len(entries)} known mistake{'' if len(entries) == 1 else 's'}"
    yield f"Its reference points have {count} (rules/{LEDGER}){':' if entries else '.'}"
    if entries:
        rows = [("", "KIND", "POINTS", "PUBLISHED SETS"), *_rows(entries)]
        yield from (line.rstrip() for line in table(rows))


def _rows(entries: Sequence[KnownPoint]) -> Iterator[tuple[str, ...]]:
    for kind in Kind:
        of_kind = [entry for entry in entries if entry.kind == kind]
        sets = {name for entry in of_kind for name in entry.sets}
        if of_kind:
            yield "", kind, f"{len(of_kind)}", f"{len(sets)}"


def _new(problem: PointProblem) -> Iterator[str]:
    subject = f"{problem.usage} {problem.round}, {problem.kind}: {problem.point}"
    yield f"{subject} (batch size {problem.batch_size:.15g})"
    yield wrapped("  ", problem.file)
    yield wrapped("  - expected        ", problem.expected)
    yield wrapped("  + mlperf-logging  ", problem.found)
    yield ""


def _stale(entry: KnownPoint) -> str:
    place = f"{entry.usage} {entry.round} {entry.benchmark}"
    return f"{entry.point} of {place} no longer has the mistake {entry.kind}; remove it"


def _count(review: PointReview) -> str:
    new, stale = len(review.new), len(review.stale)
    return (
        f"{new} mistake{'' if new == 1 else 's'} in its reference points"
        f" {'is' if new == 1 else 'are'} new, {stale} {'is' if stale == 1 else 'are'} gone"
    )


def _fields(entry: KnownPoint) -> dict[str, Any]:
    fields = asdict(entry)
    del fields["steps"]
    return {**fields, "file": entry.file.shown}
