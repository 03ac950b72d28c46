"""Read the records of a log, with exact line numbers and nothing dropped silently.

A record is a line that holds ``:::MLLOG {json}``, after any prefix. The official verdict depends
on how the official parser splits lines, so this reader splits them alike: text is Latin-1, a line
ends at CR, LF or CRLF, the *last* token of a line starts its record, and everything after
it must be one JSON object. (mlperf_logging.compliance_checker.mlp_parser, all rulesets.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any, BinaryIO

from mlperf_pkg.findings import Finding
from mlperf_pkg.log.block import (
    HAS_SCAN,
    Block,
    DecodedBlock,
    count_lines,
    end_of_line,
    lines_with,
    scanner,
)
from mlperf_pkg.log.line_findings import LineFindings
from mlperf_pkg.log.line_numbers import LineNumbers
from mlperf_pkg.log.record import (
    TOKEN,
    Misfit,
    Record,
    decode,
    decode_closely,
    decode_lines_closely,
    decode_plain,
    decode_plain_lines,
    not_json_number,
    recover,
    repeated_names,
)

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # of the head of a log, which identifies most runs
MAX_LINE_BYTES = 1 << 20  # of one with a record; no record of a published log has a tenth of it
MAX_UNOFFICIAL = 1000
_SHOWN_BYTES = 512
OF_LINES = "LOG"
"""How the codes of findings about the lines of a log begin, whatever the rules of its run."""

_TAIL = re.compile(TOKEN + b"(.*)")
_ALMOST_TOKEN = b":::MLL"
_QUOTED_NAMES = (b'"key"', b'"value"', b'"metadata"', b'"time_ms"')


class LogReader:
    """Read the records of one log, once.

    ``report`` receives the findings. ``unofficial`` holds the records that only we can read:
    before another token on the same line, or followed by text. ``parse_errors`` counts the lines
    that the official parser reports as errors; ``crash`` is the reason why it raises instead, None
    if it does not. ``head`` holds the first bytes of the log once a block was read.

    Memory is bounded by ``CHUNK_BYTES`` and ``MAX_LINE_BYTES``; a longer line with a token is
    reported as not checked.
    """

    def __init__(
        self,
        stream: BinaryIO,
        path: str,
        report: Callable[[Finding], None],
        words: tuple[bytes, ...] = (),
    ) -> None:
        """Start at the head of a log.

        ``path`` is its path in findings; ``words`` are those that ``Block.mentions`` may look for.
        """
        self.crash: str | None = None
        self.parse_errors = 0
        self.unofficial: list[Record] = []
        self.head = b""
        self._stream = stream
        self._scanner = scanner(words) if HAS_SCAN else None
        self._lines = LineNumbers()
        self._findings = LineFindings(path, report, self._lines)

    def __iter__(self) -> Iterator[Record | None]:
        """Yield the record of each line with a token, None where the official parser reads none."""
        return chain.from_iterable(block.records() for block in self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the log as blocks of whole lines."""
        first = 0
        for chunk in _chunks(
            self._stream, CHUNK_BYTES, lambda: self._findings.too_long(MAX_LINE_BYTES)
        ):
            self.head = self.head or chunk[:_SHOWN_BYTES]
            block = self._block(chunk, first)
            yield block
            first += block.size

    def line_of(self, number: int) -> int:
        """Return the 1-based line of a record by its number among those read so far, from 0.

        Lines are counted by LF, as editors do.
        """
        return self._lines.of(number)

    def _block(self, chunk: bytes, first: int) -> Block:
        # CR ends a line too; putting LF in its place keeps every offset as it is.
        has_cr = b"\r" in chunk
        text = chunk.replace(b"\r", b"\n") if has_cr else chunk
        block = self._scanner.scan(text, first) if self._scanner else None
        if block:
            contiguous = block.contiguous and not has_cr
            self._lines.enter(chunk, text, block.size, contiguous=contiguous)
            return block
        tails: list[bytes] = _TAIL.findall(text)
        contiguous = len(tails) == count_lines(text) and not has_cr
        self._lines.enter(chunk, text, len(tails), contiguous=contiguous)
        return DecodedBlock(text, first, self._read(text, tails, first))

    # ---- line by line ---------------------------------------------------------------------

    def _read(self, text: bytes, tails: Sequence[bytes], first: int) -> Sequence[Record | None]:
        """Return the record of each line; ``tails`` is what follows their first tokens."""
        records: Sequence[Record | None] | None = None
        if text.count(_ALMOST_TOKEN) != len(tails):  # two tokens on a line, or what looks like one
            self._findings.lookalikes(text)
        elif text.isascii():
            records = decode_plain_lines(tails)
        if records is None:
            contents = decode_lines_closely(tails)
            if contents is None:
                contents = list(map(self._read_line, tails, count(first)))
            records = [content if isinstance(content, Record) else None for content in contents]
            self._count_misfits(tails, contents, first, is_cut=not text.endswith(b"\n"))
        if _may_repeat_names(text, records):
            self._report_repeated_names(tails, records, first)
        return records

    def _read_line(self, tail: bytes, number: int) -> Record | Misfit:
        *shadowed, raw = tail.split(TOKEN)
        for text in shadowed:
            self._keep_shadowed(text.decode("latin-1"), number)
        return decode_plain(raw) or self._read_closely(raw, number)

    def _read_closely(self, raw: bytes, number: int) -> Record | Misfit:
        content = decode_closely(raw)
        if isinstance(content, Misfit):
            return content
        if number_name := not_json_number(raw):
            self._findings.not_json(number_name, number)
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            self._findings.not_utf8(number)
        return content

    def _keep_shadowed(self, text: str, number: int) -> None:
        """Keep and report what is between two tokens of a line: the official parser skips it."""
        record = recover(text.rstrip())
        if record:
            self._keep_unofficial(record)
        self._findings.shadowed(record, text, number)

    def _keep_unofficial(self, record: Record) -> None:
        if len(self.unofficial) < MAX_UNOFFICIAL:
            self.unofficial.append(record)

    def _count_misfits(
        self,
        tails: Sequence[bytes],
        contents: Sequence[Record | Misfit],
        first: int,
        *,
        is_cut: bool,
    ) -> None:
        """Count and report the lines without a record."""
        alike: dict[tuple[str, str], dict[int, Misfit]] = {}
        for index, misfit in enumerate(contents):
            if not isinstance(misfit, Misfit):
                continue
            if not misfit.fatal:
                self.parse_errors += 1
            elif self.crash is None:
                self.crash = f"line {self.line_of(first + index)}: {misfit.text}"
            if misfit.recovered:
                self._keep_unofficial(misfit.recovered)
                self._findings.followed(misfit.recovered, first + index)
            else:
                alike.setdefault((misfit.code, misfit.reason), {})[index] = misfit
        for misfits in alike.values():
            self._findings.unread(tails, misfits, first, is_cut=is_cut)

    def _report_repeated_names(
        self, tails: Sequence[bytes], records: Sequence[Record | None], first: int
    ) -> None:
        for number, (tail, record) in enumerate(zip(tails, records, strict=True), first):
            raw = tail.rpartition(TOKEN)[2]
            if record and any(raw.count(name) > 1 for name in _QUOTED_NAMES):
                for name in repeated_names(raw):
                    self._findings.repeated_name(name, number)


