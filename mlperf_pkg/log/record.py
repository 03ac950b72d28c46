"""Decode a record as the official parser does, or say why that parser rejects it.

Everything after the token must be one JSON object with ``time_ms``, ``key``, ``value`` and
``metadata``. (mlperf_logging.compliance_checker.mlp_parser, all rulesets.)
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta

TOKEN = b":::MLLOG "
TIME_NAME = b'"time_ms"'
"""The name that each record has once: a block with more of them than records has others."""

QUOTED_NAMES = (b'"key"', b'"value"', b'"metadata"', TIME_NAME)
TOGETHER_MS = 1000.0
"""By how much the clocks of the processes of one run differ, at most."""

_OLD_TOKEN = rb":::MLPv?(\d+\.\d+)|:::MLL (?=\d)"  # of rounds 0.5 and 0.6
MAX_SHOWN = 80  # characters of a value
_TEXT_AFTER = "Extra data"  # the reason of Python's json for text after the JSON
_CLOCK_WORDS = (b"run_start", b"run_stop", b"eval_start", b"eval_accuracy", b"eval_error")
_SHORT = 4300  # bytes; Python's json refuses numbers of more digits

# A number outside of these bounds may not fit in a double: Python's json reads it.
_Time = (
    Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)] | Annotated[float, Meta(gt=-1e300, lt=1e300)]
)


class Record(msgspec.Struct, gc=False):
    """One record: its key, time in milliseconds since the epoch, value and metadata.

    ``value`` and ``metadata`` are plain JSON values, unchecked: real logs hold anything there.
    Other fields are ignored.
    """

    key: str
    time_ms: _Time
    value: Any
    metadata: Any


class _RawRecord(msgspec.Struct, gc=False):
    """A record whose value and metadata are checked to be valid JSON, but not decoded."""

    key: str
    time_ms: _Time
    value: msgspec.Raw
    metadata: msgspec.Raw


class Misfit(msgspec.Struct, frozen=True):
    """A line with a token that the official parser cannot read as a record.

    ``fatal`` says that the parser crashes on the line, instead of counting a parse error.
    ``recovered`` is the record that the line begins with and where it ends, if other text follows
    it. ``time_ms`` is what a record has that is not a time; ``reason`` has ``{found}`` for it.
    ``column`` is the 1-based character after the token from which on the line is not JSON.
    """

    code: str
    reason: str
    fatal: bool
    recovered: tuple[Record, int] | None = None
    time_ms: Any = None
    column: int | None = None

    @property
    def text(self) -> str:
        """The reason with what was found."""
        return self.reason.replace("{found}", shown(self.time_ms))


_KINDS = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
_decode = msgspec.json.Decoder(Record).decode
_decode_entries = msgspec.json.Decoder(_RawRecord).decode_lines
_decode_plain_lines = msgspec.json.Decoder(Record).decode_lines
_decode_lines = msgspec.json.Decoder().decode_lines
_decode_records = msgspec.json.Decoder(list[Record]).decode
_decode_values = msgspec.json.Decoder(list[Any]).decode
_json_prefix = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(ensure_ascii=False).encode

tails_of = re.compile(TOKEN + b"(.*)").findall
"""Return the text after the first token of each line that has one."""


def decode_values(array: bytes) -> list[Any]:
    """Return the members of a JSON array."""
    try:
        return _decode_values(array)
    except msgspec.MsgspecError:
        values: list[Any] = json.loads(array)  # some number does not fit in a double
        return values


def decode_records(array: bytes) -> list[Record]:
    """Return the members of a JSON array of records."""
    try:
        return _decode_records(array)
    except msgspec.MsgspecError:  # a number does not fit in a double
        records = map(_from_fields, decode_values(array))
        return [record for record in records if isinstance(record, Record)]


def raw_records(lines: bytes) -> list[_RawRecord]:
    """Return the record of each line, and fewer than lines if one needs a closer look.

    The values and the metadata are valid, but not decoded. The lines must be short, in ASCII.
    """
    try:
        return _decode_entries(lines)
    except (msgspec.MsgspecError, RecursionError):
        return []


def decode_lines(raws: Sequence[bytes]) -> Sequence[Record | Misfit]:
    """Return the record or misfit of each line; nothing if any line must be read on its own."""
    lines = b"\n".join([raw.strip(b" \t") for raw in raws])
    # Each line begins with { and ends with }, and JSON never has } directly before {: no value
    # spans two lines. So as many values as lines are one value on each line.
    is_braced = lines.startswith(b"{") and lines.endswith(b"}")
    if not is_braced or lines.count(b"}\n{") != len(raws) - 1:
        return []
    if not lines.isascii() or TOKEN in lines:
        return []
    with suppress(msgspec.MsgspecError, RecursionError):
        if max(map(len, raws)) <= _SHORT:
            records = _decode_plain_lines(lines)
            if len(records) == len(raws):
                return records
    with suppress(msgspec.MsgspecError, RecursionError):
        contents = list(map(_from_fields, _decode_lines(lines)))
        if len(contents) == len(raws):
            return contents
    return []


def decode(raw: bytes) -> Record | None:
    """Return the record after a token, None where the official parser reads none."""
    if not _may_hold_record(raw):
        return None
    record = decode_line(raw)
    return record if isinstance(record, Record) else None


def _may_hold_record(raw: bytes) -> bool:
    """Return whether bytes name a time or have a backslash that may hide it, and end an object."""
    # Not with "in", which takes three times as long: it first fails to take the bytes as a number.
    return (raw.find(b"time_ms") >= 0 or raw.find(b"\\") >= 0) and raw.find(b"}") >= 0


def decode_line(raw: bytes) -> Record | Misfit:
    """Return the record after a token as Python's ``json`` reads it, from Latin-1."""
    try:
        if len(raw) <= _SHORT and raw.isascii():  # much faster than json, with the same result
            return _decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        pass
    text = raw.decode("latin-1").rstrip()
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"it is not JSON ({error.msg})"
        column = error.pos + 1
        recovered = record_in(text) if error.msg == _TEXT_AFTER else None
        return Misfit("LOG101", reason, fatal=False, recovered=recovered, column=column)
    except ValueError:  # a number of more digits than Python converts
        return Misfit("LOG101", "a number in it is too long", fatal=False)
    except RecursionError:
        return Misfit("LOG101", "its JSON is nested too deeply", fatal=True)
    return _from_fields(fields)


