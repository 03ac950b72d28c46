"""Formulas between keys: a small closed language of conditions and numbers, whose syntax is CEL's.

docs/rules.md describes it. Python's parser reads a formula, and what it reads is made of functions
of this module; nothing is executed. A formula with any other part is refused when it is read.

All numbers are doubles, so that ``value >= 2.0 * other`` cannot mean one thing for ``1`` and
another for ``1.0``; only ``int(...)`` and, in a quantity, whole numbers are integers of 64 bits.
Where the official checker tests doubles for equality, a formula keeps its order of operations, and
so gets the same doubles. Infinities, NaN and divisions by zero are those of processors.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, pairwise, repeat
from keyword import kwlist
from typing import Any, TypeAlias

import msgspec

from mlperf_pkg.infra.json_values import is_number, to_float
from mlperf_pkg.log.record import Record

Evaluate: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""The value of an expression for the data of ``Operands``."""

NO_ANSWER = (KeyError, TypeError, ValueError, ArithmeticError)
"""The exceptions of ``Evaluate``: a value is missing, too large, or a string and no number."""

METADATA_NAMES = ("metadata", "previous")
"""The names that formulas have for the metadata of a record, and of the one before it."""

# Source: the language definition of CEL, reserved words and names of types; and Python's keywords.
RESERVED = frozenset([
    "as", "bool", "break", "bytes", "const", "continue", "double", "else", "for", "function", "if",
    "import", "in", "int", "let", "list", "loop", "map", "namespace", "null", "null_type",
    "package", "return", "string", "type", "uint", "var", "void", "while", *kwlist,
])  # fmt: skip
"""The names that neither a key of a formula nor a definition can have."""

# Not a function, a namespace (math.) or a member of one. A pattern that begins with a
# character is found faster than one that looks back first.
_NAME = re.compile(r"[A-Za-z_](?<![\w.].)\w*\b(?!\s*[(.])")
# What Python reads, and CEL does not or otherwise, or what only CEL knows.
_UNKNOWN = re.compile(
    r"[^ -~\s]|[#'\"\\{}%;@$~^`]|\[(?!\d{1,2}\])"
    r"|&(?!&)(?<!&&)|\|(?!\|)(?<!\|\|)|=(?!=)(?<![=!<>]=)|!(?!=)"
    r"|\*\*|//|<<|>>|--|\d_|\d\.(?!\d)|\b(and|or|not|if|else|in|is|lambda)\b"
)
OF_A_RECORD = frozenset({"value", "nth"})  # names that are not keys
_NOT_NUMBERS = frozenset({*METADATA_NAMES, "true", "false"})
_MOST_ELEMENTS = 100  # of a list
_MOST_STEPS = 1 << 12  # kept for each key, besides those of the last log
_COMPARABLE = frozenset({int, float, type(None)})  # types of operands that are kept
_MOST_ANSWERS = 1 << 12  # kept by each formula: the runs of a set ask for the same again


class FormulaError(ValueError):
    """A text is not a formula; the message says which part of it is wrong."""


class NoAnswerError(ValueError):
    """A formula needs a value that is missing or not a number."""


@lru_cache
def names_in(formula: str) -> frozenset[str]:
    """Return the identifiers of a formula: ``value`` and the keys it relates."""
    return frozenset(_NAME.findall(formula)) - {"true", "false"}


# ---- what a run has logged so far, by key -------------------------------------------------

Seen: TypeAlias = Mapping[str, "LoggedKey"]
_LATEST_MS = 9e99  # in place of a time that is infinite or NaN


class LoggedKey(msgspec.Struct, eq=False, gc=False):
    """The records of one key so far: how many, and the first and last value and number.

    ``same`` says that all values equal the first; ``earliest_ms`` is the least time;
    ``metadata`` is that of the last record.
    """

    first: Any
    last: Any
    first_number: int
    last_number: int
    earliest_ms: float
    metadata: Any
    count: int = 1
    same: bool = True

    def add(self, record: Record, number: int) -> None:
        """Take the next record of the key, by its ``number`` in the log."""
        value = record.value
        self.count += 1
        self.last = value
        self.last_number = number
        self.metadata = record.metadata
        # As list.count does, identity makes NaN equal to itself.
        if self.same and value is not self.first and value != self.first:
            self.same = False
        if record.time_ms < self.earliest_ms:  # noqa: PLR1730 - min() takes thrice as long
            self.earliest_ms = record.time_ms


