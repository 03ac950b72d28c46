"""Formulas between keys, in CEL, the Common Expression Language.

All numbers are doubles, so that ``value >= 2 * other`` cannot mean one thing for ``1`` and another
for ``1.0``: write ``2.0 * other``; the compiler refuses the rest. Where the official checker tests
doubles for equality, a formula keeps its order of operations, and so gets the same doubles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from mlperf_pkg.infra.numbers import to_float
from mlperf_pkg.log.record import Record

# Not a function, a namespace (math.) or a member of one.
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*[(.])")
_RECORDS = ("metadata", "previous")
_MEMBER = re.compile(rf"\b({'|'.join(_RECORDS)})\.(\w+)")
_REMEMBERED = 1 << 12  # answers for each formula: runs of a set ask the same again
_named: set[str] = set()  # in any formula: to declare them together is ten times as fast


class NoAnswerError(ValueError):
    """A formula needs a value that is missing or no number."""


@lru_cache
def names_in(formula: str) -> frozenset[str]:
    """The identifiers of a formula: ``value`` and the keys it relates."""
    return frozenset(_NAME.findall(formula)) - {"true", "false"}


def of_a_record(formula: str) -> bool:
    """Whether a formula is about single records, not about the run's final values."""
    return bool(_MEMBER.search(formula))


class Formula:
    """A formula as a function of the values of its ``names``.

    ``metadata.<name>`` stands for a number or text of the record's metadata, ``previous.<name>``
    for that of the same key's record before it. It is compiled when it is asked first. What it is
    ``given`` are the values of the names, and behind them those of its members, in order.
    """

    def __init__(self, text: str) -> None:
        """Take a formula, which may be wrong."""
        self.names = tuple(sorted(names_in(text)))
        _named.update(self.names)
        self._text = text
        self._value, self._nth = map(self._place, ("value", "nth"))
        self._members = _members_in(text)
        self._of_metadata, self._of_previous = (
            [name for whose, name in self._members if whose == each] for each in _RECORDS
        )
        self._remembered: dict[tuple[Any, ...], bool | str] = {}

    def _place(self, name: str) -> int | None:
        return self.names.index(name) if name in self.names else None

    def given(self, record: Record, seen: Mapping[str, Any], nth: Any = None) -> tuple[Any, ...]:
        """Its values at a record: of other keys, the last that were logged before it."""
        given: list[Any] = []
        for name in self.names:  # a comprehension takes longer
            given.append(seen[name].last if name in seen else None)
        if self._value is not None:
            given[self._value] = record.value
        if self._nth is not None:
            given[self._nth] = nth
        if self._of_metadata:
            known = isinstance(record.metadata, dict)
            for name in self._of_metadata:
                given.append(record.metadata.get(name) if known else None)
        if self._of_previous:
            before: Any = seen[record.key].metadata if record.key in seen else None
            known = isinstance(before, dict)
            for name in self._of_previous:
                given.append(before.get(name) if known else None)
        return tuple(given)

    def holds(self, given: tuple[Any, ...]) -> bool:
        """Whether it holds of what it is ``given``.

        Raises:
            NoAnswerError: it needs a value that is missing or no number. A part that the rest
                decides without needing it (``a || b``) is not needed.
            ValueError: it is no CEL, or not of type bool.
        """
        try:
            found = self._remembered.get(given)
        except TypeError:  # a list or an object, which is no number
            found = self._answer(given)
        if found is None:
            found = self._answer(given)
            # Zeros have a sign, which equality does not tell.
            if 0 not in given and len(self._remembered) < _REMEMBERED:
                self._remembered[given] = found
        if isinstance(found, str):
            raise NoAnswerError(found)
        return found

    def _answer(self, given: Sequence[Any]) -> bool | str:
        """True or false, or why there is no answer."""
        count = len(self.names)
        numbers = zip(self.names, map(to_float, given[:count]), strict=True)
        data: dict[str, Any] = {name: number for name, number in numbers if number is not None}
        data |= {name: {} for name, _ in self._members}
        for (name, member), value in zip(self._members, map(_told, given[count:]), strict=True):
            if value is not None:
                data[name][member] = value
        cel, expression = _compiled(self._text)
        result = expression.eval(data=data)
        return result.value() is True if result.type() == cel.Type.BOOL else str(result.value())


@lru_cache
def compile_formula(text: str) -> Formula:
    """A formula that is known to be right.

    Raises:
        ValueError: it is no CEL, or not of type bool.
    """
    formula = Formula(text)
    _compiled(text)
    return formula


def _members_in(text: str) -> tuple[tuple[str, str], ...]:
    """What a formula asks of ``metadata`` and of ``previous``: whose, and which member."""
    return tuple(sorted(set(_MEMBER.findall(text))))


@lru_cache
def _compiled(text: str) -> tuple[Any, Any]:
    """The CEL library and its expression."""
    cel, environment = _environment(frozenset(_named))
    try:
        expression = environment.compile(text)
    except RuntimeError as error:
        raise ValueError(f"formula {text!r}: {error}") from error
    if expression.return_type() != cel.Type.BOOL:
        raise ValueError(f"formula {text!r} is no condition")
    return cel, expression


@lru_cache
def _environment(names: frozenset[str]) -> tuple[Any, Any]:
    """The CEL library and what it compiles formulas in."""
    # The library takes a few milliseconds to import; most logs need none of it.
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_math  # noqa: PLC0415

    types = dict.fromkeys(names, cel.Type.DOUBLE)
    types |= dict.fromkeys(_RECORDS, cel.Type.Map(cel.Type.STRING, cel.Type.DYN))
    return cel, cel.NewEnv(variables=types, extensions=[ext_math.ExtMath()])


def _told(value: Any) -> float | str | None:
    """A number as a double, or a text, of a record's metadata; None for anything else."""
    if isinstance(value, str):  # halves of surrogate pairs, which CEL cannot hold, are spelt out
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return to_float(value)
