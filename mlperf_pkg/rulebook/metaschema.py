"""The vocabulary of rule files, ``rules/metaschema.json``, and what a file says against it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import nearest
from mlperf_pkg.rulebook.model import SECTIONS, Rule
from mlperf_pkg.rulebook.problems import Step, Steps, suggestion

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

# Every other file is a benchmark's.
_KINDS = frozenset({"round", "tensors", "findings", "sources", "reference_points"})
_FEW = 16  # names that a message may list
_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "a string",
}
_DESCRIBED = frozenset({"oneOf", "pattern", "type"})
_EXPECTED = {
    "const": "the value {}",
    "maxProperties": "at most {} entry",
    "minimum": "at least {}",
    "oneOf": "a value of another type",
    "uniqueItems": "no entry twice",
}


@cache
def metaschema() -> dict[str, Any]:
    """Return the contents of ``rules/metaschema.json``."""
    text = (data_folder("rules") / "metaschema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def constraint_names() -> frozenset[str]:
    """Return the names of the constraints that a rule may have."""
    names: Mapping[str, Any] = metaschema()["$defs"]["rule"]["properties"]
    return frozenset(names) - frozenset(Rule.__struct_fields__)


def kind_of(stem: str) -> str:
    """Return the definition that a file follows, by its name without ``.yaml``."""
    return stem if stem in _KINDS else "benchmark"


def complaints(kind: str, document: Any) -> Iterator[tuple[Steps, str]]:
    """Yield where a document breaks the definition ``kind`` of the metaschema, and a message."""
    plain = json.loads(json.dumps(document))  # names are strings in JSON, and ``fields: {1: ...}``
    for error in _validator(kind).iter_errors(plain):
        yield from _explained(error, plain)


@cache
def _validator(kind: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import

    definitions = metaschema()["$defs"]
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": definitions})


# ---- messages -----------------------------------------------------------------------------


def _explained(error: ValidationError, document: Any) -> Iterator[tuple[Steps, str]]:
    steps: Steps = tuple(error.absolute_path)
    subject = _subject(steps, document)
    schema: Any = error.schema
    value: Any = error.instance
    if error.validator == "additionalProperties":
        for name in value.keys() - schema["properties"].keys():
            yield (*steps, name), _unknown(name, list(schema["properties"]), subject)
    elif error.validator == "required":
        required: Any = error.validator_value
        yield from ((steps, f"{subject} has no {name}") for name in required if name not in value)
    elif "propertyNames" in error.absolute_schema_path:
        yield (*steps, value), f"{value!r} is not a valid name: expected {_expected(error)}"
    elif branch := _branch(error):
        yield from (complaint for inner in branch for complaint in _explained(inner, document))
    else:
        yield steps, f"{subject} is {json.dumps(value)}; expected {_expected(error)}"


def _branch(error: ValidationError) -> list[ValidationError]:
    """Return the errors of the one branch of ``oneOf`` whose type is that of the value, if any."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [
        errors
        for errors in branches.values()
        if not any(inner.validator == "type" and not inner.path for inner in errors)
    ]
    return fitting[0] if len(fitting) == 1 else []


def _unknown(name: str, names: Sequence[str], subject: str) -> str:
    """Return a message about an unknown name in a mapping that may have ``names``."""
    near = nearest(name, names)
    constraints = constraint_names()
    kind = (
        "constraint" if near in constraints or (not near and constraints & set(names)) else "field"
    )
    alternatives = f"; expected one of {', '.join(names)}" if len(names) <= _FEW else ""
    return f"unknown {kind} {name!r} of {subject}{suggestion(name, names) or alternatives}"


def _subject(steps: Sequence[Step], document: Any) -> str:
    """Return what a part is called: "above of NEWB102", "convergence", "the file"."""
    if not steps:
        return "the file"
    owner = owner_of(steps, document)
    depth = _depth(steps, document)
    inner = ".".join(map(str, steps[depth:])) if depth else ""
    return f"{inner} of {owner}" if inner else owner


def owner_of(steps: Sequence[Step], document: Any) -> str:
    """Return the code of the rule that a part belongs to, else its key, else the part itself."""
    depth = _depth(steps, document)
    if not depth:
        return ".".join(map(str, steps))
    rule = _part(document, steps[:depth])
    code = rule.get("code") if isinstance(rule, Mapping) else None
    return code if isinstance(code, str) else str(_key(steps[:depth]))


def _key(steps: Sequence[Step]) -> Step:
    """Return the key of a rule that ``steps`` lead to: the last name among them."""
    return next(step for step in reversed(steps) if isinstance(step, str))


def _depth(steps: Sequence[Step], document: Any) -> int:
    """Return how many of the steps lead to a rule; 0 where they lead to something else."""
    names = {**dict.fromkeys(SECTIONS, 2), "variants": 4}
    depth = names.get(str(steps[0]), 0) if steps else 0
    if depth > len(steps):
        return 0
    return depth + (len(steps) > depth and isinstance(_part(document, steps[:depth]), list))


def _part(document: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        document = document[step]
    return document


def _expected(error: ValidationError) -> str:
    schema: Any = error.schema
    value: Any = error.validator_value
    if error.validator in _DESCRIBED and "description" in schema:
        return str(schema["description"])
    if error.validator == "enum":
        names = list(map(str, value))
        return f"one of {', '.join(names)}{suggestion(str(error.instance), names)}"
    if error.validator == "type":
        names = [value] if isinstance(value, str) else value
        return " or ".join(_TYPES[name] for name in names)
    words = _EXPECTED.get(str(error.validator), "something that is not empty")
    return words.format(json.dumps(value))
