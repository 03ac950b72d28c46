"""Reference pages for the JSON report and the configuration, generated from their schemas."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mlperf_pkg.infra.resources import data_folder
from references.markdown import code, page, plain, table

_PAGES = {
    "report": "The JSON report",
    "review": "The JSON of a review",
    "config": "The configuration, mlperf-pkg.yaml",
}

Schema = Mapping[str, Any]


def pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each schema."""
    for name, title in _PAGES.items():
        schema = json.loads((data_folder("rules") / f"{name}.schema.json").read_text("utf-8"))
        yield f"{name}.md", page(title, _whole(schema))


def _whole(schema: Schema) -> Iterator[str]:
    yield from _object(schema)
    for name, definition in schema.get("$defs", {}).items():
        yield f"## {name}"
        yield from _object(definition)


def _object(schema: Schema) -> Iterator[str]:
    if "description" in schema:
        yield plain(schema["description"])
    if "properties" in schema:
        yield table(("Field", "Type", "Meaning"), _rows(schema, ""))
    else:
        yield f"{_type(schema).capitalize()}."


def _rows(schema: Schema, above: str) -> Iterator[tuple[str, str, str]]:
    """Yield the fields of an object and, below each field, those of the objects in it."""
    for name, field in schema["properties"].items():
        absent = "required" in schema and name not in schema["required"]
        meaning = [
            plain(field.get("description", "")),
            "May be absent." if absent else "",
            *_such(field),
        ]
        yield code(f"{above}{name}"), _type(field), " ".join(filter(None, meaning))
        for mark, within in _within(field):
            if isinstance(within, dict) and "properties" in within:
                yield from _rows(within, f"{above}{name}{mark}.")


def _within(schema: Schema) -> Iterator[tuple[str, Any]]:
    """Yield the nested schemas of a field, each with its notation in paths."""
    yield "", schema
    yield ".*", schema.get("additionalProperties")
    yield "[]", schema.get("items")


def _such(schema: Schema) -> Iterator[str]:
    if values := ", ".join(code(json.dumps(example)) for example in schema.get("examples", ())):
        yield f"Examples: {values}."


def _type(schema: Schema) -> str:
    """Describe the values that a schema allows."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "const" in schema or "enum" in schema:
        return " or ".join(code(json.dumps(v)) for v in schema.get("enum", [schema.get("const")]))
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[choice])))
    kinds = schema.get("type", "any")
    if kinds == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return " or ".join([kinds] if isinstance(kinds, str) else kinds)
