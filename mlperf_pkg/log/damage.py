"""What is wrong with a line that should hold a record, and the command that repairs its file.

A command changes how a record is written, never what it says.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from msgspec import Struct

from mlperf_pkg.infra.text import visible
from mlperf_pkg.log.block import end_of_line, lines_with
from mlperf_pkg.log.record import TOKEN, Misfit, Record, decode, printable, record_in

_AROUND = 30  # characters of a line that are shown on each side of a place
_REST = 1 << 14  # bytes after a line that may be the rest of its record
_MOST_JOINED = 20  # lines
_MOST_TRIED = 10  # records that may be wrapped
_PACKED = (".gz", ".xz", ".zst", ".bz2")
_MARKER = TOKEN.decode()


def around(text: str, place: int) -> str:
    """Return the text around a place in a line, each byte of which is a character."""
    start = max(0, place - _AROUND)
    end = place + _AROUND
    before = "..." if start else ""
    after = "..." if end < len(text) else ""
    return f"{before}{visible(printable(text[start:end]))}{after}"


# ---- the commands: each keeps the file as it was under the name with .bak -----------------

AFTER_RECORD = r"sed -i.bak -E 's/(:::MLLOG \{{.*\}}).*/\1/' {file}"
BETWEEN_RECORDS = r"sed -i.bak -E 's/\}}([^}}]*):::MLLOG /}}\n\1:::MLLOG /g' {file}"
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
    return f"to repair the file, in its folder: {command.format(file=file, **values)}"


# ---- lines with a marker, but without JSON ------------------------------------------------


class Damage(Struct, frozen=True):
    """What is wrong with some records of a log: ``message``, ``expected`` and ``hint`` as findings.

    ``found`` is the text around the place in the first of their lines.
    """

    message: str
    found: str
    expected: str
    hint: str


class _BrokenLine(Struct, frozen=True):
    """A line of a ``block`` with a record that is not JSON; ``end`` is where the line ends.

    ``place`` is where the record, which is what follows the marker, is not JSON.
    """

    line: str
    record: str
    place: int
    reason: str
    block: bytes
    end: int

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


def damages(
    text: bytes, misfits: Mapping[int, Misfit], path: str
) -> Iterator[tuple[Damage, list[int]]]:
    """Yield what is wrong with the lines of a block that are not JSON, by their kind.

    With each kind come the indexes of its lines among those of the block that hold a marker.
    ``path`` is that of the log.
    """
    marked = _marked_lines(text)
    kinds: dict[str, dict[int, _BrokenLine]] = {}
    for index, misfit in misfits.items():
        start, end = marked[index]
        line = text[start:end].decode("latin-1")
        record = line.rpartition(_MARKER)[2].rstrip()
        place = (misfit.column or 1) - 1
        broken = _BrokenLine(line, record, place, misfit.text, text, end)
        kinds.setdefault(_kind(broken), {})[index] = broken
    torn = list(kinds.get("torn", {}).values())
    if _are_wrapped(text, torn):
        kinds["wrapped"] = kinds.pop("torn")
    for kind, lines in kinds.items():
        yield _KINDS[kind](list(lines.values()), path), list(lines)


def _marked_lines(text: bytes) -> list[tuple[int, int]]:
    """Return the start and the end of each line that holds a marker."""
    lines = []
    offset = text.find(TOKEN)
    while offset >= 0:
        end = end_of_line(text, offset)
        lines.append((text.rfind(b"\n", 0, offset) + 1, end))
        offset = text.find(TOKEN, end)
    return lines


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


def _escaped(lines: Sequence[_BrokenLine], path: str) -> Damage:
    first = lines[0]
    hint = "write the output of the container without its log driver"
    try:
        fields = json.loads(first.line)
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        for name, value in fields.items():
            if isinstance(value, str) and _MARKER in value and name.isidentifier():
                option = "-j" if value.endswith("\n") else "-r"
                hint = repair(_FROM_JSON, path, option=option, name=name) or hint
    return Damage(
        message="the record is inside a JSON string, as docker's json-file driver writes it:"
        " {found:s}; expected {expected}",
        found=around(first.line, first.line.find(_MARKER)),
        expected="the line as it was printed",
        hint=hint,
    )


def _python(lines: Sequence[_BrokenLine], path: str) -> Damage:
    return Damage(
        message="the record is printed as a Python dict: {found:s}; expected {expected}",
        found=around(lines[0].record, 0),
        expected="JSON",
        hint=repair(_FROM_PYTHON, path) or "print it with json.dumps",
    )


def _wrapped(lines: Sequence[_BrokenLine], path: str) -> Damage:
    widths = {len(broken.line) for broken in lines}
    hint = "write the log to a file, not through a terminal"
    if len(widths) == 1:
        hint = repair(_UNWRAP, path, width=widths.pop()) or hint
    return Damage(
        message="the record is wrapped over several lines, after {found:s}; expected {expected}",
        found=around(lines[0].record, len(lines[0].record)),
        expected="each record on one line",
        hint=hint,
    )


def _torn(lines: Sequence[_BrokenLine], _: str) -> Damage:
    first = lines[0]
    hint = "another process wrote to the same file, or a part of it was lost"
    if first.following and _MARKER not in first.following:
        rest = around(first.following, 0)
        hint = f"{hint}; perhaps the rest is on the next line: {rest}"
    return Damage(
        message="the record is torn: its line ends after {found:s}; expected {expected}",
        found=around(first.line, len(first.line)),
        expected="a whole record",
        hint=hint,
    )


def _other(lines: Sequence[_BrokenLine], _: str) -> Damage:
    first = lines[0]
    return Damage(
        message="cannot read this record near {found:s}; expected {expected}",
        found=around(first.record, first.place),
        expected="JSON",
        hint=f"{first.reason} at character {first.place + 1} of the record; another process may"
        " have written into it",
    )


_KINDS = {
    "escaped": _escaped,
    "python": _python,
    "wrapped": _wrapped,
    "torn": _torn,
    "other": _other,
}


# ---- lines that are almost those of records -------------------------------------------------

TIME_NAME = b'"time_ms"'
"""The name that each record has once: a block with more of them than records has others."""

_NAMES = (b'"key"', b'"value"', b'"metadata"', TIME_NAME)
_CANDIDATE = rb'(?i)mllog|:::ml|"time_ms"'
_DAMAGED = rb"(?i)mllog[:=]{0,3}(?=[ \t]*\{)"
_GLUED = rb"[:\w]{0,40}\Z"  # to the front of a damaged marker
_OLD = rb":::ML(?:L(?!OG )|Pv)[\w.]*"


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
    def record(self) -> Record | None:
        """The record of the line, if it has a whole one."""
        if self.start is None:
            return None
        record = record_in(self.line[self.start :].decode("latin-1"))
        return record[0] if record else None

    @property
    def subject(self) -> str:
        """What is wrong with the line, in words."""
        if not self.marker:
            return "the record has no marker before it"
        form = ""
        if self.marker.startswith(":::MLPv0.5"):
            form = ", the format of round 0.5"
        elif self.start is None and self.marker != ":::MLLOG":
            form = ", the format of round 0.6"
        return f"the marker is '{visible(self.marker)}'{form}"

    @property
    def reason(self) -> str:
        """Why a file of such lines is not a log."""
        return f"{self.subject}, in {self.found}; expected '{_MARKER}' and JSON"

    def remedy(self, path: str) -> str | None:
        """Return how to repair the file ``path`` of such lines, if a command can."""
        if not self.marker or self.start is None:
            return None
        return repair(_MARK, path, marker=self.marker)

    @property
    def found(self) -> str:
        """The text around the marker."""
        return around(self.line.decode("latin-1"), self.place)


def near_misses(text: bytes) -> Iterator[NearMiss]:
    """Yield the lines that are almost those of records, and hold no marker."""
    candidates = re.compile(_CANDIDATE)
    match = candidates.search(text)
    while match:
        offset = text.rfind(b"\n", 0, match.start()) + 1
        end = end_of_line(text, match.start())
        near_miss = _near_miss(offset, text[offset:end])
        if near_miss:
            yield near_miss
        match = candidates.search(text, end)


def _near_miss(offset: int, line: bytes) -> NearMiss | None:
    if TOKEN in line:
        return None
    damaged = re.search(_DAMAGED, line)
    if damaged:
        before = re.search(_GLUED, line[max(0, damaged.start() - 40) : damaged.start()])
        glued = before[0] if before else b""
        place = damaged.start() - len(glued)
        marker = line[place : damaged.end()].decode("latin-1")
        return NearMiss(offset, line, marker, place, line.find(b"{", damaged.end()))
    old = re.search(_OLD, line)
    if old:
        return NearMiss(offset, line, old[0].decode("latin-1"), old.start())
    start = line.find(b"{")
    if start >= 0 and all(name in line for name in _NAMES):
        return NearMiss(offset, line, "", start, start)
    return None


# ---- a log with all records that can be read with certainty ------------------------------------

_SEGMENT = rb"[^\r\n]+"


def repaired(text: bytes) -> bytes:
    """Return a log with each record that can be read with certainty on a line of its own.

    These are records before other text or another record, and those behind a damaged marker, if
    no equal record is intact. CR separates what was one line, so that lines keep their numbers.
    """
    intact = set()
    damaged = list(near_misses(text.replace(b"\r", b"\n")))
    if damaged:
        for raw in lines_with((TOKEN,), text.replace(b"\r", b"\n")):
            intact.add(repr(decode(raw)))
    by_offset = {}
    for near_miss in damaged:
        if near_miss.record and repr(near_miss.record) not in intact:
            by_offset[near_miss.offset] = near_miss

    def repaired_line(match: re.Match[bytes]) -> bytes:
        line = match[0]
        near_miss = by_offset.get(match.start())
        if near_miss:
            line = line[: near_miss.place] + TOKEN + line[near_miss.start :]
        return _separated(line) if TOKEN in line else line

    return re.sub(_SEGMENT, repaired_line, text)


def _separated(line: bytes) -> bytes:
    """Return a line with a CR after each of its records that other text follows."""
    prefix, *raws = line.split(TOKEN)
    parts = [prefix]
    for raw in raws:
        record = record_in(raw.decode("latin-1"))
        if record is None:
            parts.append(TOKEN + raw)
        else:
            end = record[1]
            rest = raw[end:]
            parts.append(TOKEN + raw[:end])
            if rest.strip():
                parts.append(b"\r" + rest)
            elif raw is not raws[-1]:
                parts.append(b"\r")
    return b"".join(parts)
