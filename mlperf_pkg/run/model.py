"""A run, with everything that its log says, and the log file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from mlperf_pkg.findings import Finding, Unchecked, Verdicts, verdicts_of
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.rounds import TRAINING, RoundChoice, Sureness, round_of_run
from mlperf_pkg.run.convergence import NO_CONVERGENCE, Convergence
from mlperf_pkg.run.readers import Seed

if TYPE_CHECKING:
    from mlperf_pkg.run.evaluations import Curve


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
        return RoundChoice(self.round, self.round_reason, self.sureness) if self.round else None


class Run(msgspec.Struct, frozen=True):
    """One run, with everything that one pass over its log finds.

    ``path`` is the path of the log in reports, ``records`` the number of its records. The ``round``
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
    evaluated, and of its loss.

    ``batch_sizes`` and ``config_files`` are the different values of ``global_batch_size`` and
    ``config_filename``, as JSON, of the latter with their first lines; no more than
    ``MAX_DISTINCT``. ``instance_scale`` is the number of accelerators that the log names,
    ``nodes`` that of nodes. ``is_read`` is False for a log that could not be read: then only its
    findings are known.
    ``hyperparameters`` are as in ``hyperparameters_of``. ``curve`` is None unless asked for.
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
    losses: tuple[float, ...] = ()
    batch_sizes: tuple[str, ...] = ()
    config_files: Mapping[str, int] = {}
    epochs: Convergence | None = None
    instance_scale: int | None = None
    nodes: int | None = None
    killed: bool = False
    hyperparameters: Mapping[str, str] = {}
    identified: bool = True
    sureness: Sureness = Sureness.GIVEN
    is_read: bool = True
    curve: Curve | None = None

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


def unread_run(log: LogFile, finding: Finding) -> Run:
    """Return the run of a log that could not be read, of which there is only a finding."""
    usage = log.usage or TRAINING
    choice = log.choice or round_of_run(usage, 0, "")
    return Run(
        path=log.source.label,
        usage=usage,
        round=choice.name,
        round_reason=choice.reason,
        findings=(finding,),
        verdicts=verdicts_of([finding]),
        identified=False,
        is_read=False,
    )
