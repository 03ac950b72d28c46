"""What would have been forecast of a run at half of its time."""

from __future__ import annotations

from mlperf_pkg.commands.watch.forecast import Forecast, forecast
from mlperf_pkg.commands.watch.judge import Judge
from mlperf_pkg.commands.watch.progress import Course, goal_of
from mlperf_pkg.run.model import Run


def halfway(log: bytes, usage: str, round_: str | None, part: float = 0.5) -> tuple[Course, Run]:
    """What the records of the first half (or another ``part``) tell, and the whole run."""
    run = Judge("log.txt", usage, round_)(log)
    assert run.start_ms is not None
    assert run.minutes is not None
    until = run.start_ms + part * run.minutes * 60_000
    course = Course()
    for line in log.splitlines(keepends=True):
        alone = Course()
        alone.take(line)
        if alone.last_ms is not None and alone.last_ms > until:
            break
        course.take(line)
    return course, run


def forecast_of(course: Course, run: Run) -> Forecast | None:
    """The forecast by what is known so far."""
    goal = goal_of(run, course.batch_size)
    return forecast(course, goal) if goal else None
