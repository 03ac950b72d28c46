"""How near the expected end is to the real one, on simulated runs."""

from __future__ import annotations

import pytest

from mlperf_pkg.commands.watch.course import Course, CourseReader
from mlperf_pkg.commands.watch.forecast import Method, forecast
from mlperf_pkg.commands.watch.goal import Goal, goal_of
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.simulate import RunPlan, simulate_run
from tests.helpers.halfway import forecast_of, halfway
from tests.helpers.logs import good_log

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


def reader_of(*values: float) -> CourseReader:
    records = [b':::MLLOG {"time_ms": 0, "key": "run_start", "value": null, "metadata": {}}\n']
    for at, value in enumerate(values, 1):
        record = (
            '{"time_ms": %d, "key": "eval_accuracy", "value": %r, "metadata": {"epoch_num": %d}}'
        )
        records.append(b":::MLLOG " + (record % (at * 60_000, value, at)).encode() + b"\n")
    reader = CourseReader()
    reader.take(b"".join(records))
    return reader


def course_of(*values: float) -> Course:
    return reader_of(*values).course(None)


@pytest.mark.parametrize(
    ("values", "minutes"),
    [
        ((0.1, 0.2, 0.3), (9.2, 5.0)),  # 0.1 a minute, or as the logarithm: later
        ((0.1, 0.2), None),  # too few
        ((0.3, 0.2, 0.1), None),  # the wrong way
        ((0.1, 0.1, 0.1), None),  # flat
        ((0.1, 0.10001, 0.10002), None),  # for ever
    ],
)
def test_the_curve(values: tuple[float, ...], minutes: tuple[float, float] | None) -> None:
    expected = forecast(course_of(*values), Goal("", {"": {"at_least": 0.5}}, "epochs"))
    figures = expected and (round(expected.minutes, 1), round(expected.low, 1))
    assert figures == minutes


def test_the_last_metric_to_reach_its_bound_decides() -> None:
    benchmark = load_benchmark("training", "2.0", "maskrcnn")
    assert benchmark is not None
    course, run = halfway(good_log("maskrcnn"), "training", "2.0")
    goal = goal_of(run, benchmark, course.batch_size)
    assert set(goal.bounds) == {"BBOX", "SEGM"}
    assert not goal.met({"BBOX": 0.5})
    assert not goal.met({"BBOX": 0.5, "SEGM": 0.1})
    assert goal.met({"BBOX": 0.5, "SEGM": 0.5})


@pytest.mark.parametrize(
    "record",
    [
        b'{"time_ms": 1, "key": "eval_accuracy", "value": "x", "metadata": {"epoch_num": 1}}',
        b'{"time_ms": 1, "key": "eval_accuracy", "value": true, "metadata": {"epoch_num": 1}}',
        b'{"time_ms": 1, "key": "eval_accuracy", "value": 0.5, "metadata": {"epoch_num": "x"}}',
        b'{"time_ms": 1, "key": "eval_accuracy", "value": 0.5, "metadata": null}',
        b'{"time_ms": 1, "key": "eval_accuracy", "value": {}, "metadata": {"epoch_num": 1}}',
        b'{"time_ms": 1e400, "key": "eval_accuracy", "value": 1, "metadata": {"epoch_num": 1}}',
        b'{"time_ms": 1, "key": [], "value": 0.5, "metadata": {}}',
        b"[" * 100_000,
    ],
)
def test_odd_records_are_passed_over(record: bytes) -> None:
    reader = reader_of()
    reader.take(b":::MLLOG " + record + b"\n")
    assert reader.course(None).evaluations == ()
