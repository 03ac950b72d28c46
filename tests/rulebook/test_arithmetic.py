"""Formulas in words, and what they expect."""

from __future__ import annotations

import pytest

from mlperf_pkg.rulebook.expectation import in_general, in_words, parsed, plain


@pytest.mark.parametrize(
    ("number", "tolerance", "text"),
    [
        (12800.0, 0.0, "12800"),
        (0.0, 0.0, "0"),
        (-3.0, 0.0, "-3"),
        (0.1 + 0.2, 0.0, "0.30000000000000004"),
        (0.1 + 0.2, 1e-9, "0.3"),
        (0.00008, 0.0, "8e-05"),
        (2290835.423, 0.0, "2290835.423"),
        (2290835.423, 1000.0, "2290835"),
        (1e22, 0.0, "1e+22"),
        (float("inf"), 0.0, "inf"),
        (float("nan"), 0.0, "nan"),
    ],
)
def test_numbers_are_plain(number: float, tolerance: float, text: str) -> None:
    assert plain(number, tolerance) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(12288.0, "12,288"), (2290835.423, "2,290,835.423"), (0.05, "0.05"), (1e-05, "1e-05")],
)
def test_numbers_with_commas(number: float, text: str) -> None:
    assert plain(number, commas=True) == text


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("8000.0 * 1152.0 / batch", "8000 * 1152 / 12800"),
        ("0.1 * (rate - (1.0 - other))", "0.1 * (rate - (1 - other))"),
        ("-batch / (2.0 * other)", "-12800 / (2 * other)"),
        ("math.ceil(4096.0 / batch)", "4096 / 12800 rounded up"),
        ("math.ceil(4096.0 / batch) * batch", "4096 rounded up to a multiple of 12800"),
        ("batch * math.floor(value / batch)", "it rounded down to a multiple of 12800"),
        ("2.0 * math.ceil(other)", "2 * (other rounded up)"),
        ("math.sqrt(other / 2.0)", "sqrt(other / 2)"),
        ("math.greatest(1.0, other) - 1.0", "(the greater of 1 and other) - 1"),
        ("double(int(metadata.samples_count)) == 5.0", "samples_count is 5"),
        ("metadata.epoch_num - previous.epoch_num >= 1.0", "epoch_num - the previous epoch_num is at least 1"),
        ("value == 0.9 || batch >= 4.0", "it is 0.9 or 12800 is at least 4"),
        ("(value < 1.0 || value > 2.0) && other != 3.0", "(it is below 1 or it is above 2) and other is not 3"),
        ("math.isFinite(1.0 / value)", "1 / it is finite"),
    ],
)  # fmt: skip
def test_words(formula: str, words: str) -> None:
    tree = parsed(formula)
    assert tree
    assert in_words(tree, {"batch": "12800", "value": "it"}) == words


@pytest.mark.parametrize(
    "formula", ["a > b ? value > 1.0 : value > 2.0", "value in [1.0]", "f(value)", "value ==", "!a"]
)
def test_no_words(formula: str) -> None:
    assert parsed(formula) is None


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("value >= 0.5 * other", "at least 0.5 * other"),
        ("value > 0.5 && value < 1.0", "above 0.5 and below 1"),
        ("0.5 <= value", "at least 0.5"),
        ("value == 4.0 || value == other", "4 or other"),
        ("value == 4.0 || other == 1.0", "the value is 4 or other is 1"),
    ],
)
def test_what_is_expected_in_any_run(formula: str, words: str) -> None:
    assert in_general(formula, "the value") == words
