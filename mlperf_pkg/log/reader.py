"""Read the records of a log, with exact line numbers and nothing dropped silently.

A record is a line that holds ``:::MLLOG {json}``, after any prefix. The official verdict depends
on how the official parser splits lines, so this reader splits them alike: text is Latin-1, a line
ends at CR, LF or CRLF, the *last* token of a line starts its record, and everything after
it must be one JSON object. (mlperf_logging.compliance_checker.mlp_parser, all rulesets.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import Any, BinaryIO

from mlperf_pkg.findings import (
    MAX_LINES,
    Basis,
    Finding,
    Occurrence,
    Severity,
    Unchecked,
    bounded,
    distinct,
    values_of,
)
from mlperf_pkg.log.block import (
    HAS_SCAN,
    Block,
    DecodedBlock,
    count_lines,
    end_of_line,
    lines_with,
    scanner,
)
from mlperf_pkg.log.line_numbers import LineNumbers
from mlperf_pkg.log.record import (
    MAX_SHOWN,
    TOKEN,
    Misfit,
    Record,
    decode,
    decode_closely,
    decode_lines_closely,
    decode_plain,
    decode_plain_lines,
    not_json_number,
    printable,
    recover,
    repeated_names,
    shown,
)

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # of the head of a log, which identifies most runs
MAX_LINE_BYTES = 1 << 20  # of one with a record; no record of a published log has a tenth of it
MAX_UNOFFICIAL = 1000
_SHOWN_BYTES = 512
OF_LINES = "LOG"
"""How the codes of findings about the lines of a log begin, whatever the rules of its run."""

_SOURCE = "submission_rules, Logging requirements"

_TAIL = re.compile(TOKEN + b"(.*)")
_ALMOST_TOKEN = b":::MLL"
# Few logs need these, which are compiled when they are used.
_LIKE_TOKEN = _ALMOST_TOKEN + rb"(?!OG )[A-Za-z]*"
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
        self._path = path
        self._report = report
        self._scanner = scanner(words) if HAS_SCAN else None
        self._lines = LineNumbers()

    def __iter__(self) -> Iterator[Record | None]:
        """Yield the record of each line with a token, None where the official parser reads none."""
        return chain.from_iterable(block.records() for block in self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the log as blocks of whole lines."""
        first = 0
        for chunk in _chunks(self._stream, CHUNK_BYTES, self._report_too_long):
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
            self._report_lookalikes(text)
        elif text.isascii():
            records = decode_plain_lines(tails)
        if records is None:
            contents = decode_lines_closely(tails)
            if contents is None:
                contents = list(map(self._read_line, tails, count(first)))
            records = [content if isinstance(content, Record) else None for content in contents]
            self._report_misfits(tails, contents, first, is_cut=not text.endswith(b"\n"))
        if _may_repeat_names(text, records):
            self._report_repeated_names(tails, records, first)
        return records

    def _read_line(self, tail: bytes, number: int) -> Record | Misfit:
        *shadowed, raw = tail.split(TOKEN)
        for text in shadowed:
            self._report_shadowed(text, number)
        return decode_plain(raw) or self._read_closely(raw, number)

    def _read_closely(self, raw: bytes, number: int) -> Record | Misfit:
        content = decode_closely(raw)
        if isinstance(content, Misfit):
            return content
        if number_name := not_json_number(raw):
            text = "{found:s} is not valid JSON; Python's json accepts it"
            self._note("LOG106", text, number, found=number_name)
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            self._note("LOG107", "bytes that are not UTF-8 are read as Latin-1", number)
        return content

    def _keep_unofficial(self, record: Record) -> None:
        if len(self.unofficial) < MAX_UNOFFICIAL:
            self.unofficial.append(record)

    # ---- findings -------------------------------------------------------------------------

    def _report_misfits(
        self,
        tails: Sequence[bytes],
        contents: Sequence[Record | Misfit],
        first: int,
        *,
        is_cut: bool,
    ) -> None:
        """Report the lines without a record; ``is_cut`` says that the last line has no end."""
        alike: dict[tuple[str, str], dict[int, Misfit]] = {}
        for index, misfit in enumerate(contents):
            if not isinstance(misfit, Misfit):
                continue
            if not misfit.fatal:
                self.parse_errors += 1
            elif self.crash is None:
                self.crash = f"line {self.line_of(first + index)}: {misfit.text}"
            if misfit.recovered:
                self._report_followed(misfit.recovered, first + index)
            else:
                alike.setdefault((misfit.code, misfit.reason), {})[index] = misfit
        for misfits in alike.values():
            self._report_unread(tails, misfits, first, is_cut=is_cut)

    def _report_unread(
        self, tails: Sequence[bytes], misfits: Mapping[int, Misfit], first: int, *, is_cut: bool
    ) -> None:
        """Report lines that cannot be read for one reason, by their indexes in the block."""
        index, misfit = next(iter(misfits.items()))
        message = f"cannot read this record: {misfit.reason}"
        if "{found}" in misfit.reason:
            values = iter([printable(misfit.time_ms) for misfit in misfits.values()])
            expected, hint = "a number", None
        else:
            message += "; found {found:s}"
            values = map(shown, dict.fromkeys([_head(tails[index]) for index in misfits]))
            expected = '{"time_ms": ..., "key": ..., "value": ..., "metadata": {...}}'
            hint = f"at character {misfit.column} of the record" if misfit.column else None
            if is_cut and index == len(tails) - 1:
                hint = "the log ends inside this record"
        lines = tuple([self.line_of(first + index) for index in islice(misfits, MAX_LINES)])
        first_value = next(values)
        all_values = distinct(map(values_of, map(bounded, chain([first_value], values))))
        self._add(
            misfit.code,
            message,
            lines[0],
            found=first_value,
            expected=expected,
            hint=hint,
            places=(Occurrence(self._path, lines, len(misfits), all_values, (expected,)),),
        )

    def _report_followed(self, record: Record, number: int) -> None:
        self._keep_unofficial(record)
        self._add(
            "LOG103",
            "text follows the record {found} on its line: the official parser rejects the log",
            self.line_of(number),
            basis=Basis.OFFICIAL,
            found=printable(record.key),
            expected="a line of its own",
            hint="keep other output off the lines that hold records",
        )

    def _report_shadowed(self, raw: bytes, number: int) -> None:
        """Report the text between two tokens of a line."""
        text = raw.decode("latin-1")
        record = recover(text.rstrip())
        if record:
            self._keep_unofficial(record)
        self._warn(
            "LOG104",
            "two records on one line: the official parser does not read {found}",
            self.line_of(number),
            found=printable(record.key if record else text.strip()),
            expected="one record a line",
            hint="several ranks write to one file without line buffering",
        )

    def _report_repeated_names(
        self, tails: Sequence[bytes], records: Sequence[Record | None], first: int
    ) -> None:
        for number, (tail, record) in enumerate(zip(tails, records, strict=True), first):
            raw = tail.rpartition(TOKEN)[2]
            if record and any(raw.count(name) > 1 for name in _QUOTED_NAMES):
                for name in repeated_names(raw):
                    text = "the name {found} is repeated in one object: the last value counts"
                    self._warn("LOG105", text, self.line_of(number), found=printable(name))

    def _report_lookalikes(self, text: bytes) -> None:
        """Report the first lookalike of each line: a line may hold a hundred thousand."""
        position, end = self._lines.position(), -1
        for match in re.finditer(_LIKE_TOKEN, text):
            if match.start() > end:
                end = end_of_line(text, match.end())
                self._warn(
                    "LOG108",
                    "{found} resembles a record but is not read as one; expected {expected}",
                    position(match.start()),
                    found=match[0][:_SHOWN_BYTES].decode(),
                    expected=":::MLLOG and one space",
                )

    def _report_too_long(self) -> None:
        message = f"not checked: a record larger than {MAX_LINE_BYTES >> 20} MiB"
        line = self._lines.after
        self._report(
            Unchecked(code="LOG109", message=message, path=self._path, line=line, source=_SOURCE)
        )

    def _note(self, code: str, message: str, number: int, **fields: Any) -> None:
        line = self.line_of(number)
        self._add(code, message, line, severity=Severity.NOTE, basis=Basis.ADVICE, **fields)

    def _warn(self, code: str, message: str, line: int, **fields: Any) -> None:
        self._add(code, message, line, severity=Severity.WARNING, basis=Basis.ADVICE, **fields)

    def _add(self, code: str, message: str, line: int, **fields: Any) -> None:
        finding = Finding(
            code=code, message=message, path=self._path, line=line, source=_SOURCE, **fields
        )
        self._report(finding)


def _head(tail: bytes) -> str:
    """Return as much of what follows the last token as findings show."""
    text = tail.rpartition(TOKEN)[2].decode("latin-1").rstrip()
    return text[: MAX_SHOWN + 1] if text.isascii() else text


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
