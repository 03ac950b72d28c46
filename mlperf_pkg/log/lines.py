"""The lines of a log: their numbers, and the findings about single ones."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, tee
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
from mlperf_pkg.log.record import MAX_SHOWN, TOKEN, Misfit, printable, shown

_SHOWN_BYTES = 512
_SOURCE = "submission_rules, Logging requirements"
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
        "hint": "keep other output off the lines that hold records",
    },
    "LOG104": {
        "message": "two records on one line: the official parser does not read {found}",
        "expected": "one record a line",
        "hint": "several ranks write to one file without line buffering",
        **_WARNING,
    },
    "LOG105": {
        "message": "the name {found} is repeated in one object: the last value counts",
        **_WARNING,
    },
    "LOG106": {"message": "{found:s} is not valid JSON; Python's json accepts it", **_NOTE},
    "LOG107": {"message": "bytes that are not UTF-8 are read as Latin-1", **_NOTE},
}

# Compiled on first use, as few logs need it. A match includes the rest of the line, so that only
# the first lookalike of a line is reported: a line may hold a hundred thousand.
_LIKE_TOKEN = rb"(:::MLL(?!OG )[A-Za-z]*).*"


class LineNumbers:
    """The line numbers of the records of a log, counted only on request."""

    def __init__(self, first: int) -> None:
        """Start at the head of a log, which is the line ``first`` of its file."""
        self._chunk = b""
        self._first = first
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
        """Report as one finding the lines that cannot be read for the same reason.

        ``tails`` holds what follows the first token of each line of a block, ``first`` is the
        number of its first record, and ``misfits`` maps indexes in the block to misfits.
        """
        index, misfit = next(iter(misfits.items()))
        message = f"cannot read this record: {misfit.reason}"
        values: Iterable[Any]
        if "{found}" in misfit.reason:
            value = printable(misfit.time_ms)
            values = [printable(other.time_ms) for other in misfits.values()]
            expected = "a number"
            hint = None
        else:
            message += "; found {found:s}"
            value = shown(head_of(tails[index]))
            values = map(shown, dict.fromkeys([head_of(tails[other]) for other in misfits]))
            expected = '{"time_ms": ..., "key": ..., "value": ..., "metadata": {...}}'
            hint = f"at character {misfit.column} of the record" if misfit.column else None
        lines = tuple([self._lines.of(first + index) for index in islice(misfits, MAX_LINES)])
        all_values = distinct(map(values_of, map(bounded, values)))
        finding = Finding(
            code=misfit.code,
            message=message,
            path=self._path,
            line=lines[0],
            found=value,
            expected=expected,
            hint=hint,
            source=_SOURCE,
            places=(Occurrence(self._path, lines, len(misfits), all_values, (expected,)),),
        )
        self._report(finding)

    def at(self, number: int, code: str, value: Any = None) -> None:
        """Report what ``_AT_RECORDS`` says of a code, and the ``value`` found, at a record."""
        line = self._lines.of(number)
        fields = _AT_RECORDS[code]
        self._report(
            Finding(code=code, path=self._path, line=line, found=value, source=_SOURCE, **fields)
        )

    def lookalikes(self, text: bytes) -> None:
        """Report the lines of the current block with a string that resembles a token."""
        matches, located = tee(re.finditer(_LIKE_TOKEN, text))
        lines = self._lines.at(match.start() for match in located)
        for line, match in zip(lines, matches, strict=True):
            finding = Finding(
                code="LOG108",
                message="{found} resembles a record but is not read as one; expected {expected}",
                path=self._path,
                line=line,
                found=match[1][:_SHOWN_BYTES].decode(),
                expected=":::MLLOG and one space",
                source=_SOURCE,
                **_WARNING,
            )
            self._report(finding)

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
