"""One pass over one log: what it says of itself, its times, and every rule it breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, BinaryIO

import msgspec
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending, Severity, Verdicts, verdicts_of
from mlperf_pkg.log.reader import Batch, LogReader, Record, first_values, records_with, shown
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.rulebook.rounds import round_of_run
from mlperf_pkg.rulebook.table import RuleTable, rule_table
from mlperf_pkg.run import clock
from mlperf_pkg.run import fingerprint as trace
from mlperf_pkg.run.clock import Clock
from mlperf_pkg.run.convergence import SAMPLES, WORDS, Convergence, ConvergenceReader
from mlperf_pkg.run.rules import RuleChecker, Taker
from mlperf_pkg.run.scale import KEYS as SCALE_KEYS
from mlperf_pkg.run.scale import InstanceScale

MAX_ALIKE = 10
MAX_SEEDS = 10_000  # of one log; the most in any published one is 64
MAX_NAMED = 100  # different values of a key that may have one
_WORDS = (*WORDS, SAMPLES)
_NAMING = ("submission_division", "submission_benchmark")
_NAMED = ("global_batch_size", "config_filename")
_DESCRIBED = ("benchmark", "division", "org", "platform", "status")
_DESCRIBING = tuple(f"submission_{name}" for name in _DESCRIBED)


class LogFile(msgspec.Struct, frozen=True):
    """A log to be read: how to open it, its path in reports, and what is known beforehand.

    ``round`` None asks for it to be inferred. ``train_samples`` as in ``ConvergenceReader``.
    """

    open: Callable[[], BinaryIO]
    path: str
    usage: str = "training"
    round: str | None = None
    train_samples: bool = False


class Seed(msgspec.Struct, frozen=True):
    """A logged seed and the source line that logged it, as the official seed checker sees them."""

    value: int
    file: Any
    lineno: Any
    line: int


class Run(msgspec.Struct, frozen=True):
    """Everything known about one run, from one pass over its log. Times are in minutes.

    ``minutes`` is the time-to-train by the rules: from the first ``run_start`` to the first
    ``run_stop`` after it; ``official_span_ms`` are the start and stop that the official summarizer
    reads. ``status`` is that of ``run_stop``; ``converged`` says that it is
    ``success`` and that the target was reached. ``died`` tells why the official compliance
    checker raises, ``seeds_unreadable`` why its seed checker refuses the log. ``described`` holds
    the first ``submission_*`` values, without that prefix. Copies of one run have the same
    ``trace``; it is None where there is too little to tell. ``batch_sizes`` and ``config_files``
    are the different values of ``global_batch_size`` and ``config_filename``, as JSON, but no more
    than ``MAX_NAMED``; of the latter with their first lines. ``identified`` says that it names all
    that decides which rules apply.
    ``instance_scale`` is the number of accelerators that it says it uses. ``epochs`` is BERT's
    convergence in epochs where ``convergence`` counts ``train_samples``, else None.
    """

    path: str
    usage: str
    round: str
    round_reason: str
    records: int
    described: dict[str, Any]
    findings: tuple[Finding, ...]
    verdicts: Verdicts
    minutes: float | None
    official_span_ms: tuple[float, float] | None
    start_ms: float | None
    stop_ms: float | None
    status: str | None
    converged: bool
    convergence: Convergence
    seeds: tuple[Seed, ...]
    seeds_unreadable: str | None
    died: str | None
    trace: bytes | None
    batch_sizes: tuple[str, ...]
    config_files: Mapping[str, int]
    epochs: Convergence | None
    instance_scale: int | None = None
    identified: bool = True

    @property
    def official_minutes(self) -> float | None:
        """The minutes that the official summarizer reads from the log, whatever its verdict."""
        if self.official_span_ms is None:
            return None
        start, stop = self.official_span_ms
        return (stop - start) / 60 / 1000

    def text(self, name: str) -> str:
        """What the run says of itself under ``submission_<name>``; empty where that is no text."""
        value = self.described.get(name)
        return value if isinstance(value, str) else ""

    @property
    def benchmark(self) -> str:
        """The benchmark it names."""
        return self.text("benchmark")

    @property
    def division(self) -> str:
        """The division it names."""
        return self.text("division")


def read_run(log: LogFile) -> Run:
    """Read and judge one log.

    Raises:
        OSError: it cannot be read.
        UserError: the rulebook has no such round.
    """
    with log.open() as stream:
        return _Reading(log, stream).run()


def infer_round(log: LogFile) -> tuple[str, str]:
    """The round that a log belongs to by its own time and benchmark, and why.

    Raises:
        OSError: it cannot be read.
    """
    identity = _identify(log)
    return identity.round, identity.reason


class _Identity(msgspec.Struct, frozen=True):
    """What decides which rules apply; ``choosing`` are the keys that choose variants of them."""

    values: dict[str, Any]
    round: str
    reason: str
    choosing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return all(key in self.values for key in (*_NAMING, *self.choosing))

    def text(self, key: str) -> str:
        value = self.values.get(key)
        return value if isinstance(value, str) else ""


def _identify(log: LogFile, head: Batch | None = None) -> _Identity:
    """Read no further than needed, which in most logs is its ``head``."""
    values = _first_values(log, head, _NAMING)
    named = values.get("submission_benchmark")
    benchmark = named if isinstance(named, str) else ""
    found = (log.round, "as given") if log.round else _round(log, head, benchmark)
    rules = load_benchmark(log.usage, found[0], benchmark)
    closed = values.get("submission_division") == "closed"
    choosing = tuple(rules.variants) if rules and closed else ()
    if choosing:
        values |= _first_values(log, head, choosing)
    return _Identity(values, *found, choosing)


def _first_values(log: LogFile, head: Batch | None, keys: Sequence[str]) -> dict[str, Any]:
    if head and all(key in head.places for key in keys):
        return dict(zip(keys, head.values([head.places[key][0] for key in keys]), strict=True))
    with log.open() as stream:
        return first_values(stream, keys)


def _round(log: LogFile, head: Batch | None, benchmark: str) -> tuple[str, str]:
    """The round of a run by its first time other than 0."""
    time_ms = next(iter(head.times([0])), 0) if head and head.size else 0
    if not time_ms:
        with log.open() as stream:
            times = (record.time_ms for record in records_with(stream))
            time_ms = next(filter(None, times), 0.0)
    return round_of_run(log.usage, time_ms, benchmark)


def _table(log: LogFile, identity: _Identity) -> RuleTable:
    division = identity.text("submission_division")
    return rule_table(
        log.usage,
        identity.round,
        division if division in DIVISIONS else "",
        identity.text("submission_benchmark"),
        frozenset([(key, identity.text(key)) for key in identity.choosing]),
    )


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
        self._reader = LogReader(stream, log.path, self._findings.add, _WORDS)
        batches = self._reader.batches()
        head = next(batches, None)
        self._identity = _identify(log, head)
        table = _table(log, self._identity)
        self._rules = RuleChecker(table, log.path, self._findings.add, self._reader.line_of)
        steps = self._identity.round == "3.1"
        self._convergence = ConvergenceReader(log.train_samples, steps=steps)
        self._epochs = ConvergenceReader() if log.train_samples else None
        takers = self._takers()
        for batch in chain([head] if head else [], batches):
            self._records += batch.size - batch.unread
            self._rules.take(batch, takers)
            self._converge(batch)
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

    def _converge(self, batch: Batch) -> None:
        for words, found in batch.mentions(self._convergence.words):
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
        self._rules.finish(self._times.status == "success", hidden)
        if reader.died or reader.parse_errors:
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
            path=self._log.path,
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
            died=self._reader.died or self._rules.died,
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
                path=self._log.path,
                **{"source": "training_rules, Submission logs", **more},
            )
        )
