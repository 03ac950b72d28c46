"""Read one log in one pass: its description, its times, and every rule that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Folding, Pending, Severity, in_order
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.source import foreign_text
from mlperf_pkg.infra.streams import problem_of
from mlperf_pkg.log.block import Block, ScannedBlock
from mlperf_pkg.log.reader import OF_LINES, LogReader
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.load import finding_of, reweighed
from mlperf_pkg.rulebook.model import EVALUATION_KEYS
from mlperf_pkg.rulebook.rounds import (
    Sureness,
    day_of,
    known_verdicts,
    last_day,
    round_instead,
    where_instead,
)
from mlperf_pkg.run import readers
from mlperf_pkg.run.convergence import SAMPLES, WORDS, ConvergenceReader
from mlperf_pkg.run.model import BENCHMARK, Identity, LogFile, Run, identify, table_of
from mlperf_pkg.run.rules import RuleChecker
from mlperf_pkg.run.shifts import early_work
from mlperf_pkg.run.stated_times import too_short

if TYPE_CHECKING:
    from mlperf_pkg.run.evaluations import CurveReader


Taker = Callable[[Record, int], None]
"""A reader of some records, each with its number in the log."""

ENDINGS = frozenset({"LOG110", "RUN130", "RUN140"})
"""The codes that say how a run failed."""

_STARTS = frozenset({"init_start", "run_start"})
_MAX_KEYS = 1 << 10  # of which one may be logged in place of another; a log has dozens
_ONCE = (BENCHMARK, "run_start")  # a process logs each of these once
_FIRST_DAY = date(2018, 1, 1)  # MLPerf began in this year
_FIRST_MS = 1e12  # in 2001
_LAST_MS = 4e12  # in 2096
_UNITS = {"seconds": 1e3, "microseconds": 1e-3, "nanoseconds": 1e-6}
"""How many milliseconds the units are that ``time_ms`` may be in by mistake."""


def read_run(log: LogFile) -> Run:
    """Read and judge one log.

    Raises:
        OSError: the log cannot be read.
        UserError: the rulebook has no such round.
    """
    reading = _read(log)
    run = reading.run()
    is_damaged = reading.may_be_damaged
    if reading.may_have_several_runs:
        from mlperf_pkg.run.several_runs import run_of_several  # noqa: PLC0415 - few logs need it

        run = run_of_several(run, log, read_run)
        is_damaged = False
    has_lost = _has_lost(run)
    if not is_damaged and not has_lost:
        return run
    from mlperf_pkg.run import damaged  # noqa: PLC0415 - few logs need it

    damaged_log = damaged.read_again(log.source, is_damaged=is_damaged, has_lost=has_lost)
    if damaged_log is None:
        return run
    findings = run.findings
    if damaged_log.text is not None:
        source = replace(log.source, origin=damaged_log.text, compression=None, listed_size=None)
        whole = _read(replace(log, source=source)).run()
        run = damaged.combined(run, whole, damaged_log)
        findings = (*whole.findings, *findings)
    return damaged.with_lost(run, damaged_log, reading.table, findings)


def _has_lost(run: Run) -> bool:
    """Return whether a log may have lost records: whether there are findings about its lines."""
    return any(finding.code.startswith(OF_LINES) for finding in run.findings)


def _read(log: LogFile) -> _Reading:
    """Read a log as it is."""
    findings = Folding()
    with log.source.open() as stream:

        def report(finding: Finding) -> None:
            findings.add(reweighed(finding))

        reader = LogReader(
            stream, log.source.label, report, (*WORDS, SAMPLES), log.source.first_line
        )
        blocks = reader.blocks()
        head = next(blocks, None)
        reading = _Reading(log, identify(log, head), reader, findings)
        for block in chain([head] if head else [], blocks):
            reading.take(block)
        reading.conclude(problem_of(stream))
    return reading


class _Reading:
    """The readers of one log: each follows the records, or the lines, that it needs.

    No reader refers to this object, so that memory is freed as soon as the log is read.
    """

    def __init__(
        self, log: LogFile, identity: Identity, reader: LogReader, findings: Folding
    ) -> None:
        """Start at the head of a log."""
        self._log = log
        self._identity = identity
        self._reader = reader
        self._findings = findings
        self._records = 0
        self._killed = False
        self._others: dict[str, Any] = {}
        self._keys: set[str] = set()
        line_of = reader.line_of
        self.table = table_of(identity)
        self._rules = RuleChecker(self.table, log.source.label, findings.add, line_of)
        self._clock = readers.Clock()
        self._fingerprint = readers.Fingerprint()
        self._evaluations = readers.EvaluationTimes()
        self._distinct = readers.DistinctValues(line_of)
        self._scale = readers.InstanceScale()
        self._seeds = readers.SeedReader(line_of)
        steps = identity.choice.name == "3.1"
        self._convergence = ConvergenceReader(train_samples=log.train_samples, steps=steps)
        self._epochs = ConvergenceReader() if log.train_samples else None
        self._curve: CurveReader | None = None
        if log.curve:
            from mlperf_pkg.run.evaluations import CurveReader  # noqa: PLC0415 - only charts need it

            self._curve = CurveReader(identity.rules, line_of)
        self._is_open = identity.text("submission_division") == "open"
        self._takers: dict[str, Taker] = {
            readers.SEED_KEY: self._seeds.take,
            **dict.fromkeys(readers.CLOCK_KEYS, self._clock.take),
            **dict.fromkeys(readers.DISTINCT_KEYS, self._distinct.take),
            **dict.fromkeys(readers.SCALE_KEYS, self._scale.take),
        }

    def take(self, block: Block) -> None:
        """Read the next block."""
        if not self._records:
            self._others = readers.of_head(block, self.table.followed)
        self._records += block.size - block.unread
        if len(self._keys) < _MAX_KEYS:
            self._keys |= block.indexes.keys()
        self._rules.take(block)
        _take_records(block, self._takers)
        if self._curve:
            self._curve.take_block(block)
        self._fingerprint.take_block(block)
        self._evaluations.take_block(block)
        if "run_start" in block.indexes:
            self._check_stated_times(block)
        if not isinstance(block, ScannedBlock):  # all of whose numbers are JSON
            self._check_evaluations(block)
        for words, lines in block.mentions(self._convergence.words):
            self._convergence.take(words, lines)
            if self._epochs:
                self._epochs.take(words, lines)

    def _check_evaluations(self, block: Block) -> None:
        """Warn about evaluations whose value is not finite."""
        for key in EVALUATION_KEYS:
            indexes = block.indexes.get(key, [])
            for index, value in zip(indexes, block.values(indexes), strict=True):
                name = readers.not_finite(value)
                if name:
                    self._add(
                        "RUN168",
                        f"{key} is {{found:s}}; expected {{expected}}",
                        line=self._reader.line_of(block.first + index),
                        found=name,
                        expected="a finite number",
                    )

    def conclude(self, problem: str | None) -> None:
        """Check what depends on the whole log; nothing does if it ended early for a ``problem``."""
        reader = self._reader
        has_records = self._records or reader.parse_errors or reader.crash or reader.unofficial
        if problem or not has_records:  # there may be records that cannot be read
            self._report_unread(problem)
            return
        hidden = {record.key for record in reader.unofficial if isinstance(record.key, str)}
        self._killed = not self._clock.stopped and "run_stop" not in hidden
        unruled = self._keys - self.table.followed
        self._rules.conclude(
            success=self._is_success,
            hidden=hidden,
            unruled=unruled,
            broken=self._check_batch_size(),
        )
        if reader.crash or reader.parse_errors:
            self._seeds.unreadable = self._seeds.unreadable or readers.OTHER_RECORDS
        self._check_records()
        self._check_end()

    def run(self) -> Run:
        """Return the run that was read."""
        usage = self._identity.usage
        choice = self._identity.choice
        rules = self._rules
        findings = in_order(self._all_findings())
        description = readers.description_of(rules.seen, self.table.followed, self._others)
        return Run(
            path=self._log.source.label,
            lines=self._log.source.lines,
            usage=usage,
            round=choice.name,
            round_reason=choice.reason,
            sureness=choice.sureness,
            records=self._records,
            described=description.described,
            findings=findings,
            verdicts=known_verdicts(self._findings.verdicts, usage, choice.name),
            minutes=self._clock.minutes,
            official_span_ms=self._clock.official_span_ms,
            start_ms=to_finite(self._clock.start_ms),
            stop_ms=to_finite(self._clock.stop_ms),
            status=self._clock.status,
            killed=self._killed,
            converged=self._is_converged,
            convergence=self._convergence.result(),
            seeds=tuple(self._seeds.seeds),
            seeds_unreadable=self._seeds.unreadable,
            crash=self._reader.crash or rules.crash,
            fingerprint=self._fingerprint.digest,
            evaluated=tuple(self._fingerprint.evaluated),
            evaluated_ms=tuple(self._fingerprint.evaluated_ms),
            losses=tuple(self._fingerprint.losses),
            batch_sizes=tuple(self._distinct.numbers["global_batch_size"]),
            config_files=self._distinct.lines("config_filename"),
            device_batch_sizes=self._distinct.device_batch_sizes(),
            instance_scale=self._scale.result(),
            nodes=self._scale.nodes,
            hyperparameters=description.hyperparameters,
            epochs=self._epochs.result() if self._epochs else None,
            identified=self._identity.complete,
            curve=self._curve.packed() if self._curve else None,
        )

    def _all_findings(self) -> list[Finding]:
        """Return the findings; if the file ends early, without those that this may cause."""
        findings = self._findings.folded()
        unread = [finding for finding in findings if finding.code == "LOG113"]
        if unread:
            return unread
        if not self._identity.rules:
            findings = self._with_rounds_of_benchmark(findings)
        if self._reader.is_cut:  # the lost part may have what is missing
            return [f for f in findings if f.code in ENDINGS or not isinstance(f, Pending)]
        return findings

    def _with_rounds_of_benchmark(self, findings: list[Finding]) -> list[Finding]:
        """Add the rounds that have the benchmark to the findings that this round does not."""
        identity = self._identity
        codes_of_benchmark = self._rules.codes_of(BENCHMARK)
        names = (identity.usage, identity.choice.name, identity.text(BENCHMARK))
        where = where_instead(*names)
        instead = round_instead(*names)
        hint = None
        if instead:
            hint = f"check the logs of {names[2]} without logs of other rounds: --round {instead}"
        explained = []
        for finding in findings:
            if finding.code in codes_of_benchmark:
                message = f"{finding.message}{where}"
                explained.append(replace(finding, message=message, hint=hint))
            else:
                explained.append(finding)
        return explained

    @property
    def may_have_several_runs(self) -> bool:
        """Whether an ``init_start``, and perhaps another ``run_start`` later, follow the first."""
        seen = self._rules.seen
        if not seen.keys() >= _STARTS:
            return False
        return seen["run_start"].first_number < min(seen[key].last_number for key in _STARTS)

    @property
    def may_be_damaged(self) -> bool:
        """Whether there are records that only we can read, or that several processes write."""
        if not self._records:
            return False
        seen = self._rules.seen
        repeats = [key for key in _ONCE if key in seen and seen[key].count > 1]
        return bool(self._reader.unofficial or self._reader.damaged or repeats)

    @property
    def _is_success(self) -> bool:
        return self._clock.status == "success"

    @property
    def _is_converged(self) -> bool:
        rules = self._identity.rules
        if self._is_open and not (rules and rules.open_needs_target):
            return self._clock.minutes is not None
        return self._is_success and self._rules.targets.reached is not False

    def _report_unread(self, problem: str | None) -> None:
        """Report a log that cannot be read as one, in place of all that it therefore lacks."""
        from mlperf_pkg.log.line_findings import to_utf_8  # noqa: PLC0415 - logs need none

        if problem:
            self._add("LOG113", "the log cannot be read: {found:s}", found=problem)
        elif foreign := foreign_text(self._reader.head):
            message = f"the log is {{found:s}}; expected {{expected}} ({foreign.remedy})"
            self._add(
                "LOG112",
                message,
                found=foreign.name,
                expected="UTF-8 text",
                hint=to_utf_8(foreign.encoding, self._log.source.label),
            )
        else:
            self._killed = True
            self._check_records()

    def _check_records(self) -> None:
        if not self._records:
            self._add(
                "LOG110", "this is not an MLPerf log, as no record in it can be read", Pending
            )

    def _check_end(self) -> None:
        self._check_stop()
        if self._evaluations.backwards:
            number, early_ms = self._evaluations.backwards
            self._add(
                "RUN165",
                "eval_stop is logged {found:.1f} seconds before eval_start; expected after"
                " eval_start",
                line=self._reader.line_of(number),
                found=early_ms / 1000,
            )
        self._check_initialisation()
        if not self._check_unit():
            self._check_day()
        if self._records and not self._is_success:
            self._check_ending()

    def _check_stop(self) -> None:
        """Report a stop without a time-to-train."""
        clock = self._clock
        if clock.stop_ms is None or clock.minutes is not None:
            return
        problem = "the time of run_stop or of run_start is not a finite number"
        if clock.stop_ms == clock.start_ms:
            problem = "run_stop has the same time as run_start"
        elif clock.stop_ms < (clock.start_ms or 0.0):
            problem = "run_stop has an earlier time than run_start"
        message = f"{problem}; expected run_stop to be later than run_start"
        self._add("RUN155", message, line=self._stop_line())

    def _check_batch_size(self) -> set[str]:
        """Report a batch size that cannot be compared with those of the reference points.

        Return its key if there is one; in Open, no batch size is compared.
        """
        broken: set[str] = set()
        if self._is_open:
            return broken
        for size, number in self._distinct.numbers["global_batch_size"].items():
            if not size.isdecimal() or int(size) == 0:
                message = "global_batch_size is {found:s}; expected a positive whole number"
                line = self._reader.line_of(number)
                self._add("RUN166", message, line=line, found=size)
                broken.add("global_batch_size")
        return broken

    def _check_ending(self) -> None:
        """Report a run that does not say success; in Open, any stopping criterion may be used."""
        code = "RUN130"
        weight = {}
        reason = ""
        effect = "; such a run counts as not converged"
        hint = None
        if self._is_converged:
            weight = {"severity": Severity.NOTE, "basis": Basis.ADVICE}
            effect = ""
        if self._rules.targets.reached_number is not None and not self._is_open:
            code = "RUN140"
            reason = ", although the target was reached"
            effect = ""
            hint = (
                "such a run counts as not converged, so the score may leave it out. If it reached"
                " the target early, leaving it out makes the RCP test easier to pass; a reviewer"
                " may therefore ask why the run ended in this way"
            )
        is_stopped = self._clock.stop_ms is not None
        ending = "run_stop is missing after run_start"
        needed = 'run_stop with "success"'
        if is_stopped:
            ending = "run_stop says {found}"
            needed = '"success"'
        elif self._clock.start_ms is not None:
            ending = "the log ends inside a run"
        self._add(
            code,
            f"{ending}{reason}; expected {needed}{effect}",
            Finding if is_stopped else Pending,
            line=self._stop_line(),
            found=self._clock.status,
            expected="success",
            hint=hint,
            **weight,
        )

    def _check_stated_times(self, block: Block) -> None:
        """Warn about stamps that leave less time than the log states for what is between them."""
        intervals = too_short(block, self._identity.rules, self._rules.seen)
        if not intervals:
            return
        shortest = max(intervals, key=lambda interval: interval.needed - interval.seconds)
        (start,) = block.select([shortest.start])
        message = (
            f"{shortest.arithmetic}, but by the time stamps only {{found:,.1f}} seconds passed"
            f" from {start.key} to this record"
        )
        others = len(intervals) - 1
        if others:
            noun = "interval is" if others == 1 else "intervals are"
            message = f"{message}; {others} other {noun} also too short"
        self._add(
            "RUN180",
            message,
            line=self._reader.line_of(block.first + shortest.statement),
            found=round(shortest.seconds, 3),
            expected=round(shortest.needed, 3),
        )

    def _check_initialisation(self) -> None:
        """Warn about an initialisation that begins after the work of it."""
        early = early_work(self._rules.seen)
        if early is None:
            return
        key, early_ms = early
        self._add(
            "RUN181",
            f"{key} is logged {{found:,.1f}} seconds before init_start; expected after init_start",
            line=self._reader.line_of(self._rules.seen["init_start"].first_number),
            found=early_ms / 1000,
        )

    def _check_unit(self) -> bool:
        """Report times in another unit than milliseconds; return whether they are."""
        starts = self._rules.seen.get("run_start")
        if starts is None or not self._clock.start_ms:
            return False
        for unit, milliseconds in _UNITS.items():
            if _FIRST_MS <= self._clock.start_ms * milliseconds <= _LAST_MS:
                self._add(
                    "LOG115",
                    f"time_ms is {{found}}, in {unit}; expected {{expected}}",
                    line=self._reader.line_of(starts.first_number),
                    found=self._clock.start_ms,
                    expected="milliseconds since 1970",
                )
                return True
        return False

    def _check_day(self) -> None:
        """Compare the day of the run with the submission of its round, if that was named."""
        choice = self._identity.choice
        start_ms = self._clock.start_ms
        if choice.sureness not in (Sureness.GIVEN, Sureness.NAMED) or not start_ms:
            return
        day = day_of(start_ms)
        last = last_day(self._identity.usage, choice.name)
        if _FIRST_DAY <= day <= last:
            return
        limit = f"{last} or earlier" if day > last else f"{_FIRST_DAY} or later"
        self._add(
            "RUN158",
            "the run is dated {found:s}, which does not fit its round; expected {expected}",
            found=str(day),
            expected=f"{limit} (round {choice.name})",
        )

    def _stop_line(self) -> int | None:
        """Search the line of ``run_stop``, which takes time."""
        number = self._clock.stop_number
        if number is None:
            return None
        return self._reader.line_of(number)

    def _add(self, code: str, message: str, kind: type[Finding] = Finding, **more: Any) -> None:
        path = self._log.source.label
        self._findings.add(finding_of(code, message, path, kind=kind, **more))


def _take_records(block: Block, takers: Mapping[str, Taker]) -> None:
    """Read the records of a block that are read for more than the rules."""
    of_keys = [of_key for key, of_key in block.indexes.items() if key in takers]
    indexes = sorted(chain.from_iterable(of_keys))
    for index, record in zip(indexes, block.select(indexes), strict=True):
        takers[record.key](record, block.first + index)
