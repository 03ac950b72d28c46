"""Many lines of a log at once, decoded no further than they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain
from typing import Any

from mlperf_pkg.log.block import (
    ITSELF,
    METADATA,
    TIME,
    TOKEN,
    VALUE,
    Plain,
    Words,
    end_of_line,
    places_of,
    words_in,
)
from mlperf_pkg.log.record import Record, decode, decode_records, decode_values


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
        self.places = places_of(keys)
        self.places.pop(None, None)

    places: dict[Any, list[int]]
    """Where the records of each key stand, in order; of those whose key is a text."""

    def records(self) -> Sequence[Record | None]:
        """What each line holds."""
        return self._records

    def some(self, places: Collection[int]) -> list[Record]:
        """Some records."""
        return [self._records[place] for place in places]  # type: ignore[misc]

    def times(self, places: Collection[int]) -> list[int | float]:
        """The times of some records, in milliseconds."""
        return [record.time_ms for record in self.some(places) if record]

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


class PlainBatch(Batch):
    """Lines that are plain records all, decoded when they are asked for."""

    def __init__(self, text: bytes, first: int, found: Plain) -> None:
        """Lines of which the records were found."""
        self.text = text
        self.first = first
        self.size = found.size
        self.unread = 0
        self.places = found.places
        self._array = found.array
        self._scattered = found.scattered
        self._known: dict[int, Record] = {}

    def records(self) -> Sequence[Record | None]:
        """What each line holds."""
        return self.some(range(self.size))

    def some(self, places: Collection[int]) -> list[Record]:
        """Some records, each decoded once."""
        known = self._known
        if new := [place for place in places if place not in known]:
            records = decode_records(self._array(ITSELF, new))
            known.update(zip(new, records, strict=True))
        return [known[place] for place in places]

    def times(self, places: Collection[int]) -> list[int | float]:
        """The times of some records, in milliseconds."""
        return decode_values(self._array(TIME, places))

    def values(self, places: Collection[int]) -> list[Any]:
        """The values of some records."""
        return decode_values(self._array(VALUE, places))

    def metadata(self, places: Collection[int]) -> list[Any]:
        """The metadata of some records."""
        return decode_values(self.metadata_text(places))

    def metadata_text(self, places: Collection[int]) -> bytes:
        """The metadata of some records, not decoded."""
        return self._array(METADATA, places)

    def mentions(self, words: tuple[bytes, ...]) -> Iterator[tuple[Words, Record | bytes]]:
        """Each line with one of ``words``, which are some of those that were looked for."""
        if self._scattered:
            return super().mentions(words)
        held = {key: found for key in self.places if (found := _words_in_key(key, words))}
        several = [self.places[key] for key in held]
        places = several[0] if len(several) == 1 else sorted(chain.from_iterable(several))
        return ((held[record.key], record) for record in self.some(places))


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
