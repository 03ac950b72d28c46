"""Follow one log from its first byte to its end, and report events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from mlperf_pkg.commands.watch import events
from mlperf_pkg.commands.watch.course import CourseReader
from mlperf_pkg.commands.watch.events import Event
from mlperf_pkg.commands.watch.follow import BLOCK_BYTES, Change, Follower, Lines
from mlperf_pkg.commands.watch.forecast import forecast
from mlperf_pkg.commands.watch.goal import Goal, goal_of
from mlperf_pkg.commands.watch.judge import Judge, certain, missing
from mlperf_pkg.commands.watch.unpack import Unpacker
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.log.reader import MAX_LINE_BYTES
from mlperf_pkg.log.record import TOKEN
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.evaluations import Evaluation
from mlperf_pkg.run.model import Run

_MS_PER_MINUTE = 60_000
_SECONDS_PER_MINUTE = 60
_SHARE = 10  # judging takes at most one tenth of the time
_CHANGED = {
    Change.TRUNCATED: "the file was truncated: reading it again from the start",
    Change.REPLACED: "the file was replaced: reading the new one from the start",
}


class Session:
    """Follows one log; call ``tick`` regularly for new events.

    ``done`` says that ``run_stop`` was logged and nothing was written after it, ``lost`` that the
    run can no longer count, ``silent`` is the number of seconds without new bytes.
    """

    def __init__(self, judge: Judge, clock: Callable[[], float] = monotonic) -> None:
        """Start to follow ``judge.path``; ``clock`` counts seconds."""
        self._judge = judge
        self._clock = clock
        self._follower = Follower(Path(judge.path))
        self._exists: bool | None = None
        self._last_error = ""
        self._last_data = clock()
        self._unpacker = Unpacker()
        self._log = _Log(judge, clock)

    @property
    def path(self) -> str:
        """The path of the log, as on the command line."""
        return self._judge.path

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._log.done

    @property
    def lost(self) -> bool:
        """Whether the run is lost."""
        return self._log.lost

    @property
    def silent(self) -> float:
        """Seconds without new bytes."""
        return self._clock() - self._last_data

    @property
    def progress(self) -> events.Progress | None:
        """How far the run is now; None before its start."""
        return self._log.progress(self.silent)

    def tick(self) -> Iterator[Event]:
        """Read the new bytes, and yield their events.

        Raises:
            UserError: the path is not a regular file, or the rulebook has no such round.
        """
        grown = False
        try:
            while True:
                news = self._follower.poll()
                yield from self._changed(news.change)
                grown = grown or bool(news.data)
                for text in self._unpacker.take(news.data):
                    self._log.take(text)
                if len(news.data) < BLOCK_BYTES:
                    break
        except OSError as error:
            yield from self._unreadable(error)
            return
        if self._unpacker.problem:
            yield from self._not_text(self._unpacker.problem)
            return
        self._last_error = ""
        if grown:
            self._last_data = self._clock()
        yield from self._log.report(quiet=not grown)

    def close(self) -> None:
        """Stop following the log."""
        self._follower.close()

    def _changed(self, change: Change) -> Iterator[Event]:
        exists = change is not Change.MISSING
        if exists is not self._exists:
            if not exists:
                gone = "the file is gone" if self._exists else "the file does not exist yet"
                yield self._state("missing", f"{gone}: waiting for it")
            elif self._exists is False:
                yield self._state("appeared", "the file appeared")
            self._exists = exists
        if change in _CHANGED:
            self._unpacker = Unpacker()
            self._log = _Log(self._judge, self._clock)
            yield self._state(change.value, _CHANGED[change])

    def _unreadable(self, error: OSError) -> Iterator[Event]:
        """Report an error of the storage once; network storage comes and goes."""
        reason = error.strerror or str(error)
        if reason != self._last_error:
            self._last_error = reason
            yield self._state("unreadable", f"cannot be read: {reason}: trying again")

    def _not_text(self, problem: str) -> Iterator[Event]:
        """Report once that the text of the file cannot be read."""
        if problem != self._last_error:
            self._last_error = problem
            yield self._state("unreadable", problem)

    def _state(self, change: str, message: str) -> Event:
        return events.State(self.path, change, message)


class _Log:
    """The log as far as it is written, and the events reported so far."""

    def __init__(self, judge: Judge, clock: Callable[[], float]) -> None:
        self._judge = judge
        self._clock = clock
        self._lines = Lines()
        self._reader = CourseReader()
        self._rules: Benchmark | None = None
        self._goal: Goal | None = None
        self._run: Run | None = None
        self._unjudged = False
        self._next_judgement = 0.0
        self._judged_partial = b""
        self._reported: set[tuple[str, Severity]] = set()
        self._evaluations = 0
        self._too_long = 0
        self._started = False
        self._described = False
        self.done = False
        self.lost = False

    def take(self, data: bytes) -> None:
        """Take the next bytes."""
        lines = self._lines.add(data)
        self._reader.take(lines)
        self._unjudged = self._unjudged or TOKEN[:6] in lines

    def report(self, *, quiet: bool) -> Iterator[Event]:
        """Yield new events; ``quiet`` says that no bytes came since the last call."""
        if self._unjudged and (quiet or self._clock() >= self._next_judgement):
            self._read(bytes(self._lines.text))
            yield from self._news()
        if self._lines.too_long > self._too_long:
            self._too_long = self._lines.too_long
            message = f"not checked: a line longer than {MAX_LINE_BYTES >> 20} MiB"
            yield events.State(self._judge.path, "skipped", message)
        if quiet and not self.done:
            yield from self._last()

    def progress(self, since: float) -> events.Progress | None:
        """Return how far the run is, ``since`` seconds after the last byte of its log."""
        reader = self._reader
        if reader.start_ms is None or reader.last_ms is None:
            return None
        minutes = (reader.last_ms - reader.start_ms) / _MS_PER_MINUTE
        if not self.done:
            minutes += since / _SECONDS_PER_MINUTE
        expected = forecast(reader.course(self._rules), self._goal) if self._goal else None
        return events.Progress(self._judge.path, minutes, expected)

    def _read(self, text: bytes) -> Run:
        before = self._clock()
        self._run = self._judge(text)
        self._next_judgement = self._clock() + _SHARE * (self._clock() - before)
        self._unjudged = False
        return self._run

    def _news(self) -> Iterator[Event]:
        run = self._run
        if run is None:
            return
        if run.identified or self._reader.start_ms is not None:
            yield from self._describe(run)
        yield from self._findings(certain(run))
        if self._reader.start_ms is not None and not self._started:
            self._started = True
            if keys := missing(run):
                yield events.Open(self._judge.path, keys)
        yield from self._evaluated()
        if run.stop_ms is not None and run.status != "success":
            yield from self._lose(f"run_stop says {run.status or 'no status'}: it did not converge")

    def _describe(self, run: Run) -> Iterator[Event]:
        self._rules = load_benchmark(run.usage, run.round, run.benchmark)
        batch_size = self._reader.batch_size
        self._goal = goal_of(run, self._rules, batch_size) if self._rules else None
        if not self._described and run.benchmark:
            self._described = True
            target = self._goal.target if self._goal else ""
            yield events.Identified(
                self._judge.path, run.benchmark, run.division, run.round, run.round_reason, target
            )

    def _findings(self, findings: list[Finding]) -> Iterator[Event]:
        """Report each kind of finding once."""
        for finding in findings:
            kind = (finding.code, finding.severity)
            if kind not in self._reported:
                self._reported.add(kind)
                yield events.Found(self._judge.path, finding)
                if finding.is_error:
                    yield from self._lose(f"no later record can resolve {finding.code}")
                elif finding.fails(Basis.OFFICIAL):
                    yield from self._lose(f"the official checker ignores waivers: {finding.code}")

    def _evaluated(self) -> Iterator[Event]:
        start_ms, goal = self._reader.start_ms, self._goal
        if start_ms is None or goal is None:
            return
        course = self._reader.course(self._rules)
        new = course.evaluations[self._evaluations :]
        self._evaluations = len(course.evaluations)
        for evaluation in new:
            yield self._evaluation(evaluation, start_ms, met=goal.met(evaluation.values))
        if new and not goal.met(new[-1].values) and (progress := self.progress(0)):
            yield progress

    def _evaluation(self, evaluation: Evaluation, start_ms: float, *, met: bool) -> Event:
        minutes = (evaluation.time_ms - start_ms) / _MS_PER_MINUTE
        return events.Evaluated(
            self._judge.path, minutes, evaluation.position, evaluation.unit, evaluation.values, met
        )

    def _lose(self, reason: str) -> Iterator[Event]:
        if not self.lost:
            self.lost = True
            yield events.Lost(self._judge.path, reason)

    def _last(self) -> Iterator[Event]:
        """Yield the end, if the log has ended.

        A last line without a line end counts once it stays as it is.
        """
        run = self._run
        if TOKEN in self._lines.partial and self._lines.partial != self._judged_partial:
            self._judged_partial = self._lines.partial
            run = self._judge(bytes(self._lines.text) + self._lines.partial)
        if run is None or run.stop_ms is None:
            return
        self._run, self.done = run, True
        self._reader.take(self._lines.partial)
        yield from self._news()
        yield from self._findings([f for f in run.findings if f.severity is not Severity.NOTE])
        yield self._ended(run)

    def _ended(self, run: Run) -> Event:
        errors = sum(finding.is_error for finding in run.findings)
        warnings = sum(f.severity is Severity.WARNING and not f.waiver for f in run.findings)
        path = self._judge.path
        return events.Ended(path, run.status, run.minutes, self.lost, errors, warnings)
