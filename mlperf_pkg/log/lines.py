"""The lines of a log: their numbers, and the findings about single ones."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

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
from mlperf_pkg.log.block import end_of_line
from mlperf_pkg.log.damage import (
    AFTER_RECORD,
    BETWEEN_RECORDS,
    NearMiss,
    around,
    damages,
    near_misses,
    repair,
)
from mlperf_pkg.log.record import MAX_SHOWN, TOKEN, Misfit, Record, printable, shown

_SOURCE = "submission_rules, Logging requirements"
_FIELDS = '{"time_ms": ..., "key": ..., "value": ..., "metadata": {...}}'
_WARNING: dict[str, Any] = {"severity": Severity.WARNING, "basis": Basis.ADVICE}
_NOTE: dict[str, Any] = {"severity": Severity.NOTE, "basis": Basis.ADVICE}

# The fields of findings about a record, by their codes.
_AT_RECORDS: Mapping[str, Mapping[str, Any]] = {
    "LOG101": {
        "message": "the log is cut off inside this record: copy it again; found {found:s}",
        "expected": "a whole record and a line end",
        "hint": "if the original ends here, too, the run was killed while it wrote",
    },
    "LOG103": {
        "message": "text follows the record {found} on its line:"
        " the official parser rejects the log",
        "basis": Basis.OFFICIAL,
        "expected": "a line of its own",
    },
    "LOG104": {
        "message": "two records on one line: the official parser does not read {found}",
        "expected": "one record a line",
        **_WARNING,
    },
    "LOG105": {
        "message": "the name {found} is repeated in one object: the last value counts",
        **_WARNING,
    },
    "LOG106": {"message": "{found:s} is not valid JSON; Python's json accepts it", **_NOTE},
    "LOG107": {"message": "bytes that are not UTF-8 are read as Latin-1", **_NOTE},
}


class LineNumbers:
    """The line numbers of the records of a log, counted only on request."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._chunk = b""
        self._first = 1
        self._counts = [0]  # of records before each block, and after the last
        self._blocks: list[range | array[int]] = []
        self._later_lines: Iterator[int] = iter(())

    def enter(self, chunk: bytes, text: bytes, size: int, *, contiguous: bool) -> None:
        """Start the next block, which has ``size`` records.

        Each of its lines is a record if ``contiguous``; otherwise the records are searched for
        in ``text``, which is ``chunk`` with LF in place of CR.
        """
        if self._blocks and isinstance(self._blocks[-1], array):
            self._blocks[-1].extend(self._later_lines)
        self._first = self.after
        self._chunk = chunk
        self._counts.append(self._counts[-1] + size)
        if contiguous and text == chunk:
            self._blocks.append(range(self._first, self._first + size))
        else:
            self._blocks.append(array("Q"))
            self._later_lines = _lines(chunk, self._first, _tokens(text))

    def of(self, number: int) -> int:
        """Return the line of a record by its number in the log."""
        block = bisect_right(self._counts, number) - 1
        lines = self._blocks[block]
        index = number - self._counts[block]
        if isinstance(lines, array) and index >= len(lines):
            lines.extend(islice(self._later_lines, index + 1 - len(lines)))
        return lines[index]

    def at(self, offsets: Iterable[int]) -> Iterator[int]:
        """Yield the number of the line of each offset in the current block; offsets ascend."""
        return _lines(self._chunk, self._first, offsets)

    @property
    def after(self) -> int:
        """The line after the current block."""
        return self._first + self._chunk.count(b"\n")


def _lines(chunk: bytes, line: int, offsets: Iterable[int]) -> Iterator[int]:
    """Yield the number of the line of each offset.

    It is not a method: an object that holds its own generator would be in a reference cycle.
    """
    counted = 0
    for offset in offsets:
        line += chunk.count(b"\n", counted, offset)
        yield line
        counted = offset


