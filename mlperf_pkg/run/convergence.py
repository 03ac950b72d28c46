"""How far a run trained until it converged, as the official RCP checker reads its log.

That checker does not look at keys: it reads every line whose text holds certain words, wherever
they stand, and dies where such a line lacks what it expects. (mlperf_logging.rcp_checker)
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from mlperf_pkg.log.block import Words
from mlperf_pkg.log.record import Record

NOT_CONVERGED = 1e9
_SAMPLES_BENCHMARKS = frozenset(
    {
        "deepseekv3_671b",
        "dlrmv4",
        "flux1",
        "gpt_oss_20b",
        "llama2_70b_lora",
        "llama31_405b",
        "llama31_8b",
        "qwen35_397b_grpo",
    }
)
WORDS = (
    b"eval_error",
    b"eval_accuracy",
    b"run_stop",
    b"global_batch_size",
    b"submission_benchmark",
)
"""What a line must hold, anywhere, to count; for ``train_samples`` also ``SAMPLES``."""
SAMPLES = b"train_samples"
_FID_LIMIT, _CLIP_LIMIT = 90.0, 0.15
MAX_METRICS = 10_000  # of one log; the most in any published one is 18


class Convergence(msgspec.Struct, frozen=True):
    """What the RCP test takes from one run.

    ``to_converge`` is in epochs or samples, as the benchmark logs it, and ``NOT_CONVERGED`` for a
    run without ``run_stop`` of status success. ``batch_size`` is -1 where none was logged.
    ``crash`` says why the official checker crashes on this log, if it does.
    """

    converged: bool
    to_converge: Any
    batch_size: Any
    benchmark: Any
    crash: str | None = None


class ConvergenceReader:
    """Follows the lines of a log that hold one of ``words``; ``result`` is asked at its end.

    ``train_samples`` asks for BERT's ``train_samples`` instead of the evaluations' epoch number.
    ``steps`` is set for rounds in which Stable Diffusion counts steps (3.1).
    """

    def __init__(self, train_samples: bool = False, steps: bool = False) -> None:
        """Start at the head of a log."""
        self._train_samples = train_samples
        self._step_unit = "step_num" if steps else "samples_count"
        self._batch_size: Any = -1
        self._benchmark: Any = None
        # The last evaluation's epoch or samples, in a tuple; none yet, and a stop dies of it.
        self._at: tuple[Any, ...] = ()
        self._reached: Any = None
        self._converged = False
        self._scores: dict[Any, dict[Any, Any]] = {}
        self._taken = 0  # scores
        self._crash: str | None = None

    @property
    def words(self) -> tuple[bytes, ...]:
        """What a line must hold, anywhere, to count."""
        return (*WORDS, SAMPLES) if self._train_samples else WORDS

    def see(self, words: Words, found: Record | bytes) -> None:
        """Take the next line: the words that it holds, and its record, or its text without one."""
        if self._crash:
            return
        try:
            self._take(words, _read(found) if isinstance(found, bytes) else found)
        except Exception as error:  # noqa: BLE001 - whatever it is, the official checker dies of it
            self._crash = f"{type(error).__name__}: {error}"

    def result(self) -> Convergence:
        """What the whole log says."""
        return Convergence(
            converged=self._converged,
            to_converge=self._reached if self._converged else NOT_CONVERGED,
            batch_size=self._batch_size,
            benchmark=self._benchmark,
            crash=self._crash,
        )

    def _take(self, words: Words, record: Record) -> None:
        if b"global_batch_size" in words:
            self._batch_size = record.value
        if b"submission_benchmark" in words:
            self._benchmark = record.value
            hash(self._benchmark)  # a list or object kills the official checker here
            self._train_samples = self._train_samples and self._benchmark == "bert"
        if not self._train_samples:
            if b"eval_error" in words or b"eval_accuracy" in words:
                self._evaluate(record)
        elif SAMPLES in words:
            self._at = (record.value,)
        if b"run_stop" in words and record.key == "run_stop":
            self._stop(record.metadata["status"] == "success")

    def _evaluate(self, record: Record) -> None:
        if self._benchmark == "stable_diffusion":
            scores = self._scores.setdefault(record.metadata[self._step_unit], {})
            scores[record.metadata["metric"]] = record.value
            self._taken += 1
            if self._taken > MAX_METRICS:
                raise OverflowError(f"more than {MAX_METRICS:,} metrics")
        elif self._benchmark in _SAMPLES_BENCHMARKS:
            self._at = (record.metadata["samples_count"],)
        else:
            self._at = (round(record.metadata["epoch_num"], 3),)

    def _stop(self, success: bool) -> None:
        self._converged = success
        if success and self._benchmark == "stable_diffusion":
            self._at = (min(self._passing()),)
        if success:
            (self._reached,) = self._at

    def _passing(self) -> list[Any]:
        return [
            step
            for step, scores in self._scores.items()
            if scores["FID"] <= _FID_LIMIT and scores["CLIP"] >= _CLIP_LIMIT
        ]


def _read(raw: bytes) -> Record:
    """A line that is no proper record, read as the RCP checker would: what is absent raises."""
    fields = json.loads(raw.decode("latin-1").rstrip())
    return _Loose(fields)  # type: ignore[return-value]


class _Loose:
    """Fields of any JSON value, looked up only when asked for."""

    def __init__(self, fields: Any) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        return self._fields[name]
