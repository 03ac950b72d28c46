"""What one rule file may say: valid YAML, names of the metaschema, formulas that compile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mlperf_pkg.rulebook.arithmetic import parsed
from mlperf_pkg.rulebook.definitions import (
    SIMULATION,
    complaints_of_definitions,
    expanded,
    formulas,
)
from mlperf_pkg.rulebook.formula import FormulaError, condition, quantity
from mlperf_pkg.rulebook.metaschema import complaints, kind_of, owner_of
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, refuse
from mlperf_pkg.rulebook.strictyaml import parse, problem_at


def validated(file: RuleFile, data: bytes) -> dict[str, Any]:
    """Return what a file says, with the expressions that it defines in place of their names.

    Raises:
        RulebookError: the file is not valid. The message names every line that is wrong.
    """
    document = parse(file, data)
    refuse(list(_problems(file, complaints(kind_of(file.path.stem), document))))
    refuse(list(_problems(file, complaints_of_definitions(document))))
    whole: dict[str, Any] = expanded(document)
    refuse(list(_problems(file, _complaints_of_formulas(whole))))
    refuse(list(_problems(file, _complaints_of_quantities(whole))))
    return whole


def _problems(file: RuleFile, complaints: Iterable[tuple[Steps, str]]) -> Iterator[Problem]:
    return (problem_at(file, steps, message) for steps, message in complaints)


def _complaints_of_formulas(document: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    for steps, text in formulas(document):
        owner = owner_of(steps[:-1], document)
        try:
            condition(text)
        except FormulaError as error:
            yield steps, f"formula of {owner} is not valid: {error}"
            continue
        if parsed(text) is None and not _has_needed(document, steps):
            message = "cannot be put into words: say with needed what the rule expects"
            yield steps, f"formula of {owner} {message}"


def _has_needed(document: Any, steps: Steps) -> bool:
    """Return whether a rule that ``steps`` lead through says in words what it expects."""
    part = document
    for step in steps[:-1]:
        part = part[step]
        if isinstance(part, dict) and "needed" in part:
            return True
    return False


def _complaints_of_quantities(document: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Yield the formulas of a simulation that do not give a number."""
    for steps, text in formulas(document.get(SIMULATION, {}), (SIMULATION,)):
        try:
            quantity(text)
        except FormulaError as error:
            name = ".".join(map(str, steps[:-1]))
            yield steps, f"formula of {name} is not valid: {error}"
