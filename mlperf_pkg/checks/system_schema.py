"""What a system description must contain: the schemas in ``rules/systems/``.

The required fields are the same in every round; the names of availabilities are not. Below, what
values mean, and how findings show them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeGuard

from mlperf_pkg.findings import Finding, word
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.rulebook.model import version_of

FILL_IN = "FILL IN"
"""The start of every value that ``system init`` leaves to a human."""

SIMILAR = 0.85
"""The similarity, up to 1, of a field or a status and its misspelling."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
_FIXED_FROM = (4, 0)  # the first round whose availabilities the official checker checks
STRICT_FROM = (6, 1)  # the first round for which what published submissions often lack counts


@cache
def schema(name: str) -> dict[str, Any]:
    """Return one schema: ``system``, ``availability_0.7`` or ``availability_4.0``."""
    file = data_folder("rules") / "systems" / f"{name}.schema.json"
    contents: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return contents


def violations(fields: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the fields of a wrong type or value: the keyword, the field, and what is expected.

    The library ``jsonschema`` finds the same, but takes longer to import than a check takes.
    """
    for name, (options, type_, types) in _allowed_values().items():
        if name not in fields:
            continue
        value = fields[name]
        if options is not None and value not in options:
            yield "enum", name, options
        if types and (not isinstance(value, types) or isinstance(value, bool)):
            yield "type", name, type_


@cache
def _allowed_values() -> Mapping[str, tuple[list[Any] | None, Any, tuple[type, ...]]]:
    """Return the values of each field: some options, or a type as the schema and Python name it."""
    definitions = schema("system")["$defs"]
    allowed = {}
    for name, field in schema("system")["properties"].items():
        definition = definitions[field["$ref"].rpartition("/")[2]] if "$ref" in field else field
        type_ = definition.get("type", [])
        names = [type_] if isinstance(type_, str) else type_
        types = tuple(python_type for name in names for python_type in _TYPES[name])
        allowed[name] = definition.get("enum"), type_, types
    return allowed


def required_fields() -> Sequence[str]:
    """Return the fields that every description has, in their order."""
    fields: list[str] = schema("system")["required"]
    return fields


@cache
def needing_answer(round_: str | None = None, *, preview: bool = False) -> Sequence[Sequence[str]]:
    """Return groups of fields; at least one field of each group must not be empty.

    The rules of earlier rounds, and those for a ``preview``, ask for fewer; None is the newest.
    """
    groups: list[list[str]] = schema("system")["x-needs-answer"]
    optional = optional_fields(round_, preview=preview)
    return [group for group in groups if not optional.issuperset(group)]


@cache
def optional_fields(round_: str | None = None, *, preview: bool = False) -> frozenset[str]:
    """Return the fields that the rules of a round do not require; None is the newest round."""
    optional = set(schema("system")["x-optional-for-preview"] if preview else ())
    for first, fields in schema("system")["x-asked-from"].items():
        if round_ and version_of(round_) < version_of(first):
            optional.update(fields)
    return frozenset(optional)


def meaning(field: str) -> str:
    """Return what a field means, in a sentence."""
    text: str = schema("system")["properties"][field]["description"]
    return text


def has_fixed_statuses(usage: str, round_: str) -> bool:
    """Return whether the official checker accepts only four availabilities."""
    return usage == "training" and version_of(round_) >= _FIXED_FROM


def statuses(usage: str, round_: str) -> Sequence[str]:
    """Return the availabilities of a round."""
    is_fixed = has_fixed_statuses(usage, round_)
    name = "availability_4.0" if is_fixed else "availability_0.7"
    names: list[str] = schema(name)["properties"]["status"]["enum"]
    return names


def spelled_statuses() -> Sequence[str]:
    """Return the availabilities of all rounds, in lower case, as descriptions spell them."""
    return list(schema("availability_4.0")["x-formerly"])


def logged_statuses(status: str) -> Sequence[str]:
    """Return what logs of a system with an availability of any round name; empty for other text."""
    names: list[str] = schema("availability_0.7")["x-logged"].get(status.strip().lower(), [])
    return names


def status_of_round(status: str, usage: str, round_: str) -> str | None:
    """Return an availability of any round as another round spells it; None where it has none."""
    names = {name.lower(): name for name in statuses(usage, round_)}
    is_fixed = has_fixed_statuses(usage, round_)
    former = schema("availability_4.0")["x-formerly"] if is_fixed else {}
    category = status.strip().lower()
    return names.get(category) or former.get(category)


# ---- values -------------------------------------------------------------------------------

_MAX_COUNT = 10**9


def system_finding(code: str, path: str, line: int | None, message: str, **fields: Any) -> Finding:
    """Return a finding on a description; ``fields`` are as for ``finding_of``."""
    fields["found"] = _reportable(fields.get("found"))
    return finding_of(code, message, path, line=line, **fields)


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a value is text."""
    return isinstance(value, str)


def is_answer(value: Any) -> bool:
    """Return whether a value answers its field: it is neither empty nor a placeholder."""
    if is_text(value):
        return not re.match(schema("system")["x-placeholder"], value.lower(), re.DOTALL)
    return value not in (None, {}, [])


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
    return _printable(word(value))


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
