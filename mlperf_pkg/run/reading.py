"""One pass over one log: what it says of itself, its times, and every rule it breaks."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any, BinaryIO

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending, Severity, Verdicts, verdicts_of
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.run import clock
from mlperf_pkg.run import fingerprint as trace
from mlperf_pkg.run.clock import Clock
from mlperf_pkg.run.convergence import SAMPLES, WORDS, ConvergenceReader
from mlperf_pkg.run.identity import identify, table_of
from mlperf_pkg.run.model import LogFile, Run, Seed
from mlperf_pkg.run.rules import RuleChecker, Taker
from mlperf_pkg.run.scale import KEYS as SCALE_KEYS
from mlperf_pkg.run.scale import InstanceScale

MAX_ALIKE = 10
MAX_SEEDS = 10_000  # of one log; the most in any published one is 64
MAX_NAMED = 100  # different values of a key that may have one
_WORDS = (*WORDS, SAMPLES)
_NAMED = ("global_batch_size", "config_filename")
_DESCRIBED = ("benchmark", "division", "org", "platform", "status")
_DESCRIBING = tuple(f"submission_{name}" for name in _DESCRIBED)


def read_run(log: LogFile) -> Run:
    """Read and judge one log.

    Raises:
        OSError: it cannot be read.
        UserError: the rulebook has no such round.
    """
    with log.source.open() as stream:
        return _Reading(log, stream).run()


class _Findings:
    """Keeps the first few findings of a kind; of a million the verdict needs no more."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self._alike: Counter[tuple[str, Severity, Basis]] = Counter()

    def add(self, finding: Finding) -> None:
        kind = (finding.code, finding.severity, finding.basis)
        self._alike[kind] += 1
        if self._alike[kind] <= MAX_ALIKE:
            self._kept.append(finding)

    @property
    def verdicts(self) -> Verdicts:
        return verdicts_of(self._kept)

    def in_order(self) -> tuple[Finding, ...]:
        """By place; the last kept of a kind tells how many more there were."""
        last = {(f.code, f.severity, f.basis): i for i, f in enumerate(self._kept)}
        for kind, index in last.items():
            more = self._alike[kind] - MAX_ALIKE
            if more > 0:
                finding = self._kept[index]
                message = f"{finding.message} (and {more} more like this)"
                self._kept[index] = replace(finding, message=message)
        return tuple(sorted(self._kept, key=lambda finding: finding.sort_key))


