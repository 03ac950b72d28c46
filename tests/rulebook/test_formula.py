"""Formulas: their names, their doubles, and what is not a formula."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.formula import NoAnswerError, compile_formula, names_in
from mlperf_pkg.rulebook.logged import first_logged


def answer(text: str, values: dict[str, Any]) -> bool:
    """What a formula says of a record, those of its key before it, and those of other keys."""
    record = Record("key", 0, values.get("value"), values.get("metadata"))
    seen = {name: first_logged(Record(name, 0, value, None)) for name, value in values.items()}
    if "previous" in values:
        seen["key"] = first_logged(Record("key", 0, None, values["previous"]))
    return compile_formula(text).holds(record, seen)


WHOLE = "math.abs(math.round(value) - value) < 0.00001"


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        ("value >= 2.0 * warmup_steps", {"value", "warmup_steps"}),
        ("math.ceil(value / batch) == 1.0", {"value", "batch"}),
        ("metadata.samples_count == nth || true", {"nth"}),
        ("double(int(metadata.samples_count)) == batch", {"batch"}),
    ],
)
def test_names(formula: str, names: set[str]) -> None:
    assert names_in(formula) == names


@pytest.mark.parametrize(
    ("formula", "values", "holds"),
    [
        ("value == 1.0", {"value": 1}, True),
        ("value == 1.0", {"value": True}, True),
        ("value * 1152.0 == batch * 0.00008", {"value": 8e-5, "batch": 1152}, True),
        ("value * 1152.0 == batch * 0.00008", {"value": 1.6e-4, "batch": 2303}, False),
        (WHOLE, {"value": 2.000001}, True),
        (WHOLE, {"value": math.inf}, False),
        (WHOLE, {"value": math.nan}, False),
        ("value > 1.0", {"value": 10**400}, True),
        ("value < 1.0", {"value": -(10**400)}, True),
        ("value == 1.0 || other == 1.0", {"value": 1}, True),
        ("value == 1.0 || other == 1.0", {"value": 1, "other": "x"}, True),
        ("metadata.n == value", {"value": 2, "metadata": {"n": 2, "odd": []}}, True),
        ("metadata.n == value", {"value": 2, "metadata": {"n": "2"}}, False),
        ("double(int(metadata.n)) == value", {"value": 2, "metadata": {"n": "2"}}, True),
        ("double(int(metadata.n)) == value", {"value": 2, "metadata": {"n": 2.7}}, True),
    ],
)
def test_holds(formula: str, values: dict[str, Any], holds: bool) -> None:
    assert answer(formula, values) is holds


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "\0", ""])
def test_texts_that_cel_cannot_hold(text: str) -> None:
    formula = "metadata.name == previous.name"
    same = {"metadata": {"name": text}, "previous": {"name": text}}
    assert answer(formula, same) is True
    assert answer(formula, {**same, "previous": {"name": "b"}}) is False


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        ("value == 1.0", {}),
        ("value == 1.0", {"value": "1"}),
        ("value == 1.0", {"value": None}),
        ("value == 2.0 || other == 1.0", {"value": 1}),
        ("metadata.n == value", {"value": 2, "metadata": {}}),
        ("metadata.n == value", {"value": 2, "metadata": ["n"]}),
        ("metadata.n - value == 0.0", {"value": 2, "metadata": {"n": "2"}}),
    ],
)
def test_no_answer(formula: str, values: dict[str, Any]) -> None:
    with pytest.raises(NoAnswerError):
        answer(formula, values)


@pytest.mark.parametrize(
    "formula", ["value +", "value == 1", "value + 1.0", "len(value) == 1.0", ""]
)
def test_what_is_not_a_formula(formula: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        compile_formula(formula)
