"""Formulas: their names, their answers, which are those of cel-cpp, and what is not a formula."""

import math
import re
from typing import Any

import pytest

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.formula import (
    Formula,
    FormulaError,
    Operands,
    amount,
    condition,
    evaluate,
    first_logged,
    names_in,
    quantity,
    tree_of,
)

INF, NAN = math.inf, math.nan


def answer(text: str, values: dict[str, Any]) -> bool | None:
    """What a formula says of a record, those of its key before it, and those of other keys."""
    record = Record("key", 0, values.get("value"), values.get("metadata"))
    seen = {name: first_logged(Record(name, 0, value, None)) for name, value in values.items()}
    if "previous" in values:
        seen["key"] = first_logged(Record("key", 0, None, values["previous"]))
    return Formula(text).answer(record, seen)


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


WHOLE = "math.abs(math.round(value) - value) < 0.00001"


@pytest.mark.parametrize(
    ("formula", "values", "expected"),
    [
        ("value == 1.0", {"value": 1}, True),
        ("value == 0.0", {"value": -0.0}, True),
        ("value != value", {"value": NAN}, True),
        ("value * 1152.0 == batch * 0.00008", {"value": 8e-5, "batch": 1152}, True),
        ("value * 1152.0 == batch * 0.00008", {"value": 1.6e-4, "batch": 2303}, False),
        (WHOLE, {"value": 2.000001}, True),
        (WHOLE, {"value": NAN}, False),
        ("value > 1.0", {"value": 10**400}, True),
        ("1.0 / value > 0.0 ", {"value": 0}, True),
        ("-1.0 / value < 0.0", {"value": 0}, True),
        ("1.0 / value < 0.0", {"value": -0.0}, True),
        ("math.isFinite(0.0 / value)", {"value": 0}, False),
        ("math.sqrt(value) >= 0.0", {"value": -1}, False),
        ("math.round(value) == 3.0", {"value": 2.5}, True),
        ("math.round(value) == 0.0", {"value": 0.49999999999999994}, True),
        ("1.0 / math.ceil(value) < 0.0", {"value": -0.5}, True),
        ("math.greatest(value, other) == 2.0", {"value": 1, "other": 2}, True),
        ("math.least(value, other) == 2.0", {"value": 1, "other": 2}, False),
        ("value[1] == 2.0 * value[0]", {"value": [1, 2]}, True),
        ("value[1] == 2.0", {"value": [2]}, None),
        ("value[0] == 2.0", {"value": ["2"]}, None),
        ("value[99] == 1.0", {"value": [1] * 1000}, True),
        # One part decides, although the other has no answer.
        ("value == 1.0 || other == 1.0", {"value": 1}, True),
        ("value == 1.0 || other == 1.0", {"value": 1, "other": "x"}, True),
        ("other == 1.0 && value > 1.0", {"value": 1}, False),
        ("other > 1.0 ? value > 1.0 : value > 2.0", {"value": 2, "other": 2}, True),
        (
            "other > 1.0 ? value > 1.0 : (value > 2.0 ? true : false)",
            {"value": 2, "other": 1},
            False,
        ),
        # Metadata may be strings; int() reads them as whole numbers.
        ("metadata.n == value", {"value": 2, "metadata": {"n": 2, "odd": []}}, True),
        ("metadata.n == value", {"value": 2, "metadata": {"n": "2"}}, False),
        (
            "metadata.a == previous.a",
            {"metadata": {"a": "\ud800"}, "previous": {"a": "\ud800"}},
            True,
        ),
        ("has(metadata.n)", {"metadata": {"n": None, "m": 1}}, False),
        ("has(metadata.n) && metadata.n > 1.0", {"metadata": {"n": 2}}, True),
        ("has(previous.n)", {"metadata": {}, "previous": {"n": 0}}, True),
        ("double(int(metadata.n)) == value", {"value": 2, "metadata": {"n": "2"}}, True),
        ("double(int(metadata.n)) == value", {"value": 2, "metadata": {"n": " +2\n"}}, True),
        ("double(int(metadata.n)) == value", {"value": 2, "metadata": {"n": 2.7}}, True),
        # No answer: a value is missing, out of range, or a string and no number.
        ("value == 1.0", {}, None),
        ("value == 1.0", {"value": "1"}, None),
        ("value == 1.0", {"value": [1]}, None),
        ("value == 2.0 || other == 1.0", {"value": 1}, None),
        ("math.greatest(metadata.n, metadata.n) > 2.0", {"metadata": {"n": "3"}}, None),
        ("metadata.n == value", {"value": 2, "metadata": {}}, None),
        ("metadata.n == value", {"value": 2, "metadata": ["n"]}, None),
        ("metadata.n > value", {"value": 2, "metadata": {"n": "3"}}, None),
        ("double(int(value)) > 0.0", {"value": 2.0**63}, None),
        ("double(int(value) * 2) > 0.0", {"value": 2.0**62}, None),
        ("double(int(metadata.n)) > 0.0", {"metadata": {"n": "1_0"}}, None),
        ("double(int(metadata.n)) > 0.0", {"metadata": {"n": "9" * 20}}, None),
    ],
)
def test_answers(formula: str, values: dict[str, Any], expected: bool | None) -> None:
    assert answer(formula, values) is expected


