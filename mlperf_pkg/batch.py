"""Many lines of a log at once: found, checked and decoded no further than they are asked.

The lines of a log are alike: most differ only in their digits. What a line may hold besides a
plain record - two tokens, a name twice, a word that a checker looks for - is therefore looked for
in the ``Outline`` of a block, in which lines that differ only in their digits stand once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain
from typing import Any, TypeAlias

from mlperf_pkg.record import Entry, Record, decode, decode_entries, decode_values

TOKEN = b":::MLLOG "
ALMOST_TOKEN = b":::MLL"
LINE = re.compile(TOKEN + b"(.*)")

_KEY = re.compile(rb'"key"\s*:\s*"[^"]*"')
_KEY_NAME = b'"key"'
_OTHER_NAMES = (b'"value"', b'"metadata"', b'"time_ms"')
_DIGITS = b"0123456789."
# On a shorter line no number is too long for Python's json, and nothing is nested too deeply.
_LONG_LINE_BYTES = 4300
_DEEP_LINE_BYTES = 1200  # without digits


Words: TypeAlias = frozenset[bytes]


class Batch:
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
        self.places = _places(keys)
        self.places.pop(None, None)

    places: dict[Any, list[int]]
    """Where the records of each key stand, in order; of those whose key is a text."""

    def records(self) -> Sequence[Record | None]:
        """What each line holds."""
        return self._records

    def some(self, places: Collection[int]) -> list[Record]:
        """Some records."""
        return [self._records[place] for place in places]  # type: ignore[misc]

    def times(self, places: Iterable[int] | None = None) -> Iterator[int | float]:
        """The times of some records, in milliseconds, or of all."""
        records = self._records
        chosen = records if places is None else (records[place] for place in places)
        return (record.time_ms for record in chosen if record)

    def values(self, places: Collection[int]) -> list[Any]:
        """The values of some records."""
        return [record.value for record in self.some(places)]

    def metadata(self, places: Collection[int]) -> list[Any]:
        """The metadata of some records."""
        return [record.metadata for record in self.some(places)]

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, Record | bytes]]:
        """Each line with one of ``words``: which, and its record, or its text if it holds none."""
        return ((words_in(raw, words), decode(raw) or raw) for raw in lines_with(words, self.text))


class PlainBatch(Batch):
    """Lines that are plain records all, decoded when they are asked for.

    ``elsewhere`` is what they hold besides their keys, each kind of line once.
    """

    def __init__(  # the records are not there yet
        self, text: bytes, first: int, entries: Sequence[Entry], elsewhere: bytes
    ) -> None:
        self.text = text
        self.first = first
        self.size = len(entries)
        self.unread = 0
        self.places = _places([entry.key for entry in entries])
        self._entries = entries
        self._elsewhere = elsewhere
        self._known: dict[int, Record] = {}

    def records(self) -> Sequence[Record | None]:
        return self.some(range(self.size))

    def some(self, places: Collection[int]) -> list[Record]:
        known = self._known
        if new := [place for place in places if place not in known]:
            entries = [self._entries[place] for place in new]
            values = decode_values([entry.value for entry in entries])
            metadata = decode_values([entry.metadata for entry in entries])
            for place, entry, value, meta in zip(new, entries, values, metadata, strict=True):
                known[place] = Record(entry.key, entry.time_ms, value, meta)
        return [known[place] for place in places]

    def times(self, places: Iterable[int] | None = None) -> Iterator[int | float]:
        entries = self._entries
        chosen = entries if places is None else (entries[place] for place in places)
        return (entry.time_ms for entry in chosen)

    def values(self, places: Collection[int]) -> list[Any]:
        return decode_values([self._entries[place].value for place in places])

    def metadata(self, places: Collection[int]) -> list[Any]:
        return decode_values([self._entries[place].metadata for place in places])

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, Record | bytes]]:
        if words_in(self._elsewhere, words):
            return super().mentions(words)
        held = {key: found for key in self.places if (found := _words_in_key(key, words))}
        several = [self.places[key] for key in held]
        places = several[0] if len(several) == 1 else sorted(chain.from_iterable(several))
        return ((held[record.key], record) for record in self.some(places))


class Outline:
    """What stands in a block of lines, lines that differ only in their digits standing once.

    It may hold what no line holds, such as a token that digits divide, but it lacks nothing that
    has no digits itself.
    """

    def __init__(self, text: bytes) -> None:
        """Look at a block of whole lines."""
        self._text = text
        lines = text.translate(None, _DIGITS).split(b"\n")
        if not lines[-1]:
            lines.pop()
        self._lines = len(lines)
        kinds = set(lines)
        self._kinds = [kind for kind in kinds if ALMOST_TOKEN in kind]
        self._joined = joined = b"\n".join(self._kinds)
        self._every = len(kinds) == len(self._kinds) and all(
            kind.startswith(TOKEN) for kind in kinds
        )
        # Those of two records on one line and of none on another do not make up for each other.
        self._one_key_each = joined.count(_KEY_NAME) == len(self._kinds) and all(
            [_KEY_NAME in kind for kind in self._kinds]  # noqa: C419 - twice as fast
        )

    @property
    def carriage_return(self) -> bool:
        """Whether a line with a record holds CR."""
        return b"\r" in self._joined

    @property
    def repeats(self) -> bool:
        """Whether a line may hold one of a record's own names twice, if all are records."""
        count = len(self._kinds)
        return not self._one_key_each or any(
            [self._joined.count(name) != count for name in _OTHER_NAMES]  # noqa: C419 - as above
        )

    @property
    def lookalikes(self) -> bool:
        """Whether a line may hold something like a token, besides one token or without one."""
        most = self._joined.count(ALMOST_TOKEN), self._joined.count(TOKEN)
        return most != (len(self._kinds), len(self._kinds))

    def batch(self, first: int) -> tuple[PlainBatch, bool] | None:
        """All records at once, and whether each line is one; None where a line is not plain."""
        joined = self._joined
        odd = self.lookalikes or self.repeats or b"\\" in joined or not joined.isascii()
        deep = max(map(len, self._kinds), default=0) > _DEEP_LINE_BYTES
        if odd or deep or _has_long_line(self._text):
            return None
        every = self._every
        # No line holds two records: where there are as many records as lines, each line is one.
        if every:
            entries = decode_entries(self._text.replace(TOKEN, b""))
            every = len(entries) == self._lines
        if not every:
            raws = LINE.findall(self._text)
            entries = decode_entries(b"\n".join(raws))
            if not len(entries) == len(raws) == self._text.count(ALMOST_TOKEN):
                return None
        return PlainBatch(self._text, first, entries, _KEY.sub(b"", joined)), every


def repeats_a_name(raw: bytes) -> bool:
    """Whether a line holds one of the names of a record's parts more than once."""
    return any(raw.count(name) > 1 for name in (_KEY_NAME, *_OTHER_NAMES))


def _places(keys: Iterable[Any]) -> dict[Any, list[int]]:
    places: dict[Any, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key].append(place)
    return places


def words_in(text: bytes, words: tuple[bytes, ...]) -> Words:
    """Those of ``words`` that stand somewhere in a text."""
    return frozenset([word for word in words if word in text])


@lru_cache(maxsize=4096)
def _words_in_key(key: str, words: tuple[bytes, ...]) -> Words:
    return words_in(key.encode(), words)


def _has_long_line(text: bytes) -> bool:
    """Whether a line with a token is long."""
    start = 0
    while len(text) - start > _LONG_LINE_BYTES:
        end = text.rfind(b"\n", start, start + _LONG_LINE_BYTES)
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
