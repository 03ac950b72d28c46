"""Expressions in CEL, compiled in as few environments as possible.

The names of ``METADATA_NAMES`` are maps, all others are doubles.

This module imports the optional CEL library, which only formulas of a user's own rules need that
``plain_formula`` cannot evaluate. Without it, the import raises ``MissingPackageError``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.resources import require
from mlperf_pkg.rulebook.logged import METADATA_NAMES

_USER = "it is not a simple formula, and"
cel = require("cel_expr_python.cel", "cel", _USER)
ext_math = require("cel_expr_python.ext.ext_math", "cel", _USER)


class Condition(Struct, frozen=True):
    """A compiled expression that is true or false."""

    expression: Any

    def answer(self, data: dict[str, Any]) -> bool | str:
        """Return true or false, or why there is no answer."""
        result = self.expression.eval(data=data)
        return result.value() is True if result.type() == cel.Type.BOOL else str(result.value())


def condition(text: str, names: frozenset[str]) -> Condition:
    """Return a compiled condition; see ``compiled``.

    Raises:
        ValueError: it is not CEL, or not of type bool.
    """
    expression = compiled(text, names)
    if expression.return_type() != cel.Type.BOOL:
        raise ValueError(f"formula {text!r} is not a condition")
    return Condition(expression)


def quantity(text: str, names: frozenset[str]) -> Any:
    """Return a compiled expression that gives a number; see ``compiled``.

    Raises:
        ValueError: it is not CEL, or does not give a number.
    """
    expression = compiled(text, names)
    if expression.return_type() not in (cel.Type.INT, cel.Type.DOUBLE):
        raise ValueError(f"formula {text!r} does not give a number")
    return expression


def compiled(text: str, names: frozenset[str]) -> Any:
    """Return a compiled expression that has these names.

    Raises:
        ValueError: it is not CEL.
    """
    try:
        return _compiler().compiled(text, names)
    except RuntimeError as error:
        raise ValueError(f"formula {text!r}: {error}") from error


class _Environment(Struct, frozen=True):
    """An environment of the library, in which these names are declared."""

    names: frozenset[str]
    library: Any


class _Compiler:
    """Compiles each expression once.

    An environment takes twenty times as long as an expression, so each serves as many of them as
    possible: a new one declares the names of the one before it too.
    """

    def __init__(self) -> None:
        """Start without names."""
        self._compiled: dict[str, Any] = {}
        self._environment: _Environment | None = None

    def compiled(self, text: str, names: frozenset[str]) -> Any:
        """Return an expression; see the function ``compiled``."""
        if text not in self._compiled:
            environment = self._environment
            if environment is None or not names <= environment.names:
                before = environment.names if environment else frozenset()
                environment = self._environment = _environment(before | names)
            self._compiled[text] = environment.library.compile(text)
        return self._compiled[text]


@cache
def _compiler() -> _Compiler:
    return _Compiler()


def _environment(names: frozenset[str]) -> _Environment:
    types = dict.fromkeys(names, cel.Type.DOUBLE)
    types |= dict.fromkeys(METADATA_NAMES, cel.Type.Map(cel.Type.STRING, cel.Type.DYN))
    library = cel.NewEnv(variables=types, extensions=[ext_math.ExtMath()])
    return _Environment(names, library)
