"""What one rule file may say: valid YAML, names of the metaschema, formulas that compile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.plain_yaml import line_of, repeated_keys
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import nearest
from mlperf_pkg.rulebook.expectation import parsed
from mlperf_pkg.rulebook.formula import RESERVED, FormulaError, condition, names_in, quantity
from mlperf_pkg.rulebook.model import SECTIONS, Rule
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Step, Steps, refuse, suggestion

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML without libyaml, which is slower
    from yaml import SafeLoader  # type: ignore[assignment]

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError


def validated(file: RuleFile, data: bytes) -> dict[str, Any]:
    """Return what a file says, with the expressions that it defines in place of their names.

    Raises:
        RulebookError: the file is not valid. The message names every line that is wrong.
    """
    document = parse(file, data)
    kind = file.path.stem if file.path.stem in _KINDS else "benchmark"
    _refuse(file, _complaints(kind, document))
    _refuse(file, _complaints_of_definitions(document))
    whole: dict[str, Any] = expanded(document)
    _refuse(file, _complaints_of_formulas(whole))
    return whole


def _refuse(file: RuleFile, complaints: Iterable[tuple[Steps, str]]) -> None:
    refuse([problem_at(file, steps, message) for steps, message in complaints])


# ---- YAML: a repeated key is an error, 1e-9 is a number, a date is text -------------------

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(SafeLoader):
    """The safe loader of PyYAML with other rules for numbers and dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def parse(file: RuleFile, data: bytes) -> dict[str, Any]:
    """Return the mapping in a file whose text is ``data``.

    Raises:
        RulebookError: the file is not valid YAML in UTF-8, has a repeated key, or is not a mapping.
    """
    with _loader(file, data) as loader:
        node: Any = loader.get_single_node()
        if node is None or node.id != "mapping":
            raise RulebookError(f"{file.shown}:1: not a mapping")
        refuse(
            [
                Problem(file.shown, line, f"{name!r} is given twice, first on line {first}")
                for name, line, first in repeated_keys(node)
            ]
        )
        document: dict[str, Any] = loader.construct_document(node)
        return document


def problem_at(file: RuleFile, steps: Sequence[Step], message: str) -> Problem:
    """Return a problem of the part of a document that ``steps`` lead to, with its line.

    A part that is merged into its mapping (``<<``) is on the line of that mapping.
    """
    with _loader(file, file.read()) as loader:
        node: Any = loader.get_single_node()
    return Problem(file.shown, line_of(node, steps), message)


@contextmanager
def _loader(file: RuleFile, data: bytes) -> Iterator[_Loader]:
    try:
        loader = _Loader(data.decode("utf-8"))
        try:
            yield loader
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise RulebookError(f"{file.shown}:{line}: not valid YAML: {error.problem}") from error
    except RecursionError as error:
        raise RulebookError(f"{file.shown}: not valid: nested too deeply") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RulebookError(f"{file.shown}: not valid YAML in UTF-8: {error}") from error


# ---- the vocabulary, rules/metaschema.json ------------------------------------------------

# Every other file is a benchmark's.
_KINDS = frozenset({"round", "tensors", "findings", "sources"})
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


def _complaints(kind: str, document: Any) -> Iterator[tuple[Steps, str]]:
    """Yield where a document breaks the definition ``kind`` of the metaschema, and a message."""
    plain = json.loads(json.dumps(document))  # names are strings in JSON, and ``fields: {1: ...}``
    for error in _validator(kind).iter_errors(plain):
        yield from _explained(error, plain)


