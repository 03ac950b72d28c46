"""Many lines of a log at once: found, checked and decoded no further than they are asked.

The lines of a log are alike: most differ only in their digits. What a line may hold besides a
plain record - two tokens, a name twice, a word that a checker looks for - is therefore looked for
but once in all those that do. ``_scan``, in C, does this where it could be compiled.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from mlperf_pkg.record import Entry, Record, decode, decode_entries, decode_values, joined

try:
    from mlperf_pkg._scan import scan
except ImportError:  # no compiler was there
    HAS_SCAN = False
else:
    HAS_SCAN = True

TOKEN = b":::MLLOG "
ALMOST_TOKEN = b":::MLL"
LINE = re.compile(TOKEN + b"(.*)")

_KEY = re.compile(rb'"key"\s*:\s*"[^"]*"')
_NAMES = (b'"key"', b'"value"', b'"metadata"', b'"time_ms"')
_ONCE = (ALMOST_TOKEN, TOKEN + b"{", *_NAMES)
_DIGITS = b"0123456789."
# On a shorter line no number is too long for Python's json, and nothing is nested too deeply.
_LONG_LINE_BYTES = 1200

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

    def metadata_text(self, places: Collection[int]) -> bytes | None:
        """The metadata of some records as a JSON array; None where that would have to be made."""
        del places
        return None

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, Record | bytes]]:
        """Each line with one of ``words``: which, and its record, or its text if it holds none."""
        return ((words_in(raw, words), decode(raw) or raw) for raw in lines_with(words, self.text))


class Plain(NamedTuple):
    """What a block of plain lines holds.

    ``every`` says that each line of the block begins with the token, ``scattered`` that a word
    asked for stands on a line with a token, but not in its key.
    """

    entries: list[Entry]
    places: dict[Any, list[int]]
    every: bool
    scattered: bool


def plain(text: bytes, words: tuple[bytes, ...]) -> Plain | None:
    """What a block of whole lines holds; None where they need a closer look, one by one.

    A line with something like a token is plain where it holds one token, each name of a record
    once, nothing but ASCII without CR and backslash, is not long, and is a record without blanks
    around: between ``}`` and ``{`` another record must begin, so none goes on on the next line.
    """
    return scanned(text, words) if HAS_SCAN else outlined(text, words)


def scanned(text: bytes, words: tuple[bytes, ...]) -> Plain | None:
    """``plain``, in C."""
    if not (found := scan(text, words)):
        return None
    body, places, every, scattered = found
    entries = decode_entries(body)
    # No line holds two records: where there are as many records as lines, each line is one.
    if len(entries) != sum(map(len, places.values())):
        return None
    return Plain(entries, places, every, scattered)


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
        or b"\\" in outlines
        or b"\r" in outlines
        or not outlines.isascii()
        or _has_long_line(text)
    ):
        return None
    every = len(kinds) == len(counting) and all(kind.startswith(TOKEN) for kind in kinds)
    if every:
        entries = decode_entries(text.replace(TOKEN, b""))
        every = len(entries) == len(lines)
    if not every:
        raws = LINE.findall(text)
        entries = decode_entries(b"\n".join(raws))
        if not len(entries) == len(raws) == text.count(ALMOST_TOKEN):
            return None
    places = _places([entry.key for entry in entries])
    return Plain(entries, places, every, bool(words_in(_KEY.sub(b'""', outlines), words)))


class PlainBatch(Batch):
    """Lines that are plain records all, decoded when they are asked for."""

    def __init__(self, text: bytes, first: int, found: Plain) -> None:
        """Lines of which the records were found."""
        self.text = text
        self.first = first
        self.size = len(found.entries)
        self.unread = 0
        self.places = found.places
        self._entries = found.entries
        self._scattered = found.scattered
        self._known: dict[int, Record] = {}

    def records(self) -> Sequence[Record | None]:
        """What each line holds."""
        return self.some(range(self.size))

    def some(self, places: Collection[int]) -> list[Record]:
        """Some records, each decoded once."""
        known = self._known
        if new := [place for place in places if place not in known]:
            entries = [self._entries[place] for place in new]
            values = decode_values(joined([entry.value for entry in entries]))
            metadata = decode_values(joined([entry.metadata for entry in entries]))
            for place, entry, value, meta in zip(new, entries, values, metadata, strict=True):
                known[place] = Record(entry.key, entry.time_ms, value, meta)
        return [known[place] for place in places]

    def times(self, places: Iterable[int] | None = None) -> Iterator[int | float]:
        """The times of some records, in milliseconds, or of all."""
        entries = self._entries
        chosen = entries if places is None else (entries[place] for place in places)
        return (entry.time_ms for entry in chosen)

    def values(self, places: Collection[int]) -> list[Any]:
        """The values of some records."""
        return decode_values(joined([self._entries[place].value for place in places]))

    def metadata(self, places: Collection[int]) -> list[Any]:
        """The metadata of some records."""
        return decode_values(self.metadata_text(places))

    def metadata_text(self, places: Collection[int]) -> bytes:
        """The metadata of some records, not decoded."""
        return joined([self._entries[place].metadata for place in places])

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, Record | bytes]]:
        """Each line with one of ``words``, which are some of those that were looked for."""
        if self._scattered:
            return super().mentions(words)
        held = {key: found for key in self.places if (found := _words_in_key(key, words))}
        several = [self.places[key] for key in held]
        places = several[0] if len(several) == 1 else sorted(chain.from_iterable(several))
        return ((held[record.key], record) for record in self.some(places))


def repeats_a_name(raw: bytes) -> bool:
    """Whether a line holds one of the names of a record's parts more than once."""
    return any(raw.count(name) > 1 for name in _NAMES)


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