def first_logged(record: Record, number: int = 0, time_ms: float | None = None) -> LoggedKey:
    """Return what the first record of a key says, by its ``number`` in the log.

    ``time_ms`` is its time, by default that which the record has.
    """
    value = record.value
    if time_ms is None:
        time_ms = record.time_ms
    earliest_ms = time_ms if time_ms < _LATEST_MS else _LATEST_MS
    # By position, as names take twice as long.
    return LoggedKey(value, value, number, number, earliest_ms, record.metadata)


# ---- formulas of rules --------------------------------------------------------------------


class Operands(msgspec.Struct, frozen=True, dict=True):
    """The values that a formula is evaluated with, by name; None where there is none.

    ``values`` are those of the formula's ``names``, ``metadata`` the members that it uses of the
    record's metadata, and ``previous`` those of the metadata of the same key's record before it.
    """

    values: dict[str, Any]
    metadata: dict[str, Any]
    previous: dict[str, Any]

    @cached_property
    def data(self) -> dict[str, Any]:
        """The values that a formula can use; see ``_data_of``."""
        names = _names_of(self.values, self.metadata, self.previous)
        values = chain(self.values.values(), self.metadata.values(), self.previous.values())
        return _data_of(names, values)


def read_number(value: Any) -> Any:
    """Return text that is a finite number as that number, and anything else as it is."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return value
    return number if math.isfinite(number) else value


def number_if_none(value: Any, needed: str) -> str:
    """Return the words before a bound, ``needed``, where the value is not a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    if needed.startswith(("at least ", "at most ")):
        return "a number of "
    if isinstance(value, str) and needed[:1].isdigit():
        return "the number "
    return "a number " if needed.startswith(("above ", "below ")) else ""


def _names_of(
    values: Iterable[str], metadata: Iterable[str], previous: Iterable[str]
) -> tuple[str, ...]:
    """Return the names that formulas have for values, such as ``metadata.epoch_num``."""
    return (*values, *map("metadata.{}".format, metadata), *map("previous.{}".format, previous))


def _data_of(names: Iterable[str], values: Iterable[Any]) -> dict[str, Any]:
    """Return the values that a formula can use, by name: doubles and, as metadata, strings."""
    data: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        number = to_float(value)
        if number is not None:
            data[name] = number
        elif isinstance(value, str) and "." in name:  # of metadata
            data[name] = value
        elif isinstance(value, list) and name == "value":
            elements = value[:_MOST_ELEMENTS]
            data |= _data_of(map("value[{}]".format, range(len(elements))), elements)
    return data


