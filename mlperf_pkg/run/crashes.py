"""Why an official checker crashes on a log, in words."""

from __future__ import annotations

import json

from mlperf_pkg.log.record import shown
from mlperf_pkg.rulebook.formula import NoAnswerError


def reason_of(error: Exception) -> str:
    """Return what is wrong where this code raises the same error as the official checker.

    The name of the error, which the output of the official checker has too, comes first.
    """
    return f"{type(error).__name__}: {_in_words(error)}"


def _in_words(error: Exception) -> str:
    match error:
        case KeyError(args=[key]):
            return f"{key if isinstance(key, str) else shown(key)} is missing"
        case json.JSONDecodeError():
            return f"a line is not JSON: {error.msg}"
        case NoAnswerError():
            return "a value is missing or not a number"
        case TypeError() | AttributeError() | IndexError():
            return "a value of the wrong type"
        case ZeroDivisionError():
            return "a division by zero"
    return str(error)
