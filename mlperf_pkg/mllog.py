"""From the bytes of a log to its records, with true line numbers and nothing dropped silently.

A record is a line that holds ``:::MLLOG {json}``, after any prefix. What the official parser
makes of a line decides its verdict, so this reader tokenises as it does: text is Latin-1, a
line ends at CR, LF or CRLF, the *last* token of a line starts its record, and everything after
it must be one JSON object with ``time_ms``, ``key``, ``value`` and ``metadata``.
(mlperf_logging.compliance_checker.mlp_parser, all rulesets.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import msgspec

from mlperf_pkg.diagnostics import Basis, Diagnostic, Severity

TOKEN = b":::MLLOG "
CHUNK_BYTES = 4 << 20
MAX_LINE_BYTES = 64 << 20
MAX_UNOFFICIAL = 1000
_LARGEST_TIME = 1e300  # what is near no double needs a closer look
SOURCE = "submission_rules, Logging: one MLLOG JSON object a line"

_LIKE_TOKEN = re.compile(rb":::MLL(?!OG )[A-Za-z]*")
_NOT_JSON_NUMBER = re.compile(rb"\b(NaN|-?Infinity)\b")
_OWN_NAMES = (b'"key"', b'"value"', b'"metadata"', b'"time_ms"')


class Record(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One record: its key, time in milliseconds since the epoch, value and metadata.

    ``value`` and ``metadata`` are plain JSON values, unchecked: real logs hold anything there.
    """

    key: str
    time_ms: int | float
    value: Any
    metadata: Any
    namespace: Any = None
    event_type: Any = None


@dataclass(frozen=True, slots=True)
class Misfit:
    """A line with a token that the official parser cannot read as a record.

    ``fatal`` says that it does not count the line as a parse error but dies of it.
    """

    code: str
    reason: str
    fatal: bool
    recovered: Record | None = None


_decode = msgspec.json.Decoder(Record).decode
_json_prefix = json.JSONDecoder().raw_decode


def _decode_fast(raw: bytes) -> Record | None:
    """Plain ASCII JSON. Whatever this refuses, and every line with other bytes (which the official
    parser reads as Latin-1), is decided by Python's own ``json``.
    """
    if raw.isascii():
        try:
            record = _decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            return None
        if abs(record.time_ms) < _LARGEST_TIME:
            return record
    return None


def _decode_slowly(text: str) -> Record | Misfit:
    try:
        fields = json.loads(text)
    except ValueError as error:
        return Misfit("LOG101", f"not JSON: {error}", fatal=False, recovered=_recover(text))
    except RecursionError:
        return Misfit("LOG101", "not JSON that can be read: nested too deeply", fatal=True)
    return _from_fields(fields)


def _from_fields(fields: Any) -> Record | Misfit:
    if not isinstance(fields, dict):
        return Misfit("LOG102", f"a JSON {type(fields).__name__}, not an object", fatal=True)
    missing = [name for name in ("time_ms", "key", "value", "metadata") if name not in fields]
    if "time_ms" in missing:
        return Misfit("LOG102", f"no {' and no '.join(missing)}", fatal=True)
    time_ms = fields["time_ms"]
    try:
        number = float(time_ms)
    except (TypeError, ValueError, OverflowError) as error:
        fatal = not isinstance(error, ValueError)
        return Misfit("LOG102", f"time_ms is {shown(time_ms)}, not a number", fatal=fatal)
    if missing:
        return Misfit("LOG102", f"no {' and no '.join(missing)}", fatal=True)
    stamp = time_ms if isinstance(time_ms, int | float) else number
    return Record(fields["key"], stamp, fields["value"], fields["metadata"])


def _recover(text: str) -> Record | None:
    """The record at the start of a text that goes on after it, which only we can read."""
    try:
        fields, _ = _json_prefix(text)
    except (ValueError, RecursionError):
        return None
    record = _from_fields(fields)
    return record if isinstance(record, Record) else None


