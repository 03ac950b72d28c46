"""Findings about the lines of a log: what is wrong with them, and the command that repairs it.

A command changes how a record is written, never what it says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from shlex import quote
from typing import Any, TypeAlias

from msgspec import Struct

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
from mlperf_pkg.infra.text import visible
from mlperf_pkg.log.block import spans_with
from mlperf_pkg.log.damage import NearMiss, near_misses
from mlperf_pkg.log.lines import LineNumbers
from mlperf_pkg.log.record import MAX_SHOWN, TOKEN, Misfit, Record, printable, record_in

_AROUND = 30  # characters of a line that are shown on each side of a place
_REST = 1 << 14  # bytes after a line that may be the rest of its record
_MOST_JOINED = 20  # lines
_MOST_TRIED = 10  # records that may be wrapped
_PACKED = (".gz", ".xz", ".zst", ".bz2")
_MARKER = TOKEN.decode()
_MARKED = f"'{_MARKER}' and JSON"
_Fields: TypeAlias = dict[str, Any]
"""The fields of a finding."""

_SOURCE = "submission_rules, Logging requirements"
_FIELDS = '{"time_ms": ..., "key": ..., "value": ..., "metadata": {...}}'
_WARNING: dict[str, Any] = {"severity": Severity.WARNING, "basis": Basis.ADVICE}
_NOTE: dict[str, Any] = {"severity": Severity.NOTE, "basis": Basis.ADVICE}

# The fields of findings about a record, by their codes.
_AT_RECORDS: Mapping[str, Mapping[str, Any]] = {
    "LOG101": {
        "message": "the log ends inside this record, after '{found:s}'; expected {expected}",
        "expected": "a whole record and a line end",
        "hint": "copy the log again; if the original ends here, too, the run was killed while it"
        " wrote the log",
    },
    "LOG103": {
        "message": "text follows the record {found:q} on its line,"
        " so the official parser rejects the log",
        "basis": Basis.OFFICIAL,
        "expected": "a line of its own",
    },
    "LOG104": {
        "message": "several records are on one line, and the official parser does not read {found}",
        "expected": "one record a line",
        **_WARNING,
    },
    "LOG105": {
        "message": "the name {found} is repeated in one JSON object; only its last value counts",
        **_WARNING,
    },
    "LOG106": {
        "message": "{found:s} is not valid JSON, although Python's json module accepts it",
        **_NOTE,
    },
    "LOG107": {"message": "bytes that are not UTF-8 are read as Latin-1", **_NOTE},
}


class LineFindings:
    """The reporter of findings about the lines of one log; ``report`` receives them."""

    def __init__(self, path: str, report: Callable[[Finding], None], lines: LineNumbers) -> None:
        """Report lines of the log ``path``, whose numbers are in ``lines``."""
        self._path = path
        self._report = report
        self._lines = lines

    def unread(self, tails: Sequence[bytes], misfits: Mapping[int, Misfit], first: int) -> None:
        """Report as one finding the records that lack a field, or one that fits.

        ``tails`` holds what follows the first token of each line of a block, ``first`` is the
        number of its first record, and ``misfits`` maps indexes in the block to misfits.
        """
        index, misfit = next(iter(misfits.items()))
        message = f"this record cannot be read, as {misfit.reason}"
        numbers = [first + other for other in misfits]
        if "{found}" in misfit.reason:
            values = [printable(other.time_ms) for other in misfits.values()]
            expected = "a number"
        else:
            message = f"{message}: {{found:s}}"
            values = [around(_head_of(tails[index]), 0)]
            expected = _FIELDS
        self._together(misfit.code, numbers, values=values, message=message, expected=expected)

    def damaged(self, text: bytes, misfits: Mapping[int, Misfit], first: int) -> None:
        """Report lines of a block that are not JSON: those of one kind as one finding.

        ``text`` is the block; ``misfits`` and ``first`` are as for ``unread``.
        """
        for kind, lines in _broken_lines(text, misfits).items():
            fields = _KINDS[kind](list(lines.values()), self._path)
            numbers = [first + index for index in lines]
            self._together("LOG101", numbers, **fields)

    def _together(self, code: str, numbers: Sequence[int], **fields: Any) -> None:
        """Report one finding on the records of these numbers, with ``fields`` of ``_on_lines``."""
        lines = tuple([self._lines.of(number) for number in numbers[:MAX_LINES]])
        self._on_lines(code, lines, len(numbers), **fields)

    def _on_lines(
        self,
        code: str,
        lines: tuple[int, ...],
        count: int,
        values: Sequence[Any],
        **fields: Any,
    ) -> None:
        """Report one finding on lines, with the ``values`` on them."""
        all_values = distinct(map(values_of, map(bounded, values)))
        place = Occurrence(self._path, lines, count, all_values, (fields["expected"],))
        finding = Finding(
            code=code,
            path=self._path,
            line=lines[0],
            found=values[0],
            source=_SOURCE,
            places=(place,),
            **fields,
        )
        self._report(finding)

    def at(self, number: int, code: str, value: Any = None, hint: str | None = None) -> None:
        """Report what ``_AT_RECORDS`` says of a code, and the ``value`` found, at a record."""
        fields: dict[str, Any] = {"hint": hint, **_AT_RECORDS[code]}
        line = self._lines.of(number)
        self._report(
            Finding(code=code, path=self._path, line=line, found=value, source=_SOURCE, **fields)
        )

    def text_after(self, number: int, record: Record, text: str) -> None:
        """Report the text that follows a record on its line."""
        hint = f"the text is '{around(text, 0)}'"
        command = repair(_AFTER_RECORD, self._path)
        if command and "}" not in text:
            hint = f"{hint}; {command}"
        self.at(number, "LOG103", printable(record.key), hint)

    def before_another(self, number: int, record: Record | None, text: str) -> None:
        """Report a record, or the start of one, before another one on its line."""
        if record:
            self.at(number, "LOG104", printable(record.key), repair(_BETWEEN_RECORDS, self._path))
        else:
            hint = "another process wrote to the same file"
            self.at(number, "LOG104", around(text, 0), hint)

    def cut_off(self, number: int, tail: bytes) -> None:
        """Report that the log ends inside a record, of which this is what follows the token."""
        text = _record_of(tail)
        self.at(number, "LOG101", around(text, len(text)))

    def lookalikes(self, text: bytes) -> bool:
        """Report the lines of the current block that are almost those of records.

        Return whether one of them has a whole record.
        """
        by_marker: dict[str, list[NearMiss]] = {}
        for near_miss in near_misses(text):
            by_marker.setdefault(near_miss.marker, []).append(near_miss)
        has_record = False
        for alike in by_marker.values():
            first = alike[0]
            offsets = [near_miss.offset for near_miss in alike]
            lines = tuple(islice(self._lines.at(offsets), MAX_LINES))
            self._on_lines(
                "LOG108",
                lines,
                len(alike),
                values=[_text_of(first)],
                message=f"{_subject(first)} in the line '{{found:s}}'; expected {{expected}}",
                expected=_MARKED,
                hint=_remedy(first, self._path),
                **_WARNING,
            )
            has_record = has_record or any(near_miss.has_record for near_miss in alike)
        return has_record

    def too_long(self, most: int) -> None:
        """Report that the next line is not read, as it has more bytes than this."""
        finding = Unchecked(
            code="LOG109",
            message=f"this record was not checked, as it is larger than {most >> 20} MiB",
            path=self._path,
            line=self._lines.after,
            source=_SOURCE,
        )
        self._report(finding)


def _head_of(tail: bytes) -> str:
    """Return as much of what follows the last token as findings show."""
    text = _record_of(tail)
    return text[: MAX_SHOWN + 1] if text.isascii() else text


def _record_of(tail: bytes) -> str:
    """Return what follows the last token."""
    return tail.rpartition(TOKEN)[2].decode("latin-1").rstrip()


def around(text: str, place: int) -> str:
    """Return the text around a place in a line, each byte of which is a character."""
    start = max(0, place - _AROUND)
    end = place + _AROUND
    before = "..." if start else ""
    after = "..." if end < len(text) else ""
    return f"{before}{visible(printable(text[start:end]))}{after}"


# ---- the commands: each keeps the file as it was under the name with .bak -----------------

_AFTER_RECORD = r"sed -i.bak -E 's/(:::MLLOG \{{.*\}}).*/\1/' {file}"
_BETWEEN_RECORDS = r"sed -i.bak -E 's/\}}([^}}]*):::MLLOG /}}\n\1:::MLLOG /g' {file}"
_MARK = r"sed -i.bak -E 's/(^|[^:[:alnum:]_]){marker}[ \t]*\{{/\1:::MLLOG {{/' {file}"
_FROM_JSON = "cp {file} {file}.bak && jq {option} .{name} {file}.bak > {file}"
_FROM_PYTHON = (
    'cp {file} {file}.bak && python3 -c "import ast, json, sys; [print(a + m + (json.dumps('
    "ast.literal_eval(b)) if m else '')) for a, m, b in (s.rstrip().partition(':::MLLOG ')"
    ' for s in sys.stdin)]" < {file}.bak > {file}'
)
_TO_UTF_8 = "cp {file} {file}.bak && iconv -f {encoding} -t UTF-8 {file}.bak > {file}"
_UNWRAP = (
    "cp {file} {file}.bak && awk 'NR > 1 && (length(last) != {width} || /:::MLLOG /)"
    ' {{print ""}} {{printf "%s", $0; last = $0}} END {{print ""}}\' {file}.bak > {file}'
)


def to_utf_8(encoding: str, path: str) -> str | None:
    """Return how to make UTF-8 of the log ``path`` in an ``encoding``; None if it is empty."""
    if not encoding:
        return None
    return repair(_TO_UTF_8, path, encoding=encoding)


def repair(command: str, path: str, **values: object) -> str:
    """Return how a command repairs the log ``path``; empty for a compressed one."""
    if path.endswith(_PACKED):
        return ""
    file = quote(path.rpartition("/")[2])
    return f"to repair the file, run in its folder: {command.format(file=file, **values)}"


# ---- lines with a marker, but without JSON ------------------------------------------------


class _BrokenLine(Struct):
    """A line of a ``block`` with a record that is not JSON; ``end`` is where the line ends."""

    line: str
    record: str
    misfit: Misfit
    block: bytes
    end: int

    @property
    def place(self) -> int:
        """Where the record, which is what follows the marker, is not JSON."""
        return (self.misfit.column or 1) - 1

    @property
    def rest(self) -> bytes:
        """What follows the line, as far as it may be a part of the record."""
        return self.block[self.end + 1 : self.end + _REST]

    @property
    def is_torn(self) -> bool:
        """Whether the line ends inside the record."""
        last = self.record[self.place :]
        return not last or (last.startswith('"') and '"' not in last[1:])

    @property
    def following(self) -> str:
        """The next line."""
        return self.rest.partition(b"\n")[0].decode("latin-1")

    @property
    def joined(self) -> Record | None:
        """The record that the line begins with, if the lines that follow are the rest of it."""
        text = self.record
        for line in self.rest.decode("latin-1").split("\n")[:_MOST_JOINED]:
            if _MARKER in line:
                return None
            text += line
            record = record_in(text)
            if record:
                return record[0]
        return None


def _broken_lines(text: bytes, misfits: Mapping[int, Misfit]) -> dict[str, dict[int, _BrokenLine]]:
    """Return the lines of a block that are not JSON, by what is wrong with them and by index."""
    marked = list(spans_with([TOKEN], text))
    kinds: dict[str, dict[int, _BrokenLine]] = {}
    for index, misfit in misfits.items():
        start, end = marked[index]
        line = text[start:end].decode("latin-1")
        record = line.rpartition(_MARKER)[2].rstrip()
        broken = _BrokenLine(line, record, misfit, text, end)
        kinds.setdefault(_kind(broken), {})[index] = broken
    torn = list(kinds.get("torn", {}).values())
    if _are_wrapped(text, torn):
        kinds["wrapped"] = kinds.pop("torn")
    return kinds


def _kind(broken: _BrokenLine) -> str:
    if broken.record.startswith('{\\"'):
        return "escaped"
    if broken.record.startswith("{'"):
        return "python"
    return "torn" if broken.is_torn else "other"


def _are_wrapped(text: bytes, torn: Sequence[_BrokenLine]) -> bool:
    """Return whether lines end inside a record because they were wrapped at some width.

    Then each is continued on the next line, and no line is longer than these.
    """
    if len(torn) <= 1:
        return False
    width = max(max(len(broken.line), len(broken.following)) for broken in torn)
    if max(map(len, text.split(b"\n"))) > width:
        return False
    tried = torn[:_MOST_TRIED]
    continued = [broken for broken in tried if broken.joined]
    return len(continued) >= max(2, len(tried) - 1)


def _escaped(lines: Sequence[_BrokenLine], path: str) -> _Fields:
    first = lines[0]
    hint = "write the log to a file in the container, not through the log driver of the container"
    try:
        fields = json.loads(first.line)
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        for name, value in fields.items():
            if isinstance(value, str) and _MARKER in value and name.isidentifier():
                option = "-j" if value.endswith("\n") else "-r"
                hint = repair(_FROM_JSON, path, option=option, name=name) or hint
    return {
        "message": "the record is inside a JSON string, as docker's json-file driver writes it:"
        " '{found:s}'; expected {expected}",
        "values": [around(first.line, first.line.find(_MARKER))],
        "expected": "the line as it was printed",
        "hint": hint,
    }


def _python(lines: Sequence[_BrokenLine], path: str) -> _Fields:
    return {
        "message": "the record is printed as a Python dict: '{found:s}'; expected {expected}",
        "values": [around(lines[0].record, 0)],
        "expected": "JSON",
        "hint": repair(_FROM_PYTHON, path) or "print it with json.dumps",
    }


def _wrapped(lines: Sequence[_BrokenLine], path: str) -> _Fields:
    widths = {len(broken.line) for broken in lines}
    hint = "write the log to a file, not through a terminal"
    if len(widths) == 1:
        hint = repair(_UNWRAP, path, width=widths.pop()) or hint
    return {
        "message": "the record is wrapped over several lines: its first line ends after"
        " '{found:s}'; expected {expected}",
        "values": [around(lines[0].record, len(lines[0].record))],
        "expected": "each record on one line",
        "hint": hint,
    }


def _torn(lines: Sequence[_BrokenLine], _: str) -> _Fields:
    first = lines[0]
    hint = "another process wrote to the same file, or a part of the record was lost"
    if first.following and _MARKER not in first.following:
        rest = around(first.following, 0)
        hint = f"{hint}; perhaps the next line has the rest: '{rest}'"
    return {
        "message": "the record is torn: its line ends after '{found:s}'; expected {expected}",
        "values": [around(first.line, len(first.line))],
        "expected": "a whole record",
        "hint": hint,
    }


def _other(lines: Sequence[_BrokenLine], _: str) -> _Fields:
    first = lines[0]
    return {
        "message": "this record cannot be read near '{found:s}'; expected {expected}",
        "values": [around(first.record, first.place)],
        "expected": "JSON",
        "hint": f"at character {first.place + 1} of the record, {first.misfit.text}; another"
        " process may have written into the record",
    }


_KINDS = {
    "escaped": _escaped,
    "python": _python,
    "wrapped": _wrapped,
    "torn": _torn,
    "other": _other,
}


# ---- lines that are almost those of records -------------------------------------------------


class NearLog(Struct, frozen=True):
    """Why a file is not a log, although its lines are almost those of one, and what repairs it."""

    reason: str
    hint: str | None


def near_log(text: bytes, path: str) -> NearLog | None:
    """Return what is wrong with the file ``path``, by its first line that is almost a record."""
    for near_miss in near_misses(text):
        reason = f"{_subject(near_miss)} in the line '{_text_of(near_miss)}'"
        return NearLog(reason, _remedy(near_miss, path))
    return None


def _subject(near_miss: NearMiss) -> str:
    """Return what is wrong with such a line, in words."""
    if not near_miss.marker:
        return "there is no marker before the record"
    if near_miss.marker == _MARKER.rstrip():
        return f"no space follows the marker '{near_miss.marker}'"
    marker = f"'{visible(near_miss.marker)}'"
    if near_miss.marker.startswith(":::MLPv0.5"):
        return f"the marker {marker} of round 0.5 is used"
    if near_miss.start is None:
        return f"the marker {marker} of round 0.6 is used"
    return f"the marker is {marker}"


def _text_of(near_miss: NearMiss) -> str:
    """Return the text around the marker."""
    return around(near_miss.line.decode("latin-1"), near_miss.place)


def _remedy(near_miss: NearMiss, path: str) -> str | None:
    """Return how to repair the file ``path`` of such lines, if a command can."""
    if not near_miss.marker or near_miss.start is None:
        return None
    return repair(_MARK, path, marker=near_miss.marker)