def not_json_number(raw: bytes) -> str | None:
    """Return the first number of a record that only Python's ``json`` accepts, such as NaN.

    Texts that contain these names are not numbers. ``raw`` is what ``decode_line`` accepts.
    """
    if b"NaN" not in raw and b"Infinity" not in raw:
        return None
    names: list[str] = []
    json.loads(raw.decode("latin-1").rstrip(), parse_constant=names.append)
    return names[0] if names else None


def _from_fields(fields: Any) -> Record | Misfit:
    if not isinstance(fields, dict):
        kind = _KINDS[type(fields)]
        return Misfit("LOG102", f"it is {kind} and not an object", fatal=True)
    missing = [name for name in ("time_ms", "key", "value", "metadata") if name not in fields]
    time_ms = fields.get("time_ms", 0)
    try:
        number = float(time_ms)
    except (TypeError, ValueError, OverflowError) as error:
        fatal = not isinstance(error, ValueError)
        reason = "its time_ms is {found}; expected a number of milliseconds since 1970"
        return Misfit("LOG102", reason, fatal=fatal, time_ms=time_ms)
    if missing:
        noun = "field" if len(missing) == 1 else "fields"
        return Misfit("LOG102", f"it lacks the {noun} {', '.join(missing)}", fatal=True)
    stamp = time_ms if isinstance(time_ms, int | float) else number
    return Record(fields["key"], stamp, fields["value"], fields["metadata"])


def record_in(text: str) -> tuple[Record, int] | None:
    """Return the record that a string begins with, and where it ends; None if there is none."""
    if "}" not in text:  # as in most torn lines
        return None
    try:
        fields, end = _json_prefix(text)
    except (ValueError, RecursionError):
        return None
    record = _from_fields(fields)
    return (record, end) if isinstance(record, Record) else None


def has_started(text: bytes) -> bool:
    """Return whether text mentions an evaluation, or that a run starts or stops."""
    return any(word in text for word in _CLOCK_WORDS)


def old_format(text: bytes) -> str | None:
    """Return that the format is of a round before 0.7, and which; None for records of MLLOG."""
    if TOKEN in text:
        return None
    match = re.search(_OLD_TOKEN, text)
    if match is None:
        return None
    name = match[1].decode() if match[1] else "0.6"
    return f"this is the format of round {name}; the rules begin with round 0.7"


def shown(value: Any, limit: int = MAX_SHOWN) -> str:
    """Return a JSON value as it appears in the file, cut to ``limit`` characters."""
    try:
        text = str(value) if type(value) is int else _encode(printable(value))
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def printable(value: Any) -> Any:
    """Decode UTF-8 text that was read as Latin-1; for messages only."""
    if isinstance(value, str) and not value.isascii():
        try:
            return value.encode("latin-1").decode("utf-8")
        except UnicodeError:
            return value.encode("utf-8", "replace").decode("utf-8")
    return value


def repeated_names(raw: bytes) -> list[str]:
    """Return the names that an object of a record repeats, in the order of the repetitions."""
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, value in pairs:
            if name in fields:
                repeated.append(name)
            fields[name] = value
        return fields

    try:
        json.loads(raw.decode("latin-1").rstrip(), object_pairs_hook=collect)
    except (ValueError, RecursionError):
        return []
    return repeated
