"""A log file, which rules apply to its run, and the run with everything that the log says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec.structs import replace

from mlperf_pkg.findings import Finding, Unchecked, Verdicts, verdicts_of
from mlperf_pkg.infra.source import Source, words_of_lines
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.reader import first_values, records_with
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark
from mlperf_pkg.rulebook.rounds import TRAINING, RoundChoice, Sureness, round_of_run, usage_with
from mlperf_pkg.rulebook.table import RuleTable, rule_table
from mlperf_pkg.run.convergence import NO_CONVERGENCE, Convergence
from mlperf_pkg.run.readers import Seed

if TYPE_CHECKING:
    from mlperf_pkg.infra.streams import Keeper
    from mlperf_pkg.run.evaluations import PackedCurve


class LogFile(msgspec.Struct, frozen=True):
    """A log, and how to read it.

    Without a ``usage`` or a ``round``, it is inferred from the log; with a round, ``round_reason``
    and ``sureness`` are those of the run. ``train_samples`` as in ``ConvergenceReader``. ``curve``
    asks for the curve of the run.
    """

    source: Source
    usage: str | None = None
    round: str | None = None
    train_samples: bool = False
    round_reason: str = "as given"
    sureness: Sureness = Sureness.GIVEN
    curve: bool = False

    @property
    def choice(self) -> RoundChoice | None:
        """The round, None where it is inferred from the log."""
        if not self.round:
            return None
        return RoundChoice(self.round, self.round_reason, self.sureness)


class Run(msgspec.Struct, frozen=True):
    """One run, with everything that one pass over its log finds.

    ``path`` is the path of the log in reports, with its ``lines`` if they are only a part of the
    file; ``records`` is the number of its records. The ``round``
    is as given or inferred, for the ``round_reason``; ``sureness`` says how sure it is.
    ``identified`` says that the log names all that decides which rules apply. ``described`` holds
    the first ``submission_*`` values by the rest of the key, empty where they are not strings.

    ``minutes`` is the time-to-train by the rules: from the first ``run_start`` to the first
    ``run_stop`` after it. ``official_span_ms`` are the start and stop that the official summarizer
    reads; all times ``_ms`` are in milliseconds since the epoch. ``status`` is that of
    ``run_stop``; ``converged`` says that it is ``success`` and that the target was reached or, in
    Open, whose stopping criterion is free, that the run has a time. A run was ``killed`` if its
    log, read to its end, holds no ``run_stop``; the log may be a placeholder. ``epochs`` is BERT's
    convergence in epochs where ``convergence`` counts ``train_samples``.

    ``crash`` says why the official compliance checker crashes on the log, ``seeds_unreadable`` why
    its seed checker refuses it. Copies of one run have the same ``fingerprint``; it is None for a
    run without an end or an evaluation. ``evaluated`` and ``losses`` are the first numbers that it
    evaluated, and of its loss; ``evaluated_ms`` are the times of these evaluations.

    ``batch_sizes`` and ``config_files`` are the different values of ``global_batch_size`` and
    ``config_filename``, as JSON, of the latter with their first lines; no more than
    ``MAX_DISTINCT``. ``device_batch_sizes`` are the values of ``DEVICE_BATCH_KEYS`` that are logged
    with one value. ``instance_scale`` is the number of accelerators that the log names,
    ``nodes`` that of nodes. ``is_read`` is False for a log that could not be read: then only its
    findings are known.
    ``hyperparameters`` are as in ``hyperparameters_of``, ``lost`` as ``lost_records`` returns it:
    the lines of damaged text that holds what findings lack. ``curve`` is None unless asked for.
    ``by_damage`` are the codes of findings that only damaged lines cause.
    """

    path: str
    usage: str
    round: str
    round_reason: str
    findings: tuple[Finding, ...]
    verdicts: Verdicts
    convergence: Convergence = NO_CONVERGENCE
    records: int = 0
    described: Mapping[str, str] = {}
    minutes: float | None = None
    official_span_ms: tuple[float, float] | None = None
    start_ms: float | None = None
    stop_ms: float | None = None
    status: str | None = None
    converged: bool = False
    seeds: tuple[Seed, ...] = ()
    seeds_unreadable: str | None = None
    crash: str | None = None
    fingerprint: bytes | None = None
    evaluated: tuple[float, ...] = ()
    evaluated_ms: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    batch_sizes: tuple[str, ...] = ()
    config_files: Mapping[str, int] = {}
    device_batch_sizes: Mapping[str, str] = {}
    epochs: Convergence | None = None
    instance_scale: int | None = None
    nodes: int | None = None
    killed: bool = False
    hyperparameters: Mapping[str, str] = {}
    lost: Mapping[str, tuple[int, ...]] = {}
    identified: bool = True
    sureness: Sureness = Sureness.GIVEN
    is_read: bool = True
    curve: PackedCurve | None = None
    lines: tuple[int, int] | None = None
    by_damage: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The path of the file, which may hold several runs."""
        return self.path.removesuffix(words_of_lines(self.lines))

    @property
    def unchecked(self) -> bool:
        """Whether some of the log was not checked."""
        return Unchecked in map(type, self.findings)

    @property
    def official_minutes(self) -> float | None:
        """The minutes that the official summarizer reads from the log, whatever its verdict."""
        if self.official_span_ms is None:
            return None
        start, stop = self.official_span_ms
        return (stop - start) / 60 / 1000

    def kept_by(self, keeper: Keeper) -> Self:
        """Return the same run, the curve of which the keeper keeps."""
        curve = self.curve
        if curve is None or not isinstance(curve.packed, bytes):
            return self
        packed = keeper.keep(curve.packed)
        return replace(self, curve=replace(curve, packed=packed))

    def text(self, name: str) -> str:
        """Return the value of ``submission_<name>``; empty where that is not text."""
        return self.described.get(name, "")

    @property
    def benchmark(self) -> str:
        """The benchmark that the log names."""
        return self.text("benchmark")

    @property
    def division(self) -> str:
        """The division that the log names."""
        return self.text("division")


