"""Values of a system description: what they mean, and how findings show them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeGuard

from mlperf_pkg.checks.system_schema import FILL_IN, schema
from mlperf_pkg.findings import Finding
from mlperf_pkg.rulebook.load import codes

_MAX_COUNT = 10**9
_MAX_CHARACTERS = 80  # of a value in a message


def system_finding(code: str, path: str, line: int | None, message: str, **fields: Any) -> Finding:
    """Return a finding whose source is that of its code."""
    fields["found"] = _reportable(fields.get("found"))
    source = codes()[code].source
    return Finding(code=code, path=path, line=line, message=message, source=source, **fields)


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a value is text."""
    return isinstance(value, str)


def is_answer(value: Any) -> bool:
    """Return whether a value answers its field: it is neither empty nor a placeholder."""
    if is_text(value):
        return not _placeholder().match(value.lower())
    return value not in (None, {}, [])


@cache
def _placeholder() -> re.Pattern[str]:
    return re.compile(schema("system")["x-placeholder"], re.DOTALL)


def is_to_fill_in(value: Any) -> bool:
    """Return whether ``system init`` left the value to a human."""
    return is_text(value) and value.startswith(FILL_IN)


def whole_number(value: Any) -> int | None:
    """Return a count as the result summarizer's int() reads it, within reason."""
    try:
        number = int(value) if isinstance(value, str | float) else value
    except (ValueError, OverflowError):  # OverflowError: infinity
        return None
    if type(number) is not int or (isinstance(value, float) and number != value):
        return None
    return number if 0 <= number <= _MAX_COUNT else None


def shown(value: Any) -> str:
    """Return a value as JSON, shortened, for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return _printable(text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 3]}...")


def one_of(options: Sequence[str]) -> str:
    """Return the options in words, for a message."""
    return " or ".join(shown(option) for option in options)


def _reportable(value: Any) -> Any:
    """Return a value that any report can hold: not nested, no NaN, no half of a character."""
    if is_text(value):
        return _printable(value)
    is_nested = isinstance(value, dict | list)
    is_not_finite = isinstance(value, float) and not math.isfinite(value)
    return shown(value) if is_nested or is_not_finite else value


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