def _may_repeat_names(text: bytes, records: Sequence[Record | None]) -> bool:
    """Return whether a line may hold the name of a part of its record twice.

    Every record has each of these names. So where no name is spelt with escapes and each appears
    as often as there are records, none appears twice in one of them.
    """
    if b"\\" in text or None in records:
        return True
    return any(text.count(name) != len(records) for name in _QUOTED_NAMES)


def _chunks(stream: BinaryIO, size: int, report_too_long: Callable[[], None]) -> Iterator[bytes]:
    """Yield chunks of whole lines, without the text of lines that are too long.

    Of these, the ones with a token are reported.
    """
    rest, skipped = b"", _Skipped()
    while chunk := stream.read(size):
        if skipped.is_open or len(rest) + len(chunk) > MAX_LINE_BYTES:
            end = skipped.take(rest, chunk)
            if end is not None:
                rest, chunk = b"", chunk[end:]
            if skipped.is_open:
                continue
            if skipped.has_token:
                report_too_long()
            skipped = _Skipped()
        cut = len(chunk)
        if not chunk.endswith(b"\n"):
            cut = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
    if skipped.has_token:
        report_too_long()
    if rest:
        yield rest


class _Skipped:
    """A line that is too long, of which only whether it holds a token is kept."""

    def __init__(self) -> None:
        self.is_open = self.has_token = False
        self._last = b""

    def take(self, rest: bytes, chunk: bytes) -> int | None:
        """Take the next part of a line, ``rest`` and the first line of ``chunk``.

        Return the offset of its end in the chunk; None if the line is not too long.
        """
        end = end_of_line(chunk, 0)
        if self.is_open or len(rest) + end > MAX_LINE_BYTES:
            cr = chunk.find(b"\r", 0, end)
            end = end if cr < 0 else cr
        if not self.is_open and len(rest) + end <= MAX_LINE_BYTES:
            return None
        text = self._last + rest + chunk[:end]
        self.has_token = self.has_token or TOKEN in text
        self.is_open, self._last = end == len(chunk), text[-len(TOKEN) :]
        return end


# ---- without findings ---------------------------------------------------------------------


def records_with(stream: BinaryIO, words: Iterable[bytes] = (TOKEN,)) -> Iterator[Record]:
    """Yield the records on lines that hold any of ``words``; the stream is read as needed."""
    for chunk in _chunks(stream, HEAD_BYTES, lambda: None):
        for raw in lines_with(words, chunk.replace(b"\r", b"\n")):
            if record := decode(raw):
                yield record


def first_values(stream: BinaryIO, keys: Sequence[str]) -> dict[str, Any]:
    """Return the first value of each of ``keys`` in a log, reading no further than necessary."""
    values: dict[str, Any] = {}
    words = [*(key.encode() for key in keys), b"\\"]  # a key may be spelt with escapes
    for record in records_with(stream, words):
        if isinstance(record.key, str) and record.key in keys:
            values.setdefault(record.key, record.value)
            if len(values) == len(keys):
                break
    return values
