"""How near the expected end is to the real one, on simulated runs."""

from __future__ import annotations

import pytest

from mlperf_pkg.commands.watch.forecast import Course, CourseReader, Goal, Method, forecast
from mlperf_pkg.simulate import RunPlan, simulate_run
from tests.helpers.halfway import forecast_of, halfway
from tests.helpers.logs import good_log, line

# The simulator draws runs that are never faster than the mean of the reference, so forecasts by
# the reference are never late by more than the granularity of evaluations.
BOUND = 0.23
REFERENCED = [
    *(("training", "2.0", name) for name in ("bert", "dlrm", "maskrcnn", "resnet", "rnnt", "ssd")),
    *(("training", "3.1", name) for name in ("dlrm_dcnv2", "gpt3", "stable_diffusion", "unet3d")),
    *(("training", "5.1", name) for name in ("flux1", "llama2_70b_lora", "llama31_8b", "rgat")),
    *(("hpc", "3.0", name) for name in ("cosmoflow", "deepcam", "oc20", "openfold")),
]


def simulated(
    usage: str, round_: str, benchmark: str, seed: int, failure: str | None = None
) -> bytes:
    plan = RunPlan(round_, benchmark, "closed", "x", "y", usage=usage, failure=failure)
    return simulate_run(plan, seed)


@pytest.mark.parametrize(("usage", "round_", "benchmark"), REFERENCED)
@pytest.mark.parametrize("seed", [1, 2])
def test_half_way_by_the_reference(usage: str, round_: str, benchmark: str, seed: int) -> None:
    course, run = halfway(simulated(usage, round_, benchmark, seed), usage, round_)
    expected = forecast_of(course, run)
    assert expected is not None
    assert run.minutes is not None
    assert expected.method is Method.REFERENCE
    assert abs(expected.minutes / run.minutes - 1) < BOUND
    assert expected.low <= expected.minutes <= (expected.high or 0)
    if len(course.evaluations) > 1:
        assert expected.low <= run.minutes <= (expected.high or 0)


@pytest.mark.parametrize("benchmark", ["bert", "dlrm", "minigo", "resnet"])
def test_half_way_by_the_curve(benchmark: str) -> None:
    """Round 0.7 has no reference points. The simulated curves flatten: it ends later."""
    course, run = halfway(simulated("training", "0.7", benchmark, 1), "training", "0.7")
    expected = forecast_of(course, run)
    assert expected is not None
    assert run.minutes is not None
    assert (expected.method, expected.high) == (Method.CURVE, None)
    assert expected.low <= expected.minutes
    assert 0.5 < expected.minutes / run.minutes < 1.1


def test_a_run_beyond_the_reference_is_forecast_by_its_curve() -> None:
    log = simulated("training", "2.0", "bert", 1, failure="diverged")
    course, run = halfway(log, "training", "2.0", part=1.0)
    expected = forecast_of(course, run)
    assert expected is None or expected.method is Method.CURVE


def test_no_forecast_before_anything_is_known() -> None:
    course, run = halfway(good_log("bert"), "training", "2.0", part=0.01)
    assert course.evaluations == ()
    assert forecast_of(course, run) is None


def test_no_forecast_where_the_target_is_met() -> None:
    course, run = halfway(good_log("bert"), "training", "2.0", part=1.0)
    assert forecast_of(course, run) is None


def course_of(*values: float) -> Course:
    """One evaluation a minute."""
    reader = CourseReader()
    reader.take(line("run_start", 0))
    for minute, value in enumerate(values, 1):
        reader.take(line("eval_accuracy", minute, value, epoch_num=minute))
    return reader.course(None)


@pytest.mark.parametrize(
    ("values", "minutes"),
    [
        ((0.1, 0.2, 0.3), (9.2, 5.0)),  # 0.1 a minute, or as the logarithm: later
        ((0.1, 0.2), None),  # too few
        ((0.3, 0.2, 0.1), None),  # the wrong way
        ((0.1, 0.1, 0.1), None),  # flat
        ((0.1, 0.10001, 0.10002), None),  # for ever
        ((-9e99, 9e99, -8e99), (27.5, 19.0)),  # nothing overflows
    ],
)
def test_the_curve(values: tuple[float, ...], minutes: tuple[float, float] | None) -> None:
    expected = forecast(course_of(*values), Goal("", {"": {"at_least": 0.5}}, "epochs"))
    figures = expected and (round(expected.minutes, 1), round(expected.low, 1))
    assert figures == minutes