def shown(value: Any, limit: int = 80) -> str:
    """A JSON value as a reader would see it in the file, cut to ``limit`` characters."""
    try:
        text = json.dumps(printable(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def printable(value: Any) -> Any:
    """Undo the Latin-1 reading of a UTF-8 string, for messages only."""
    if isinstance(value, str) and not value.isascii():
        try:
            return value.encode("latin-1").decode("utf-8")
        except UnicodeError:
            return value.encode("utf-8", "replace").decode("utf-8")
    return value


@dataclass(slots=True)
class LogReader:
    """Iterate over the records of one log.

    Every line with a token yields once: its ``Record``, or None where the official parser reads
    none. While the loop stands at a line, ``raw`` is the text after its token and ``line`` its
    1-based number (lines counted by LF, as editors do). Whatever is odd is passed to ``report``;
    records that only a careful reader sees (before another token on a line, or followed by text)
    go to ``unofficial``. ``died`` tells why the official parser raises, if it does.

    Memory is bounded by ``CHUNK_BYTES``; a longer line grows it up to ``MAX_LINE_BYTES``, beyond
    which the line is reported as not checked.
    """

    stream: BinaryIO
    path: str
    report: Callable[[Diagnostic], None]
    raw: bytes = b""
    died: str | None = None
    parse_errors: int = 0
    unofficial: list[Record] = field(default_factory=list)
    _chunk: bytes = b""
    _first_line: int = 1
    _counted: tuple[int, int] = (0, 0)
    _at: int = 0

    def __iter__(self) -> Iterator[Record | None]:
        """Walk the log once."""
        for chunk in self._chunks():
            self._chunk = chunk
            yield from self._records(chunk)
            self._at = len(chunk)
            self._first_line = self.line
            self._chunk, self._counted, self._at = b"", (0, 0), 0

    @property
    def line(self) -> int:
        """The 1-based line at which the loop stands."""
        offset, lines = self._counted if self._counted[0] <= self._at else (0, 0)
        self._counted = (self._at, lines + self._chunk.count(b"\n", offset, self._at))
        return self._first_line + self._counted[1]

    def _chunks(self) -> Iterator[bytes]:
        """Blocks of whole lines; of a line that is too long, only its end."""
        rest, skipping = b"", False
        while block := self.stream.read(CHUNK_BYTES):
            cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
            if cut:
                start = _end_of_line(block, 0) if skipping else 0
                yield rest + block[start:cut]
                rest, skipping = block[cut:], False
            elif len(rest) + len(block) > MAX_LINE_BYTES:
                self._found("LOG109", f"over {MAX_LINE_BYTES >> 20} MiB on one line: not checked")
                rest, skipping = b"", True
            elif not skipping:
                rest += block
        if rest:
            yield rest

    def _records(self, chunk: bytes) -> Iterator[Record | None]:
        tokens = chunk.count(TOKEN)
        if chunk.count(b":::MLL") != tokens:
            self._report_lookalikes(chunk)
        # CR ends a line too; putting LF in its place keeps every offset as it is.
        text = chunk.replace(b"\r", b"\n") if b"\r" in chunk else chunk
        suspicious = any(chunk.count(name) != tokens for name in _OWN_NAMES)
        start = text.find(TOKEN)
        while start >= 0:
            self._at = start
            end = _end_of_line(text, start)
            following = text.find(TOKEN, start + 1)
            if 0 <= following < end:
                self._shadowed(text[start + len(TOKEN) : following])
            else:
                raw = self.raw = text[start + len(TOKEN) : end]
                record = _decode_fast(raw) or self._slow(raw, at_end=end == len(text))
                if suspicious and record:
                    self._report_repeated_names(raw)
                yield record
            start = following

    def _slow(self, raw: bytes, at_end: bool) -> Record | None:
        record = _decode_slowly(raw.decode("latin-1").rstrip())
        if isinstance(record, Misfit):
            cut = at_end and not self._chunk.endswith((b"\n", b"\r"))
            self._misfit(record, "the log ends inside this record" if cut else None)
            return None
        if literal := _NOT_JSON_NUMBER.search(raw):
            self._note("LOG106", f"{literal[0].decode()} is no JSON; Python reads it all the same")
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            self._note("LOG107", "bytes that are no UTF-8 are read as Latin-1")
        return record

    def _misfit(self, misfit: Misfit, hint: str | None) -> None:
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
                found=shown(self.raw.decode("latin-1").rstrip()),
                expected='{"time_ms": ..., "key": ..., "value": ..., "metadata": {...}}',
                hint=hint,
            )

    def _shadowed(self, raw: bytes) -> None:
        record = _recover(raw.decode("latin-1").rstrip())
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

    def _report_repeated_names(self, raw: bytes) -> None:
        for name in repeated_names(raw):
            self._warn("LOG105", f"the name {shown(name)} stands twice here: the last one counts")

    def _report_lookalikes(self, chunk: bytes) -> None:
        for match in _LIKE_TOKEN.finditer(chunk):
            self._at = match.start()
            self._warn(
                "LOG108",
                f"{shown(match[0].decode())} looks like a record but is not read as one",
                expected=":::MLLOG and one space",
            )

    def _note(self, code: str, message: str) -> None:
        self._found(code, message, severity=Severity.NOTE, basis=Basis.ADVICE)

    def _warn(self, code: str, message: str, **more: Any) -> None:
        self._found(code, message, severity=Severity.WARNING, basis=Basis.ADVICE, **more)

    def _found(self, code: str, message: str, **more: Any) -> None:
        self.report(
            Diagnostic(
                code=code, message=message, path=self.path, line=self.line, source=SOURCE, **more
            )
        )


def _end_of_line(text: bytes, start: int) -> int:
    """The offset of the line end at or after ``start``, else the length of the text."""
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end


def repeated_names(raw: bytes) -> list[str]:
    """Names that occur twice in one object of a record, in order of their second occurrence."""
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for name, value in pairs:
            if name in seen:
                repeated.append(name)
            seen[name] = value
        return seen

    try:
        json.loads(raw.decode("latin-1").rstrip(), object_pairs_hook=collect)
    except (ValueError, RecursionError):
        return []
    return repeated
