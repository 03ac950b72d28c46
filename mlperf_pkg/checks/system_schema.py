"""What a system description must hold: the schemas in ``rules/systems/``.

The required fields are the same in every round; the names of availabilities are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from mlperf_pkg.infra.resources import data_folder

FILL_IN = "FILL IN"
"""How the value of a field begins that ``system init`` leaves to a human."""

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
_STRICT_FROM = 4  # the first major round whose availabilities the official checker looks at


@lru_cache
def schema(name: str) -> dict[str, Any]:
    """One schema: ``system``, ``availability_0.7`` or ``availability_4.0``."""
    file = data_folder("rules") / "systems" / f"{name}.schema.json"
    contents: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return contents


class Wrong(NamedTuple):
    """A field that is not as the schema has it: by which keyword, what was found and needed."""

    keyword: str
    field: str
    found: Any
    needed: Any


def wrong_fields(contents: Mapping[str, Any]) -> Iterator[Wrong]:
    """The fields of a wrong type or value, by the keywords that the schema uses of JSON Schema.

    The library ``jsonschema`` finds the same, but takes longer to import than a check to run.
    """
    for field, asked in _asked():
        if field not in contents:
            continue
        found = contents[field]
        if asked.options is not None and found not in asked.options:
            yield Wrong("enum", field, found, asked.options)
        if asked.types and (not isinstance(found, asked.types) or isinstance(found, bool)):
            yield Wrong("type", field, found, asked.type)


class _Asked(NamedTuple):
    """What the schema asks of a field: one of some values, a type as it says, and as Python."""

    options: list[Any] | None
    type: Any
    types: tuple[type, ...]


@lru_cache
def _asked() -> Sequence[tuple[str, _Asked]]:
    definitions, asked = schema("system")["$defs"], []
    for name, field in schema("system")["properties"].items():
        said = definitions[field["$ref"].rpartition("/")[2]] if "$ref" in field else field
        kind = said.get("type", [])
        kinds = [kind] if isinstance(kind, str) else kind
        types = tuple(type_ for each in kinds for type_ in _KINDS[each])
        asked.append((name, _Asked(said.get("enum"), kind, types)))
    return asked


def required_fields() -> Sequence[str]:
    """The fields that every description has, in their order."""
    fields: list[str] = schema("system")["required"]
    return fields


def needing_answer() -> Sequence[Sequence[str]]:
    """The fields that must not be empty; of several in one list, at least one."""
    groups: list[list[str]] = schema("system")["x-needs-answer"]
    return groups


def meaning(field: str) -> str:
    """What a field tells, in a sentence."""
    text: str = schema("system")["properties"][field]["description"]
    return text


def is_strict(usage: str, round_: str) -> bool:
    """Whether the official checker accepts but four availabilities."""
    return usage == "training" and int(round_.partition(".")[0]) >= _STRICT_FROM


def statuses(usage: str, round_: str) -> Sequence[str]:
    """The availabilities of a round."""
    name = "availability_4.0" if is_strict(usage, round_) else "availability_0.7"
    names: list[str] = schema(name)["properties"]["status"]["enum"]
    return names


def status_of_round(said: str, usage: str, round_: str) -> str | None:
    """An availability as a round spells it; None where the round has none such."""
    known = {name.lower(): name for name in statuses(usage, round_)}
    formerly = schema("availability_4.0")["x-formerly"] if is_strict(usage, round_) else {}
    usual = said.strip().lower()
    return known.get(usual) or formerly.get(usual)