class Formula:
    """A formula as a function of the values of its ``names``.

    ``metadata.<name>`` is a number or text of the record's metadata, ``previous.<name>`` one of
    the metadata of the same key's record before it; ``previous`` are the names of the latter, and
    ``members`` of either. ``needed`` are the names without that of the record's own value. With
    ``reads_text``, text that is a number counts as the number.
    """

    def __init__(self, text: str, *, reads_text: bool = False) -> None:
        """Take a formula, which is compiled once it is evaluated."""
        self.names = names_in(text)
        self.needed = self.names - {"value"}
        self.text = text
        self._of_value = "value" in self.names
        self._of_nth = "nth" in self.names
        self._keys = tuple(sorted(self.names - OF_A_RECORD))
        of_record = [name for name in ("value", "nth") if name in self.names]
        self._values = (*of_record, *self._keys)
        self._metadata = _members_of("metadata", text)
        self.previous = _members_of("previous", text)
        self.members = tuple(sorted({*self._metadata, *self.previous}))
        self._names = _names_of(self._values, self._metadata, self.previous)
        self._reads_text = reads_text
        self._answers: dict[tuple[Any, ...], bool | None] = {}

    def operands(self, record: Record, seen: Seen, nth: Any = None) -> Operands:
        """Return its values at a record: of other keys, the last that were logged before it."""
        return self.operands_of(self._signature(record, seen, nth))

    def operands_of(self, signature: tuple[Any, ...]) -> Operands:
        """Return the operands whose values are those of a signature."""
        start = len(self._values)
        end = len(signature) - len(self.previous)
        return Operands(
            values=dict(zip(self._values, signature, strict=False)),
            metadata=dict(zip(self._metadata, signature[start:end], strict=True)),
            previous=dict(zip(self.previous, signature[end:], strict=True)),
        )

    def holds(self, record: Record, seen: Seen, nth: Any = None) -> bool:
        """Return whether it holds at a record; see ``operands``.

        Raises:
            NoAnswerError: it has no answer; see ``evaluate``.
            FormulaError: it is not a condition.
        """
        answer = self.evaluate(self.operands(record, seen, nth))
        if answer is None:
            raise NoAnswerError
        return answer

    def answer(self, record: Record, seen: Seen, nth: Any = None) -> bool | None:
        """Return whether it holds at a record; None if it has no answer: see ``evaluate``.

        Raises:
            FormulaError: it is not a condition.
        """
        return self.answer_of(self._signature(record, seen, nth))

    def answer_of(self, signature: tuple[Any, ...]) -> bool | None:
        """Return whether it holds for the values of a signature; see ``answer``."""
        try:
            if signature in self._answers:
                return self._answers[signature]
            is_kept = len(self._answers) < _MOST_ANSWERS
        except TypeError:  # a list or an object, which is not a number
            is_kept = False
        answer = self._evaluate(_data_of(self._names, signature))
        # Zeros have a sign, which equality does not see.
        if is_kept and 0 not in signature:
            self._answers[signature] = answer
        return answer

    def may_fail(self, signatures: Iterable[tuple[Any, ...]]) -> bool:
        """Return whether it was false for one of the signatures before, or not evaluated yet."""
        try:
            return False in map(self._answers.get, signatures, repeat(False))
        except TypeError:  # a list or an object, which is not a number
            return True

    def evaluate(self, operands: Operands) -> bool | None:
        """Return whether it holds; None if it needs a value that is missing or not a number.

        A part that the rest decides without needing it (``a || b``) is not needed.

        Raises:
            FormulaError: it is not a condition.
        """
        return self._evaluate(operands.data)

    def _evaluate(self, data: dict[str, Any]) -> bool | None:
        holds = condition(self.text)
        try:
            return holds(data)  # type: ignore[no-any-return]
        except NO_ANSWER:
            return None

    def _signature(self, record: Record, seen: Seen, nth: Any) -> tuple[Any, ...]:
        """Return all values of ``operands``, without their names."""
        values = [record.value] if self._of_value else []
        if self._of_nth:
            values.append(nth)
        for key in self._keys:  # a comprehension takes longer
            values.append(seen[key].last if key in seen else None)
        if self._metadata:
            members = record.metadata if type(record.metadata) is dict else {}
            for name in self._metadata:
                values.append(members.get(name))
        if self.previous:
            before = seen[record.key].metadata if record.key in seen else None
            members = before if type(before) is dict else {}  # isinstance takes longer
            for name in self.previous:
                values.append(members.get(name))
        return tuple(self._read(values))

    def signatures(self, records: Sequence[Record], seen: Seen) -> list[tuple[Any, ...]]:
        """Return the values of ``operands`` at each record of a key, without their names.

        As if the records were logged in this order, after all others in ``seen``.
        """
        columns: list[Iterable[Any]] = []
        values = [record.value for record in records]
        if self._of_value:
            columns.append(self._read(values))
        if self._of_nth:
            columns.append(repeat(None))
        for key in self._keys:
            if key == records[0].key:
                columns.append(self._read([None, *values]))
            else:
                columns.append(repeat(*self._read([seen[key].last if key in seen else None])))
        members = [record.metadata if type(record.metadata) is dict else {} for record in records]
        for name in self._metadata:
            columns.append(self._read([fields.get(name) for fields in members]))
        members_before = [{}, *members]
        for name in self.previous:
            columns.append(self._read([fields.get(name) for fields in members_before]))
        return list(zip(*columns, strict=False))

    def _read(self, values: list[Any]) -> list[Any]:
        """Return values, in which text is a number if the formula reads it so."""
        if self._reads_text and str in map(type, values):
            return list(map(read_number, values))
        return values


