"""A block of log lines, decoded lazily.

A block is a sequence of whole lines. Of its lines only those with a token count; each has
an index in the block, from 0, and holds at most one record. Nearly all lines are plain and differ
only in their digits: ``_scan``, in C, finds their records without decoding them. If a line is not
plain, or the extension was not compiled, the block is read line by line (``reader.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from mlperf_pkg.log.record import (
    TOKEN,
    Record,
    decode,
    decode_records,
    decode_values,
    raw_records,
)

if TYPE_CHECKING:
    from mlperf_pkg.log._scan import Memory

try:
    from mlperf_pkg.log import _scan
except ImportError:  # no compiler at installation
    HAS_SCAN = False
else:
    HAS_SCAN = True

TIME, VALUE, METADATA, RECORD, REST = range(5)  # the parts of a record, as in _scan.c

_REMEMBERED_BYTES = 1 << 16  # of the metadata of a key in a block

_PARTS = (attrgetter("time_ms"), attrgetter("value"), attrgetter("metadata"))
_KEY = attrgetter("key")

Words: TypeAlias = frozenset[bytes]
Tests: TypeAlias = tuple[Callable[[Any], Any], ...]


class Block:
    """A block of log lines that was read line by line; only those with a token count.

    ``text`` is the whole block, with LF in place of CR. ``first`` is the number of its first line
    with a token among all such lines of the log, ``size`` is how many it has, and ``unread`` is how
    many of these hold no record that the official parser reads. ``indexes`` holds, for each key
    that is text, those of its records, in ascending order. All of them differ from one of the
    ``samples`` of their key in digits only.
    """

    unread = 0

    def __init__(self, text: bytes, first: int, records: Sequence[Record | None]) -> None:
        """Take the record of each line with a token, None for a line without a record."""
        self.text = text
        self.first = first
        self.size = len(records)
        self.unread = records.count(None)
        self.indexes = _indexes_by_key(records)
        self.samples = self.indexes
        self._records = records

    def records(self) -> Sequence[Record | None]:
        """Return the record of each line, None for a line without one."""
        return self._records

    def select(self, indexes: Collection[int]) -> list[Record]:
        """Return the records at some indexes, each of a line with a record."""
        return [self._records[index] for index in indexes]  # type: ignore[misc]

    def times(self, indexes: Collection[int]) -> list[int | float]:
        """Return the times of some records, in milliseconds since the epoch."""
        return self._parts(TIME, indexes)

    def ascends(self, indexes: Collection[int], *, from_first: bool = False) -> bool:
        """Return whether the times of some records ascend; False also where this is not known.

        With ``from_first``, return whether no time is before the first one.
        """
        times = self.times(indexes)
        if from_first:
            return all(times[0] <= later for later in times)
        return all(earlier <= later for earlier, later in pairwise(times))

    def values(self, indexes: Collection[int]) -> list[Any]:
        """Return the values of some records."""
        return self._parts(VALUE, indexes)

    def metadata(self, indexes: Collection[int]) -> list[Any]:
        """Return the metadata of some records."""
        return self._parts(METADATA, indexes)

    def without_times(self, _: Collection[int], /) -> bytes:
        """Return the text of some records but their times; empty where that is not known."""
        return b""

    def all_pass(self, part: int, tests: Tests, indexes: Collection[int]) -> bool:
        """Return whether a part of some records passes all tests.

        Raises:
            Exception: whatever a test raises.
        """
        return not tests or _all_pass(tests, self._parts(part, indexes))

    def _parts(self, part: int, indexes: Collection[int]) -> list[Any]:
        return list(map(_PARTS[part], self.select(indexes)))

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, list[Record | bytes]]]:
        """Yield, in order, the words on each line that has any of ``words``, with its record.

        A line without a record is represented by what follows its token. Consecutive lines that
        hold the same words may be yielded together.
        """
        for raw in lines_with(words, self.text):
            yield _words_in(raw, words), [decode(raw) or raw]


class ScannedBlock(Block):
    """A block of plain lines: the scanner in C found their records, which are decoded on demand.

    ``contiguous`` says that every line of the text holds a token; ``stray`` that a line without one
    names a time, as lines do that are almost those of records; ``scattered`` that a word which
    the scanner looked for appears on a line with a token, but outside its key.
    """

    def __init__(self, text: bytes, first: int, scan: _scan.Result, *, scattered: bool) -> None:
        """Take the result of a scan of ``text``."""
        self.text = text
        self.first = first
        *_, self._spans, self.size, self.indexes, self.samples, self.contiguous, self.stray = scan
        self.scattered = scattered
        self._decoded: dict[int, Record] = {}

    @property
    def offsets(self) -> Iterable[int]:
        """Where the record of each line begins in the text."""
        return memoryview(self._spans).cast("I")[2 * RECORD :: 2 * REST]

    def records(self) -> Sequence[Record]:
        """Return the record of each line."""
        return self.select(range(self.size))

    def select(self, indexes: Collection[int]) -> list[Record]:
        """Return the records at some indexes, each decoded once."""
        decoded = self._decoded
        missing = set(indexes).difference(decoded)
        if missing:
            records = decode_records(_scan.cut(self.text, self._spans, RECORD, missing))
            decoded.update(zip(missing, records, strict=True))
        return list(map(decoded.__getitem__, indexes))

    def ascends(self, indexes: Collection[int], *, from_first: bool = False) -> bool:
        """Return whether the times of some records ascend; False also where this is not known.

        With ``from_first``, return whether no time is before the first one.
        """
        return _scan.ascend(self.text, self._spans, indexes, from_first)

    def without_times(self, indexes: Collection[int], /) -> bytes:
        """Return the text of some records but their times."""
        return _scan.cut(self.text, self._spans, REST, indexes)

    def all_pass(self, part: int, tests: Tests, indexes: Collection[int]) -> bool:
        """Return whether a part of some records passes all tests; remember it of metadata."""
        if not tests:
            return True
        array = _scan.cut(self.text, self._spans, part, indexes)
        if part != METADATA or len(array) > _REMEMBERED_BYTES:
            return _all_pass(tests, decode_values(array))
        return _remembered_answer(tests, array)

    def _parts(self, part: int, indexes: Collection[int]) -> list[Any]:
        array = _scan.cut(self.text, self._spans, part, indexes)
        if part == METADATA and len(array) <= _REMEMBERED_BYTES:
            return _remembered_values(array)
        return decode_values(array)

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, list[Record | bytes]]]:
        """Yield, in order, the words on each line that has any of ``words``, with its record.

        The words must be among those that the scanner looked for.
        """
        if self.scattered:
            return super().mentions(words)
        held = _words_by_key(tuple(self.indexes), words)
        indexes = sorted(chain.from_iterable([self.indexes[key] for key in held]))
        rows = groupby(self.select(indexes), _KEY)
        return ((held[key], list(records)) for key, records in rows)


_remembered_values = lru_cache(maxsize=16)(decode_values)  # the runs of a set repeat their metadata


@lru_cache(maxsize=64)  # as above
def _remembered_answer(tests: Tests, array: bytes) -> bool:
    return _all_pass(tests, decode_values(array))


def _all_pass(tests: Tests, values: Sequence[Any]) -> bool:
    for test in tests:  # noqa: SIM110 - all() of a generator takes twice as long
        if not all(map(test, values)):
            return False
    return True


class Scanner:
    """Scan blocks in C, looking for some words; remember kinds of lines from log to log.

    Threads may share a scanner: each scan takes a memory that no other scan uses.
    """

    def __init__(self, words: tuple[bytes, ...]) -> None:
        """Start with no memory to reuse."""
        self._words = words
        self._idle: list[Memory] = []

    def scan(self, text: bytes, first: int) -> ScannedBlock | None:
        """Return the block of ``text``, None unless every line with a token is plain.

        A line is plain if it holds one token, and after it one record up to the end of the line,
        with each name of a record once; and if it is short, in ASCII, without CR and backslash.
        """
        memory = self._take_memory()
        block = self._block(_scan.scan(memory, text), text, first)
        if block is None or block.scattered:
            # Its new lines may not be JSON, or have a word outside of a key.
            _scan.forget(memory)
        self._idle.append(memory)
        return block

    def _block(self, scan: _scan.Result | None, text: bytes, first: int) -> ScannedBlock | None:
        """Return the block of a scan, None if some new line is not JSON."""
        if scan is None:
            return None
        new, unproven, elsewhere, *_ = scan
        # No line holds two records: with as many records as lines, each line is one record.
        if new and len(raw_records(unproven)) != new:
            return None
        # Not with "in", which first fails to take the bytes as a number.
        scattered = new > 0 and any(elsewhere.find(word) >= 0 for word in self._words)
        return ScannedBlock(text, first, scan, scattered=scattered)

    def _take_memory(self) -> Memory:
        try:
            return self._idle.pop()
        except IndexError:
            return _scan.memory()


@lru_cache(maxsize=8)
def scanner(words: tuple[bytes, ...]) -> Scanner:
    """Return the scanner for ``words``, shared by all logs of this process."""
    return Scanner(words)


def _indexes_by_key(records: Iterable[Record | None]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = defaultdict(list)
    for index, record in enumerate(records):
        if record is not None and isinstance(record.key, str):
            indexes[record.key].append(index)
    return dict(indexes)


def _words_in(text: bytes, words: tuple[bytes, ...]) -> Words:
    return frozenset([word for word in words if word in text])


@lru_cache(maxsize=256)
def _words_by_key(keys: tuple[str, ...], words: tuple[bytes, ...]) -> dict[str, Words]:
    return {key: matches for key in keys if (matches := _words_in(key.encode(), words))}


def lines_with(words: Iterable[bytes], text: bytes) -> Iterator[bytes]:
    """Yield, for each line with any of ``words`` and a token, what follows its last token."""
    for start, end in spans_with(words, text):
        _, token, raw = text[start:end].rpartition(TOKEN)
        if token:
            yield raw


def spans_with(words: Iterable[bytes], text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each line with any of ``words``."""
    from heapq import merge  # noqa: PLC0415 - few logs need it

    end = -1
    for offset in merge(*(_occurrences(word, text) for word in words)):
        if offset > end:
            start = text.rfind(b"\n", 0, offset) + 1
            end = end_of_line(text, offset)
            yield start, end


def _occurrences(word: bytes, text: bytes) -> Iterator[int]:
    offset = text.find(word)
    while offset >= 0:
        yield offset
        offset = text.find(word, offset + len(word))


def end_of_line(text: bytes, start: int) -> int:
    """Return the offset of the line end at or after ``start``, else the length of the text."""
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end
