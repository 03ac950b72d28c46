"""One log from its first byte to its end: what is told of it, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from mlperf_pkg.commands.watch import events
from mlperf_pkg.commands.watch.events import Event
from mlperf_pkg.commands.watch.follow import BLOCK_BYTES, Change, Follower, Lines
from mlperf_pkg.commands.watch.forecast import forecast
from mlperf_pkg.commands.watch.judge import Judge, certain, missing
from mlperf_pkg.commands.watch.progress import Course, Goal, goal_of
from mlperf_pkg.findings import Finding, Severity
from mlperf_pkg.log.reader import MAX_LINE_BYTES
from mlperf_pkg.log.record import TOKEN
from mlperf_pkg.run.model import Run

_MS_PER_MINUTE = 60_000
_SECONDS_PER_MINUTE = 60
_SHARE = 10  # judging takes no more than one part of so many of the time
_CHANGED = {
    Change.TRUNCATED: "the file was truncated: followed again from its head",
    Change.REPLACED: "another file took its place: followed from the head of that",
}


class Session:
    """Follows one log; ``tick`` is called now and then and tells what happened since.

    ``done`` says that ``run_stop`` was logged and nothing came after it, ``lost`` that the run
    cannot count any more, ``silent`` for how many seconds nothing has come.
    """

    def __init__(self, judge: Judge, clock: Callable[[], float] = monotonic) -> None:
        """Start to follow ``judge.path``; ``clock`` counts seconds."""
        self._judge = judge
        self._clock = clock
        self._follower = Follower(Path(judge.path))
        self._there: bool | None = None
        self._trouble = ""
        self._since = clock()
        self._log = _Log(judge, clock)

    @property
    def path(self) -> str:
        """The path as given."""
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
        """Seconds since anything came."""
        return self._clock() - self._since

    @property
    def progress(self) -> events.Progress | None:
        """How far the run is now; None before its start."""
        return self._log.progress(self.silent)

    def tick(self) -> Iterator[Event]:
        """Read what is new, and tell what it means.

        Raises:
            UserError: it is no file, or the rulebook has no such round.
        """
        grown = False
        try:
            while True:
                news = self._follower.poll()
                yield from self._changed(news.change)
                grown = grown or bool(news.data)
                self._log.take(news.data)
                if len(news.data) < BLOCK_BYTES:
                    break
        except OSError as error:
            yield from self._unreadable(error)
            return
        self._trouble = ""
        if grown:
            self._since = self._clock()
        yield from self._log.tell(quiet=not grown)

    def close(self) -> None:
        """Follow no more."""
        self._follower.close()

    def _changed(self, change: Change) -> Iterator[Event]:
        there = change is not Change.MISSING
        if there is not self._there:
            if not there:
                gone = "the file is gone" if self._there else "there is no such file yet"
                yield self._state("missing", f"{gone}: waiting for it")
            elif self._there is False:
                yield self._state("appeared", "the file is there")
            self._there = there
        if change in _CHANGED:
            self._log = _Log(self._judge, self._clock)
            yield self._state(change.value, _CHANGED[change])

    def _unreadable(self, error: OSError) -> Iterator[Event]:
        """Network storage comes and goes: told once, tried again."""
        reason = error.strerror or str(error)
        if reason != self._trouble:
            self._trouble = reason
            yield self._state("unreadable", f"cannot be read: {reason}: tried again")

    def _state(self, change: str, message: str) -> Event:
        return events.State(self.path, change, message)


class _Log:
    """The log as far as it is written, and what was told of it."""

    def __init__(self, judge: Judge, clock: Callable[[], float]) -> None:
        self._judge = judge
        self._clock = clock
        self._lines = Lines()
        self._course = Course()
        self._goal: Goal | None = None
        self._run: Run | None = None
        self._unjudged = False
        self._next = 0.0
        self._tried = b""
        self._told: set[tuple[str, Severity]] = set()
        self._evaluations = 0
        self._too_long = 0
        self._started = False
        self._described = False
        self.done = False
        self.lost = False

    def take(self, data: bytes) -> None:
        """Take the next bytes."""
        lines = self._lines.add(data)
        if TOKEN[:6] in lines:
            self._unjudged = True
            self._course.take(lines)

    def tell(self, *, quiet: bool) -> Iterator[Event]:
        """What is new; ``quiet`` says that nothing came since it was asked last."""
        if self._unjudged and (quiet or self._clock() >= self._next):
            self._read(bytes(self._lines.text))
            yield from self._news()
        if self._lines.too_long > self._too_long:
            self._too_long = self._lines.too_long
            message = f"over {MAX_LINE_BYTES >> 20} MiB on one line: not checked"
            yield events.State(self._judge.path, "skipped", message)
        if quiet and not self.done:
            yield from self._last()

    def progress(self, since: float) -> events.Progress | None:
        """How far it is, ``since`` seconds after its last byte."""
        course = self._course
        if course.start_ms is None or course.last_ms is None:
            return None
        minutes = (course.last_ms - course.start_ms) / _MS_PER_MINUTE
        if not self.done:
            minutes += since / _SECONDS_PER_MINUTE
        expected = forecast(course, self._goal) if self._goal else None
        return events.Progress(self._judge.path, minutes, expected)

    def _read(self, text: bytes) -> Run:
        before = self._clock()
        self._run = self._judge(text)
        self._next = self._clock() + _SHARE * (self._clock() - before)
        self._unjudged = False
        return self._run

    def _news(self) -> Iterator[Event]:
        run = self._run
        if run is None:
            return
        if run.identified or self._course.start_ms is not None:
            yield from self._describe(run)
        yield from self._findings(certain(run))
        if self._course.start_ms is not None and not self._started:
            self._started = True
            if keys := missing(run):
                yield events.Open(self._judge.path, keys)
        yield from self._evaluated()
        if run.stop_ms is not None and run.status != "success":
            yield from self._lose(f"run_stop says {run.status or 'no status'}: it did not converge")

    def _describe(self, run: Run) -> Iterator[Event]:
        self._goal = goal_of(run, self._course.batch_size)
        if not self._described and run.benchmark:
            self._described = True
            target = self._goal.target if self._goal else ""
            yield events.Identified(
                self._judge.path, run.benchmark, run.division, run.round, run.round_reason, target
            )

    def _findings(self, findings: list[Finding]) -> Iterator[Event]:
        """Each kind once, at its first."""
        for finding in findings:
            kind = (finding.code, finding.severity)
            if kind not in self._told:
                self._told.add(kind)
                yield events.Found(self._judge.path, finding)
                if finding.is_error:
                    yield from self._lose(f"{finding.code} cannot be mended by any later record")

    def _evaluated(self) -> Iterator[Event]:
        course, goal = self._course, self._goal
        if course.start_ms is None or goal is None:
            return
        new = course.evaluations[self._evaluations :]
        self._evaluations = len(course.evaluations)
        met = False
        for each in new:
            minutes = (each.time_ms - course.start_ms) / _MS_PER_MINUTE
            met = goal.met(each.values)
            yield events.Evaluated(
                self._judge.path, minutes, each.position, goal.unit, each.values, met
            )
        if new and not met and (now := self.progress(0)):
            yield now

    def _lose(self, reason: str) -> Iterator[Event]:
        if not self.lost:
            self.lost = True
            yield events.Lost(self._judge.path, reason)

    def _last(self) -> Iterator[Event]:
        """The end, if it is the end: a last line without a line end counts where it stays so."""
        run = self._run
        if TOKEN in self._lines.partial and self._lines.partial != self._tried:
            self._tried = self._lines.partial
            run = self._judge(bytes(self._lines.text) + self._lines.partial)
        if run is None or run.stop_ms is None:
            return
        self._run, self.done = run, True
        self._course.take(self._lines.partial)
        yield from self._news()
        yield from self._findings([f for f in run.findings if f.severity is not Severity.NOTE])
        yield self._ended(run)

    def _ended(self, run: Run) -> Event:
        errors = sum(finding.is_error for finding in run.findings)
        warnings = sum(f.severity is Severity.WARNING and not f.waiver for f in run.findings)
        path = self._judge.path
        return events.Ended(path, run.status, run.minutes, self.lost, errors, warnings)
