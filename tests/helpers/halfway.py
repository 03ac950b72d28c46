"""The forecast of a run at half of its time."""

from io import BytesIO

from mlperf_pkg.commands.watch.forecast import Forecast, TrainingCourse, forecast, goal_of
from mlperf_pkg.commands.watch.session import Judge
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.rounds import RoundChoice
from mlperf_pkg.run.model import Run


def halfway(
    log: bytes, usage: str, round_: str | None, part: float = 0.5
) -> tuple[TrainingCourse, Run]:
    """What the records of the first half (or another ``part``) say, and the whole run."""
    run = Judge("log.txt", usage, RoundChoice(round_) if round_ else None)(log)
    assert run.start_ms is not None
    assert run.minutes is not None
    until = run.start_ms + part * run.minutes * 60_000
    course = TrainingCourse()
    lines = log.split(b"\n")[: lines_until(log, until)]
    course.take(b"".join(line + b"\n" for line in lines))
    return course, run


def lines_until(log: bytes, time_ms: float) -> int:
    """The number of lines before the first record that is later."""
    reader = LogReader(BytesIO(log), "log.txt", lambda _: None)
    records = enumerate(reader)
    later = (number for number, record in records if record and record.time_ms > time_ms)
    return next((reader.line_of(number) - 1 for number in later), len(log))


def forecast_of(course: TrainingCourse, run: Run) -> Forecast | None:
    """The forecast by the training so far."""
    rules = load_benchmark(run.usage, run.round, run.benchmark)
    return forecast(course, rules, goal_of(run, rules, course.batch_size)) if rules else None
