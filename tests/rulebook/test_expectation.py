"""Formulas in words, and what they expect."""

from typing import Any

import pytest

from mlperf_pkg.findings import Finding
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.expectation import breach_of, in_general, in_words, parsed, plain
from mlperf_pkg.rulebook.formula import Formula, LoggedKey, first_logged
from mlperf_pkg.rulebook.model import Rule


@pytest.mark.parametrize(
    ("number", "tolerance", "text"),
    [
        (12800.0, 0.0, "12,800"),
        (0.0, 0.0, "0"),
        (0.1 + 0.2, 0.0, "0.30000000000000004"),
        (0.00008, 0.0, "8e-05"),
        (2290835.423, 0.0, "2,290,835.423"),
        (2290835.423, 1000.0, "2,290,835"),
        (1e22, 0.0, "1e+22"),
        (float("inf"), 0.0, "inf"),
    ],
)
def test_numbers_are_plain(number: float, tolerance: float, text: str) -> None:
    assert plain(number, tolerance) == text


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("8000.0 * 1152.0 / batch", "8,000 * 1,152 / 12,800"),
        ("0.1 * (rate - (1.0 - other))", "0.1 * (rate - (1 - other))"),
        ("-batch / (2.0 * other)", "-12,800 / (2 * other)"),
        ("math.ceil(4096.0 / batch) * batch", "4,096 rounded up to a multiple of 12,800"),
        ("batch * math.floor(value / batch)", "it rounded down to a multiple of 12,800"),
        ("2.0 * math.ceil(other)", "2 * (other rounded up)"),
        ("math.sqrt(other / 2.0)", "sqrt(other / 2)"),
        ("math.greatest(1.0, other) - 1.0", "(the greater of 1 and other) - 1"),
        ("double(int(metadata.samples_count)) == 5.0", "samples_count is 5"),
        (
            "metadata.epoch_num - previous.epoch_num >= 1.0",
            "epoch_num - the previous epoch_num is at least 1",
        ),
        ("value == 0.9 || batch >= 4.0", "it is 0.9 or 12,800 is at least 4"),
        (
            "(value < 1.0 || value > 2.0) && other != 3.0",
            "(it is below 1 or it is above 2) and other is not 3",
        ),
        ("math.isFinite(1.0 / value)", "1 / it is finite"),
    ],
)
def test_words(formula: str, words: str) -> None:
    tree = parsed(formula)
    assert tree
    assert in_words(tree, {"batch": "12,800", "value": "it"}) == words


@pytest.mark.parametrize("formula", ["a > b ? value > 1.0 : value > 2.0", "f(value)", "value =="])
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


# ---- what findings say of a run ------------------------------------------------------------

_CEIL = "math.ceil(12288.0 / global_batch_size) * global_batch_size"
_EVERY = f"metadata.samples_count - previous.samples_count == {_CEIL}"


def _message(
    formula: str,
    *,
    key: str = "steps",
    value: Any = 900,
    batch: Any = 12800,
    now: Any = None,
    before: Any = None,
    **fields: Any,
) -> str:
    """The text of a finding about a record, after others of ``batch`` and ``before``."""
    rule = Rule(code="X101", key=key, source="here", formula=formula, **fields)
    seen = {} if batch is None else {"global_batch_size": _logged("global_batch_size", batch, {})}
    if before is not None:
        seen[key] = _logged(key, 0, before)
    operands = Formula(formula).operands(Record(key, 0, value, now or {}), seen, 2)
    amount, expected, message = breach_of(rule, operands, value, {})
    return Finding(rule.code, message, "log", found=amount, expected=expected).text


def _logged(key: str, value: Any, metadata: Any) -> LoggedKey:
    return first_logged(Record(key, 0, value, metadata))


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (
            "value == 8000.0 * 1152.0 / global_batch_size",
            "steps is 900; expected 720 = 8,000 * 1,152 / 12,800",
        ),
        (
            "math.abs(value - 9216000.0 / global_batch_size) < 1.0",
            "steps is 900; expected 720 ± 1 = 9,216,000 / 12,800",
        ),
        (
            "math.abs(value - 0.1 * global_batch_size) < 0.001",
            "steps is 900; expected 1,280 = 0.1 * 12,800",
        ),
        (
            "value == math.ceil(100000.0 / global_batch_size)",
            "steps is 900; expected 8 = 100,000 / 12,800 rounded up",
        ),
        ("value == global_batch_size", "steps is 900; expected 12,800 (the global_batch_size)"),
        ("value >= 2.0 && value <= global_batch_size / 64.0", "steps is 900; expected 2 to 200"),
        (
            "value > 2.0 && value < 0.5 * global_batch_size",
            "steps is 900; expected above 2 and below 6,400",
        ),
        (
            "value == 5.0 || value == 2.0 * global_batch_size",
            "steps is 900; expected 5 or 25,600 = 2 * 12,800",
        ),
        (
            "2.0 * value == global_batch_size",
            "2 * steps is 1,800; expected 12,800 (the global_batch_size)",
        ),
        (
            "value == 5.0 || global_batch_size < 4.0",
            (
                "steps is 900; expected that steps is 5 or global_batch_size is below 4"
                " (global_batch_size is 12,800)"
            ),
        ),
    ],
)
def test_of_values(formula: str, text: str) -> None:
    assert _message(formula) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null; expected"),
        ("900", '"900"; expected the number'),
        (True, "true; expected"),
        ([1, "a"], '[1, "a"]; expected'),
    ],
    ids=["null", "text", "true", "list"],
)
def test_of_a_value_that_is_not_a_number(value: Any, text: str) -> None:
    message = _message("value == global_batch_size", value=value)
    assert message == f"steps is {text} 12,800 (the global_batch_size)"


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (None, "2 * global_batch_size (global_batch_size must be logged earlier)"),
        ("x", '2 * global_batch_size (global_batch_size is "x")'),
        (10**400, "2 * inf (global_batch_size is inf)"),
    ],
    ids=["not logged", "text", "infinite"],
)
def test_of_a_name_that_is_not_a_number(batch: Any, text: str) -> None:
    message = _message("value == 2.0 * global_batch_size", batch=batch)
    assert message == f"steps is 900; expected {text}"