class Steps(msgspec.Struct, frozen=True):
    """The operands of formulas at all records of a key.

    Each of the ``pairs`` is what the formulas use of the metadata of the record before, which is
    empty for the first record, and of those of the record itself; ``others`` are the values of
    other keys.
    """

    others: tuple[Any, ...]
    pairs: list[tuple[Any, Any]]


class StepMemory:
    """The steps for which all formulas of a key held, in logs in the order of training."""

    def __init__(self, key: str, formulas: Sequence[Formula]) -> None:
        """Start without a memory."""
        names = set(chain.from_iterable([formula.names for formula in formulas]))
        self._kept: dict[tuple[Any, ...], set[tuple[Any, Any]]] = {}
        self._members = sorted(set(chain.from_iterable([formula.members for formula in formulas])))
        self._keys = sorted(names)
        self._needs_values = not names.isdisjoint({key, *OF_A_RECORD})

    def steps(self, metadata: Sequence[Any], seen: Seen) -> Steps | None:
        """Return all operands of the formulas, by the ``metadata`` of all records of the key.

        None if an operand is not a number, or is zero, whose sign equality does not see.
        """
        if self._needs_values or set(map(type, metadata)) != {dict}:
            return None
        others = tuple([seen[key].last if key in seen else None for key in self._keys])
        columns = [[fields.get(name) for fields in metadata] for name in self._members]
        operands = [*others, *chain.from_iterable(columns)]
        if 0 in operands or not _COMPARABLE.issuperset(map(type, operands)):
            return None
        rows: Iterable[Any] = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        return Steps(others, list(pairwise([(), *rows])))

    def has(self, steps: Steps) -> bool:
        """Return whether the formulas are known to hold at all steps."""
        return self._kept.get(steps.others, set()).issuperset(steps.pairs)

    def keep(self, steps: Steps) -> None:
        """Remember that the formulas hold at all steps."""
        if sum(map(len, self._kept.values())) > _MOST_STEPS:
            self._kept.clear()
        self._kept.setdefault(steps.others, set()).update(steps.pairs)


def _members_of(owner: str, formula: str) -> tuple[str, ...]:
    """Return the members that a formula uses of ``metadata`` or ``previous``, sorted."""
    return tuple(sorted(set(re.findall(rf"\b{owner}\.(\w+)", formula))))


# ---- formulas that give a number ----------------------------------------------------------


def evaluate(formula: str, values: Mapping[str, Any]) -> int | float:
    """Return the number that a quantity gives for ``values``, which may have more than it needs.

    The type of the formula decides how the result is written: ``math.ceil(10.0 / size)`` gives 2.0,
    ``int(math.ceil(10.0 / size))`` 2.

    Raises:
        ValueError: the formula is not a quantity, needs a value that is missing or not a number, or
            an integer is out of range.
    """
    number = quantity(formula)
    names = names_in(formula)
    missing = sorted(names - values.keys())
    if missing:
        raise ValueError(f"formula {formula!r}: no value for {', '.join(missing)}")
    wrong = sorted(name for name in names if not is_number(values[name]))
    if wrong:
        raise ValueError(f"formula {formula!r}: {', '.join(wrong)} is not a number")
    try:
        result: int | float = number({name: float(values[name]) for name in names})
    except ArithmeticError as error:
        raise ValueError(f"formula {formula!r}: integer out of range") from error
    except KeyError as error:
        raise ValueError(f"formula {formula!r}: no value for {error.args[0]}") from error
    return result


def amount(tree: ast.expr, operands: Operands) -> int | float | None:
    """Return the number that a part of a rule's formula has for a record.

    None if it lacks a value, or is not a number.
    """
    try:
        result = _compiled_number(tree)(operands.data)
    except NO_ANSWER:
        return None
    return result if is_number(result) and not isinstance(result, bool) else None


# ---- what a formula is compiled to --------------------------------------------------------


@lru_cache(maxsize=1024)
def condition(text: str) -> Evaluate:
    """Return what evaluates a condition.

    Raises:
        FormulaError: the text is not a formula, or not one that is true or false.
    """
    return _compiled(text, _condition)


@lru_cache(maxsize=1024)
def quantity(text: str) -> Evaluate:
    """Return what evaluates an expression that gives a double or an integer.

    Raises:
        FormulaError: the text is not a formula, or not one that gives a number.
    """
    return _compiled(text, _quantity)