@cache
def _validator(kind: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

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
        for name in required:
            if name not in value:
                yield steps, f"{subject} has no {name}"
    elif "propertyNames" in error.absolute_schema_path:
        yield (*steps, value), f"{value!r} is not a valid name: expected {_expected(error)}"
    elif branch := _branch(error):
        for inner in branch:
            yield from _explained(inner, document)
    else:
        yield steps, f"{subject} is {json.dumps(value)}; expected {_expected(error)}"


def _branch(error: ValidationError) -> list[ValidationError]:
    """Return the errors of the one branch of ``oneOf`` whose type is that of the value, if any."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [errors for errors in branches.values() if not any(map(_is_about_type, errors))]
    return fitting[0] if len(fitting) == 1 else []


def _is_about_type(error: ValidationError) -> bool:
    """Return whether the value itself, not a part of it, is of another type."""
    return error.validator == "type" and not error.path


def _unknown(name: str, names: Sequence[str], subject: str) -> str:
    """Return a message about an unknown name in a mapping that may have ``names``."""
    near = nearest(name, names)
    constraints = constraint_names()
    is_constraint = near in constraints if near else bool(constraints & set(names))
    kind = "constraint" if is_constraint else "field"
    meant = suggestion(name, names)
    if not meant and len(names) <= _FEW:
        meant = f"; expected one of {', '.join(names)}"
    return f"unknown {kind} {name!r} of {subject}{meant}"


def _subject(steps: Sequence[Step], document: Any) -> str:
    """Return what a part is called: "above of NEWB102", "convergence", "the file"."""
    if not steps:
        return "the file"
    owner = owner_of(steps, document)
    depth = _depth(steps, document)
    if depth in (0, len(steps)):
        return owner
    inner = ".".join(map(str, steps[depth:]))
    return f"{inner} of {owner}"


def owner_of(steps: Sequence[Step], document: Any) -> str:
    """Return the code of the rule that a part belongs to, else its key, else the part itself."""
    depth = _depth(steps, document)
    if not depth:
        return ".".join(map(str, steps))
    rule = _part(document, steps[:depth])
    code = rule.get("code") if isinstance(rule, Mapping) else None
    if isinstance(code, str):
        return code
    return next(step for step in reversed(steps[:depth]) if isinstance(step, str))


def _depth(steps: Sequence[Step], document: Any) -> int:
    """Return how many of the steps lead to a rule; 0 where they lead to something else."""
    depth = 0
    if steps and steps[0] in SECTIONS:
        depth = 2  # the section and a key
    elif steps and steps[0] == "variants":
        depth = 4  # a key that chooses, its value, and a key
    if depth == 0 or depth > len(steps):
        return 0
    has_index = len(steps) > depth and isinstance(_part(document, steps[:depth]), list)
    return depth + 1 if has_index else depth


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


# ---- formulas, and names for long expressions ---------------------------------------------

DEFINE = "define"
_LONGEST = 10_000  # characters of an expression; ours have fewer than 1,000
WRITTEN = "written"
"""The field of an expanded rule that keeps its formula as the file has it."""

_OWN_NAMES = frozenset({"true", "false", "value", "nth", "metadata", "previous", "math"})
_SIMULATION = "simulation"  # its formulas are values, not conditions


def parts_of(document: Any, steps: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Yield every part of a document, with the steps that lead to it."""
    yield steps, document
    if isinstance(document, dict):
        for name, part in document.items():
            yield from parts_of(part, (*steps, name))
    elif isinstance(document, list):
        for index, part in enumerate(document):
            yield from parts_of(part, (*steps, index))


def _formulas(document: Any) -> Iterator[tuple[Steps, str]]:
    """Yield every formula of a rule, target or simulation, with the steps that lead to it."""
    for steps, part in parts_of(document):
        if steps[-1:] == ("formula",) and isinstance(part, str):
            yield steps, part


def _complaints_of_formulas(document: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Yield the formulas of rules that are not conditions, and of a simulation not quantities."""
    for steps, formula in _formulas(document):
        is_rule = steps[0] != _SIMULATION
        owner = owner_of(steps[:-1], document)
        compiled = condition if is_rule else quantity
        try:
            compiled(formula)
        except FormulaError as error:
            yield steps, f"formula of {owner} is not valid: {error}"
            continue
        if is_rule and parsed(formula) is None and not _says_what_is_needed(document, steps):
            message = (
                "cannot be put into words; add the field needed, which says what the rule expects"
            )
            yield steps, f"formula of {owner} {message}"


def _says_what_is_needed(document: Mapping[str, Any], steps: Steps) -> bool:
    """Return whether a part of a rule, or what it is in, has the field ``needed``."""
    return any("needed" in _part(document, steps[:depth]) for depth in range(len(steps)))


def _complaints_of_definitions(document: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Yield what is wrong with the names that a valid document defines."""
    definitions: Mapping[str, str] = document.get(DEFINE, {})
    formulas = list(_formulas(document))
    used = _used([formula for _, formula in formulas], definitions)
    names = list(definitions)
    for index, name in enumerate(names):
        steps: Steps = (DEFINE, name)
        if name in _OWN_NAMES | RESERVED:
            yield steps, f"define must not use the name {name!r}, which formulas already know"
        if name not in used:
            yield steps, f"no formula of this file uses {name!r}"
        for later in names_in(definitions[name]) & set(names[index:]):
            yield steps, f"{name!r} uses {later!r}, which is not defined before it"
    defined: list[tuple[Steps, str]] = [((DEFINE, name), definitions[name]) for name in names]
    for place in _too_long([*defined, *formulas]):
        yield (
            place,
            f"longer than {_LONGEST:,} characters, with the definitions that the expression uses",
        )


def _too_long(expressions: Iterable[tuple[Steps, str]]) -> Iterator[Steps]:
    """Yield where an expression is too long with those that it uses, which may double each."""
    lengths: dict[str, int] = {}
    for steps, text in expressions:
        length = len(text) + sum(lengths.get(name, 0) for name in re.findall(r"\w+", text))
        lengths[str(steps[-1])] = min(length, _LONGEST + 1)
        if length > _LONGEST:
            yield steps


def expanded(document: Any) -> Any:
    """Return a document in which every formula has the expressions that ``define`` names.

    Each expression is put into parentheses. A definition may use those before it.
    """
    if not isinstance(document, dict) or DEFINE not in document:
        return document
    texts: Mapping[str, str] = document[DEFINE]
    definitions: dict[str, str] = {}
    for name, text in texts.items():
        definitions[name] = _replaced(text, definitions)
    rest = {name: part for name, part in document.items() if name != DEFINE}
    return _expanded(rest, definitions, texts)


def _expanded(part: Any, definitions: Mapping[str, str], texts: Mapping[str, str]) -> Any:
    if isinstance(part, list):
        return [_expanded(item, definitions, texts) for item in part]
    if not isinstance(part, dict):
        return part
    whole = {name: _expanded(item, definitions, texts) for name, item in part.items()}
    formula = part.get("formula")
    if not isinstance(formula, str):
        return whole
    names = _used([formula], texts)
    if not names:
        return whole
    whole["formula"] = _replaced(formula, definitions)
    if "code" in part:
        meaning = ", ".join(f"{name} = {texts[name]}" for name in names)
        whole[WRITTEN] = f"{formula}, where {meaning}"
    return whole


def _used(texts: list[str], definitions: Mapping[str, str]) -> list[str]:
    """Return the defined names that formulas use, also through other definitions."""
    used: set[str] = set().union(*map(names_in, texts))
    for name in reversed(list(definitions)):
        if name in used:
            used |= names_in(definitions[name])
    return [name for name in definitions if name in used]


def _replaced(text: str, definitions: Mapping[str, str]) -> str:
    if not definitions:
        return text
    names = "|".join(definitions)
    pattern = rf"(?<![\w.])({names})\b(?!\s*[(.])"
    return re.sub(pattern, lambda match: f"({definitions[match[1]]})", text)