def test_needed_says_what_a_formula_cannot() -> None:
    text = _message("global_batch_size >= 99999.0 || value == 0.9", needed="0.9 in small batches")
    assert text == "steps is 900; expected 0.9 in small batches (global_batch_size is 12,800)"


@pytest.mark.parametrize(
    ("formula", "batch", "text"),
    [
        (_EVERY, 1024, "12,288"),
        (_EVERY, 1152, "12,672 for batch size 1,152"),
        (
            f"{_EVERY} || {_EVERY.replace('12288', '24576')} || {_EVERY}",
            1152,
            "12,672 or 25,344 for batch size 1,152",
        ),
    ],
    ids=["as written", "rounded up", "one of two"],
)
def test_of_intervals(formula: str, batch: int, text: str) -> None:
    now, before = {"samples_count": 43776}, {"samples_count": 21888}
    message = _message(formula, key="eval_accuracy", batch=batch, now=now, before=before)
    assert message == f"evaluated every 21,888 samples; expected every {text}"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (None, "first evaluation at 43,776 samples; expected at most 38,016 for batch size 1,152"),
        (
            {"samples_count": 21888},
            "two evaluations are 21,888 samples apart; expected at most 12,672 for batch size"
            " 1,152",
        ),
    ],
)
def test_of_first_records_and_later_ones(before: dict[str, int] | None, text: str) -> None:
    interval = "metadata.samples_count - previous.samples_count"
    in_time = f"has(previous.samples_count) && {interval} <= {_CEIL}"
    formula = f"metadata.samples_count <= 3.0 * {_CEIL} || ({in_time})"
    now = {"samples_count": 43776}
    assert _message(formula, key="eval_accuracy", batch=1152, now=now, before=before) == text


def test_of_elements() -> None:
    text = _message("value[1] == 2.0 * global_batch_size", value=[1, 5])
    assert text == "steps[1] is 5; expected 25,600 = 2 * 12,800"


@pytest.mark.parametrize(("units", "unit"), [({}, "epochs"), ({"epoch_num": "tokens"}, "tokens")])
def test_the_unit_is_that_of_the_benchmark(units: dict[str, str], unit: str) -> None:
    formula = "math.abs(metadata.epoch_num - previous.epoch_num - 0.05) < 0.001"
    now, before = {"epoch_num": 0.3}, {"epoch_num": 0.2}
    text = _message(formula, key="eval_accuracy", now=now, before=before, units=units)
    assert text == f"evaluated every 0.1 {unit}; expected every 0.05 ± 0.001"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (
            "math.abs(metadata.epoch_num - previous.epoch_num - 0.05) < 0.001",
            "epoch (epoch_num); expected one evaluation every 0.05 ± 0.001 epochs",
        ),
        (
            "metadata.epoch_num - previous.epoch_num >= 2.0",
            "epoch (epoch_num); expected an interval of at least 2 epochs",
        ),
        (
            _EVERY,
            "number of samples (samples_count); expected one evaluation every 12,672 for batch"
            " size 1,152",
        ),
    ],
    ids=["every", "at least", "of a batch size"],
)
def test_of_two_records_at_one_position(formula: str, text: str) -> None:
    now = {"epoch_num": 3, "samples_count": 21888}
    message = _message(formula, key="eval_accuracy", batch=1152, now=now, before=now)
    assert message == f"evaluated twice at the same {text}"


def test_of_a_number_that_is_text() -> None:
    text = _message("value == 2.0 * global_batch_size", batch="1152")
    assert text.startswith(
        "global_batch_size is logged as text, with which the official checker cannot calculate,"
        " so it rejects steps: steps is 900;"
    )


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (
            "metadata.samples_count == 2.0 * global_batch_size",
            "evaluated at 30,000 samples; expected at 25,600 for batch size 12,800",
        ),
        (
            "metadata.samples_count == global_batch_size * (1.0 + nth)",
            "evaluated at 30,000 samples; expected at 38,400 for batch size 12,800",
        ),
        (
            (
                "metadata.samples_count == math.floor(metadata.samples_count /"
                " global_batch_size) * global_batch_size"
            ),
            "evaluated at 30,000 samples; expected at a multiple of 12,800 (the global_batch_size)",
        ),
        (
            "metadata.step_num == 5.0",
            "eval_error has no step_num in its metadata; expected step_num to be 5",
        ),
    ],
)
def test_of_positions(formula: str, text: str) -> None:
    assert _message(formula, key="eval_error", now={"samples_count": 30000}) == text
