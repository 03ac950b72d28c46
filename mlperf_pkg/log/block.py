"""A block of log lines, decoded lazily, and the plain lines of a block, which nearly all are.

The lines of a log are alike: most differ only in their digits. What a line may hold besides a
plain record - two tokens, a name twice, a word that a checker looks for - is therefore looked for
but once in all those that do. ``_scan``, in C, does this where it could be compiled.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from heapq import merge
from itertools import chain
from typing import Any, TypeAlias

from msgspec import Struct

from mlperf_pkg.log.record import (
    TOKEN,
    Entry,
    Record,
    decode,
    decode_entries,
    decode_records,
    decode_values,
    joined,
)

try:
    from mlperf_pkg.log._scan import cut, memory, scan
except ImportError:  # no compiler was there
    HAS_SCAN = False
else:
    HAS_SCAN = True

ALMOST_TOKEN = b":::MLL"
LINE = re.compile(TOKEN + b"(.*)")
TIME, VALUE, METADATA, ITSELF = range(4)  # the parts of a record, as in _scan.c

_KEY = re.compile(rb'"key"\s*:\s*"[^"]*"')
_NAMES = (b'"key"', b'"value"', b'"metadata"', b'"time_ms"')
_ONCE = (ALMOST_TOKEN, TOKEN + b"{", *_NAMES)
_DIGITS = b"0123456789."
# On a shorter line no number is too long for Python's json, and nothing is nested too deeply.
_LONG_LINE_BYTES = 1200

Words: TypeAlias = frozenset[bytes]
_memories: dict[tuple[bytes, ...], Any] = {}  # of lines that were seen, by the words looked for


class Plain(Struct):
    """What a block of plain lines holds: so many records.

    ``indexes`` tells where the records of each key stand, ``array`` makes a JSON array of a part of
    some of them. ``every`` says that each line of the block begins with the token, ``scattered``
    that a word asked for stands on a line with a token, but not in its key.
    """

    size: int
    indexes: dict[Any, list[int]]
    every: bool
    scattered: bool
    array: Callable[[int, Collection[int]], bytes]


def plain(text: bytes, words: tuple[bytes, ...]) -> Plain | None:
    """What a block of whole lines holds; None where they need a closer look, one by one.

    A line with something like a token is plain where it holds one token, each name of a record
    once, nothing but ASCII without CR and backslash, is not long, and is a record without blanks
    around: between ``}`` and ``{`` another record must begin, so none goes on on the next line.
    """
    return scanned(text, words) if HAS_SCAN else outlined(text, words)


def scanned(text: bytes, words: tuple[bytes, ...]) -> Plain | None:
    """``plain``, in C."""
    known = _memories.pop(words, None) or memory(words)  # no other thread takes the same
    if not (found := scan(known, text)):
        return None
    new, parts, count, size, indexes, every, scattered = found
    # No line holds two records: where there are as many records as lines, each line is one.
    if len(decode_entries(new)) != count:
        return None
    _memories[words] = known  # it holds nothing but records
    return Plain(size, indexes, every, scattered, partial(cut, text, parts))


def outlined(text: bytes, words: tuple[bytes, ...]) -> Plain | None:
    """``plain``, in Python: by lines without their digits, and with them if that leaves a doubt."""
    found = _outlined(text, text.translate(None, _DIGITS), words)
    return found if found and not found.scattered else _outlined(text, text, words)


def _outlined(text: bytes, outline: bytes, words: tuple[bytes, ...]) -> Plain | None:
    """``outline`` may hold what no line holds, as digits divide it there, but lacks nothing."""
    lines = outline.split(b"\n")
    if not text or text.endswith(b"\n"):
        lines.pop()
    kinds = set(lines)
    counting = [kind for kind in kinds if ALMOST_TOKEN in kind]
    outlines = b"\n".join(counting)
    if (
        any({kind.count(part) for kind in counting} - {1} for part in _ONCE)
        or not all(kind.endswith(b"}") for kind in counting)
        or any(b'"' in kind.partition(ALMOST_TOKEN)[0] for kind in counting)
        or b"\\" in outlines
        or b"\r" in outlines
        or not outlines.isascii()
        or _has_long_line(text)
    ):
        return None
    tails: list[bytes] = LINE.findall(text)
    entries = decode_entries(b"\n".join(tails))
    if not len(entries) == len(tails) == text.count(ALMOST_TOKEN):
        return None
    return Plain(
        size=len(entries),
        indexes=indexes_of([entry.key for entry in entries]),
        every=(b"\n" + text).count(b"\n" + TOKEN) == len(lines),
        scattered=bool(words_in(_KEY.sub(b'""', outlines), words)),
        array=partial(_array, entries, tails),
    )


def _array(entries: list[Entry], tails: list[bytes], part: int, indexes: Collection[int]) -> bytes:
    if part == ITSELF:
        return joined([tails[index] for index in indexes])
    chosen = [entries[index] for index in indexes]
    if part == TIME:
        return joined([b"%r" % entry.time_ms for entry in chosen])
    return joined([entry.value if part == VALUE else entry.metadata for entry in chosen])


def indexes_of(keys: Iterable[Any]) -> dict[Any, list[int]]:
    """Where each of some keys stands."""
    indexes: dict[Any, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        indexes[key].append(index)
    return indexes


def repeats_a_name(raw: bytes) -> bool:
    """Whether a line holds one of the names of a record's parts more than once."""
    return any(raw.count(name) > 1 for name in _NAMES)


def words_in(text: bytes, words: tuple[bytes, ...]) -> Words:
    """Those of ``words`` that stand somewhere in a text."""
    return frozenset([word for word in words if word in text])


def _has_long_line(text: bytes) -> bool:
    """Whether a line with a token is long."""
    start = 0
    while len(text) - start > _LONG_LINE_BYTES:
        end = text.rfind(b"\n", start, start + _LONG_LINE_BYTES + 1)
        if end < 0:
            end = end_of_line(text, start)
            if text.find(TOKEN, start, end) >= 0:
                return True
        start = end + 1
    return False


def end_of_line(text: bytes, start: int) -> int:
    """The offset of the line end at or after ``start``, else the length of the text."""
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end


class Block:
    """Some consecutive lines of a log, of those that hold a token, told by their index from 0.

    ``first`` is the number of the first among all those of the log, ``size`` how many they are,
    ``unread`` how many of them hold no record that the official parser reads.
    ``text`` is the block that they are from, CR being LF.
    """

    def __init__(self, text: bytes, first: int, records: Sequence[Record | None]) -> None:
        """Lines of which each record, or that it has none, is known already."""
        self.text = text
        self.first = first
        self.size = len(records)
        self.unread = records.count(None)
        self._records = records
        keys = [each.key if each and isinstance(each.key, str) else None for each in records]
        self.indexes = indexes_of(keys)
        self.indexes.pop(None, None)

    indexes: dict[Any, list[int]]
    """Where the records of each key stand, in order; of those whose key is a text."""

    def records(self) -> Sequence[Record | None]:
        """What each line holds."""
        return self._records

    def select(self, indexes: Collection[int]) -> list[Record]:
        """Some records."""
        return [self._records[index] for index in indexes]  # type: ignore[misc]

    def times(self, indexes: Collection[int]) -> list[int | float]:
        """The times of some records, in milliseconds."""
        return [record.time_ms for record in self.select(indexes) if record]

    def values(self, indexes: Collection[int]) -> list[Any]:
        """The values of some records."""
        return [record.value for record in self.select(indexes)]

    def metadata(self, indexes: Collection[int]) -> list[Any]:
        """The metadata of some records."""
        return [record.metadata for record in self.select(indexes)]

    def metadata_text(self, indexes: Collection[int]) -> bytes | None:
        """The metadata of some records as a JSON array; None where that would have to be made."""
        del indexes
        return None

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, Record | bytes]]:
        """Each line with one of ``words``: which, and its record, or its text if it holds none."""
        return ((words_in(raw, words), decode(raw) or raw) for raw in lines_with(words, self.text))


