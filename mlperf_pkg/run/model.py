"""What is known about one run, and the log it is read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mlperf_pkg.findings import Finding, Verdicts
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.convergence import Convergence


class LogFile(msgspec.Struct, frozen=True):
    """A log to be read, with what is known of it beforehand.

    ``round`` None: it is inferred from the log. ``train_samples`` as in ``ConvergenceReader``.
    """

    source: Source
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
    crash: str | None
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
