"""From the bytes of a log to its records, with true line numbers and nothing dropped silently.

A record is a line that holds ``:::MLLOG {json}``, after any prefix. What the official parser
makes of a line decides its verdict, so this reader tokenises as it does: text is Latin-1, a
line ends at CR, LF or CRLF, the *last* token of a line starts its record, and everything after
it must be one JSON object. (mlperf_logging.compliance_checker.mlp_parser, all rulesets.)
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

import msgspec

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.log.block import (
    ALMOST_TOKEN,
    LINE,
    Block,
    ScannedBlock,
    end_of_line,
    lines_with,
    plain,
    repeats_a_name,
)
from mlperf_pkg.log.record import (
    TOKEN,
    Misfit,
    Record,
    decode,
    decode_closely,
    decode_plain,
    recover,
    repeated_names,
    shown,
)

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # where most logs tell all that they are asked before they are read
MAX_LINE_BYTES = 64 << 20
MAX_UNOFFICIAL = 1000
SOURCE = "submission_rules, Logging: one MLLOG JSON object a line"

_LIKE_TOKEN = re.compile(ALMOST_TOKEN + rb"(?!OG )[A-Za-z]*")
_NOT_JSON_NUMBER = re.compile(rb"\b(NaN|-?Infinity)\b")


class _Lines:
    """The lines on which the records of a log stand, found out only when asked for."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._chunk = b""
        self._first = 1
        self._counts = [0]  # how many records came before each block, and after the last
        self._blocks: list[range | array[int]] = []
        self._coming: Iterator[int] = iter(())

    def enter(self, chunk: bytes, text: bytes, count: int, *, every: bool) -> None:
        """Go on to the next block, of so many records.

        Each line of it is one (``every``), or they stand in ``text``, in which LF is for CR.
        """
        if self._blocks and isinstance(self._blocks[-1], array):
            self._blocks[-1].extend(self._coming)
        self._first, self._chunk = self.after, chunk
        self._counts.append(self._counts[-1] + count)
        if every:
            self._blocks.append(range(self._first, self._first + count))
        else:
            self._blocks.append(array("Q"))
            self._coming = self._walk(text)

    def of(self, number: int) -> int:
        """The line of a record by its number in the log."""
        at = bisect_right(self._counts, number) - 1
        lines, index = self._blocks[at], number - self._counts[at]
        if isinstance(lines, array) and index >= len(lines):
            lines.extend(islice(self._coming, index + 1 - len(lines)))
        return lines[index]

    def at(self, offset: int) -> int:
        """The line of an offset in the block."""
        return self._first + self._chunk.count(b"\n", 0, offset)

    @property
    def after(self) -> int:
        """The line after the block."""
        return self.at(len(self._chunk))

    def _walk(self, text: bytes) -> Iterator[int]:
        line, counted, offset = self._first, 0, text.find(TOKEN)
        while offset >= 0:
            line += self._chunk.count(b"\n", counted, offset)
            yield line
            counted, offset = offset, text.find(TOKEN, end_of_line(text, offset))


