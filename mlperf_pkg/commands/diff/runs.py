"""Which runs are the same in two versions of a result set, and what was edited in their logs.

Runs are the same by the definition of ``checks/consistency.py``. So that an edit of the values does
not hide a run, the logs that are left are compared by what else identifies them: see ``_likeness``.
An edit is a record that only one version has, or one with another time or line of code.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from typing import Any

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import in_words
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import printable, shown
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.readers import is_hyperparameter

BATCH_SIZES = frozenset(
    {
        *("batchnorm_group_size", "global_batch_size", "local_batch_size", "model_bn_span"),
        *("gradient_accumulation_frequency", "gradient_accumulation_steps"),
        "opt_gradient_accumulation_steps",
    }
)


class Log(Struct, frozen=True):
    """The log of a run: its file name, the digest of its bytes, its settings as JSON by key.

    Logs of one run have the same ``run``, whatever was edited in them: see ``consistency``;
    ``source`` is the file.
    """

    name: str
    digest: str
    settings: Mapping[str, str]
    run: Hashable = None
    source: Source | None = None


class Edit(Struct, frozen=True):
    """What was edited in a log, "evaluations removed", and the details with the lines."""

    what: str
    details: str


class EditedRun(Struct, frozen=True):
    """A run whose log was edited, by the names of its logs."""

    old: str
    new: str
    edits: tuple[Edit, ...]


class SameRuns(Struct, frozen=True):
    """The runs that two versions of a set have in common.

    ``identical`` is the number of logs with the same bytes; ``edited`` are other logs of runs that
    have no such log, and ``copied`` those of runs that the new version has twice. ``new`` is the
    number of runs that are only in the new version.
    """

    identical: int
    edited: tuple[EditedRun, ...] = ()
    copied: tuple[EditedRun, ...] = ()
    new: int = 0


# ---- the same runs ------------------------------------------------------------------------

_STATISTICS = frozenset({"throughput", "tracked_stats"})
_SERIES = evaluations.KEYS | _STATISTICS | {"train_loss"}
_CLOCK = frozenset({"init_start", "init_stop", "run_start", "run_stop"})
_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("evaluations", lambda key: key in evaluations.KEYS),
    ("losses", lambda key: key == "train_loss"),
    ("statistics", _STATISTICS.__contains__),
    ("seeds", lambda key: key == "seed"),
    ("clock records", lambda key: key in _CLOCK),
    ("names", lambda key: key.startswith("submission_")),
    ("hyperparameters", lambda key: is_hyperparameter(key) or key in BATCH_SIZES),
    ("other records", lambda _: True),
)
"""The kinds of records, and which keys they have; the first that fits."""

NAMES = "names"
"""The kind of records that name the submission, its division and its system."""

_PLACE = ("file", "lineno")  # of the line of code, in metadata
_ALIKE = 2  # at least, of runs that are the same
_MOST_LINES = 3  # that are listed of one edit
_MOST_RECORDS = 200_000  # of a log; the others are not compared


class _Entry(Struct, frozen=True, gc=False):
    """A record of a log: what it says, where the code logged it, when, and its line."""

    key: str
    value: str
    metadata: str
    place: str
    time_ms: float
    line: int

    @property
    def statement(self) -> tuple[str, str, str]:
        """What it says, whenever and wherever it was logged."""
        return self.key, self.value, self.metadata


def same_runs(old: Sequence[Log], new: Sequence[Log]) -> SameRuns:
    """Return the runs that are the same in two versions of a result set."""
    pairs, before, after = _paired(old, new, lambda log: log.digest)
    identical = len(pairs)
    kept = [log for log, _ in pairs]
    of_runs, before, after = _paired(before, after, lambda log: log.run)
    alike = [*of_runs, *_alike(before, after)]
    edited = {second.name: _edited(first, second) for first, second in alike}
    kept += [first for first, _ in alike]
    rest = [log for log in after if log.name not in edited]
    originals = {log.run: log for log in reversed(kept) if log.run is not None}
    copied = [(originals[log.run], log) for log in rest if log.run in originals]
    return SameRuns(
        identical,
        tuple(edited[name] for name in sorted(edited)),
        tuple(_edited(first, log) for first, log in copied),
        len(rest) - len(copied),
    )


def _paired(
    old: Iterable[Log], new: Iterable[Log], key: Callable[[Log], Hashable]
) -> tuple[list[tuple[Log, Log]], list[Log], list[Log]]:
    """Return the pairs of logs with the same key, and the others; those of one name come first."""
    left = sorted(old, key=lambda log: log.name)
    pairs = []
    rest = []
    for log in new:
        same = [other for other in left if key(other) is not None and key(other) == key(log)]
        partner = min(same, key=lambda other: other.name != log.name, default=None)
        if partner:
            left.remove(partner)
            pairs.append((partner, log))
        else:
            rest.append(log)
    return pairs, left, rest


def _alike(old: Sequence[Log], new: Sequence[Log]) -> Iterator[tuple[Log, Log]]:
    """Yield each new log with the old one that it is most like, whatever was edited in it."""
    if not (old and new):
        return
    before, after = ([_identity(log) for log in logs] for logs in (old, new))
    indexes = product(range(len(old)), range(len(new)))
    ranked = sorted(
        (-_likeness(before[i], after[j]), old[i].name != new[j].name, i, j) for i, j in indexes
    )
    taken: set[tuple[str, int]] = set()
    for unlikeness, _, i, j in ranked:
        if -unlikeness >= _ALIKE and taken.isdisjoint({("old", i), ("new", j)}):
            taken |= {("old", i), ("new", j)}
            yield old[i], new[j]


def _edited(old: Log, new: Log) -> EditedRun:
    return EditedRun(old.name, new.name, tuple(_edits(_entries(old), _entries(new))))


_Identity = tuple[list[float], set[str], Counter[tuple[str, str]]]
"""What identifies the run of a log: its start, if any, its seeds, and its series of values."""


def _identity(log: Log) -> _Identity:
    entries = _entries(log)
    starts = [entry.time_ms for entry in entries if entry.key == "run_start"]
    seeds = {entry.value for entry in entries if entry.key == "seed"}
    of_series = (entry for entry in entries if entry.key in _SERIES)
    return starts[:1], seeds, Counter((entry.key, entry.value) for entry in of_series)


def _likeness(old: _Identity, new: _Identity) -> int:
    """Return how much identifies two runs as one."""
    old_start, old_seeds, old_series = old
    new_start, new_seeds, new_series = new
    common = (old_series & new_series).total()
    is_same_series = common > 1 and 2 * common >= min(old_series.total(), new_series.total())
    is_same_start = bool(old_start) and old_start == new_start
    return 2 * is_same_series + is_same_start + (not old_seeds.isdisjoint(new_seeds))


def _entries(log: Log) -> list[_Entry]:
    """Return what a log says, as far as it can be read."""
    entries: list[_Entry] = []
    source = log.source or Source("", b"")
    with suppress(OSError, UserError), source.open() as stream:
        reader = LogReader(stream, source.label, lambda _: None)
        for number, record in enumerate(islice(reader, _MOST_RECORDS)):
            if record is not None:
                entries.append(_entry(record, reader.line_of(number)))
    return entries


def _entry(record: Any, line: int) -> _Entry:
    metadata = record.metadata if isinstance(record.metadata, dict) else {"": record.metadata}
    place = ":".join(shown(metadata[name]) for name in _PLACE if name in metadata)
    statement = {name: value for name, value in metadata.items() if name not in _PLACE}
    value = as_text(record.value)
    rest = as_text(statement)
    return _Entry(str(record.key), value, rest, place, float(record.time_ms), line)


# ---- edits ----------------------------------------------------------------------------------


def _edits(old: Sequence[_Entry], new: Sequence[_Entry]) -> Iterator[Edit]:
    """Yield what differs between two logs of one run; at least one, as their bytes differ."""
    both, removed, added = _split(old, new)
    of_kinds = [*_of_records(removed, added), *_of_times(both), *_of_code(both)]
    if not of_kinds and [one.statement for one in old] != [one.statement for one in new]:
        of_kinds = [Edit("records in another order", "")]
    yield from of_kinds or [Edit("text outside the records", "")]


def _split(
    old: Sequence[_Entry], new: Sequence[_Entry]
) -> tuple[list[tuple[_Entry, _Entry]], list[_Entry], list[_Entry]]:
    """Return the records that both logs have, as pairs, and those that only one of them has."""
    left = by_key((entry.statement, entry) for entry in reversed(old))
    both = []
    added = []
    for entry in new:
        same = left.get(entry.statement)
        if same:
            both.append((same.pop(), entry))
        else:
            added.append(entry)
    removed = sorted((e for entries in left.values() for e in entries), key=lambda e: e.line)
    return both, removed, added


def _of_records(removed: Sequence[_Entry], added: Sequence[_Entry]) -> Iterator[Edit]:
    of_kinds = [by_key((_kind(entry.key), entry) for entry in side) for side in (removed, added)]
    for kind, _ in _KINDS:
        gone, come = (entries.get(kind, []) for entries in of_kinds)
        altered = list(zip(gone, come, strict=False)) if len(gone) == len(come) else []
        if altered:
            texts = [
                f"{a.key} {_short(a.value)} -> {_short(b.value)} (line {b.line})"
                if a.value != b.value
                else f"metadata of {a.key} (line {b.line})"
                for a, b in altered
            ]
            yield Edit(f"{kind} altered", in_words(texts, "s"))
        else:
            if gone:
                yield Edit(f"{kind} removed", _listed(gone, "of the old log"))
            if come:
                yield Edit(f"{kind} added", _listed(come, "of the new log"))


def _kind(key: str) -> str:
    return next(kind for kind, has in _KINDS if has(key))


def _listed(entries: Sequence[_Entry], where: str) -> str:
    lines = wording.shortened([str(entry.line) for entry in entries], _MOST_LINES)
    return f"{len(entries)}: line{'s' * (len(entries) > 1)} {lines} {where}"


def _of_times(both: Sequence[tuple[_Entry, _Entry]]) -> Iterator[Edit]:
    shifts = [(new.time_ms - old.time_ms, new) for old, new in both]
    different = [(shift, entry) for shift, entry in shifts if shift]
    if len({shift for shift, _ in shifts}) == 1 and different:
        yield Edit("times moved", f"all of them, {_seconds(different[0][0])}")
    elif different:
        first = sorted(different, key=lambda item: item[1].key not in _CLOCK)[:_MOST_LINES]
        texts = [f"{e.key} {_seconds(shift)} (line {e.line})" for shift, e in first]
        yield Edit("times moved", f"{len(different)} of {len(both)}: {', '.join(texts)}")


def _seconds(shift: float) -> str:
    return f"{abs(shift) / 1000:,.3f} s {'later' if shift > 0 else 'earlier'}"


def _of_code(both: Sequence[tuple[_Entry, _Entry]]) -> Iterator[Edit]:
    moved = [(old, new) for old, new in both if old.place != new.place]
    if moved:
        texts = [f"{a.key} {a.place} -> {b.place} (line {b.line})" for a, b in moved[:_MOST_LINES]]
        yield Edit("lines of code altered", f"{len(moved)}: {', '.join(texts)}")


# ---- values -----------------------------------------------------------------------------------

MAX_CHARACTERS = 10_000
_EXACT = 2.0**53
_SHORT = 40  # characters of a value in a sentence


def as_text(value: Any) -> str:
    """Return a value as JSON, equal values as equal text; a very long one as start and digest."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    with suppress(TypeError, ValueError, RecursionError):
        text = json.dumps(printable(value), ensure_ascii=False, sort_keys=True)
        if len(text) <= MAX_CHARACTERS:
            return text
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{text[:MAX_CHARACTERS]}... (sha256 {digest})"
    return shown(value)


def _short(value: str) -> str:
    return value if len(value) <= _SHORT else f"{value[: _SHORT - 3]}..."
