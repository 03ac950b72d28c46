"""Which runs are the same in two versions of a result set, and what was edited in their logs.

Runs are the same by the definition of ``run/relations.py``. So that an edit of the values does
not hide a run, the logs that are left are compared by what else identifies them: see ``_likeness``.
An edit is a record that only one version has, or one with another time or line of code.
"""

import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import TOKEN, Record, decode, printable, shown, tails_of
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import is_hyperparameter
from mlperf_pkg.run.relations import RunRelation, relation_of

BATCH_SIZES = frozenset(
    {
        *("batchnorm_group_size", "global_batch_size", "local_batch_size", "model_bn_span"),
        *("gradient_accumulation_frequency", "gradient_accumulation_steps"),
        "opt_gradient_accumulation_steps",
    }
)


class ComparedLog(Struct, frozen=True):
    """The log of a run: its file name, the digest of its bytes, its settings as JSON by key.

    Logs of one run have the same ``run``, whatever was edited in them: see ``run.relations``;
    ``content`` is what the log says of it, ``source`` is the file.
    """

    name: str
    digest: str
    settings: Mapping[str, str]
    run: Hashable = None
    content: Run | None = None
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


_Pair = tuple[ComparedLog, ComparedLog]
"""The logs of one run in the old and in the new version."""

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
_MOST_RECORDS = 200_000  # of a log; blocks that begin later are not compared


class _LogText(Struct, frozen=True):
    """The lines of a log with a token, from it on; ``line_of`` returns the number of each."""

    tails: Sequence[bytes]
    line_of: Callable[[int], int]


class _LoggedRecord(Struct, frozen=True, gc=False):
    """A record of a log: what it says, where the code logged it, when, and its line.

    ``statement`` is what it says, whenever and wherever it was logged.
    """

    key: str
    value: Any
    statement: tuple[str, str, str]
    place: tuple[Any, ...]
    time_ms: float
    line: int

    @property
    def place_text(self) -> str:
        """Where the code logged it."""
        return ":".join(shown(part) for part in self.place if part is not None)


_RecordPair = tuple[_LoggedRecord, _LoggedRecord]
"""A record in the old and in the new log."""


def same_runs(old: Sequence[ComparedLog], new: Sequence[ComparedLog]) -> SameRuns:
    """Return the runs that are the same in two versions of a result set."""
    identical, old_left, new_left = _paired(old, new, lambda log: log.digest)
    edited, old_left, new_left = _paired(old_left, new_left, lambda log: log.run)
    edited += _alike(old_left, new_left)

    originals: dict[Hashable, ComparedLog] = {}
    for old_log, _ in (*identical, *edited):
        if old_log.run is not None:
            originals.setdefault(old_log.run, old_log)
    edited_runs = {new_log.name: _edited(old_log, new_log) for old_log, new_log in edited}
    copied = []
    new_runs = 0
    for new_log in new_left:
        if new_log.name in edited_runs:
            continue
        if new_log.run in originals:
            copied.append(_edited(originals[new_log.run], new_log))
        else:
            new_runs += 1
    return SameRuns(
        identical=len(identical),
        edited=tuple(edited_runs[name] for name in sorted(edited_runs)),
        copied=tuple(copied),
        new=new_runs,
    )


def _paired(
    old: Iterable[ComparedLog],
    new: Iterable[ComparedLog],
    key: Callable[[ComparedLog], Hashable],
) -> tuple[list[_Pair], list[ComparedLog], list[ComparedLog]]:
    """Return the pairs of logs with the same key, and the others; those of one name come first."""
    left = sorted(old, key=lambda log: log.name)
    pairs = []
    rest = []
    for log in new:
        log_key = key(log)
        same = [other for other in left if log_key is not None and key(other) == log_key]
        partner = min(same, key=lambda other: other.name != log.name, default=None)
        if partner:
            left.remove(partner)
            pairs.append((partner, log))
        else:
            rest.append(log)
    return pairs, left, rest


def _alike(old: Sequence[ComparedLog], new: Sequence[ComparedLog]) -> Iterator[_Pair]:
    """Yield each new log with the old one that it is most like, whatever was edited in it."""
    if not (old and new):
        return
    old_identities = [_identity(log) for log in old]
    new_identities = [_identity(log) for log in new]
    ranked = []
    for i, old_identity in enumerate(old_identities):
        for j, new_identity in enumerate(new_identities):
            likeness = _likeness(old_identity, new_identity)
            if likeness >= _ALIKE and not _is_repeated(old[i], new[j]):
                ranked.append((-likeness, old[i].name != new[j].name, i, j))
    paired_old: set[int] = set()
    paired_new: set[int] = set()
    for _, _, i, j in sorted(ranked):
        if i not in paired_old and j not in paired_new:
            paired_old.add(i)
            paired_new.add(j)
            yield old[i], new[j]


