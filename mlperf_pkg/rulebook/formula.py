"""Formulas between keys, in CEL, the Common Expression Language.

All numbers are doubles, so that ``value >= 2 * other`` cannot mean one thing for ``1`` and another
for ``1.0``: write ``2.0 * other``; the compiler refuses the rest. Where the official checker tests
doubles for equality, a formula keeps its order of operations, and so gets the same doubles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.logged import METADATA_NAMES, Seen
from mlperf_pkg.rulebook.plain_formula import NO_ANSWER, plain_condition

if TYPE_CHECKING:
    from mlperf_pkg.rulebook.cel import Condition

# Not a function, a namespace (math.) or a member of one.
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*[(.])")
_MEMBER = re.compile(rf"\b({'|'.join(METADATA_NAMES)})\.(\w+)")
_MOST_ANSWERS = 1 << 12  # kept by each formula: the runs of a set ask for the same again
Operand: TypeAlias = float | str
_OF_A_RECORD = frozenset({"value", "nth"})  # names that are not keys


class NoAnswerError(ValueError):
    """A formula needs a value that is missing or not a number."""


@lru_cache
def names_in(formula: str) -> frozenset[str]:
    """Return the identifiers of a formula: ``value`` and the keys it relates."""
    return frozenset(_NAME.findall(formula)) - {"true", "false"}


def of_a_record(formula: str) -> bool:
    """Return whether a formula is about single records, not about the run's final values."""
    return bool(_MEMBER.search(formula))


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
        """The values as CEL takes them, without those that it cannot take."""
        data: dict[str, Any] = _converted(self.values, to_float)
        if self.metadata:
            data["metadata"] = _converted(self.metadata, _operand)
        if self.previous:
            data["previous"] = _converted(self.previous, _operand)
        return data

    def with_values(self, values: Mapping[str, Any]) -> Operands:
        """Return a copy in which some ``values`` are others."""
        return Operands({**self.values, **values}, self.metadata, self.previous)


class Formula:
    """A formula as a function of the values of its ``names``.

    ``metadata.<name>`` is a number or text of the record's metadata, ``previous.<name>`` one of
    the metadata of the same key's record before it. CEL compiles the formula only if it is not
    plain (``plain_formula``).
    """

    def __init__(self, text: str) -> None:
        """Take a formula, which may be wrong."""
        self.names = names_in(text)
        self.text = text
        self._of_value, self._of_nth = "value" in self.names, "nth" in self.names
        self._keys = tuple(sorted(self.names - _OF_A_RECORD))
        self._values = ("value",) * self._of_value + ("nth",) * self._of_nth + self._keys
        self._metadata, self._previous = (_members(text, record) for record in METADATA_NAMES)
        self._answers: dict[tuple[Any, ...], bool | None] = {}

    def compiled(self) -> Condition:
        """Return the formula as CEL's own.

        Raises:
            ValueError: it is not CEL, or not of type bool.
        """
        from mlperf_pkg.rulebook.cel import condition  # noqa: PLC0415 - slow to import

        return condition(self.text, self.names)

    def prepare(self) -> None:
        """Do what takes time once, before this process forks.

        Raises:
            ValueError: it is not CEL, or not of type bool.
        """
        if not plain_condition(self.text):
            self.compiled()

    def operands(self, record: Record, seen: Seen, nth: Any = None) -> Operands:
        """Return its values at a record: of other keys, the last that were logged before it."""
        return self._operands_of(self._signature(record, seen, nth))

    def _operands_of(self, signature: tuple[Any, ...]) -> Operands:
        """Return the operands whose values are those of a signature."""
        start, end = len(self._values), len(signature) - len(self._previous)
        return Operands(
            dict(zip(self._values, signature, strict=False)),
            dict(zip(self._metadata, signature[start:end], strict=True)),
            dict(zip(self._previous, signature[end:], strict=True)),
        )

    def holds(self, record: Record, seen: Seen, nth: Any = None) -> bool:
        """Return whether it holds at a record; see ``operands``.

        Raises:
            NoAnswerError, ValueError: as ``answer``, which has no answer.
        """
        answer = self.evaluate(self.operands(record, seen, nth))
        if answer is None:
            raise NoAnswerError
        return answer

    def answer(self, record: Record, seen: Seen, nth: Any = None) -> bool | None:
        """Return whether it holds at a record; None if it has no answer: see ``evaluate``.

        Raises:
            ValueError: it is not CEL, or not of type bool.
        """
        signature = self._signature(record, seen, nth)
        try:
            if signature in self._answers:
                return self._answers[signature]
        except TypeError:  # a list or an object, which is not a number
            return self.evaluate(self._operands_of(signature))
        answer = self.evaluate(self._operands_of(signature))
        # Zeros have a sign, which equality does not see.
        if 0 not in signature and len(self._answers) < _MOST_ANSWERS:
            self._answers[signature] = answer
        return answer

    def evaluate(self, operands: Operands) -> bool | None:
        """Return whether it holds; None if it needs a value that is missing or not a number.

        A part that the rest decides without needing it (``a || b``) is not needed.

        Raises:
            ValueError: it is not CEL, or not of type bool.
        """
        evaluate, data = plain_condition(self.text), operands.data
        if evaluate is None:
            answer = self.compiled().answer(data)
            return None if isinstance(answer, str) else answer
        try:
            return evaluate(data)  # type: ignore[no-any-return]
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
        if self._previous:
            before = seen[record.key].metadata if record.key in seen else None
            members = before if type(before) is dict else {}  # isinstance takes longer
            for name in self._previous:
                values.append(members.get(name))
        return tuple(values)


def compile_formula(text: str) -> Formula:
    """Return a formula that is compiled, and so known to be right.

    Raises:
        ValueError: it is not CEL, or not of type bool.
    """
    formula = Formula(text)
    formula.prepare()
    return formula


def _members(text: str, record: str) -> tuple[str, ...]:
    """Return the members that a formula uses of ``metadata`` or of ``previous``, sorted."""
    return tuple(sorted({name for owner, name in _MEMBER.findall(text) if owner == record}))


def _converted(
    values: Mapping[str, Any], convert: Callable[[Any], Operand | None]
) -> dict[str, Operand]:
    """Return values as CEL takes them, without those that it cannot take."""
    return {n: operand for n, value in values.items() if (operand := convert(value)) is not None}


def _operand(value: Any) -> Operand | None:
    """Return a number as a double, or a string, of a record's metadata; None for anything else."""
    if isinstance(value, str):  # halves of surrogate pairs, which CEL cannot hold, are spelt out
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return to_float(value)