def files_of(runs: Iterable[Run]) -> dict[str, tuple[str, int]]:
    """Return the file and the first line of each run that is a part of a file, by its path."""
    return {run.path: (run.file, run.lines[0]) for run in runs if run.lines}


def unread_run(log: LogFile, finding: Finding) -> Run:
    """Return the run of a log that could not be read, of which there is only a finding."""
    usage = log.usage or TRAINING
    choice = log.choice or round_of_run(usage, 0, "")
    return Run(
        path=log.source.label,
        usage=usage,
        round=choice.name,
        round_reason=choice.reason,
        lines=log.source.lines,
        findings=(finding,),
        verdicts=verdicts_of([finding]),
        identified=False,
        is_read=False,
    )


# ---- which rules apply to a run: its usage, round, benchmark, division and variants -------

BENCHMARK = "submission_benchmark"
_IDENTITY_KEYS = ("submission_division", BENCHMARK)


def infer_round(log: LogFile) -> RoundChoice:
    """Return the round of a log, inferred from its time and benchmark.

    Raises:
        OSError: the log cannot be read.
    """
    return identify(log).choice


def benchmark_of(log: LogFile) -> str:
    """Return the benchmark that a log names, empty where it names none.

    Raises:
        OSError: the log cannot be read.
    """
    return _text(_first_values(log, None, (BENCHMARK,)), BENCHMARK)


class Identity(msgspec.Struct, frozen=True):
    """The values that decide which rules apply; ``variant_keys`` choose variants of them.

    ``rules`` are those of the benchmark, None if its round does not have it.
    """

    values: dict[str, Any]
    usage: str
    choice: RoundChoice
    rules: Benchmark | None
    variant_keys: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether the log names everything that decides which rules apply."""
        return self.values.keys() >= {*_IDENTITY_KEYS, *self.variant_keys}

    def text(self, key: str) -> str:
        """Return the value of a key, empty where it is not text."""
        return _text(self.values, key)


def identify(log: LogFile, head: Block | None = None) -> Identity:
    """Return the identity of a run; read beyond the ``head`` of its log only if necessary."""
    values = _first_values(log, head, _IDENTITY_KEYS)
    benchmark = _text(values, BENCHMARK)
    inferred = None if log.usage else usage_with(benchmark, log.round)
    usage = log.usage or inferred or TRAINING
    choice = log.choice or round_of_run(usage, _time_ms(log, head), benchmark)
    if inferred and usage != TRAINING:
        choice = choice.of_usage(inferred, benchmark)
    rules = load_benchmark(usage, choice.name, benchmark)
    closed = values.get("submission_division") == "closed"
    variant_keys = tuple(rules.variants) if rules and closed else ()
    if variant_keys:
        values |= _first_values(log, head, variant_keys)
    return Identity(values, usage, choice, rules, variant_keys)


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _first_values(log: LogFile, head: Block | None, keys: Sequence[str]) -> dict[str, Any]:
    if head and all(key in head.indexes for key in keys):
        values = head.values([head.indexes[key][0] for key in keys])
        return dict(zip(keys, values, strict=True))
    with log.source.open() as stream:
        return first_values(stream, keys)


def _time_ms(log: LogFile, head: Block | None) -> float:
    """Return the first time of a run other than 0; 0 if there is none."""
    # The first line of the head may have no record that could be read.
    if head and any(0 in indexes[:1] for indexes in head.indexes.values()):
        time_ms: float = head.times([0])[0]
        if time_ms:
            return time_ms
    with log.source.open() as stream:
        times = (record.time_ms for record in records_with(stream))
        return next(filter(None, times), 0.0)


def table_of(identity: Identity) -> RuleTable:
    """Return the rules of a run."""
    division = identity.text("submission_division")
    return rule_table(
        identity.usage,
        identity.choice.name,
        division if division in DIVISIONS else "",
        identity.text(BENCHMARK),
        frozenset([(key, identity.text(key)) for key in identity.variant_keys]),
    )
