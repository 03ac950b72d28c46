"""JSON that people wrote by hand (its value, its line numbers, its oddities), and its numbers.

Numbers have two readings: Python's own, which decides the official verdict, and finite numbers,
which figures and charts can be computed from.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeGuard

from msgspec import Struct, field

from mlperf_pkg.infra.text import FROM_UTF_16, UTF_16_MARKS

MAX_BYTES = 1 << 20  # of a file; each costs up to a hundred bytes of memory
MAX_VALUES = 100_000  # of a file, about
MAX_DEPTH = 200  # nested containers; deeper files are refused rather than recursed into

ProblemKind = Literal["bom", "encoding", "duplicate_key", "not_finite"]

# Strings (an unterminated one reaches to the end), brackets, and numbers or words.
_LEXEME = r'(?s:"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]|[^\s\[\]{}",:]+)'
# The same or the end of a line, after what is between tokens; in valid JSON no string has several.
_PIECE = r'[ \t\r,:]*(\n|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|[\[\]{}]|[^ \t\r\n\[\]{}",:]+|\Z)'
_WHOLE = 1e15  # doubles above it may skip integers
_OPENING = ("{", "[")
_CLOSING = ("}", "]")
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")

# The start of each message of the standard library, and what it expected.
_EXPECTED = {
    "Expecting property name": "a field name in double quotes",
    "Expecting value": "a value",
    "Expecting ':'": "':' between a field name and its value",
    "Expecting ','": "',' or the closing bracket",
    "Extra data": "nothing after the end of the document",
    "Unterminated string": "a closing double quote",
    "Invalid control character": "an escape (\\n, \\t) within a string",
    "Invalid \\": "one of the escapes of JSON",
}


class JsonSyntaxError(ValueError):
    """Bytes that are not JSON: ``line`` (1-based) and ``message`` (found, expected)."""

    def __init__(self, line: int, message: str) -> None:
        """Keep both as ``args``, so that the error survives pickling."""
        super().__init__(line, message)
        self.line = line
        self.message = message


class JsonLimitError(JsonSyntaxError):
    """A file that is too large to be read; it may be JSON."""


class JsonProblem(Struct, frozen=True):
    """An oddity at a 1-based line of a file that can be read nevertheless."""

    line: int
    kind: ProblemKind
    message: str


class _JsonMember(Struct, eq=False):
    """The line of a value and its members, by key or index."""

    line: int
    keyed: bool = False
    members: dict[str | int, _JsonMember] = field(default_factory=dict)

    def add(self, step: str | int, line: int) -> _JsonMember:
        member = self.members[step] = _JsonMember(line)
        return member


class JsonDocument(Struct, frozen=True):
    """The value of a file and its problems by line; the last of repeated keys counts."""

    value: Any
    problems: tuple[JsonProblem, ...]
    _text: str

    def line(self, path: Sequence[str | int]) -> int:
        """Return the 1-based line of the member at ``path``, or of its nearest ancestor."""
        is_field = len(path) == 1 and isinstance(self.value, dict) and path[0] in self.value
        if is_field and not self.problems:
            name = f'"{path[0]}"'
            text = self._text
            if text.count(name) == 1 and f"{name}:" in text:  # nearly always
                return text.count("\n", 0, text.index(name)) + 1
        member, _ = _scanned(self._text)
        for step in path:
            if step not in member.members:
                break
            member = member.members[step]
        return member.line


def read_json(data: bytes) -> JsonDocument:
    """Read a JSON file from any source; line breaks are ``\\n`` or ``\\r\\n``.

    A byte-order mark, bytes that are not UTF-8 (read as Latin-1), repeated keys, NaN and Infinity
    are problems of the document.

    Raises:
        JsonSyntaxError: it is not JSON, or is nested more than ``MAX_DEPTH`` deep.
        JsonLimitError: it has more than ``MAX_BYTES`` or ``MAX_VALUES``.
    """
    _refuse_size(len(data))
    text, problems = _decoded(data)
    value, has_problems = _parsed(text)
    if has_problems:
        problems = sorted([*problems, *_scanned(text)[1]], key=lambda problem: problem.line)
    return JsonDocument(value, tuple(problems), text)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, within the limits of ``read_json``.

    Raises:
        JsonSyntaxError: as ``read_json``.
    """
    _refuse_size(len(text))
    return _parsed(text)[0]


def _refuse_size(size: int) -> None:
    if size > MAX_BYTES:
        raise JsonLimitError(1, f"the file is not read, as it is larger than {MAX_BYTES >> 20} MiB")