class _Reading:
    """The state of the one pass."""

    def __init__(self, log: LogFile, stream: BinaryIO) -> None:
        """Walk the log once, then ask what only its end can answer."""
        self._log = log
        self._findings = _Findings()  # in no circle with this: memory is free again at once
        self._times = Clock()
        self._described: dict[str, Any] = {}
        self._scale = InstanceScale()
        self._seeds: list[Seed] = []
        self._seeds_unreadable: str | None = None
        self._trace = trace.Trace()
        self._named: dict[str, dict[str, int]] = {key: {} for key in _NAMED}
        self._records = 0
        self._reader = LogReader(stream, log.source.label, self._findings.add, _WORDS)
        blocks = self._reader.blocks()
        head = next(blocks, None)
        self._identity = identify(log, head)
        table = table_of(log, self._identity)
        self._rules = RuleChecker(table, log.source.label, self._findings.add, self._reader.line_of)
        steps = self._identity.round == "3.1"
        self._convergence = ConvergenceReader(log.train_samples, steps=steps)
        self._epochs = ConvergenceReader() if log.train_samples else None
        takers = self._takers()
        for block in chain([head] if head else [], blocks):
            self._records += block.size - block.unread
            self._rules.take(block, takers)
            self._converge(block)
        self._finish()

    def _takers(self) -> dict[str, Taker]:
        """What takes the records of a key, of each key that more than rules ask for."""
        return {
            "seed": self._seed,
            **dict.fromkeys(trace.EVALUATIONS, self._trace.see),
            **dict.fromkeys(clock.KEYS, self._clock),
            **dict.fromkeys(_NAMED, self._name),
            **dict.fromkeys(_DESCRIBING, self._describe),
            **dict.fromkeys(SCALE_KEYS, self._scale.see),
        }

    def _converge(self, block: Block) -> None:
        for words, found in block.mentions(self._convergence.words):
            self._convergence.see(words, found)
            if self._epochs:
                self._epochs.see(words, found)

    def _clock(self, record: Record, number: int) -> None:
        self._times.see(record, number)
        self._trace.see(record, number)

    def _name(self, record: Record, number: int) -> None:
        named = self._named[record.key]
        if len(named) < MAX_NAMED:
            named.setdefault(shown(record.value), self._reader.line_of(number))

    def _describe(self, record: Record, _: int) -> None:
        self._described.setdefault(record.key, record.value)

    def _seed(self, record: Record, number: int) -> None:
        try:
            where = record.metadata["file"], record.metadata["lineno"]
            seed = Seed(int(record.value), *where, self._reader.line_of(number))
            hash(where)
        except Exception as error:  # noqa: BLE001 - the official seed checker refuses the log
            reason = f"line {self._reader.line_of(number)}: {type(error).__name__}: {error}"
            self._seeds_unreadable = self._seeds_unreadable or reason
        else:
            if len(self._seeds) < MAX_SEEDS:
                self._seeds.append(seed)
            else:
                self._seeds_unreadable = f"more than {MAX_SEEDS:,} of them"

    def _finish(self) -> None:
        reader = self._reader
        hidden = (record.key for record in reader.unofficial if isinstance(record.key, str))
        self._rules.finish(success=self._times.status == "success", unofficial=hidden)
        if reader.crash or reader.parse_errors:
            self._seeds_unreadable = "records that cannot be read"
        if not self._records:
            self._add("LOG110", "no MLPerf log: it holds no record that can be read", Pending)
        if self._times.backwards:
            self._add(
                "RUN155",
                "run_stop is earlier than run_start",
                line=self._stop_line(),
                basis=Basis.RULES,
            )
        if self._records and self._times.status != "success":
            self._add(
                "RUN130",
                f"{self._times.ending}: this run did not converge",
                Pending if self._times.stop_ms is None else Finding,
                line=self._stop_line(),
                severity=Severity.WARNING,
                basis=Basis.RULES,
                found=self._times.status,
                expected="success",
            )

    def _stop_line(self) -> int | None:
        number = self._times.stop_number
        return None if number is None else self._reader.line_of(number)

    def run(self) -> Run:
        """What the pass has found."""
        success = self._times.status == "success"
        return Run(
            path=self._log.source.label,
            usage=self._log.usage,
            round=self._identity.round,
            round_reason=self._identity.reason,
            records=self._records,
            described={
                name: self._described.get(key)
                for name, key in zip(_DESCRIBED, _DESCRIBING, strict=True)
            },
            findings=self._findings.in_order(),
            verdicts=self._findings.verdicts,
            minutes=self._times.minutes,
            official_span_ms=self._times.official_span_ms,
            start_ms=self._times.start_ms,
            stop_ms=self._times.stop_ms,
            status=self._times.status,
            converged=success and self._rules.reached is not False,
            convergence=self._convergence.result(),
            seeds=tuple(self._seeds),
            seeds_unreadable=self._seeds_unreadable,
            crash=self._reader.crash or self._rules.crash,
            trace=self._trace.digest,
            batch_sizes=tuple(self._named["global_batch_size"]),
            config_files=self._named["config_filename"],
            instance_scale=self._scale.result(),
            epochs=self._epochs.result() if self._epochs else None,
            identified=self._identity.complete,
        )

    def _add(self, code: str, message: str, kind: type[Finding] = Finding, **more: Any) -> None:
        self._findings.add(
            kind(
                code=code,
                message=message,
                path=self._log.source.label,
                **{"source": "training_rules, Submission logs", **more},
            )
        )
