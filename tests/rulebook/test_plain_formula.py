"""Formulas have the same answer without CEL as with it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import chain, product
from typing import Any

import pytest

from mlperf_pkg.rulebook.cel import compiled, condition, quantity
from mlperf_pkg.rulebook.files import rounds, usages
from mlperf_pkg.rulebook.formula import Formula, Operands, names_in, of_a_record
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.plain_formula import (
    NO_ANSWER,
    plain_condition,
    plain_number,
    plain_quantity,
)
from mlperf_pkg.rulebook.quantity import amount

USUAL: tuple[Any, ...] = (
    1,
    2.0,
    3,
    8,
    64,
    384,
    512.0,
    0.05,
    0.1,
    1.0,
    1.5,
    384.0,
    768,
    24576,
    8e-5,
    1e-9,
)
ODD: tuple[Any, ...] = (
    0,
    0.0,
    -0.0,
    -1.5,
    True,
    None,
    1e308,
    2.0**63,
    -(2.0**63),
    2**53 + 1,
    10**400,
    math.inf,
)
ODD += (-math.inf, math.nan, 0.49999999999999994, -0.5, 2.5, "12", "x", "", "\ud800", [], {"n": 1})


def formulas() -> list[str]:
    """All formulas of the rulebook."""
    return sorted({text for rule in rules() for text in of_rule(rule) if text})


def rules() -> Iterator[Rule]:
    for usage in usages():
        for name in rounds(usage):
            round_ = load_round(usage, name)
            benchmarks = [load_benchmark(usage, name, stem) for stem in round_.benchmarks]
            sections = [*round_.sections.values()]
            for benchmark in filter(None, benchmarks):
                sections += benchmark.sections.values()
                sections += chain.from_iterable(c.values() for c in benchmark.variants.values())
            for section in sections:
                yield from chain.from_iterable(section.values())


def of_rule(rule: Rule) -> tuple[str | None, str | None]:
    return rule.formula, (rule.reaches or {}).get("formula")


def same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - NaN


def random_operands(text: str, seed: int) -> Operands:
    choice = random.Random(seed)

    def value() -> Any:
        return choice.choice(ODD if choice.random() < 0.15 else USUAL)

    formula = Formula(text)
    names = {name: value() for name in sorted(formula.names)}
    members = ("epoch_num", "samples_count", "step_num")
    metadata = {name: value() for name in members} if of_a_record(text) else {}
    previous = {name: value() for name in members} if "previous." in text else {}
    return Operands(names, metadata, previous)


@pytest.mark.parametrize("text", formulas())
def test_rules_mean_the_same(text: str) -> None:
    by_cel, answers = condition(text, names_in(text)), set()
    for seed in range(100):
        operands = random_operands(text, seed)
        expected = by_cel.answer(operands.data)
        answer = Formula(text).evaluate(operands)
        answers.add(answer)
        assert answer == (None if isinstance(expected, str) else expected)
    assert len(answers) > 1 or "==" in text


def test_no_rule_needs_the_cel_library() -> None:
    assert [text for text in formulas() if plain_condition(text) is None] == []


@pytest.mark.parametrize(
    "text",
    [
        "math.round(value) + math.floor(other)",
        "math.sqrt(value) * math.ceil(other)",
        "math.abs(value - other) / value",
        "double(int(value)) - metadata.samples_count",
    ],
)
def test_amounts_are_the_same(text: str) -> None:
    assert plain_number(text)
    for seed in range(500):
        operands = random_operands(text, seed)
        expected = compiled(text, names_in(text)).eval(data=operands.data).value()
        assert same(amount(text, operands), expected if isinstance(expected, float) else None)


@pytest.mark.parametrize(
    "text",
    [
        "value == 1",
        "value",
        "1.0 + 1.0",
        "value ? true : false",
        "value < 1.0 < 2.0",
        "value % 2.0 == 0.0",
        "value ** 2.0 == 0.0",
        "not value == 1.0",
        "metadata == 1.0",
        "other.name == 1.0",
        "math.greatest(value, 1.0, 2.0) == 1.0",
        "value == 1_0.0",
        "value == 1.",
        "value == 1.0 # true",
        "value == 1.0 and value == 1.0",
        "true if value == 1.0 else false",
        "metadata.name == 'x'",
        "välue == 1.0",
        "value.bit_length() == 1.0",
        "value == 1.0 && value",
        "__import__('os') == 1.0",
        "value ==",
        "(" * 10_000,
        "value == \0",
    ],
)
def test_the_rest_is_left_to_cel(text: str) -> None:
    assert plain_condition(text) is None


# ---- any formula --------------------------------------------------------------------------

TEXTS = (
    "12",
    " 7 ",
    "+3",
    "-0",
    "2.7",
    "1e3",
    "x",
    "",
    "9223372036854775808",
    "0x10",
    "1_0",
    "\t5\n",
)
NUMBERS = ("value", "other", "metadata.a", "metadata.b", "previous.a", "2.0", "0.0", "0.5", "1e308")
SINGLE = (
    "math.abs(%s)", "math.ceil(%s)", "math.floor(%s)", "math.round(%s)", "math.sqrt(%s)",
    "double(int(%s))", "-(%s)", "(%s)",
)  # fmt: skip
PAIRS = ("%s + %s", "%s - %s", "%s * %s", "%s / %s", "math.greatest(%s, %s)", "math.least(%s, %s)")
RELATIONS = ("==", "!=", "<", "<=", ">", ">=")


def random_number(choice: random.Random, depth: int) -> str:
    kind = choice.random() if depth else 0.0
    if kind < 0.3:
        return choice.choice(NUMBERS)
    if kind < 0.6:
        return choice.choice(SINGLE) % random_number(choice, depth - 1)
    one, other = (random_number(choice, depth - 1) for _ in range(2))
    return choice.choice(PAIRS) % (f"({one})", f"({other})")


def random_condition(choice: random.Random, depth: int) -> str:
    kind = choice.random() if depth else 0.0
    if kind < 0.4:
        return f"{random_number(choice, 2)} {choice.choice(RELATIONS)} {random_number(choice, 2)}"
    if kind < 0.5:
        return choice.choice(("has(metadata.a)", "has(previous.b)", "math.isFinite(value)", "true"))
    parts = [f"({random_condition(choice, depth - 1)})" for _ in range(3)]
    return choice.choice(("%s && %s || %s", "%s || %s && %s", "%s ? %s : %s")) % tuple(parts)


def random_value(choice: random.Random) -> Any:
    return choice.choice(choice.choice((USUAL, ODD, TEXTS)))


@pytest.mark.parametrize("seed", range(300))
def test_any_formula_means_the_same(seed: int) -> None:
    choice = random.Random(seed)
    text = random_condition(choice, 3)
    assert plain_condition(text), text
    by_cel = condition(text, names_in(text))
    for _ in range(30):
        values = {name: random_value(choice) for name in names_in(text)}
        metadata, previous = ({name: random_value(choice) for name in "ab"} for _ in range(2))
        if choice.random() < 0.2:
            metadata.pop("a")
        operands = Operands(values, metadata, previous)
        expected = by_cel.answer(operands.data)
        answer = Formula(text).evaluate(operands)
        assert answer == (None if isinstance(expected, str) else expected), (text, operands)


@pytest.mark.parametrize(
    "text",
    ["int(math.ceil(value / 3.0)) - int(other)", "int(value) * 25000 + 1", "value", "int(value / other)"],
)  # fmt: skip
def test_quantities_are_the_same(text: str) -> None:
    plain, by_cel = plain_quantity(text), quantity(text, names_in(text))
    assert plain
    for values in product(chain(USUAL, ODD), repeat=2):
        data = Operands(dict(zip(("value", "other"), values, strict=True)), {}, {}).data
        expected = by_cel.eval(data=data).value()
        try:
            answer = plain(data)
        except NO_ANSWER:
            assert not isinstance(expected, int | float)
        else:
            assert type(answer) is type(expected)
            assert same(answer, expected)