class ScannedBlock(Block):
    """Lines that are plain records all, decoded when they are asked for."""

    def __init__(self, text: bytes, first: int, found: Plain) -> None:
        """Lines of which the records were found."""
        self.text = text
        self.first = first
        self.size = found.size
        self.unread = 0
        self.indexes = found.indexes
        self._array = found.array
        self._scattered = found.scattered
        self._known: dict[int, Record] = {}

    def records(self) -> Sequence[Record | None]:
        """What each line holds."""
        return self.select(range(self.size))

    def select(self, indexes: Collection[int]) -> list[Record]:
        """Some records, each decoded once."""
        known = self._known
        if new := [index for index in indexes if index not in known]:
            records = decode_records(self._array(ITSELF, new))
            known.update(zip(new, records, strict=True))
        return [known[index] for index in indexes]

    def times(self, indexes: Collection[int]) -> list[int | float]:
        """The times of some records, in milliseconds."""
        return decode_values(self._array(TIME, indexes))

    def values(self, indexes: Collection[int]) -> list[Any]:
        """The values of some records."""
        return decode_values(self._array(VALUE, indexes))

    def metadata(self, indexes: Collection[int]) -> list[Any]:
        """The metadata of some records."""
        return decode_values(self.metadata_text(indexes))

    def metadata_text(self, indexes: Collection[int]) -> bytes:
        """The metadata of some records, not decoded."""
        return self._array(METADATA, indexes)

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, Record | bytes]]:
        """Each line with one of ``words``, which are some of those that were looked for."""
        if self._scattered:
            return super().mentions(words)
        held = {key: found for key in self.indexes if (found := _words_in_key(key, words))}
        several = [self.indexes[key] for key in held]
        indexes = several[0] if len(several) == 1 else sorted(chain.from_iterable(several))
        return ((held[record.key], record) for record in self.select(indexes))


@lru_cache(maxsize=4096)
def _words_in_key(key: str, words: tuple[bytes, ...]) -> Words:
    return words_in(key.encode(), words)


def lines_with(words: Iterable[bytes], text: bytes) -> Iterator[bytes]:
    """What follows the last token of each line that holds one of ``words`` somewhere, in order."""
    end = -1
    for offset in merge(*(_occurrences(word, text) for word in words)):
        if offset > end:
            start, end = text.rfind(b"\n", 0, offset) + 1, end_of_line(text, offset)
            _, token, raw = text[start:end].rpartition(TOKEN)
            if token:
                yield raw


def _occurrences(word: bytes, text: bytes) -> Iterator[int]:
    offset = text.find(word)
    while offset >= 0:
        yield offset
        offset = text.find(word, offset + len(word))