def _compiled(text: str, kind: Callable[[ast.expr], Evaluate]) -> Evaluate:
    try:
        return kind(tree_of(text))
    except (RecursionError, MemoryError) as error:
        raise FormulaError("it is nested too deeply") from error


def tree_of(text: str) -> ast.expr:
    """Return a formula as a tree of Python, in which ``b if a else c`` stands for ``a ? b : c``.

    Raises:
        FormulaError: it cannot be read.
        RecursionError, MemoryError: it is nested too deeply.
    """
    match = _UNKNOWN.search(text)
    if match:
        raise FormulaError(f"{match[0]!r} at column {match.start() + 1} is not part of a formula")
    reserved = sorted(names_in(text) & RESERVED)
    if reserved:
        raise FormulaError(f"{', '.join(reserved)} is a reserved word")
    words = " ".join(text.replace("&&", " and ").replace("||", " or ").split())
    try:
        return ast.parse(_with_python_choices(words), mode="eval").body
    except SyntaxError as error:
        raise FormulaError(f"it cannot be read ({error.msg})") from error


def _with_python_choices(text: str) -> str:
    if "?" not in text:
        return text
    levels = [""]  # the contents of the parentheses that are open
    for part in re.split(r"([()])", text):
        if part == "(":
            levels.append("")
        elif part == ")" and len(levels) > 1:
            inner = levels.pop()
            levels[-1] += f"({_with_python_choice(inner)})"
        else:
            levels[-1] += part
    return _with_python_choice("(".join(levels))


def _with_python_choice(text: str) -> str:
    test, choice, rest = text.partition("?")
    first, _, second = rest.partition(":")
    return f"({first}) if ({test}) else ({_with_python_choice(second)})" if choice else text


def written(tree: ast.AST) -> str:
    """Return a part of a formula as a formula has it, for messages."""
    return ast.unparse(tree).replace(" and ", " && ").replace(" or ", " || ")


def _call(tree: ast.expr) -> tuple[Any, ...] | None:
    """Return the name of the function that an expression calls, and its arguments."""
    match tree:
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name, *arguments
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=owner), attr=name), args=arguments, keywords=[]
        ):
            return f"{owner}.{name}", *arguments
    return None


def _condition(tree: ast.expr) -> Evaluate:
    match _call(tree) or tree:
        case ast.Name(id="true" | "false" as name):
            return lambda _: name == "true"
        case ast.Compare(left=left, ops=[relation], comparators=[right]):
            return _applied(relation, left, right)
        case ast.BoolOp(op=sign, values=parts):
            return _decided_by(isinstance(sign, ast.Or), [_condition(part) for part in parts])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            decides = _condition(test)
            one = _condition(body)
            other = _condition(orelse)
            return lambda data: one(data) if decides(data) else other(data)
        case "has", ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in METADATA_NAMES:
            member = f"{owner}.{name}"
            return lambda data: member in data
        case "math.isFinite", argument:
            number = _number(argument)
            return lambda data: math.isfinite(number(data))
    raise FormulaError(f"expected a condition, which is true or false, not {written(tree)}")


def _quantity(tree: ast.expr) -> Evaluate:
    return _integer(tree) if _is_integer(tree) else _number(tree)