def _is_repeated(old: ComparedLog, new: ComparedLog) -> bool:
    """Return whether a new run repeats the training of an old one: it is another run.

    None of its times is one of the old run, unlike those of a log of which some were edited.
    """
    if old.content is None or new.content is None:
        return False
    times = {old.content.start_ms, old.content.stop_ms, *old.content.evaluated_ms}
    if not times.isdisjoint((new.content.start_ms, *new.content.evaluated_ms)):
        return False
    return relation_of(old.content, new.content) is RunRelation.REPEATED


def _edited(old: ComparedLog, new: ComparedLog) -> EditedRun:
    edits = _edits(_text_of(old), _text_of(new))
    return EditedRun(old.name, new.name, tuple(edits))


class _Identity(Struct, frozen=True):
    """What identifies the run of a log: its start, if any, its seeds, and its series of values."""

    start_ms: float | None
    seeds: set[str]
    series: Counter[tuple[str, str]]


def _identity(log: ComparedLog) -> _Identity:
    start_ms = None
    seeds: set[str] = set()
    series: Counter[tuple[str, str]] = Counter()
    for block, _ in _blocks(log):
        for key, indexes in block.indexes.items():
            if key == "run_start" and start_ms is None:
                start_ms = block.times(indexes[:1])[0]
            elif key == "seed":
                seeds.update(map(as_text, block.values(indexes)))
            elif key in _SERIES:
                series.update((key, as_text(value)) for value in block.values(indexes))
    return _Identity(start_ms, seeds, series)


def _likeness(old: _Identity, new: _Identity) -> int:
    """Return how much identifies two runs as one."""
    likeness = 0
    common = (old.series & new.series).total()
    shorter = min(old.series.total(), new.series.total())
    if common > 1 and 2 * common >= shorter:
        likeness += 2
    if old.start_ms is not None and old.start_ms == new.start_ms:
        likeness += 1
    if not old.seeds.isdisjoint(new.seeds):
        likeness += 1
    return likeness


def _text_of(log: ComparedLog) -> _LogText:
    tails: list[bytes] = []
    line_of: Callable[[int], int] = int
    for block, reader in _blocks(log):
        line_of = reader.line_of
        tails += tails_of(block.text)
    return _LogText(tails, line_of)


def _blocks(log: ComparedLog) -> Iterator[tuple[Block, LogReader]]:
    """Yield the blocks of a log with their reader, as far as it can be read."""
    source = log.source or Source("", b"")
    with suppress(OSError, UserError), source.open() as stream:
        reader = LogReader(stream, source.label, lambda _: None, first_line=source.first_line)
        for block in reader.blocks():
            yield block, reader
            if block.first > _MOST_RECORDS:
                break


# ---- edits ----------------------------------------------------------------------------------


def _edits(old: _LogText, new: _LogText) -> Iterator[Edit]:
    """Yield what differs between two logs of one run; at least one, as their bytes differ."""
    if old.tails == new.tails:
        yield Edit("text outside the records", "")
        return
    # Most lines are the same in both logs: only the others are read.
    common = Counter(old.tails) & Counter(new.tails)
    both, removed, added = _split(_others(old, common), _others(new, common))
    unmoved = common.total()
    edits = [*_of_records(removed, added), *_of_times(both, unmoved), *_of_code(both)]
    if edits:
        yield from edits
    elif unmoved == len(old.tails) == len(new.tails):
        yield Edit("records in another order", "")
    else:
        yield Edit("records written differently", "")


def _others(text: _LogText, common: Counter[bytes]) -> Iterator[_LoggedRecord]:
    """Yield the records of a log that are not on the lines which both logs have."""
    left = common.copy()
    for number, tail in enumerate(text.tails):
        if left[tail]:
            left[tail] -= 1
            continue
        record = decode(tail.rpartition(TOKEN)[2])
        if record:
            yield _logged_record(record, text.line_of(number))


