"""Follow one log from its first byte to its end: read it as it grows, judge it, report events."""

import errno
import os
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import BinaryIO, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.commands.watch import events
from mlperf_pkg.commands.watch.forecast import Goal, TrainingCourse, forecast, goal_of
from mlperf_pkg.findings import Basis, Finding, Pending, Repeated, Severity, Unordered
from mlperf_pkg.infra.paths import open_file
from mlperf_pkg.infra.resources import installed_version
from mlperf_pkg.infra.source import Source, foreign_text
from mlperf_pkg.infra.streams import Compression, DamagedError, Decompressor, compression_of
from mlperf_pkg.log.reader import MAX_LINE_BYTES, OF_LINES
from mlperf_pkg.log.record import TIME_NAME, TOKEN
from mlperf_pkg.rulebook.explain import all_layers, target
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.rulebook.rounds import RoundChoice
from mlperf_pkg.rulebook.verified import REFERENCE, drift, verified_name
from mlperf_pkg.run.evaluations import KEYS, MS_PER_MINUTE
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run

BLOCK_BYTES = 16 << 20
_LIKE_TOKEN = (b"MLL", b":::ML", b"mllog", TIME_NAME)
_REPAIRABLE = frozenset({"LOG101", "LOG103", "LOG108", "LOG111", "LOG112", "LOG114"})
"""The codes of damage that can be repaired once the run has ended."""

_NOT_JSON = "LOG101"

_MARK_BYTES = 256
_GONE = frozenset({errno.ESTALE, errno.ENOENT, errno.ENOTDIR})
_SECONDS_PER_MINUTE = 60
_SHARE = 10  # judging takes at most one tenth of the time


# ---- the bytes ----------------------------------------------------------------------------


Change = Literal["missing", "truncated", "replaced"]
"""What happened to a file since the last poll, other than that it grew."""


class Follower(Struct):
    """Follows the file ``path`` from its first byte; it need not exist yet."""

    path: Path
    _stream: BinaryIO | None = None
    _identity: tuple[int, int] | None = None
    _offset: int = 0
    _mark: bytes = b""

    def poll(self) -> tuple[Change | None, bytes]:
        """Return what happened to the file, if anything, and at most ``BLOCK_BYTES`` new bytes.

        A file with another inode replaces the old one once that is read to its end. A file that is
        shorter than before, or whose last bytes read differ now, was truncated.

        Raises:
            OSError: the file cannot be read now, or the path is that of something else.
        """
        try:
            opened = open_file(self.path)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            data = self._read()
            if data:
                return None, data
            return "missing", data
        status = os.fstat(opened.fileno())
        identity = (status.st_dev, status.st_ino)
        is_same = self._identity in (None, identity)
        if not is_same:
            rest = self._read()
            if rest:
                opened.close()
                return None, rest
        self.close()
        self._stream = opened
        self._identity = identity
        if is_same and status.st_size >= self._offset:
            opened.seek(self._offset - len(self._mark))
            if opened.read(len(self._mark)) == self._mark:
                return None, self._read()
        self._offset = 0
        self._mark = b""
        if is_same:
            return "truncated", self._read()
        return "replaced", self._read()

    def close(self) -> None:
        """Stop reading."""
        if self._stream:
            self._stream.close()
            self._stream = None

    def _read(self) -> bytes:
        if self._stream is None:
            return b""
        try:
            self._stream.seek(self._offset)
            data = self._stream.read(BLOCK_BYTES)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            data = b""
        self._offset += len(data)
        self._mark = (self._mark + data[-_MARK_BYTES:])[-_MARK_BYTES:]
        return data