def _number(tree: ast.expr) -> Evaluate:
    match tree:
        case ast.Constant(value=float() as value):
            return lambda _: value
        case (
            ast.Name() | ast.Subscript(value=ast.Name(id="value"), slice=ast.Constant(value=int()))
        ):
            # Unparsing is slow.
            name = tree.id if isinstance(tree, ast.Name) else ast.unparse(tree)
            if name not in _NOT_NUMBERS:
                return operator.itemgetter(name)
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in METADATA_NAMES:
            return operator.itemgetter(f"{owner}.{name}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _number(operand)
            return lambda data: -negated(data)
        case ast.BinOp(left=left, op=sign, right=right):
            return _applied(sign, left, right)
    return _called(tree)


_compiled_number = lru_cache(maxsize=1024)(_number)


def _called(tree: ast.expr) -> Evaluate:
    """Return what calls a function that gives a double."""
    match _call(tree):
        case "double", argument:
            integer = _integer(argument)
            return lambda data: float(integer(data))
        case name, one if name in _FUNCTIONS:
            number = _number(one)
            of_number = _FUNCTIONS[name]
            return lambda data: of_number(number(data))
        case name, one, other if name in _EXTREMES:
            return _extreme(_EXTREMES[name], one, other)
    text = written(tree)
    if _is_integer(tree):
        double = f"{text}.0" if isinstance(tree, ast.Constant) else f"double({text})"
        raise FormulaError(f"{text} is a whole number; write {double}")
    raise FormulaError(f"expected a number, not {text}")


def _is_integer(tree: ast.expr) -> bool:
    """Return whether an expression can only be an integer."""
    match tree:
        case ast.Constant(value=int() as value):
            return not isinstance(value, bool)
        case ast.Call(func=ast.Name(id="int")):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_integer(left) and _is_integer(right)
    return False


def _integer(tree: ast.expr) -> Evaluate:
    match _call(tree) or tree:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return lambda _: value
        case "int", argument:
            number = _number(argument)
            return lambda data: _whole(number(data))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as sign, right=right):
            function = OPERATORS[type(sign)]
            first = _integer(left)
            second = _integer(right)
            return lambda data: _in_range(function(first(data), second(data)))
    raise FormulaError(f"expected a whole number, such as int(value), not {written(tree)}")


def _extreme(beats: Callable[[Any, Any], bool], one: ast.expr, other: ast.expr) -> Evaluate:
    first = _number(one)
    second = _number(other)

    def evaluate(data: Mapping[str, Any]) -> Any:
        value = first(data)
        challenger = second(data)
        if isinstance(value, str) or isinstance(challenger, str):
            raise TypeError
        return challenger if beats(challenger, value) else value

    return evaluate


def _applied(sign: ast.AST, left: ast.expr, right: ast.expr) -> Evaluate:
    function = OPERATORS[type(sign)]
    first = _number(left)
    second = _number(right)
    return lambda data: function(first(data), second(data))


def _decided_by(deciding: bool, parts: Sequence[Evaluate]) -> Evaluate:
    """Return a conjunction or disjunction: one part decides it, even if others lack a value."""

    def evaluate(data: Mapping[str, Any]) -> bool:
        lacking = False
        for part in parts:
            try:
                if part(data) == deciding:
                    return deciding
            except NO_ANSWER:
                lacking = True
        if lacking:
            raise KeyError
        return not deciding

    return evaluate


# ---- arithmetic ---------------------------------------------------------------------------

_LARGEST_INTEGER = 2**63
_LONGEST_NUMBER = 1000  # digits
_WHOLE = r"[ \t-\r]*[+-]?[0-9]+[ \t-\r]*"


def _divided(number: float, divisor: float) -> float:
    """Divide as processors do."""
    try:
        return number / divisor
    except ZeroDivisionError:
        if math.isnan(number) or not number:
            return math.nan
        return math.copysign(math.inf, number) * math.copysign(1.0, divisor)


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    def evaluate(number: float) -> float:
        # Zero keeps its sign.
        return math.copysign(function(number), number) if math.isfinite(number) else number

    return evaluate


def _rounded(number: float) -> float:
    """Round half away from zero."""
    whole = math.trunc(number)
    if abs(number - whole) < 0.5:  # noqa: PLR2004
        return float(whole)
    return float(whole + math.copysign(1.0, number))


def _whole(value: float | str) -> int:
    if isinstance(value, str):
        if len(value) > _LONGEST_NUMBER or not re.fullmatch(_WHOLE, value):
            raise ValueError
        return _in_range(int(value))
    if abs(value) >= _LARGEST_INTEGER:
        raise OverflowError
    return math.trunc(value)


def _in_range(number: int) -> int:
    if not -_LARGEST_INTEGER <= number < _LARGEST_INTEGER:
        raise OverflowError
    return number


OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divided,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_EXTREMES = {"math.greatest": operator.gt, "math.least": operator.lt}
_FUNCTIONS: Mapping[str, Callable[[Any], float]] = {
    "math.abs": abs,
    "math.ceil": _of_finite(math.ceil),
    "math.floor": _of_finite(math.floor),
    "math.round": _of_finite(_rounded),
    "math.sqrt": lambda number: math.sqrt(number) if not number < 0 else math.nan,
}
