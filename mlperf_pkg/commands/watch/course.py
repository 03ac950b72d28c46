"""The training of a run so far, read from a log that grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from math import isfinite

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.evaluations import Evaluation, evaluation_of, position_of


class Course(Struct, frozen=True):
    """The training so far; times are in milliseconds since the epoch.

    Metrics of one position that are logged in several records are one evaluation here.
    ``mark`` is the last position of ``tracked_stats``, without values.
    """

    start_ms: float | None
    last_ms: float | None
    batch_size: float | None
    evaluations: tuple[Evaluation, ...]
    mark: Evaluation | None

    @property
    def latest(self) -> Evaluation | None:
        """The last evaluation; before the first one, the last position that is logged."""
        return self.evaluations[-1] if self.evaluations else self.mark

    @property
    def interval(self) -> float:
        """The training between the last two evaluations; 0 if there are fewer."""
        if len(self.evaluations) < 2:  # noqa: PLR2004
            return 0.0
        return self.evaluations[-1].position - self.evaluations[-2].position


class _Logged(Struct, frozen=True):
    """A record and its line."""

    record: Record
    line: int


class CourseReader(Struct):
    """Reads a log that grows; ``take`` gets each complete line once.

    The records are kept as they are: what they mean depends on rules that are known only later.
    Lines that are not records are left out; the judging of the log reports them.
    """

    start_ms: float | None = None
    last_ms: float | None = None
    batch_size: float | None = None
    _evaluations: list[_Logged] = field(default_factory=list)
    _mark: _Logged | None = None
    _lines: int = 0

    def take(self, lines: bytes) -> None:
        """Read more complete lines."""
        reader = LogReader(BytesIO(lines), "", lambda _: None)
        for number, record in enumerate(reader):
            if record is not None and isinstance(record.key, str) and isfinite(record.time_ms):
                self._see(record, number, reader)
        self._lines += lines.count(b"\n")

    def course(self, rules: Benchmark | None) -> Course:
        """Return the training so far, read by the rules of the benchmark if there are any."""
        mark = evaluation_of(self._mark.record, rules, self._mark.line) if self._mark else None
        return Course(
            start_ms=self.start_ms,
            last_ms=self.last_ms,
            batch_size=self.batch_size,
            evaluations=tuple(_joined(self._evaluations, rules)),
            mark=replace(mark, values={}) if mark else None,
        )

    def _see(self, record: Record, number: int, reader: LogReader) -> None:
        time_ms = float(record.time_ms)
        self.last_ms = max(time_ms, self.last_ms or time_ms)
        if record.key == "run_start" and self.start_ms is None:
            self.start_ms = time_ms
        elif record.key == "global_batch_size":
            size = to_finite(record.value)
            self.batch_size = self.batch_size if size is None else size
        elif self.start_ms is None:
            return
        elif record.key in evaluations.KEYS:
            self._evaluations.append(_Logged(record, self._lines + reader.line_of(number)))
        elif record.key == "tracked_stats" and position_of(record, None):
            self._mark = _Logged(record, self._lines + reader.line_of(number))


def _joined(logged: Sequence[_Logged], rules: Benchmark | None) -> Iterator[Evaluation]:
    """Yield the evaluations; those of one position with different metrics as one."""
    last: Evaluation | None = None
    for entry in logged:
        evaluation = evaluation_of(entry.record, rules, entry.line)
        if evaluation is None or not evaluation.values:
            continue
        if last and _completes(evaluation, last):
            last = replace(evaluation, values={**last.values, **evaluation.values})
            continue
        if last:
            yield last
        last = evaluation
    if last:
        yield last


def _completes(evaluation: Evaluation, last: Evaluation) -> bool:
    """Return whether an evaluation holds other metrics of the same position."""
    same = (evaluation.position, evaluation.unit) == (last.position, last.unit)
    return same and not evaluation.values.keys() & last.values.keys()
