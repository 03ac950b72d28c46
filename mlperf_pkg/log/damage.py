"""A damaged log, read once more: every record that is certain, and text that cannot be read.

Certain are records before other text or another record, those behind a damaged marker if no equal
record is intact, and of records that several processes wrote alike, one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from marshal import dumps
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.log.block import spans_with
from mlperf_pkg.log.record import (
    QUOTED_NAMES,
    TIME_NAME,
    TOGETHER_MS,
    TOKEN,
    Misfit,
    Record,
    decode,
    decode_line,
    raw_records,
    record_in,
    tails_of,
)

_MOST_GAPS = 1000  # of one log
_MOST_TEXT = 10_000  # bytes of a gap
_MOST_OF = 0.75  # the share of records that processes write alike, at least
_SURE = 4  # characters of a key after other text on the same line
_KEY = r'key"\s*:\s*"(?=(\w+)"|)'
_find_keys = re.compile(_KEY).findall
# A name before that of a value, in text read backwards.
_find_backwards = re.compile(r'"eulav"\s*,\s*"(?!eulav")(\w++)"').findall
_VALUE_FOLLOWS = r'"\s*,\s*"value"'
_LIKE_NAME = b"mllog"  # of a marker, in lower case
_LIKE_COLONS = b":::ml"
_DAMAGED = rb"(?i)mllog[:=]{0,3}(?=[ \t]*\{)"
_GLUED = rb"[:\w]{0,40}\Z"  # to the front of a damaged marker
_OLD = rb":::ML(?:L(?!OG )|Pv)[\w.]*"


# ---- lines that are almost those of records -----------------------------------------------


class NearMiss(Struct, frozen=True):
    """A line at an ``offset`` of a block that is almost that of a record, and holds no marker.

    ``marker`` is what the line has in its place, at ``place``; it is empty if nothing is there.
    ``start`` is where the JSON of the record starts, None for a record without JSON.
    """

    offset: int
    line: bytes
    marker: str
    place: int
    start: int | None = None

    @property
    def has_record(self) -> bool:
        """Whether the line has a whole record."""
        if self.start is None:
            return False
        return record_in(self.line[self.start :].decode("latin-1")) is not None


def near_misses(text: bytes) -> Iterator[NearMiss]:
    """Yield the lines that are almost those of records, and hold no marker."""
    # Without markers, what is like one is rare, and to search for rare text is fast.
    unmarked = text.replace(TOKEN, bytes(len(TOKEN))).lower()
    for start, end in spans_with((_LIKE_NAME, _LIKE_COLONS, TIME_NAME), unmarked):
        near_miss = _near_miss(start, text[start:end])
        if near_miss:
            yield near_miss


def _near_miss(offset: int, line: bytes) -> NearMiss | None:
    if TOKEN in line:
        return None
    damaged = re.search(_DAMAGED, line)
    if damaged:
        glued = re.findall(_GLUED, line[max(0, damaged.start() - 40) : damaged.start()])
        place = damaged.start() - len(glued[0])
        marker = line[place : damaged.end()].decode("latin-1")
        return NearMiss(offset, line, marker, place, line.find(b"{", damaged.end()))
    old = re.search(_OLD, line)
    if old:
        return NearMiss(offset, line, old[0].decode("latin-1"), old.start())
    start = line.find(b"{")
    if start >= 0 and all(name in line for name in QUOTED_NAMES):
        return NearMiss(offset, line, "", start, start)
    return None


# ---- text that cannot be read -------------------------------------------------------------


class Gap(Struct, frozen=True, eq=False):
    """Text of a log that begins like a record on a ``line`` and cannot be read as one.

    ``names`` are the keys in it; the empty name stands for keys that are not whole, and ``tails``
    are the texts after each of those.
    """

    line: int
    names: Set[str]
    tails: Sequence[str]

    def holds_any(self, wanted: Set[str], keys: Iterable[str]) -> bool:
        """Return whether it names one of the ``wanted`` keys, or begins like it.

        A part of a key begins like the one of all ``keys`` that is most like it.
        """
        if not self.names.isdisjoint(wanted):
            return True
        for tail in self.tails:
            has_value = re.search(_VALUE_FOLLOWS, tail)
            for key in wanted:
                if _is_joined(key, tail) or (not has_value and _is_likest(key, tail, keys)):
                    return True
        return False


def _is_likest(key: str, tail: str, keys: Iterable[str]) -> bool:
    """Return whether the text begins like a key more than like any other one."""
    others = [_alike(other, tail) for other in keys if other != key]
    return _alike(key, tail) > max(others, default=0)


def _alike(key: str, tail: str) -> int:
    """Return how many of their first characters are the same."""
    length = 0
    while length < len(key) and tail.startswith(key[: length + 1]):
        length += 1
    return length


def _is_joined(key: str, tail: str) -> bool:
    """Return whether the text begins with a part of a key, and has the rest before a value."""
    longest = min(_alike(key, tail), len(key) - 1)
    for length in range(longest, 0, -1):
        rest = re.search(re.escape(key[length:]) + _VALUE_FOLLOWS, tail[length:])
        if rest:
            before = tail[length : length + rest.start()]
            return before.endswith("\n") or len(key) - length >= _SURE
    return False


# ---- the whole log ------------------------------------------------------------------------


class DamagedLog(Struct, frozen=True):
    """What a damaged log holds.

    ``gaps`` are the texts that cannot be read, ``named`` those with each name, ``lines`` those on
    which the official parser reads a record, by its key. ``text`` is the log with each record that
    is certain on a line of its own, once; CR separates what was one line, so that lines keep their
    numbers. It is None if that is the log as it is. ``processes`` wrote each record; ``line`` is
    the first that repeats one.
    """

    gaps: tuple[Gap, ...]
    named: Mapping[str, list[Gap]]
    lines: Mapping[str, list[int]]
    text: bytes | None = None
    processes: int = 1
    line: int = 1


def read_gaps(text: bytes, first_line: int) -> DamagedLog:
    """Find what cannot be read of a log, which begins on the line ``first_line`` of its file."""
    reader = _GapReader(first_line)
    for part in text.splitlines(keepends=True):
        reader.take(part.rstrip(b"\r\n"))
        reader.number += part.endswith(b"\n")
    return reader.log()


def read_records(log: DamagedLog, text: bytes, first_line: int) -> DamagedLog:
    """Return a damaged log with the text of its records, once each."""
    pieces = _pieces_of(text, first_line)
    processes, repeats = _repeats(pieces)
    for piece in repeats:
        piece.text = b""
    whole = b"".join([piece.text + piece.end for piece in pieces])
    line = repeats[0].number if repeats else 1
    return replace(log, text=None if whole == text else whole, processes=processes, line=line)


def may_be_of_processes(text: bytes) -> bool:
    """Return whether several processes may write every record of a log, without decoding them.

    They do not if too many of its values, which are compared as text, differ: of the records that
    ``_repeats`` needs to find alike, at most every second one has a new value.
    """
    records = raw_records(b"\n".join(tails_of(text)))
    values = {(record.key, bytes(record.value), bytes(record.metadata)) for record in records}
    return len(values) <= (1 - _MOST_OF / 2) * len(records)


class _GapReader:
    """The reader of the gaps of a log, line by line; ``number`` is that of the line."""

    def __init__(self, number: int) -> None:
        """Start at the head of a log."""
        self.number = number
        self._gaps: list[tuple[int, list[bytes]]] = []
        self._lines: dict[str, list[int]] = {}
        self._open: list[bytes] | None = None  # the texts of the last gap
        self._room = 0  # bytes that it may still take

    def take(self, line: bytes) -> None:
        """Read a line; its last record, which alone the official parser reads, is not a gap."""
        before, token, raw = line.rpartition(TOKEN)
        if not token:
            self._take_other(line)
            return
        self._open = None
        if before and TOKEN in before:
            self._begin(before.partition(TOKEN)[2].replace(TOKEN, b""))
        record = decode(raw)
        if record is None:
            self._begin(raw)
        elif isinstance(record.key, str):
            self._lines.setdefault(record.key, []).append(self.number)

    def _take_other(self, line: bytes) -> None:
        """Take a line without a marker."""
        text = line.lower()
        is_marked = _LIKE_NAME in text or _LIKE_COLONS in text
        if is_marked or (TIME_NAME in text and not self._open):
            self._begin(line)
        elif line and self._open and self._room > 0:
            self._open.append(line)
            self._room -= len(line)

    def _begin(self, text: bytes) -> None:
        self._open = [text]
        self._room = _MOST_TEXT - len(text)
        if len(self._gaps) < _MOST_GAPS:
            self._gaps.append((self.number, self._open))

    def log(self) -> DamagedLog:
        """Return what was read."""
        find_keys = cache(_keys_in)  # many processes may write the same
        gaps = [Gap(line, *find_keys(b"\n".join(texts))) for line, texts in self._gaps]
        named: dict[str, list[Gap]] = {}
        for gap in gaps:
            for name in gap.names:
                named.setdefault(name, []).append(gap)
        return DamagedLog(tuple(gaps), named, self._lines)


def _keys_in(raw: bytes) -> tuple[Set[str], Sequence[str]]:
    """Return the ``names`` and the ``tails`` of a gap, by the text after its marker."""
    # As in a string of JSON, or in Python's repr; str.translate takes ten times as long.
    text = raw.decode("latin-1").replace("\\", "").replace("'", '"')
    # Read backwards, the search begins at each value, not at each quote.
    before_values = [name[::-1] for name in _find_backwards(text[::-1])]
    names = {*_find_keys(text), *before_values}
    if "" not in names:
        return names, ()
    matches = re.finditer(_KEY, text)
    return names, [text[match.end() :] for match in matches if not match[1]]


class _Piece(Struct):
    """A part of the line ``number`` with at most one record, and what stands after it."""

    text: bytes
    number: int
    content: Record | Misfit | None = None
    end: bytes = b"\r"


def _pieces_of(text: bytes, number: int) -> list[_Piece]:
    """Return the pieces of a log whose first line has this number, with what can be repaired."""
    pieces: list[_Piece] = []
    intact: list[Record | Misfit | None] = []
    almost: list[tuple[_Piece, list[_Piece]]] = []  # each with what it may become
    for part in text.splitlines(keepends=True):
        line = part.rstrip(b"\r\n")
        pieces += _pieces(line, number)
        last = pieces[-1]
        last.end = part[len(line) :]
        intact.append(last.content)
        near_miss = _near_miss(0, line) if b"{" in line else None
        if near_miss and near_miss.start is not None:
            marked = line[: near_miss.place] + TOKEN + line[near_miss.start :]
            almost.append((last, _pieces(marked, number)))
        number += last.end.count(b"\n")
    if almost:
        _repair(almost, set(map(repr, intact)))
    return pieces


def _repair(almost: Iterable[tuple[_Piece, list[_Piece]]], intact: Set[str]) -> None:
    """Repair each line with a damaged marker and a whole record of which none is intact."""
    for piece, pieces in almost:
        record = pieces[0].content
        if isinstance(record, Record) and repr(record) not in intact:
            piece.content = record
            piece.text = b"\r".join([part.text for part in pieces])


def _pieces(line: bytes, number: int) -> list[_Piece]:
    """Return a line in pieces: each record that is whole, and what stands before or after it."""
    prefix, *raws = line.split(TOKEN)
    if not raws:
        return [_Piece(line, number)]
    pieces = []
    for raw in raws:
        text = prefix + TOKEN + raw
        prefix = b""
        content = decode_line(raw) if b"}" in raw else None
        if isinstance(content, Misfit) and content.recovered:
            record, size = content.recovered
            end = len(text) - len(raw) + size
            pieces.append(_Piece(text[:end], number, record))
            text = text[end:]
        pieces.append(_Piece(text, number, content))
    return pieces


def _text_of(record: Record) -> bytes:
    """Return what a record says, but its time, as text that only equal records share."""
    content = (record.key, record.value, record.metadata)
    try:
        return dumps(content, 0)  # faster than repr
    except ValueError:  # nested too deeply
        return repr(content).encode()


def _repeats(pieces: Iterable[_Piece]) -> tuple[int, list[_Piece]]:
    """Return how many processes write every record, and the pieces that repeat an earlier one.

    Equal records are those of processes if they were written within a second of each other.
    """
    groups: dict[bytes, tuple[float, int]] = {}  # the last of each value: time and size
    sizes: Counter[int] = Counter()  # how many records are in groups of each size
    repeats: list[_Piece] = []
    for piece in pieces:
        record = piece.content
        if not isinstance(record, Record):
            continue
        value = _text_of(record)
        start_ms, size = groups.get(value, (-inf, 0))
        if abs(record.time_ms - start_ms) <= TOGETHER_MS:
            groups[value] = (start_ms, size + 1)
            repeats.append(piece)
        else:
            groups[value] = (record.time_ms, 1)
            sizes[size] += size
    for _, size in groups.values():
        sizes[size] += size
    for processes, number in sizes.most_common(1):
        if processes > 1 and number >= _MOST_OF * sizes.total():
            return processes, repeats
    return 1, []