def _decoded(data: bytes) -> tuple[str, list[JsonProblem]]:
    if data.startswith(UTF_16_MARKS):
        raise JsonSyntaxError(1, f"the file is UTF-16 text; expected UTF-8 text: {FROM_UTF_16}")
    problems = []
    if data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
        problems.append(JsonProblem(1, "bom", "found a byte-order mark; expected none"))
    try:
        return data.decode("utf-8"), problems
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        message = f"found byte 0x{data[exc.start]:02x}; expected UTF-8"
        return data.decode("latin-1"), [*problems, JsonProblem(line, "encoding", message)]


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of all tokens except commas and colons."""
    line = 1
    for piece in re.findall(_PIECE, text):
        if piece == "\n":
            line += 1
        elif piece:
            yield line, piece


def _refuse_many(text: str) -> None:
    """Refuse too many values, and too many levels of them."""
    if text.count(",") > MAX_VALUES:
        raise JsonLimitError(1, f"the file is not read, as it has more than {MAX_VALUES:,} values")
    depth = 0
    for line, token in _tokens(text) if text.count("{") + text.count("[") > MAX_DEPTH else ():
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth > MAX_DEPTH:
            message = f"values are nested too deeply; expected at most {MAX_DEPTH} levels"
            raise JsonSyntaxError(line, message)


def _parsed(text: str) -> tuple[Any, bool]:
    """Return the value, and whether there are problems, which ``_scanned`` finds."""
    _refuse_many(text)
    odd = set[str]()

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            odd.add("duplicate_key")
        return values

    def not_finite(name: str) -> float:
        odd.add(name)
        return float(name)

    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=not_finite)
    except json.JSONDecodeError as exc:
        raise _syntax_error(text, exc) from exc
    except ValueError as exc:  # int() refuses thousands of digits without saying where
        digits = re.search(rf"\d{{{sys.get_int_max_str_digits() + 1}}}", text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else 1
        raise JsonSyntaxError(line, "found an integer of thousands of digits") from exc
    return value, bool(odd)


def _syntax_error(text: str, error: json.JSONDecodeError) -> JsonSyntaxError:
    """Return the same error, with the text that was found, at the line to fix."""
    before = text[: error.pos].rstrip()
    # Python 3.13 points at a trailing comma, earlier versions at the bracket that follows it.
    comma = len(before) - 1 if before.endswith(",") else error.pos
    trailing = re.compile(r",\s*([}\]])").match(text, comma)
    if trailing:
        line = text.count("\n", 0, comma) + 1
        return JsonSyntaxError(line, f"found a comma before {trailing[1]!r}; expected none")
    token = re.compile(_LEXEME).match(text, error.pos)
    lexeme = token[0] if token else text[error.pos : error.pos + 1]
    starts = filter(error.msg.startswith, _EXPECTED)
    expected = _EXPECTED.get(next(starts, ""), "JSON")
    shown = repr(lexeme[:30]) if lexeme else "the end of the text"
    return JsonSyntaxError(error.lineno, f"found {shown}; expected {expected}")


@lru_cache(maxsize=1)  # the lines of one file are looked up together, of most files never
def _scanned(text: str) -> tuple[_JsonMember, list[JsonProblem]]:
    """Return the members of a string that is valid JSON, and the problems among them."""
    holders = [_JsonMember(1)]
    named = None
    problems: list[JsonProblem] = []
    for line, token in _tokens(text):
        holder = holders[-1]
        if token in _CLOSING:
            holders.pop()
        elif holder.keyed and named is None:
            key = json.loads(token) if "\\" in token else token[1:-1]
            first = holder.members.get(key)
            if first:
                message = f"the key {key!r} is repeated (it is already on line {first.line})"
                problems.append(JsonProblem(line, "duplicate_key", message))
            named = holder.add(key, line)
        else:
            member = named or holder.add(len(holder.members), line)
            named = None
            if token in _OPENING:
                member.keyed = token == _OPENING[0]
                holders.append(member)
            elif token in _NOT_FINITE:
                message = f"{token} is not valid JSON; expected a number"
                problems.append(JsonProblem(line, "not_finite", message))
    return holders[0].members[0], problems


# ---- numbers among JSON values, of which a log or a file may hold any ---------------------------


_NUMBERS = (int, float)  # as ``int | float`` is made anew by each call


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether Python computes with a value as with a number.

    That includes ``true`` and ``false`` (1 and 0), NaN, infinities, and integers of any size.
    """
    return isinstance(value, _NUMBERS)


def to_float(value: Any) -> float | None:
    """Return a number as a double, None for anything else; see ``is_number``.

    An integer too large for a double is an infinity of its sign.
    """
    if not isinstance(value, _NUMBERS):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf if value > 0 else -math.inf


def digits(number: float) -> str:
    """Return a number with six significant digits, a whole one with all: ``1199984``."""
    if number.is_integer() and abs(number) < _WHOLE:
        return f"{number:.0f}"
    return f"{number:.6g}"


def to_finite(value: Any) -> float | None:
    """Return a finite number as a double, None for anything else.

    ``true`` and ``false``, NaN, infinities and integers too large for a double are not numbers
    here.
    """
    if type(value) is int and abs(value) < _WHOLE:  # a shortcut for times, which are many
        return float(value)
    number = value
    if type(value) is not float:  # which most are
        number = None if isinstance(value, bool) else to_float(value)
    return number if number is not None and math.isfinite(number) else None


def finite_number(text: str) -> float | None:
    """Return a value in JSON as a finite number, None if it is something else."""
    try:
        return to_finite(float(text))
    except ValueError:
        return None
