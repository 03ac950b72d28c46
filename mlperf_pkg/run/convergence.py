"""The training until convergence, as the official RCP checker reads it from a log.

That checker ignores keys: it reads every line whose text holds certain words, anywhere, and crashes
if such a line lacks a field. (mlperf_logging.rcp_checker)
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from mlperf_pkg.findings import bounded
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.log.block import Words
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.formula import NoAnswerError
from mlperf_pkg.rulebook.load import counts_samples

NOT_CONVERGED = 1e9
WORDS = (
    b"eval_error",
    b"eval_accuracy",
    b"run_stop",
    b"global_batch_size",
    b"submission_benchmark",
)
"""A line counts if it holds one of these, anywhere; with ``train_samples``, also ``SAMPLES``."""
_EVALUATION = frozenset({frozenset({b"eval_error"}), frozenset({b"eval_accuracy"})})
SAMPLES = b"train_samples"
_FID_LIMIT = 90.0
_CLIP_LIMIT = 0.15
MAX_METRICS = 10_000  # of one log; the most in any published one is 18


class Convergence(msgspec.Struct, frozen=True):
    """The input of the RCP test from one run.

    ``to_converge`` is in epochs or samples, as the benchmark logs it, and ``NOT_CONVERGED`` for a
    run without ``run_stop`` of status success. ``batch_size`` is -1 where none was logged.
    ``crash`` says why the official checker crashes on this log, if it does. ``positions`` are those
    of the evaluated checkpoints of Stable Diffusion, in ascending order.
    """

    converged: bool
    to_converge: Any
    batch_size: Any
    benchmark: Any
    crash: str | None = None
    positions: tuple[float, ...] = ()


NO_CONVERGENCE = Convergence(
    converged=False, to_converge=NOT_CONVERGED, batch_size=-1, benchmark=None
)
"""That of a log of which nothing could be read."""


class ConvergenceReader:
    """Follows the lines of a log that hold one of ``words``; call ``result`` at its end.

    With ``train_samples``, BERT's key of this name counts, not the epochs of its evaluations.
    ``steps`` is set for rounds in which Stable Diffusion counts steps (3.1).
    """

    def __init__(self, *, train_samples: bool = False, steps: bool = False) -> None:
        """Start at the head of a log."""
        self._train_samples = train_samples
        self._step_unit = "step_num" if steps else "samples_count"
        self._batch_size: Any = -1
        self._benchmark: Any = None
        self._counts_samples = False  # whether evaluations of the benchmark count samples
        self._position: Any = UNSET  # the epoch or samples of the last evaluation
        self._is_epoch = False  # whether the position is an epoch, to be rounded
        self._reached: Any = None
        self._converged = False
        self._scores: dict[Any, dict[Any, Any]] = {}
        self._metrics = 0  # in all scores
        self._crash: str | None = None

    @property
    def words(self) -> tuple[bytes, ...]:
        """A line counts if it holds one of these words, anywhere."""
        return (*WORDS, SAMPLES) if self._train_samples else WORDS

    def take(self, words: Words, lines: Iterable[Record | bytes]) -> None:
        """Take the next lines, which hold the same words: records, or text where there is none."""
        if self._crash:
            return
        try:
            fields = [_Fields(line) if isinstance(line, bytes) else line for line in lines]
            if words in _EVALUATION and not self._train_samples:  # nearly all
                self._evaluate(fields)
            else:
                for line in fields:
                    self._read(words, line)
        except Exception as error:  # noqa: BLE001 - on any error, the official checker crashes
            self._crash = reason_of(error)

    def result(self) -> Convergence:
        """Return the convergence that the whole log shows."""
        return Convergence(
            converged=self._converged,
            to_converge=bounded(self._reached) if self._converged else NOT_CONVERGED,
            batch_size=bounded(self._batch_size),
            benchmark=bounded(self._benchmark),
            crash=self._crash,
            positions=tuple(sorted(p for p in self._scores if to_finite(p) is not None)),
        )

    def _read(self, words: Words, line: Any) -> None:
        """Read a ``Record`` or ``_Fields``; a missing field raises an exception."""
        if b"global_batch_size" in words:
            self._batch_size = line.value
        if b"submission_benchmark" in words:
            self._benchmark = line.value
            hash(self._benchmark)  # the official checker crashes on a list or an object
            self._train_samples = self._train_samples and self._benchmark == "bert"
            self._counts_samples = counts_samples(self._benchmark)
        if not self._train_samples:
            if b"eval_error" in words or b"eval_accuracy" in words:
                self._evaluate([line])
        elif SAMPLES in words:
            self._position = line.value
        if b"run_stop" in words and line.key == "run_stop":
            self._stop(success=line.metadata["status"] == "success")

    def _evaluate(self, lines: Sequence[Any]) -> None:
        if self._benchmark == "stable_diffusion":
            for line in lines:
                scores = self._scores.setdefault(line.metadata[self._step_unit], {})
                scores[line.metadata["metric"]] = line.value
                self._metrics += 1
                if self._metrics > MAX_METRICS:
                    raise OverflowError(f"there are more than {MAX_METRICS:,} metrics")
            return
        self._is_epoch = not self._counts_samples
        name = "epoch_num" if self._is_epoch else "samples_count"
        for line in lines:
            position = line.metadata[name]
            if self._is_epoch and type(position) not in (float, int):
                position = round(position, 3)  # may raise; numbers are rounded in _stop
        self._position = position

    def _stop(self, *, success: bool) -> None:
        self._converged = success
        if not success:
            return
        if self._benchmark == "stable_diffusion":
            self._position = self._first_passing_step()
            self._is_epoch = False
        if self._position is UNSET:
            raise ValueError("no evaluation before run_stop")
        self._reached = round(self._position, 3) if self._is_epoch else self._position

    def _first_passing_step(self) -> Any:
        passing = [
            step
            for step, scores in self._scores.items()
            if scores["FID"] <= _FID_LIMIT and scores["CLIP"] >= _CLIP_LIMIT
        ]
        if not passing:
            raise ValueError("no evaluation reaches the target")
        return min(passing)


class _Fields:
    """The fields of a line without a record, which may be any JSON value, as attributes."""

    def __init__(self, text: bytes) -> None:
        self._fields = json.loads(text.decode("latin-1").rstrip())

    def __getattr__(self, name: str) -> Any:
        return self._fields[name]


# ---- why an official checker crashes on a log ---------------------------------------------


def reason_of(error: Exception) -> str:
    """Return what is wrong where this code raises the same error as the official checker.

    The name of the error, which the output of the official checker has too, comes last.
    """
    name = type(error).__name__
    match error:
        case KeyError(args=[key]):
            words = f"{key if isinstance(key, str) else shown(key)} is missing"
        case json.JSONDecodeError():
            words = "a line is not JSON"
            name = f"{name}: {error.msg}"
        case NoAnswerError():
            words = "a value is missing or not a number"
        case TypeError() | AttributeError() | IndexError():
            words = "a value has the wrong type"
        case ZeroDivisionError():
            words = "a divisor is zero"
        case _:
            words = str(error)
    return f"{words} ({name})"