def test_a_zero_keeps_its_sign_from_record_to_record() -> None:
    formula = Formula("1.0 / value > 0.0")
    records = [Record("key", 0, zero, None) for zero in (0.0, -0.0, 0.0)]
    assert [formula.answer(record, {}) for record in records] == [True, False, True]


@pytest.mark.parametrize(
    ("formula", "values", "expected"),
    [
        ("value", {"value": 3}, 3.0),
        ("value / 2.0", {"value": 3, "more": "x"}, 1.5),
        ("int(math.ceil(value / 2.0))", {"value": 3}, 2),
        ("int(value) * 25000 + 1", {"value": 2}, 50001),
        ("int(-value) - int(other)", {"value": 2.7, "other": True}, -3),
        ("int(value) * int(value)", {"value": 2.0**32}, "integer out of range"),
        ("int(value)", {"value": INF}, "integer out of range"),
        ("value / other", {"value": 1}, "no value for other"),
        ("value / other", {"value": "1", "other": None}, "other, value is not a number"),
        ("metadata.n * 2.0", {}, "no value for metadata"),
    ],
)
def test_quantities(formula: str, values: dict[str, Any], expected: float | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            evaluate(formula, values)
    else:
        number = evaluate(formula, values)
        assert (number, type(number)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value / 2.0", 1.5),
        ("metadata.n - previous.n", 4.0),
        ("metadata.text", None),
        ("metadata.missing", None),
        ("other", None),
        ("len(value)", None),
    ],
)
def test_amounts(text: str, expected: float | None) -> None:
    operands = Operands({"value": 3, "other": None}, {"n": 5, "text": "x"}, {"n": 1})
    assert amount(tree_of(text), operands) == expected


SIGNS = ("%", "**", "//", "&", "|", "^", "<<", "=", "@", "--")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("value == 1", "1 is a whole number; write 1.0"),
        ("value == int(other)", "int(other) is a whole number; write double(int(other))"),
        ("value ? true : false", "expected a condition, which is true or false, not value"),
        (
            "value < 1.0 < 2.0",
            "expected a condition, which is true or false, not value < 1.0 < 2.0",
        ),
        ("metadata == 1.0", "expected a number, not metadata"),
        ("math.least(value) == 1.0", "expected a number, not math.least(value)"),
        ("value == (value > 1.0 && true)", "expected a number, not value > 1.0 && true"),
        ("double(value) == 1.0", "expected a whole number, such as int(value), not value"),
        ("has(value)", "expected a condition, which is true or false, not has(value)"),
        ("value == 1.0 && while > 1.0", "while is a reserved word"),
        ("value == 1_0.0", "'1_' at column 10 is not part of a formula"),
        ("value == 1.", "'1.' at column 10 is not part of a formula"),
        ("metadata.name == 'x'", '"\'" at column 18 is not part of a formula'),
        ("!true", "'!' at column 1 is not part of a formula"),
        ("välue == 1.0", "'ä' at column 2 is not part of a formula"),
        *(
            (f"value {sign} 2.0 == 1.0", f"{sign!r} at column 7 is not part of a formula")
            for sign in SIGNS
        ),
        ("value == \0", r"'\x00' at column 10 is not part of a formula"),
        ("value ==", "it cannot be read ("),
        ("", "it cannot be read ("),
        pytest.param("(" * 10_000, "it cannot be read (", id="many parentheses"),
        pytest.param(
            "value" + " + 1.0" * 5000 + " > 1.0", "it is nested too deeply", id="many terms"
        ),
    ],
)
def test_what_is_not_a_condition(text: str, problem: str) -> None:
    with pytest.raises(FormulaError) as error:
        condition(text)
    assert str(error.value).startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("value > 1.0", "expected a number, not value > 1.0"),
        ("int(value) * 2.0", "int(value) is a whole number; write double(int(value))"),
        ("int(value) / 2", "expected a whole number, such as int(value), not int(value) / 2"),
    ],
)
def test_what_is_not_a_quantity(text: str, problem: str) -> None:
    with pytest.raises(FormulaError, match=re.escape(problem)):
        quantity(text)