def _logged_record(record: Record, line: int) -> _LoggedRecord:
    key = str(record.key)
    value = record.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    metadata = record.metadata
    place = []
    if isinstance(metadata, dict):
        metadata = dict(sorted(metadata.items()))
        for name in _PLACE:
            place.append(metadata.pop(name, None))
    statement = (key, repr(value), repr(metadata))
    return _LoggedRecord(key, value, statement, tuple(place), float(record.time_ms), line)


def _split(
    old: Iterable[_LoggedRecord], new: Iterable[_LoggedRecord]
) -> tuple[list[_RecordPair], list[_LoggedRecord], list[_LoggedRecord]]:
    """Return the records that both logs have, as pairs, and those that only one of them has."""
    left: dict[tuple[str, str, str], deque[_LoggedRecord]] = {}
    for record in old:
        left.setdefault(record.statement, deque()).append(record)
    both = []
    added = []
    for record in new:
        same = left.get(record.statement)
        if same:
            both.append((same.popleft(), record))
        else:
            added.append(record)
    removed = sorted(chain.from_iterable(left.values()), key=lambda record: record.line)
    return both, removed, added


def _of_records(removed: Sequence[_LoggedRecord], added: Sequence[_LoggedRecord]) -> Iterator[Edit]:
    removed_by_kind = by_key((_kind(record.key), record) for record in removed)
    added_by_kind = by_key((_kind(record.key), record) for record in added)
    for kind, _ in _KINDS:
        old = removed_by_kind.get(kind, [])
        new = added_by_kind.get(kind, [])
        if old and len(old) == len(new):
            alterations = [_alteration(*pair) for pair in zip(old, new, strict=True)]
            yield Edit(f"{kind} altered", ", ".join(alterations))
            continue
        if old:
            yield Edit(f"{kind} removed", _lines(old, "of the old log"))
        if new:
            yield Edit(f"{kind} added", _lines(new, "of the new log"))


def _kind(key: str) -> str:
    return next(kind for kind, has in _KINDS if has(key))


def _alteration(old: _LoggedRecord, new: _LoggedRecord) -> str:
    if old.statement[:2] == new.statement[:2]:
        return f"metadata of {old.key} (line {new.line})"
    return f"{old.key} {as_text(old.value)} -> {as_text(new.value)} (line {new.line})"


def _lines(records: Sequence[_LoggedRecord], where: str) -> str:
    lines = [str(record.line) for record in records]
    noun = "line" if len(lines) == 1 else "lines"
    return f"{len(lines)}: {noun} {wording.shortened(lines, _MOST_LINES)} {where}"


def _of_times(both: Sequence[_RecordPair], unmoved: int) -> Iterator[Edit]:
    """Yield what moved in time, of these records and others that are ``unmoved``."""
    shifts = []
    moved = []
    for old, new in both:
        shift = new.time_ms - old.time_ms
        shifts.append(shift)
        if shift:
            moved.append((shift, new))
    if not moved:
        return
    if len(set(shifts)) == 1 and not unmoved:
        yield Edit("times moved", f"all times {_seconds(shifts[0])}")
        return
    moved.sort(key=lambda item: item[1].key not in _CLOCK)  # those of the clock come first
    texts = []
    for shift, record in moved[:_MOST_LINES]:
        texts.append(f"{record.key} {_seconds(shift)} (line {record.line})")
    yield Edit("times moved", f"{len(moved)} of {len(both) + unmoved}: {', '.join(texts)}")


def _seconds(shift: float) -> str:
    direction = "later" if shift > 0 else "earlier"
    return f"{abs(shift) / 1000:,.3f} s {direction}"


def _of_code(both: Sequence[_RecordPair]) -> Iterator[Edit]:
    moved = [(old, new) for old, new in both if old.place != new.place]
    texts = []
    for old, new in moved[:_MOST_LINES]:
        texts.append(f"{old.key} {old.place_text} -> {new.place_text} (line {new.line})")
    if moved:
        yield Edit("lines of code altered", f"{len(moved)}: {', '.join(texts)}")


# ---- values -----------------------------------------------------------------------------------

MAX_CHARACTERS = 10_000
_EXACT = 2.0**53
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


def as_text(value: Any) -> str:
    """Return a value as JSON, equal values as equal text; a very long one as start and digest."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    with suppress(TypeError, ValueError, RecursionError):
        text = _encode(printable(value))
        if len(text) <= MAX_CHARACTERS:
            return text
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{text[:MAX_CHARACTERS]}... (sha256 {digest})"
    return shown(value)