class LogReader(msgspec.Struct, eq=False):
    """Iterate over the records of one log.

    Every line with a token yields once: its ``Record``, or None where the official parser reads
    none; ``blocks`` yields the same, many at a time. While the loop stands at a record, ``line``
    is its 1-based line (lines counted by LF, as editors do). Whatever is odd is passed to
    ``report``; records that only a careful reader sees (before another token on a line, or
    followed by text) go to ``unofficial``. ``died`` tells why the official parser raises, if it
    does. Which lines mention some of ``words`` may be asked of its blocks.

    Memory is bounded by ``CHUNK_BYTES``; a longer line grows it up to ``MAX_LINE_BYTES``, beyond
    which the line is reported as not checked.
    """

    stream: BinaryIO
    path: str
    report: Callable[[Finding], None]
    words: tuple[bytes, ...] = ()
    died: str | None = None
    parse_errors: int = 0
    unofficial: list[Record] = []
    _at: int = 0
    _lines: _Lines = msgspec.field(default_factory=_Lines)

    def __iter__(self) -> Iterator[Record | None]:
        """Walk the log once."""
        for block in self.blocks():
            for self._at, record in enumerate(block.records(), block.first):
                yield record

    @property
    def line(self) -> int:
        """The 1-based line at which the loop stands."""
        return self.line_of(self._at)

    def line_of(self, number: int) -> int:
        """The 1-based line of a record by its number among those read so far, from 0."""
        return self._lines.of(number)

    def blocks(self) -> Iterator[Block]:
        """Walk the log once, by blocks of whole lines."""
        first = 0
        for chunk in _chunks(self.stream, CHUNK_BYTES, self._too_long):
            block = self._block(chunk, first)
            yield block
            first += block.size

    def _block(self, chunk: bytes, first: int) -> Block:
        text, found = chunk, plain(chunk, self.words)
        if not found and b"\r" in chunk:
            # CR ends a line too; putting LF in its place keeps every offset as it is.
            text = chunk.replace(b"\r", b"\n")
            found = plain(text, self.words)
        if found:
            every = found.every and text is chunk
            self._lines.enter(chunk, text, found.size, every=every)
            return ScannedBlock(text, first, found)
        tails: list[bytes] = LINE.findall(text)
        self._lines.enter(chunk, text, len(tails), every=False)
        self._report_lookalikes(text)
        raws, records = self._closely(first, tails, cut=not text.endswith(b"\n"))
        self._report_repeated_names(first, raws, records)
        return Block(text, first, records)

    def _closely(
        self, first: int, tails: Sequence[bytes], cut: bool
    ) -> tuple[list[bytes], list[Record | None]]:
        """Line by line; ``cut`` says that the last one has no end."""
        raws: list[bytes] = []
        records: list[Record | None] = []
        for self._at, tail in enumerate(tails, first):
            *shadowed, raw = tail.split(TOKEN)
            for each in shadowed:
                self._shadowed(each)
            raws.append(raw)
            at_end = cut and len(raws) == len(tails)
            records.append(decode_plain(raw) or self._record(raw, at_end))
        return raws, records

    def _record(self, raw: bytes, cut: bool) -> Record | None:
        record = decode_closely(raw)
        if isinstance(record, Misfit):
            self._misfit(raw, record, "the log ends inside this record" if cut else None)
            return None
        if literal := _NOT_JSON_NUMBER.search(raw):
            self._note("LOG106", f"{literal[0].decode()} is no JSON; Python reads it all the same")
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            self._note("LOG107", "bytes that are no UTF-8 are read as Latin-1")
        return record

    def _misfit(self, raw: bytes, misfit: Misfit, hint: str | None) -> None:
        if misfit.fatal:
            self.died = self.died or f"line {self.line}: {misfit.reason}"
        else:
            self.parse_errors += 1
        if misfit.recovered:
            self._keep(misfit.recovered)
            self._found(
                "LOG103",
                f"text after the record {shown(misfit.recovered.key)}: the checker refuses the log",
                basis=Basis.OFFICIAL,
                hint="keep other output off the lines of records",
            )
        else:
            self._found(
                misfit.code,
                f"this record cannot be read: {misfit.reason}",
                found=shown(raw.decode("latin-1").rstrip()),
                expected='{"time_ms": ..., "key": ..., "value": ..., "metadata": {...}}',
                hint=hint,
            )

    def _shadowed(self, raw: bytes) -> None:
        record = recover(raw.decode("latin-1").rstrip())
        if record:
            self._keep(record)
        self._warn(
            "LOG104",
            "two records on one line: the official parser reads only the last",
            found=record.key if record else shown(raw.decode("latin-1")),
            hint="several ranks write one file without line buffering",
        )

    def _keep(self, record: Record) -> None:
        if len(self.unofficial) < MAX_UNOFFICIAL:
            self.unofficial.append(record)

    def _report_repeated_names(
        self, first: int, raws: Sequence[bytes], records: Sequence[Record | None]
    ) -> None:
        for number, (raw, record) in enumerate(zip(raws, records, strict=True), first):
            if record and repeats_a_name(raw):
                self._at = number
                for name in repeated_names(raw):
                    text = f"the name {shown(name)} stands twice here: the last one counts"
                    self._warn("LOG105", text)

    def _report_lookalikes(self, text: bytes) -> None:
        for match in _LIKE_TOKEN.finditer(text):
            self._warn(
                "LOG108",
                f"{shown(match[0].decode())} looks like a record but is not read as one",
                expected=":::MLLOG and one space",
                line=self._lines.at(match.start()),
            )

    def _too_long(self) -> None:
        message = f"over {MAX_LINE_BYTES >> 20} MiB on one line: not checked"
        self._found("LOG109", message, line=self._lines.after)

    def _note(self, code: str, message: str) -> None:
        self._found(code, message, severity=Severity.NOTE, basis=Basis.ADVICE)

    def _warn(self, code: str, message: str, **more: Any) -> None:
        self._found(code, message, severity=Severity.WARNING, basis=Basis.ADVICE, **more)

    def _found(self, code: str, message: str, line: int | None = None, **more: Any) -> None:
        line = self.line if line is None else line
        self.report(
            Finding(code=code, message=message, path=self.path, line=line, source=SOURCE, **more)
        )


def _chunks(stream: BinaryIO, size: int, too_long: Callable[[], None]) -> Iterator[bytes]:
    """Blocks of whole lines; of a line that is too long, only its end."""
    rest, skipping = b"", False
    while block := stream.read(size):
        cut = len(block)
        if not block.endswith(b"\n"):  # as most logs do
            cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if cut:
            start = end_of_line(block, 0) if skipping else 0
            yield rest + block[start:cut]
            rest, skipping = block[cut:], False
        elif len(rest) + len(block) > MAX_LINE_BYTES:
            too_long()
            rest, skipping = b"", True
        elif not skipping:
            rest += block
    if rest:
        yield rest


def records_with(stream: BinaryIO, words: Iterable[bytes] = (TOKEN,)) -> Iterator[Record]:
    """The records on lines that hold one of ``words``, each read only when asked for."""
    for chunk in _chunks(stream, HEAD_BYTES, lambda: None):
        for raw in lines_with(words, chunk.replace(b"\r", b"\n")):
            if record := decode(raw):
                yield record


def first_values(stream: BinaryIO, keys: Sequence[str]) -> dict[str, Any]:
    """The first value that a log gives each of some keys, reading no further than needed."""
    found: dict[str, Any] = {}
    words = [*(key.encode() for key in keys), b"\\"]  # a key may be spelt with escapes
    for record in records_with(stream, words):
        if isinstance(record.key, str) and record.key in keys:
            found.setdefault(record.key, record.value)
            if len(found) == len(keys):
                break
    return found
