"""Names for long expressions: ``define`` of a rule file, expanded in the formulas of that file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mlperf_pkg.rulebook.formula import RESERVED, names_in
from mlperf_pkg.rulebook.problems import Steps

DEFINE = "define"
WRITTEN = "written"
"""The field of an expanded rule that keeps its formula as the file has it."""

_OWN_NAMES = frozenset({"true", "false", "value", "nth", "metadata", "previous", "math"})
SIMULATION = "simulation"  # its formulas are values, not conditions


def formulas(document: Any, steps: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Yield every formula of a rule or target in a document, with the steps that lead to it."""
    if isinstance(document, dict):
        if isinstance(document.get("formula"), str):
            yield (*steps, "formula"), document["formula"]
        for name, part in document.items():
            if name != SIMULATION:
                yield from formulas(part, (*steps, name))
    elif isinstance(document, list):
        for index, part in enumerate(document):
            yield from formulas(part, (*steps, index))


def complaints_of_definitions(document: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Yield what is wrong with the names that a valid document defines."""
    definitions: Mapping[str, str] = document.get(DEFINE, {})
    used = _used(list(_all_formulas(document)), definitions)
    names = list(definitions)
    for index, name in enumerate(names):
        steps = (DEFINE, name)
        if name in _OWN_NAMES | RESERVED:
            yield steps, f"define must not use the name {name!r}, which formulas already know"
        if name not in used:
            yield steps, f"no formula of this file uses {name!r}"
        for later in names_in(definitions[name]) & set(names[index:]):
            yield steps, f"{name!r} uses {later!r}, which is not defined before it"


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
    new = {name: _expanded(item, definitions, texts) for name, item in part.items()}
    formula = part.get("formula")
    if isinstance(formula, str) and (names := _used([formula], texts)):
        new["formula"] = _replaced(formula, definitions)
        if "code" in part:
            meaning = ", ".join(f"{name} = {texts[name]}" for name in names)
            new[WRITTEN] = f"{formula}, where {meaning}"
    return new


def _all_formulas(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield every formula in a document, those of its simulation as well."""
    yield from (text for _, text in formulas(document))
    yield from (text for _, text in formulas(document.get(SIMULATION, {})))


def _used(texts: list[str], definitions: Mapping[str, str]) -> list[str]:
    """Return the defined names that formulas use, also through other definitions."""
    used = {name for text in texts for name in names_in(text)}
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