class Unpacker(Struct):
    """Takes the bytes of a file as it grows; ``problem`` says why its text cannot be read."""

    problem: str | None = None
    _head: bytes | None = b""
    _decompressor: Decompressor | None = None

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield the text of the next bytes; nothing while they may be the start of a format."""
        if self._head is not None:
            data = self._head + data
            if any(form.value.startswith(data) for form in Compression if form.value):
                self._head = data
                return
            self._head = None
            self._begin(data)
        if self._decompressor is None:
            yield data
            return
        try:
            yield from self._decompressor.feed(data)
        except DamagedError as error:
            self.problem = str(error)

    def _begin(self, data: bytes) -> None:
        """Find out from its first bytes whether the file is compressed, or of another encoding."""
        compression = compression_of(data)
        if compression:
            self._decompressor = Decompressor(compression)
            return
        foreign = foreign_text(data)
        if foreign:
            self.problem = f"the log is {foreign.name}; expected UTF-8 text ({foreign.remedy})"


class Lines(Struct):
    """The complete lines of a growing log, without the text of those that hold no record.

    ``text`` is what ``LogReader`` reads: each record is on its true line. ``partial`` is the line
    that is being written, ``too_long`` the number of lines over ``MAX_LINE_BYTES``, which are
    skipped. A line ends with CR, LF or CRLF, as in ``LogReader``.
    """

    text: bytearray = field(default_factory=bytearray)
    partial: bytes = b""
    too_long: int = 0
    _skipping: bool = False

    def add(self, data: bytes) -> bytes:
        """Take more bytes, and return the lines that they complete, as in ``text``."""
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        lines = b""
        if cut:
            complete = (self.partial + data[:cut]).splitlines(keepends=True)
            if self._skipping:
                complete[0] = _without_text(complete[0])
            self.partial = b""
            self._skipping = False
            lines = b"".join(
                line if _may_hold_record(line) else _without_text(line) for line in complete
            )
            self.text += lines
        if not self._skipping:
            self.partial += data[cut:]
        if len(self.partial) > MAX_LINE_BYTES:
            self.partial = b""
            self._skipping = True
            self.too_long += 1
        return lines


def _may_hold_record(line: bytes) -> bool:
    return any(part in line for part in _LIKE_TOKEN)


def _without_text(line: bytes) -> bytes:
    """Return only the LF of a line without a record, so that lines can be counted."""
    if line.endswith(b"\n"):
        return b"\n"
    return b""


# ---- the verdict so far -------------------------------------------------------------------


class Judge(Struct, frozen=True):
    """Judges the log ``path`` by waivers and the rules of the round ``choice`` of a ``usage``.

    Both are inferred where they are None.
    """

    path: str
    usage: str | None = None
    choice: RoundChoice | None = None
    waivers: Waivers = field(default_factory=Waivers)

    def __call__(self, text: bytes) -> Run:
        """Return the run that the records so far describe, as if the log ended here.

        Raises:
            UserError: the rulebook has no such round.
        """
        log = LogFile(Source(self.path, text), self.usage)
        if self.choice:
            log = replace(
                log,
                round=self.choice.name,
                round_reason=self.choice.reason,
                sureness=self.choice.sureness,
            )
        return self.waivers.waive_run(read_run(log))


def certain(run: Run) -> list[Finding]:
    """Return the findings that no later record can change.

    Findings of rules wait until the log has named everything that decides which rules apply, and
    notes until the end, as a later record may turn one into an error.
    """
    findings = []
    for finding in run.findings:
        if isinstance(finding, Pending | Unordered) or finding.severity is Severity.NOTE:
            continue
        if run.identified or finding.code.startswith(OF_LINES):
            findings.append(finding)
    return findings


def _can_be_repaired(finding: Finding, run: Run) -> bool:
    """Return whether a repair of the file may resolve a finding: it says nothing of the training.

    The parts of a torn record may be joined, and a ``run_start`` that is repeated be left out.
    """
    if isinstance(finding, Repeated) or finding.code in (*_REPAIRABLE, *run.by_damage):
        return True
    is_torn = any(other.code == _NOT_JSON for other in run.findings)
    return is_torn and isinstance(finding, Pending | Unordered)


def missing(run: Run) -> tuple[str, ...]:
    """Return the keys that are required and not logged, without those of the training itself."""
    keys: dict[str, str] = {}
    for layer in all_layers(run.usage, run.round, run.benchmark):
        for key, rules in layer.rules.items():
            keys |= {rule.code: key for rule in rules}
    later = ("_start", "_stop", *KEYS)
    absent = set()
    for finding in run.findings:
        if isinstance(finding, Pending) and finding.is_error and finding.line is None:
            key = keys.get(finding.code, "")
            if key and not key.endswith(later):
                absent.add(key)
    return tuple(sorted(absent))


# ---- the events ---------------------------------------------------------------------------


class Session:
    """Follows one log; call ``tick`` regularly for new events.

    ``log`` is the log as far as it is written, ``silent`` is the number of seconds without new
    bytes, ``given_up`` says that they were too many.
    """

    def __init__(
        self, judge: Judge, clock: Callable[[], float], idle_s: float = inf, timeout_s: float = inf
    ) -> None:
        """Start to follow ``judge.path``; ``clock`` counts seconds.

        After ``idle_s`` without news the log is reported as silent, after ``timeout_s`` given up.
        """
        self.path = judge.path
        self._judge = judge
        self._clock = clock
        self._idle_s = idle_s
        self._timeout_s = timeout_s
        self.given_up = False
        self._idle = False
        self._follower = Follower(Path(judge.path))
        self._exists: bool | None = None
        self._last_error = ""
        self._last_data = clock()
        self.log = _GrowingLog(judge, clock)

    @property
    def is_open(self) -> bool:
        """Whether the log is still followed."""
        return not self.log.done and not self.given_up

    @property
    def silent(self) -> float:
        """Seconds without new bytes."""
        return self._clock() - self._last_data

    @property
    def progress(self) -> events.Progress | None:
        """How far the run is now; None before its start."""
        return self.log.progress(self.silent)

    def tick(self) -> Iterator[events.WatchEvent]:
        """Read the new bytes, and yield their events, or that there are none for too long.

        Raises:
            UserError: the rulebook has no such round.
        """
        yield from self._read()
        if self.log.done:
            return
        message = f"the log has not grown for {events.duration(self.silent / _SECONDS_PER_MINUTE)}"
        idle = self.silent >= self._idle_s
        if self.silent >= self._timeout_s:
            self.given_up = True
            yield events.FileState("given_up", f"no longer followed, as {message}")
        elif idle and not self._idle:
            yield events.FileState("silent", message)
        self._idle = idle

    def close(self) -> None:
        """Stop following the log."""
        self._follower.close()

    def _read(self) -> Iterator[events.WatchEvent]:
        grown = False
        try:
            while True:
                change, data = self._follower.poll()
                yield from self._changed(change)
                grown = grown or bool(data)
                self.log.take(data)
                if len(data) < BLOCK_BYTES:
                    break
        except OSError as error:
            yield from self._unreadable(
                f"the log cannot be read ({error.strerror or error}); mlperf-pkg tries again"
            )
            return
        problem = self.log.unpacker.problem
        if problem:
            yield from self._unreadable(problem)
            return
        self._last_error = ""
        if grown:
            self._last_data = self._clock()
        yield from self.log.report(quiet=not grown)

    def _changed(self, change: Change | None) -> Iterator[events.WatchEvent]:
        exists = change != "missing"
        if exists is not self._exists:
            if not exists:
                message = "waiting for the file, which does not exist yet"
                if self._exists:
                    message = "waiting for the file, which was removed"
                yield events.FileState("missing", message)
            elif self._exists is False:
                yield events.FileState("appeared", "the file appeared")
            self._exists = exists
        if change == "truncated":
            self.log = _GrowingLog(self._judge, self._clock)
            message = "the file was truncated, so it is read again from the start"
            yield events.FileState(change, message)
        elif change == "replaced":
            self.log = _GrowingLog(self._judge, self._clock)
            message = "the file was replaced, so the new file is read from the start"
            yield events.FileState(change, message)

    def _unreadable(self, reason: str) -> Iterator[events.WatchEvent]:
        """Report once why the file cannot be read; network storage comes and goes."""
        if reason != self._last_error:
            self._last_error = reason
            yield events.FileState("unreadable", reason)


class _GrowingLog:
    """The log as far as it is written, and the events reported so far.

    ``done`` says that ``run_stop`` was logged and nothing was written after it, ``lost`` that the
    run can no longer count, ``failed`` that it has errors at its end.
    """

    def __init__(self, judge: Judge, clock: Callable[[], float]) -> None:
        self._judge = judge
        self._clock = clock
        self.unpacker = Unpacker()
        self._lines = Lines()
        self._course = TrainingCourse()
        self._rules: Benchmark | None = None
        self._goal: Goal | None = None
        self._run: Run | None = None
        self._next_judgement = 0.0
        self._judged_partial = b""
        self._reported: set[tuple[str, Severity]] = set()
        self._evaluations = 0
        self._too_long = 0
        self._unjudged = False
        self._started = False
        self._described = False
        self.done = False
        self.lost = False
        self.failed = False

    def take(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        for text in self.unpacker.take(data):
            lines = self._lines.add(text)
            self._course.take(lines)
            self._unjudged = self._unjudged or _may_hold_record(lines)

    def report(self, *, quiet: bool) -> Iterator[events.WatchEvent]:
        """Yield new events; ``quiet`` says that no bytes came since the last call."""
        if self._unjudged and (quiet or self._clock() >= self._next_judgement):
            before = self._clock()
            self._run = self._judge(bytes(self._lines.text))
            self._next_judgement = self._clock() + _SHARE * (self._clock() - before)
            self._unjudged = False
            yield from self._news(self._run)
        if self._lines.too_long > self._too_long:
            self._too_long = self._lines.too_long
            message = f"a line was not checked, as it is longer than {MAX_LINE_BYTES >> 20} MiB"
            yield events.FileState("skipped", message)
        if quiet and not self.done:
            yield from self._last()

    def progress(self, since: float) -> events.Progress | None:
        """Return how far the run is, ``since`` seconds after the last byte of its log."""
        course = self._course
        if course.start_ms is None or course.last_ms is None:
            return None
        minutes = (course.last_ms - course.start_ms) / MS_PER_MINUTE
        if not self.done:
            minutes += since / _SECONDS_PER_MINUTE
        expected = None
        if self._goal:
            expected = forecast(course, self._rules, self._goal)
        return events.Progress(minutes, expected)

    def _news(self, run: Run) -> Iterator[events.WatchEvent]:
        if run.identified or self._course.start_ms is not None:
            yield from self._describe(run)
        yield from self._findings(run, certain(run))
        if self._course.start_ms is not None and not self._started:
            self._started = True
            keys = missing(run)
            if keys:
                yield events.Open(keys)
        yield from self._evaluated()
        if run.stop_ms is not None and run.status != "success":
            yield from self._lose(
                f"run_stop says {run.status or 'no status'}, so the run did not converge"
            )

    def _describe(self, run: Run) -> Iterator[events.WatchEvent]:
        self._rules = load_benchmark(run.usage, run.round, run.benchmark)
        self._goal = None
        if self._rules:
            self._goal = goal_of(run, self._rules, self._course.batch_size)
        if not self._described and run.benchmark:
            self._described = True
            goal = ""
            if self._rules:
                goal = target(self._rules)
            yield events.Identified(run.benchmark, run.division, run.round, run.round_reason, goal)
            differences = drift(run.usage, run.round).of({run.benchmark})
            if differences.concerns(run.benchmark):
                message = (
                    f"the official findings are those that {verified_name()} would report; the"
                    f" installed version {installed_version(REFERENCE)} differs in"
                    f" {differences.in_words()}"
                )
                yield events.FileState("unverified", message)

    def _findings(self, run: Run, findings: list[Finding]) -> Iterator[events.WatchEvent]:
        """Report each kind of finding on a run once."""
        for finding in findings:
            kind = (finding.code, finding.severity)
            if kind not in self._reported:
                self._reported.add(kind)
                yield events.Found(finding)
                if _can_be_repaired(finding, run):
                    continue
                if finding.is_error:
                    yield from self._lose(f"no later record can resolve {finding.code}")
                elif finding.fails(Basis.OFFICIAL):
                    yield from self._lose(
                        f"the official checker ignores the waiver of {finding.code}"
                    )

    def _evaluated(self) -> Iterator[events.WatchEvent]:
        start_ms = self._course.start_ms
        goal = self._goal
        if start_ms is None or goal is None:
            return
        evaluations = self._course.evaluations(self._rules)
        new = evaluations[self._evaluations :]
        self._evaluations = len(evaluations)
        for evaluation in new:
            yield events.Evaluated(
                minutes=(evaluation.time_ms - start_ms) / MS_PER_MINUTE,
                position=evaluation.position,
                unit=evaluation.unit,
                values=evaluation.values,
                met=goal.met(evaluation.values),
            )
        if new and not goal.met(new[-1].values):
            progress = self.progress(0)
            if progress:
                yield progress

    def _lose(self, reason: str) -> Iterator[events.WatchEvent]:
        if not self.lost:
            self.lost = True
            yield events.Lost(reason)

    def _last(self) -> Iterator[events.WatchEvent]:
        """Yield the end, if the log has ended.

        A last line without a line end counts once it stays as it is.
        """
        run = self._run
        if TOKEN in self._lines.partial and self._lines.partial != self._judged_partial:
            self._judged_partial = self._lines.partial
            run = self._judge(bytes(self._lines.text) + self._lines.partial)
        if run is None or run.stop_ms is None:
            return
        self._run = run
        self.done = True
        self._course.take(self._lines.partial)
        yield from self._news(run)
        problems = [finding for finding in run.findings if finding.severity is not Severity.NOTE]
        yield from self._findings(run, problems)
        errors = 0
        warnings = 0
        for finding in problems:
            if finding.is_error:
                errors += 1
            elif finding.severity is Severity.WARNING and not finding.waiver:
                warnings += 1
        self.failed = errors > 0
        yield events.Ended(run.status, run.minutes, self.lost, errors, warnings)