def _tokens(text: bytes) -> Iterator[int]:
    """Yield the offset of the first token of each line that has one."""
    offset = text.find(TOKEN)
    while offset >= 0:
        yield offset
        offset = text.find(TOKEN, end_of_line(text, offset))


# ---- findings -----------------------------------------------------------------------------------


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
        message = f"cannot read this record: {misfit.reason}"
        numbers = [first + other for other in misfits]
        if "{found}" in misfit.reason:
            values = [printable(other.time_ms) for other in misfits.values()]
            self._together("LOG102", numbers, values, message, expected="a number")
        else:
            values = [shown(head_of(tails[index]))]
            message += "; found {found:s}"
            self._together(misfit.code, numbers, values, message, expected=_FIELDS)

    def damaged(self, text: bytes, misfits: Mapping[int, Misfit], first: int) -> None:
        """Report lines of a block that are not JSON: those of one kind as one finding.

        ``text`` is the block; ``misfits`` and ``first`` are as for ``unread``.
        """
        for damage, indexes in damages(text, misfits, self._path):
            numbers = [first + index for index in indexes]
            values = [damage.found]
            more = {"expected": damage.expected, "hint": damage.hint}
            self._together("LOG101", numbers, values, damage.message, **more)

    def _together(
        self, code: str, numbers: Sequence[int], values: Sequence[Any], message: str, **more: Any
    ) -> None:
        """Report one finding on the records of these ``numbers``, with the ``values`` found."""
        lines = tuple([self._lines.of(number) for number in numbers[:MAX_LINES]])
        self._on_lines(code, lines, len(numbers), values, message, **more)

    def _on_lines(
        self,
        code: str,
        lines: tuple[int, ...],
        count: int,
        values: Sequence[Any],
        message: str,
        **more: Any,
    ) -> None:
        all_values = distinct(map(values_of, map(bounded, values)))
        expected = (more["expected"],)
        finding = Finding(
            code=code,
            message=message,
            path=self._path,
            line=lines[0],
            found=values[0],
            source=_SOURCE,
            places=(Occurrence(self._path, lines, count, all_values, expected),),
            **more,
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
        hint = f"the text is {around(text, 0)}"
        command = repair(AFTER_RECORD, self._path)
        if command and "}" not in text:
            hint = f"{hint}; {command}"
        self.at(number, "LOG103", printable(record.key), hint)

    def before_another(self, number: int, record: Record | None, text: str) -> None:
        """Report a record, or the start of one, before another one on its line."""
        if record:
            self.at(number, "LOG104", printable(record.key), repair(BETWEEN_RECORDS, self._path))
        else:
            hint = "another process wrote to the same file"
            self.at(number, "LOG104", around(text, 0), hint)

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
            self._on_lines(
                "LOG108",
                tuple(islice(self._lines.at(offsets), MAX_LINES)),
                len(alike),
                [first.found],
                f"{first.subject}: {{found:s}}; expected {{expected}}",
                expected=f"'{TOKEN.decode()}' and JSON",
                hint=first.remedy(self._path),
                **_WARNING,
            )
            has_record = has_record or any(near_miss.record for near_miss in alike)
        return has_record

    def too_long(self, most: int) -> None:
        """Report that the next line is not read, as it has more bytes than this."""
        finding = Unchecked(
            code="LOG109",
            message=f"not checked: a record larger than {most >> 20} MiB",
            path=self._path,
            line=self._lines.after,
            source=_SOURCE,
        )
        self._report(finding)


def head_of(tail: bytes) -> str:
    """Return as much of what follows the last token as findings show."""
    text = tail.rpartition(TOKEN)[2].decode("latin-1").rstrip()
    return text[: MAX_SHOWN + 1] if text.isascii() else text


def end_of(tail: bytes) -> str:
    """Return the end of what follows the last token."""
    text = tail.rpartition(TOKEN)[2].decode("latin-1").rstrip()
    return around(text, len(text))
