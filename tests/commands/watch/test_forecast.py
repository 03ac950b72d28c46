"""The training of a run so far, its goal, and how near the expected end is to the real one."""

from typing import Any

import pytest

from mlperf_pkg.commands.watch.forecast import Goal, TrainingCourse, forecast, goal_of
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.simulate import RunPlan, simulate_run
from tests.helpers.halfway import forecast_of, halfway
from tests.helpers.logs import good_log, line, run_of

# ---- the training, from a log that grows --------------------------------------------------


START = line("run_start", 0)


def course_of(*lines: bytes) -> TrainingCourse:
    course = TrainingCourse()
    for data in lines:
        course.take(data)
    return course


def points(*lines: bytes, name: str, round_: str) -> list[tuple[Any, ...]]:
    evaluations = course_of(*lines).evaluations(load_benchmark("training", round_, name))
    return [(point.position, point.unit, point.values) for point in evaluations]


def test_evaluations_keep_their_lines() -> None:
    evaluation = line("eval_accuracy", 1, 0.5, epoch_num=1)
    other = line("eval_accuracy", 2, 0.5, epoch_num=2)
    course = course_of(b"text\n\n", START, b"\n" + evaluation, other)
    assert [point.line for point in course.evaluations(None)] == [5, 6]


def test_metrics_of_one_position_are_one_evaluation() -> None:
    """The position is what convergence is counted by: here steps, not epochs."""
    lines = [
        line("eval_accuracy", minute, minute, epoch_num=9, step_num=step, metric=metric)
        for minute, (step, metric) in enumerate([(1, "FID"), (1, "CLIP"), (1, "FID"), (2, "CLIP")])
    ]
    assert points(START, *lines, name="stable_diffusion", round_="3.1") == [
        (1, "steps", {"FID": 0.0, "CLIP": 1.0}),
        (1, "steps", {"FID": 2.0}),
        (2, "steps", {"CLIP": 3.0}),
    ]


def test_tracked_stats_hold_a_position() -> None:
    stats = line("tracked_stats", 1, {"throughput": 5}, samples_count=64)
    mark = course_of(START, stats).mark(load_benchmark("training", "5.1", "flux1"))
    assert mark is not None
    assert (mark.position, mark.values) == (64, {})


def test_nothing_counts_before_run_start() -> None:
    evaluation = line("eval_accuracy", 0, 0.5, epoch_num=1)
    stats = line("tracked_stats", 0, {}, epoch_num=1)
    course = course_of(evaluation, stats, START)
    assert (course.evaluations(None), course.mark(None)) == ([], None)


@pytest.mark.parametrize(
    "record",
    [
        b'{"time_ms": 1, "key": "eval_accuracy", "value": "x", "metadata": {"epoch_num": 1}}',
        b'{"time_ms": 1, "key": "eval_accuracy", "value": 0.5, "metadata": {"epoch_num": "x"}}',
        b'{"time_ms": 1, "key": "eval_accuracy", "value": 0.5, "metadata": null}',
        b'{"time_ms": 1, "key": "eval_accuracy", "value": {}, "metadata": {"epoch_num": 1}}',
        b'{"time_ms": 1e400, "key": "eval_accuracy", "value": 1, "metadata": {"epoch_num": 1}}',
        b'{"time_ms": 1, "key": [], "value": 0.5, "metadata": {}}',
        b"[" * 100_000,
    ],
)
def test_odd_records_are_left_out(record: bytes) -> None:
    assert course_of(START, b":::MLLOG " + record + b"\n").evaluations(None) == []


# ---- what a run is to reach ---------------------------------------------------------------


def test_the_goal_is_met_when_each_bound_is() -> None:
    rules = load_benchmark("training", "2.0", "maskrcnn")
    assert rules is not None
    goal = goal_of(run_of(good_log("maskrcnn")), rules, 256)
    assert set(goal.bounds) == {"BBOX", "SEGM"}
    values = ({"BBOX": 0.5}, {"BBOX": 0.5, "SEGM": 0.1}, {"BBOX": 0.5, "SEGM": 0.5})
    assert [goal.met(one) for one in values] == [False, False, True]
    assert goal.short({"SEGM": 0.1}) == {"SEGM": 0.339}


# ---- the forecast, on simulated runs ------------------------------------------------------


# The simulator draws runs that are never faster than the mean of the reference, so forecasts by
# the reference are never late by more than the granularity of evaluations.
BOUND = 0.23
REFERENCED = [
    *(("training", "2.0", name) for name in ("bert", "dlrm", "maskrcnn", "resnet", "rnnt", "ssd")),
    *(("training", "3.1", name) for name in ("dlrm_dcnv2", "gpt3", "stable_diffusion", "unet3d")),
    *(("training", "5.1", name) for name in ("flux1", "llama2_70b_lora", "llama31_8b", "rgat")),
    *(("hpc", "3.0", name) for name in ("cosmoflow", "deepcam", "oc20", "openfold")),
]


def simulated(usage: str, round_: str, benchmark: str, **more: Any) -> bytes:
    return simulate_run(RunPlan(round_, benchmark, "closed", "x", "y", usage=usage, **more), 1)


@pytest.mark.parametrize(("usage", "round_", "benchmark"), REFERENCED)
def test_half_way_by_the_reference(usage: str, round_: str, benchmark: str) -> None:
    course, run = halfway(simulated(usage, round_, benchmark), usage, round_)
    expected = forecast_of(course, run)
    assert expected
    assert run.minutes
    assert abs(expected.minutes / run.minutes - 1) < BOUND
    assert expected.low <= expected.minutes <= (expected.high or 0)
    if len(course.evaluations(load_benchmark(usage, round_, benchmark))) > 1:
        assert expected.low <= run.minutes <= (expected.high or 0)


@pytest.mark.parametrize("benchmark", ["bert", "dlrm", "minigo", "resnet"])
def test_half_way_by_the_curve(benchmark: str) -> None:
    """Round 0.7 has no reference points. The simulated curves flatten: it ends later."""
    course, run = halfway(simulated("training", "0.7", benchmark), "training", "0.7")
    expected = forecast_of(course, run)
    assert expected
    assert run.minutes
    assert (expected.method, expected.high) == ("curve", None)
    assert expected.low <= expected.minutes
    assert 0.5 < expected.minutes / run.minutes < 1.1


@pytest.mark.parametrize("part", [0.01, 1.0], ids=["start", "end"])
def test_no_forecast(part: float) -> None:
    assert forecast_of(*halfway(good_log("bert"), "training", "2.0", part)) is None


def test_no_forecast_by_the_reference_beyond_it() -> None:
    """Of a run that has trained for longer than any of the reference."""
    beyond = simulated("training", "2.0", "bert", failure="diverged")
    expected = forecast_of(*halfway(beyond, "training", "2.0", 1.0))
    assert expected is None or expected.method == "curve"


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
def test_the_curve(
    values: tuple[float, float, float] | tuple[float, float], minutes: tuple[float, float] | None
) -> None:
    evaluations = (
        line("eval_accuracy", n, value, epoch_num=n) for n, value in enumerate(values, 1)
    )
    goal = Goal({"": {"at_least": 0.5}}, "epochs")
    expected = forecast(course_of(START, *evaluations), None, goal)
    figures = expected and (round(expected.minutes, 1), round(expected.low, 1))
    assert figures == minutes
