"""What ``python -m tests.tools.upstream`` prints."""

from collections.abc import Iterator, Sequence
from itertools import chain

from mlperf_pkg.render.rules import hanging, wrapped
from mlperf_pkg.render.table import Column, by_key, table_of
from mlperf_pkg.results.wording import counted
from tests.tools.upstream.differences import Difference
from tests.tools.upstream.known_points import LEDGER, KnownPoint, PointReview
from tests.tools.upstream.points import PointKind


def lines(
    differences: Sequence[Difference], review: PointReview, reference: str, round_count: int
) -> Iterator[str]:
    """Yield the differences between the rulebook's rounds and ``reference``, an mlperf-logging."""
    for difference in differences:
        yield from _difference(difference)
    if differences:
        yield f"{counted(len(differences), 'difference')} between the rulebook and {reference}"
    else:
        yield f"The rulebook's {round_count} rounds agree with {reference}, key by key."
    if review.fails:
        yield from _mistakes(review)
    elif not differences:
        yield from _known(review.known)


def _difference(item: Difference) -> Iterator[str]:
    yield f"{item.usage} {item.round}, {item.kind}: {item.key}"
    yield wrapped("  ", item.file)
    if item.where:
        yield wrapped("  in ", ", ".join(item.where))
    for text in item.rulebook:
        yield wrapped("  - rulebook        ", text)
    for text in item.upstream:
        yield wrapped("  + mlperf-logging  ", text)
    yield ""


def _known(entries: Sequence[KnownPoint]) -> Iterator[str]:
    """Yield how many mistakes are known, by kind."""
    count = counted(len(entries), "known mistake")
    sentence = f"Its reference points have {count} ({LEDGER.name})"
    if not entries:
        yield f"{sentence}."
        return
    yield f"{sentence}:"
    by_kind = by_key((entry.kind, entry.sets) for entry in entries)
    rows = []
    for kind in PointKind:
        if kind in by_kind:
            published_sets = set(chain.from_iterable(by_kind[kind]))
            rows.append(("", kind, len(by_kind[kind]), len(published_sets)))
    columns = [Column(title) for title in ("", "KIND", "POINTS", "PUBLISHED SETS")]
    for line in hanging(table_of(columns, rows)):
        yield line.rstrip()


def _mistakes(review: PointReview) -> Iterator[str]:
    """Yield the new mistakes, and those that are known but gone."""
    for problem in review.new:
        subject = f"{problem.usage} {problem.round}, {problem.kind}: {problem.point}"
        yield f"{subject} (batch size {problem.batch_size:.15g})"
        yield wrapped("  ", problem.file)
        yield wrapped("  - expected        ", problem.expected)
        yield wrapped("  + mlperf-logging  ", problem.found)
        yield ""
    for entry in review.stale:
        place = f"{entry.usage} {entry.round} {entry.benchmark}"
        text = f"{entry.point} of {place} no longer has the mistake {entry.kind}; remove it"
        yield f"{entry.problem(text)}"
    if review.stale:
        yield ""
    new = counted(len(review.new), "mistake")
    new_verb = "is" if len(review.new) == 1 else "are"
    stale_verb = "is" if len(review.stale) == 1 else "are"
    yield (f"{new} in its reference points {new_verb} new, {len(review.stale)} {stale_verb} gone")
