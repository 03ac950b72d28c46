"""Facts of a result set that do not fit together."""

from types import SimpleNamespace
from typing import Any

import pytest

from mlperf_pkg.checks import plausibility
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.rulebook.rounds import Sureness
from tests.helpers.logs import edited, good_log, joined, records, run_of


def context(benchmark: str, *logs: bytes, round_: str = "5.0", accelerators: int = 16) -> Any:
    """A result set of these logs."""
    return SimpleNamespace(
        runs=[run_of(log, round_) for log in logs],
        files=SimpleNamespace(benchmark=benchmark),
        system=SimpleNamespace(accelerators=accelerators),
        finding=finding_of,
    )


# ---- the day ------------------------------------------------------------------------------

SUBMITTED_MS = 1_634_256_000_000  # 15 October 2021, for round 1.1
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("day_ms", "round_", "sureness", "is_reported"),
    [
        pytest.param(SUBMITTED_MS, "2.0", Sureness.NAMED, True, id="the day of the submission"),
        pytest.param(SUBMITTED_MS, "2.0", Sureness.GIVEN, False, id="of a round that is given"),
        pytest.param(SUBMITTED_MS + DAY_MS, "2.0", Sureness.NAMED, False, id="the day after"),
        pytest.param(SUBMITTED_MS, "2.0", Sureness.INFERRED, False, id="of an inferred round"),
        pytest.param(SUBMITTED_MS, "1.1", Sureness.NAMED, False, id="for that submission"),
        pytest.param(1.55e12, "0.7", Sureness.NAMED, False, id="for the first round"),
        pytest.param(None, "2.0", Sureness.NAMED, False, id="without a time"),
    ],
)
def test_an_early_day(
    day_ms: float | None, round_: str, sureness: Sureness, is_reported: bool
) -> None:
    result_set = context("bert")
    result_set.round = SimpleNamespace(usage="training", name=round_)
    result_set.runs = [SimpleNamespace(path="log", start_ms=day_ms, sureness=sureness)]
    codes = [finding.code for finding in plausibility.check_days(result_set)]
    assert codes == ["SET172"] * is_reported


# ---- batch sizes --------------------------------------------------------------------------


def sized(size: int, steps: int, key: str = "", of_device: int = 0) -> bytes:
    """A log with these batch sizes."""
    log = edited(good_log(), "global_batch_size", value=size)
    log = edited(log, "gradient_accumulation_steps", value=steps)
    fields = records(log)
    if key:
        place = next(i for i, r in enumerate(fields) if r["key"] == "global_batch_size")
        fields.insert(place, {**fields[place], "key": key, "value": of_device})
    return joined(fields)


@pytest.mark.parametrize(
    ("benchmark", "log", "expected"),
    [
        pytest.param("resnet", sized(3264, 1, "d_batch_size", 204), None, id="as it should be"),
        pytest.param("resnet", sized(6528, 2, "d_batch_size", 204), None, id="accumulated"),
        pytest.param("ssd", sized(256, 1, "local_batch_size", 16), None, id="of another key"),
        pytest.param("bert", sized(768, 1, "d_batch_size", 24), None, id="packed"),
        pytest.param("maskrcnn", sized(8, 1, "d_batch_size", 1), None, id="parts of a model"),
        pytest.param("resnet", sized(3264, 1), None, id="not said"),
        pytest.param("lora", sized(8, 8), None, id="one sample"),
        pytest.param("lora", sized(8, 3), "a multiple of", id="a part of a batch"),
        pytest.param("resnet", sized(3264, 2, "d_batch_size", 204), "6,528 (d_batch", id="steps"),
        pytest.param("resnet", sized(1632, 1, "d_batch_size", 204), "3,264 (d_batch", id="half"),
        pytest.param("bert", sized(1152, 1, "d_batch_size", 24), "384 (d_batch", id="not packed"),
    ],
)
def test_batch_sizes_of_devices(benchmark: str, log: bytes, expected: str | None) -> None:
    findings = list(plausibility.check_devices(context(benchmark, log, round_="2.0")))
    codes = [f.code for f in findings if str(f.expected).startswith(expected or "")]
    assert codes == ["SET170"] * bool(expected)


# ---- evaluations --------------------------------------------------------------------------

DOUBLES = tuple(0.9371234567891234 - 0.0011234567891 * place for place in range(8))
SINGLES = tuple(0.93701171875 - place * 2.0**-20 for place in range(8))
"""Values that have single precision, too."""

OTHERS = tuple(value + 0.00012345678 for value in DOUBLES)


def evaluated(values: tuple[float, ...]) -> Any:
    """A run with these evaluations."""
    return SimpleNamespace(
        path="log",
        evaluated=values,
        evaluated_ms=tuple(60_000.0 * place for place in range(len(values))),
        losses=(),
        fingerprint=None,
        start_ms=0.0,
        stop_ms=1e6,
    )


def with_parts(values: tuple[float, ...], *places: int) -> tuple[float, ...]:
    """Other evaluations, but for those at some places."""
    return tuple(values[i] if i in places else other for i, other in enumerate(OTHERS))


@pytest.mark.parametrize(
    ("benchmark", "values", "places", "is_reported"),
    [
        pytest.param("llama2_70b_lora", DOUBLES, (), False, id="none"),
        pytest.param("llama2_70b_lora", DOUBLES, (3,), True, id="one in double precision"),
        pytest.param("llama2_70b_lora", SINGLES, (3,), False, id="one in single precision"),
        pytest.param("llama2_70b_lora", SINGLES, (3, 6), True, id="two in single precision"),
        pytest.param("llama2_70b_lora", DOUBLES, (0,), False, id="the first"),
        pytest.param("resnet", DOUBLES, (3, 4), False, id="two shares"),
        pytest.param("resnet", DOUBLES, (1, 3, 5), False, id="three shares here and there"),
        pytest.param("resnet", DOUBLES, (3, 4, 5), True, id="three shares in a row"),
    ],
)
def test_spliced_evaluations(
    benchmark: str, values: tuple[float, ...], places: tuple[int, ...], is_reported: bool
) -> None:
    result_set = context(benchmark)
    result_set.runs = [evaluated(values), evaluated(with_parts(values, *places))]
    findings = list(plausibility.check_spliced(result_set))
    assert [finding.code for finding in findings] == ["SET171"] * is_reported
    number = "1 evaluation" if len(places) == 1 else f"{len(places)} evaluations"
    assert all(
        finding.text.startswith(
            f"this log shares the values of {number} with log, to the last digit"
        )
        for finding in findings
    )


@pytest.mark.parametrize("values", [DOUBLES, SINGLES], ids=["double", "single"])
def test_all_evaluations_are_not_spliced(values: tuple[float, ...]) -> None:
    result_set = context("llama2_70b_lora")
    result_set.runs = [evaluated(values), evaluated(values)]
    assert not list(plausibility.check_spliced(result_set))


def test_few_digits_are_not_compared() -> None:
    result_set = context("maskrcnn")
    values = (0.1, 0.25, 0.34512, 0.37)
    result_set.runs = [evaluated((*values, 0.371)), evaluated((*values, 0.392))]
    assert not list(plausibility.check_spliced(result_set))
