"""From the published results and those of a user to the page of all rounds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import as_published, batch_size_of
from mlperf_pkg.checks.names import plain_name, words_of
from mlperf_pkg.commands.page.history_model import Entry, History, Span, Trend, grouped
from mlperf_pkg.published.model import PublishedSet, comparable
from mlperf_pkg.published.results import PublishedResults
from mlperf_pkg.rulebook.explain import describe
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import TRAINING, first_name

_NO_ACCELERATOR = "processors alone"
_POWER_LIMIT = re.compile(r" ?\(\d+ ?W\)")
_FAMILY = re.compile(r"(\S+) .+\((.+)\)")


def published_history(results: PublishedResults, own: Iterable[PublishedSet] = ()) -> History:
    """Return the history of the published results, with result sets of a user."""
    provenance = results.provenance
    source = f"collected on {provenance.made} from {provenance.source}"
    return history(results.sets, source, own)


def history(
    sets: Iterable[PublishedSet],
    source: str,
    own: Iterable[PublishedSet] = (),
    published: Iterable[PublishedSet] | None = None,
) -> History:
    """Return the history of result sets, with those of a user; ``source`` says where they are from.

    Sets that are ``published`` (None: all) are shown as they were, with a link to their source.
    """
    rows = [row for row in sets if row.runs]
    public = {_identity(row): row for row in (rows if published is None else published)}
    rows = [public.get(_identity(row), row) for row in rows]
    identities = set(map(_identity, rows))
    rows_of_user = [row for row in own if _identity(row) not in identities]
    names = _accelerator_names([*rows, *rows_of_user])
    entries = tuple(
        Entry(index, row, names[_hardware_key(row)], index >= len(rows), _identity(row) in public)
        for index, row in enumerate([*rows, *rows_of_user])
    )
    return History(entries, tuple(_trends(entries)), source)


def own_sets(checked: Checked) -> Iterator[PublishedSet]:
    """Yield the result sets of a check as if they were published."""
    for result, context in zip(checked.sets, checked.contexts, strict=True):
        size = batch_size_of(context.runs)
        row = as_published(result.row, context.runs, context.system, size)
        # Logs without a description have a division too.
        yield replace(row, division=row.division or result.row.division or "")


def _identity(row: PublishedSet) -> tuple[str, str, str, float | None]:
    minutes = row.score_minutes
    return (row.usage, row.round, row.name, minutes if minutes is None else comparable(minutes))


def _hardware_key(row: PublishedSet) -> frozenset[str]:
    return words_of(row.accelerator_model) or frozenset({f"cpu {plain_name(row.host_processor)}"})


def _accelerator_names(rows: Iterable[PublishedSet]) -> Mapping[frozenset[str], str]:
    """Return the most frequent spelling of each accelerator, or of processors without one."""
    spellings: dict[frozenset[str], Counter[str]] = {}
    for row in rows:
        has_one = words_of(row.accelerator_model)
        name = row.accelerator_model if has_one else row.host_processor or _NO_ACCELERATOR
        name = _without_family(_POWER_LIMIT.sub("", name))
        spellings.setdefault(_hardware_key(row), Counter())[name] += 1
    return {
        key: min(counts, key=lambda name: (-counts[name], name))
        for key, counts in spellings.items()
    }


def _without_family(name: str) -> str:
    """Return ``NVIDIA Blackwell GPU (GB200)`` as ``NVIDIA GB200``, other names as they are."""
    match = _FAMILY.fullmatch(name)
    is_model = match and words_of(match[2]) == words_of(name)
    return f"{match[1]} {match[2]}" if match and is_model else name


def _trends(entries: Sequence[Entry]) -> Iterator[Trend]:
    ranked = [entry for entry in entries if entry.is_ranked]
    for (usage, first), group in grouped(ranked, _benchmark).items():
        ordered = sorted(group, key=lambda entry: version_of(entry.row.round))
        published = [entry for entry in ordered if not entry.own]
        spans = tuple(
            Span(target, tuple(of_target)) for target, of_target in groupby(published, key=_target)
        )
        if spans:
            names = tuple(dict.fromkeys(entry.row.benchmark for entry in published))
            own = tuple(entry for entry in ordered if entry.own)
            identifier = first if usage == TRAINING else f"{usage}-{first}"
            yield Trend(identifier, usage, names, spans, own)


def _benchmark(entry: Entry) -> tuple[str, str]:
    row = entry.row
    return row.usage, first_name(row.usage, row.round, row.benchmark)


def _target(entry: Entry) -> str:
    rules = load_benchmark(entry.row.usage, entry.row.round, entry.row.benchmark)
    return describe.target(rules) if rules else "unknown"
