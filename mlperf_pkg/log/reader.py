"""Read the records of a log, with exact line numbers and nothing dropped silently.

A record is a line that holds ``:::MLLOG {json}``, after any prefix. The official verdict depends
on how the official parser splits lines, so this reader splits them alike: text is Latin-1, a line
ends at CR, LF or CRLF, the *last* token of a line starts its record, and everything after
it must be one JSON object. (mlperf_logging.compliance_checker.mlp_parser, all rulesets.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

from mlperf_pkg.findings import Finding
from mlperf_pkg.log.block import HAS_SCAN, Block, end_of_line, lines_with, scanner, spans_with
from mlperf_pkg.log.lines import LineNumbers
from mlperf_pkg.log.record import (
    QUOTED_NAMES,
    TIME_NAME,
    TOKEN,
    Misfit,
    Record,
    decode,
    decode_line,
    decode_lines,
    not_json_number,
    printable,
    record_in,
    repeated_names,
    tails_of,
)

if TYPE_CHECKING:
    from mlperf_pkg.log.line_findings import LineFindings

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # of the head of a log, which identifies most runs
MAX_LINE_BYTES = 1 << 20  # of one with a record; no record of a published log has a tenth of it
MAX_UNOFFICIAL = 1000
_SHOWN_BYTES = 512
_TOGETHER = 32  # lines that are decoded at once
OF_LINES = "LOG"
"""How the codes of findings about the lines of a log begin, whatever the rules of its run."""

_ALMOST_TOKEN = b":::ML"


class LogReader:
    """Read the records of one log, once.

    ``report`` receives the findings. ``unofficial`` holds the records that only we can read:
    before another token on the same line, or followed by text; ``damaged`` says that there are
    whole records behind a damaged marker. ``parse_errors`` counts the lines
    that the official parser reports as errors; ``crash`` is the reason why it raises instead, None
    if it does not. ``is_cut`` says that the log ends inside a record. ``head`` holds the first
    bytes of the log once a block was read.

    Memory is bounded by ``CHUNK_BYTES`` and ``MAX_LINE_BYTES``; a longer line with a token is
    reported as not checked.
    """

    def __init__(
        self,
        stream: BinaryIO,
        path: str,
        report: Callable[[Finding], None],
        words: tuple[bytes, ...] = (),
        first_line: int = 1,
    ) -> None:
        """Start at the head of a log.

        ``path`` is its path in findings; ``words`` are those that ``Block.mentions`` may look for.
        ``first_line`` is the number of its first line in the file.
        """
        self.crash: str | None = None
        self.parse_errors = 0
        self.is_cut = False
        self.unofficial: list[Record] = []
        self.damaged = False
        self.head = b""
        self._stream = stream
        self._scanner = scanner(words) if HAS_SCAN else None
        self._lines = LineNumbers(first_line)
        self._path = path
        self._report = report

    def __iter__(self) -> Iterator[Record | None]:
        """Yield the record of each line with a token, None where the official parser reads none."""
        return chain.from_iterable(block.records() for block in self.blocks())

    @cached_property
    def _findings(self) -> LineFindings:
        from mlperf_pkg.log.line_findings import LineFindings  # noqa: PLC0415 - most logs need none

        return LineFindings(self._path, self._report, self._lines)

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
        text = chunk.replace(b"\r", b"\n")
        block = self._scanner.scan(text, first) if self._scanner else None
        if block and not block.stray:
            is_range = block.contiguous and text == chunk
            self._lines.enter(chunk, block.size, None if is_range else block.offsets)
            return block
        tails = tails_of(text)
        starts = (start for start, _ in spans_with([TOKEN], text))
        self._lines.enter(chunk, len(tails), starts)
        return Block(text, first, self._read(text, tails, first))

    # ---- line by line ---------------------------------------------------------------------

    def _read(self, text: bytes, tails: Sequence[bytes], first: int) -> Sequence[Record | None]:
        """Return the record of each line; ``tails`` are the strings after their first tokens."""
        counts = set(map(text.count, (_ALMOST_TOKEN, TIME_NAME)))
        has_others = text.count(b"\n", 0, -1) >= len(tails)  # lines without a token
        if has_others and counts != {len(tails)}:
            self.damaged = self._findings.lookalikes(text) or self.damaged
        contents = self._contents(tails, first)
        items = enumerate(contents)
        misfits = {index: content for index, content in items if isinstance(content, Misfit)}
        records = [None if isinstance(content, Misfit) else content for content in contents]
        last = misfits.get(len(tails) - 1)
        ends_in_record = TOKEN in text[text.rfind(b"\n") + 1 :]  # without a line end
        self.is_cut = bool(last and last.column and not last.recovered and ends_in_record)
        self._count_misfits(text, misfits, first, tails)
        if misfits or _may_repeat_names(text, len(records)):
            self._report_repeated_names(tails, records, first)
        return records

    def _contents(self, tails: Sequence[bytes], first: int) -> list[Record | Misfit]:
        """Return what each line holds, decoding many at once and those of the same text once."""
        decoded: dict[bytes, Record | Misfit] = {}
        distinct = list(dict.fromkeys(tails))  # many processes may write the same
        for start in range(0, len(distinct), _TOGETHER):
            lines = distinct[start : start + _TOGETHER]
            decoded.update(zip(lines, decode_lines(lines), strict=False))
        numbered = enumerate(tails, first)
        return [decoded.get(tail) or self._read_line(tail, number) for number, tail in numbered]

    def _read_line(self, tail: bytes, number: int) -> Record | Misfit:
        *shadowed, raw = tail.split(TOKEN)
        for between in shadowed:  # which the official parser skips
            text = between.decode("latin-1").strip()
            whole = record_in(text)
            record = whole[0] if whole else None
            if record:
                self._keep_unofficial(record)
            self._findings.before_another(number, record, text)
        content = decode_line(raw)
        if isinstance(content, Record):
            name = not_json_number(raw)
            if name:
                self._findings.at(number, "LOG106", name)
            try:
                raw.decode("utf-8")
            except UnicodeDecodeError:
                self._findings.at(number, "LOG107")
        return content

    def _keep_unofficial(self, record: Record) -> None:
        if len(self.unofficial) < MAX_UNOFFICIAL:
            self.unofficial.append(record)

    def _count_misfits(
        self, text: bytes, misfits: dict[int, Misfit], first: int, tails: Sequence[bytes]
    ) -> None:
        """Count and report the lines without a record."""
        alike: dict[str, dict[int, Misfit]] = {}
        broken: dict[int, Misfit] = {}
        for index, misfit in misfits.items():
            if not misfit.fatal:
                self.parse_errors += 1
            elif self.crash is None:
                line = self.line_of(first + index)
                self.crash = f"line {line}: this record cannot be read, as {misfit.text}"
            if misfit.recovered:
                record, end = misfit.recovered
                self._keep_unofficial(record)
                text_after = tails[index].rpartition(TOKEN)[2].decode("latin-1")[end:].strip()
                self._findings.text_after(first + index, record, text_after)
            elif self.is_cut and index == len(tails) - 1:
                self._findings.cut_off(first + index, tails[index])
            elif misfit.column:
                broken[index] = misfit
            else:
                alike.setdefault(misfit.reason, {})[index] = misfit
        if broken:
            self._findings.damaged(text, broken, first)
        for group in alike.values():
            self._findings.unread(tails, group, first)

    def _report_repeated_names(
        self, tails: Sequence[bytes], records: Sequence[Record | None], first: int
    ) -> None:
        for number, (tail, record) in enumerate(zip(tails, records, strict=True), first):
            if record is None:
                continue
            raw = tail.rpartition(TOKEN)[2]
            if max(map(raw.count, QUOTED_NAMES)) > 1:
                for name in repeated_names(raw):
                    self._findings.at(number, "LOG105", printable(name))


def _may_repeat_names(text: bytes, record_count: int) -> bool:
    """Return whether a line may hold the name of a part of its record twice.

    Every record has each of these names. So where no name is spelt with escapes and each appears
    as often as there are records, none appears twice in one of them.
    """
    return b"\\" in text or any(text.count(name) != record_count for name in QUOTED_NAMES)


def _chunks(stream: BinaryIO, size: int, report_too_long: Callable[[], None]) -> Iterator[bytes]:
    """Yield chunks of whole lines, without the text of lines that are too long.

    Of these, the ones with a token are reported.
    """
    rest = b""
    while chunk := stream.read(size):
        # Search for the end of the line only if the line may be too long: most logs are smaller.
        if len(rest) + len(chunk) > MAX_LINE_BYTES < len(rest) + _first_end(chunk):
            chunk = _skip_line(rest + chunk, stream, size, report_too_long)
            rest = b""
        cut = chunk.rfind(b"\n") + 1
        cut = max(cut, chunk.rfind(b"\r", cut) + 1)
        if cut:
            yield rest + chunk[:cut]
            rest = b""
        rest += chunk[cut:]
    if rest:
        yield rest


def _skip_line(
    text: bytes, stream: BinaryIO, size: int, report_too_long: Callable[[], None]
) -> bytes:
    """Return the text from the end of its first line on; read the stream as far as that end.

    If the line has a token, report that it is too long.
    """
    has_token = False
    while True:
        end = _first_end(text)
        has_token = has_token or TOKEN in text[:end]
        chunk = stream.read(size) if end == len(text) else b""
        if not chunk:
            break
        text = text[-len(TOKEN) :] + chunk
    if has_token:
        report_too_long()
    return text[end:]


def _first_end(text: bytes) -> int:
    return end_of_line(text.replace(b"\r", b"\n"), 0)


# ---- without findings ---------------------------------------------------------------------


def records_with(stream: BinaryIO, words: Iterable[bytes] = (TOKEN,)) -> Iterator[Record]:
    """Yield the records on lines that hold any of ``words``; the stream is read as needed."""
    for chunk in _chunks(stream, HEAD_BYTES, lambda: None):
        for raw in lines_with(words, chunk.replace(b"\r", b"\n")):
            record = decode(raw)
            if record:
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
