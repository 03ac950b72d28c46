"""The training of a run, from a log that grows."""

from __future__ import annotations

from typing import Any

import pytest

from mlperf_pkg.commands.watch.forecast import Course, CourseReader
from mlperf_pkg.rulebook.load import load_benchmark
from tests.helpers.logs import line

START = line("run_start", 0)


def course_of(*lines: bytes, name: str = "", round_: str = "2.0") -> Course:
    reader = CourseReader()
    for data in lines:
        reader.take(data)
    return reader.course(load_benchmark("training", round_, name))


def points(course: Course) -> list[tuple[Any, ...]]:
    return [(point.position, point.unit, point.values) for point in course.evaluations]


def test_evaluations_keep_their_lines() -> None:
    evaluation = line("eval_accuracy", 1, 0.5, epoch_num=1)
    course = course_of(b"text\n\n", START, b"\n" + evaluation, evaluation)
    assert [point.line for point in course.evaluations] == [5, 6]


def test_what_convergence_is_counted_by_is_the_position() -> None:
    evaluation = line("eval_accuracy", 1, 90, epoch_num=1, step_num=1000, metric="FID")
    assert points(course_of(START, evaluation, name="stable_diffusion", round_="3.1")) == [
        (1000, "steps", {"FID": 90.0})
    ]


def test_metrics_of_one_position_are_one_evaluation() -> None:
    lines = [
        line("eval_accuracy", minute, minute, step_num=step, metric=metric)
        for minute, (step, metric) in enumerate([(1, "FID"), (1, "CLIP"), (1, "FID"), (2, "CLIP")])
    ]
    assert points(course_of(START, *lines, name="stable_diffusion", round_="3.1")) == [
        (1, "steps", {"FID": 0.0, "CLIP": 1.0}),
        (1, "steps", {"FID": 2.0}),
        (2, "steps", {"CLIP": 3.0}),
    ]


def test_before_the_first_evaluation_tracked_stats_hold_the_position() -> None:
    stats = line("tracked_stats", 1, {"throughput": 5}, samples_count=64)
    course = course_of(START, stats, name="flux1", round_="5.1")
    assert course.latest is not None
    assert (course.latest.position, course.latest.values) == (64, {})
    evaluation = line("eval_accuracy", 2, 0.7, samples_count=128)
    course = course_of(START, stats, evaluation, stats, name="flux1", round_="5.1")
    assert course.latest is not None
    assert course.latest.position == 128


def test_nothing_counts_before_run_start() -> None:
    evaluation = line("eval_accuracy", 0, 0.5, epoch_num=1)
    stats = line("tracked_stats", 0, {}, epoch_num=1)
    course = course_of(evaluation, stats, START)
    assert (course.evaluations, course.latest) == ((), None)


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
def test_odd_records_are_left_out(record: bytes) -> None:
    assert course_of(START, b":::MLLOG " + record + b"\n").evaluations == ()
