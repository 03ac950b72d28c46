"""Small readers: each follows the records of a few keys of one log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from math import nan
from sys import intern
from typing import TYPE_CHECKING, Any

import msgspec

from mlperf_pkg.findings import bounded
from mlperf_pkg.infra.json_values import digits, to_finite
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.formula import Seen, read_number
from mlperf_pkg.rulebook.model import SUBMISSION_KEYS, Joined
from mlperf_pkg.run.convergence import MAX_METRICS

if TYPE_CHECKING:
    from hashlib import blake2b


# ---- keys that may have several values ---------------------------------------------------

DEVICE_BATCH_KEYS = ("d_batch_size", "local_batch_size")
DISTINCT_KEYS = ("global_batch_size", "config_filename", *DEVICE_BATCH_KEYS)
_EXACT = 1 << 53  # below it, each whole number is a double
MAX_DISTINCT = 100  # values of a key that may have one


class DistinctValues:
    """Follows the records of ``DISTINCT_KEYS``, and keeps the line of each different value."""

    def __init__(self, line_of: Callable[[int], int]) -> None:
        """Start at the head of a log; ``line_of`` returns the line of a record by its number."""
        self.numbers: dict[str, dict[str, int]] = {key: {} for key in DISTINCT_KEYS}
        """The different values of each key, as JSON, with the number of the first record."""
        self._line_of = line_of

    def take(self, record: Record, number: int) -> None:
        """Take the next record, by its ``number`` in the log."""
        numbers = self.numbers[record.key]
        if len(numbers) < MAX_DISTINCT:
            numbers.setdefault(as_count(record.value), number)

    def lines(self, key: str) -> dict[str, int]:
        """Return the different values of a key, as JSON, each with its first line."""
        return {value: self._line_of(number) for value, number in self.numbers[key].items()}

    def device_batch_sizes(self) -> dict[str, str]:
        """Return the values of ``DEVICE_BATCH_KEYS``, without those that have several."""
        sizes: dict[str, str] = {}
        for key in DEVICE_BATCH_KEYS:
            if len(self.numbers[key]) == 1:
                sizes[key] = next(iter(self.numbers[key]))
        return sizes


def as_count(value: Any) -> str:
    """Return a value as JSON; a whole number is the same as text or as a double."""
    if type(value) is int and abs(value) < _EXACT:  # nearly always, and fast
        return str(value)
    number = to_finite(read_number(value))
    if number is None or not number.is_integer():
        return shown(value)
    return shown(int(number))


# ---- time-to-train -----------------------------------------------------------------------

CLOCK_KEYS = ("run_start", "run_stop")


class Clock(msgspec.Struct, eq=False):
    """The clock of a run: by the rules, and ``official`` as the result summarizer reads it.

    Times are in milliseconds since the epoch. ``status`` is that of ``run_stop``, whose number in
    the log is ``stop_number``; ``early`` is the first ``run_stop`` before a ``run_start``, which
    counts if its time is later: times decide, not lines. Source: training_rules, Benchmark run:
    timing.
    """

    start_ms: float | None = None
    stop_ms: float | None = None
    status: str | None = None
    stop_number: int | None = None
    early: tuple[Record, int] | None = None
    official: dict[str, float] = {}

    def take(self, record: Record, number: int) -> None:
        """Take the next ``run_start`` or ``run_stop``, by its ``number`` in the log."""
        time_ms = float(record.time_ms)
        if len(self.official) < len(CLOCK_KEYS):
            self.official[record.key] = time_ms
        if record.key == "run_start":
            if self.start_ms is None:
                self.start_ms = time_ms
                if self.early and self.early[0].time_ms >= time_ms:
                    self._stop(*self.early)
        elif self.start_ms is None:
            self.early = self.early or (record, number)
        elif self.stop_ms is None:
            self._stop(record, number)

    def _stop(self, record: Record, number: int) -> None:
        self.stop_ms = float(record.time_ms)
        self.stop_number = number
        status = record.metadata.get("status") if isinstance(record.metadata, dict) else None
        # Equal strings of several runs are sent to another process once if they are one object.
        self.status = intern(status) if type(status) is str else None

    @property
    def stopped(self) -> bool:
        """Whether a ``run_stop`` was logged, also one without a ``run_start``."""
        return "run_stop" in self.official

    @property
    def minutes(self) -> float | None:
        """Minutes from the first start to the first stop after it; None if there are none."""
        if self.start_ms is None or self.stop_ms is None:
            return None
        elapsed_ms = self.stop_ms - self.start_ms
        if not 0 < elapsed_ms < math.inf:
            return None
        return elapsed_ms / 60 / 1000

    @property
    def official_span_ms(self) -> tuple[float, float] | None:
        """The last start before both were logged, and the stop, which may be before it."""
        if len(self.official) < len(CLOCK_KEYS):
            return None
        return self.official["run_start"], self.official["run_stop"]


class EvaluationTimes:
    """Finds the first evaluation that ends before it starts."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._start: float | None = None
        self.backwards: tuple[int, float] | None = None
        """The number of its end in the log, and by how many milliseconds it is early."""

    def take_block(self, block: Block) -> None:
        """Take the next records: starts and ends."""
        starts = block.indexes.get("eval_start", [])
        stops = block.indexes.get("eval_stop", [])
        indexes = sorted((*starts, *stops))
        if not indexes:
            return
        if self._start is None and block.ascends(indexes):  # nearly always, and fast
            if indexes[-1] in starts[-1:]:
                (self._start,) = block.times(indexes[-1:])
            return
        times = block.times(indexes)
        opened = set(starts)
        for index, time_ms in zip(indexes, times, strict=True):
            if index in opened:
                if self._start is None:
                    self._start = time_ms
            elif self._start is not None:
                if time_ms < self._start and not self.backwards:
                    self.backwards = block.first + index, self._start - time_ms
                self._start = None


def not_finite(value: Any) -> str:
    """Return the name of an evaluated value that is NaN or infinite; empty for any other."""
    values = value.values() if isinstance(value, dict) else [value]
    for metric in values:
        with suppress(TypeError, ValueError, OverflowError):
            number = float(metric)
            if not math.isfinite(number):
                return shown(number)
    return ""


# ---- seeds -------------------------------------------------------------------------------

SEED_KEY = "seed"
OTHER_RECORDS = "it has records that cannot be read"
"""Why the official seed checker refuses a log whose seeds can be read."""

MAX_SEEDS = 10_000  # of one log; the most in any published one is 64


class Seed(msgspec.Struct, frozen=True):
    """A logged seed and the source line that logged it; ``line`` is its line in the log."""

    value: int
    file: Any
    lineno: Any
    line: int


class SeedReader:
    """Follows the records of ``SEED_KEY`` as the official seed checker reads them.

    ``unreadable`` says why the official seed checker refuses the log, if it does.
    """

    def __init__(self, line_of: Callable[[int], int]) -> None:
        """Start at the head of a log; ``line_of`` returns the line of a record by its number."""
        self.seeds: list[Seed] = []
        self.unreadable: str | None = None
        self._line_of = line_of

    def take(self, record: Record, number: int) -> None:
        """Take the next seed, by its ``number`` in the log."""
        line = self._line_of(number)
        reason = 'has no valid "file" in its metadata'
        try:
            file = record.metadata["file"]
            hash(file)
            reason = 'has no valid "lineno" in its metadata'
            lineno = record.metadata["lineno"]
            hash(lineno)
            reason = "is not an integer"
            seed = Seed(int(record.value), file, lineno, line)
        except Exception:  # noqa: BLE001 - the official seed checker refuses the log
            self.unreadable = self.unreadable or f"the seed on line {line} {reason}"
            return
        if len(self.seeds) < MAX_SEEDS:
            self.seeds.append(seed)
        else:
            self.unreadable = f"it has more than {MAX_SEEDS:,} seeds"


# ---- weak scaling (HPC) ------------------------------------------------------------------

_MAX_NODES = 10**9
SCALE_KEYS = ("number_of_nodes", "accelerators_per_node")


class InstanceScale:
    """Follows the records of ``SCALE_KEYS``, for the accelerators that train one model (HPC)."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._values: dict[str, Any] = {}

    def take(self, record: Record, _: int) -> None:
        """Take the next record; once there is a value of both keys, later ones do not count."""
        if any(self._values.get(key) is None for key in SCALE_KEYS):
            self._values[record.key] = record.value

    def result(self) -> int | None:
        """Return nodes times accelerators of a node, at least one; None if one is not a number."""
        nodes, accelerators = map(self._number, SCALE_KEYS)
        if nodes is None or accelerators is None:
            return None
        return nodes * max(accelerators, 1)

    @property
    def nodes(self) -> int | None:
        """The number of nodes; None if it is not a number, or one that no system has."""
        nodes = self._number("number_of_nodes")
        if nodes is None or not 0 <= nodes <= _MAX_NODES:
            return None
        return nodes

    def _number(self, key: str) -> int | None:
        if key not in self._values:  # as in most rounds; an exception takes ten times as long
            return None
        try:
            return int(self._values[key])
        except (TypeError, ValueError, OverflowError):
            return None


# ---- what the log says of its run --------------------------------------------------------

_REMEMBERED_BYTES = 1 << 16  # of an encoded description of a run; larger ones are not remembered
_PREFIXES = ("opt_", "lars_", "sgd_opt_", "scheduler_", "lora_", "swa_", "data_sp", "data_train_")
_HYPERPARAMETERS = frozenset([
    "batchnorm_group_size", "dropout", "gradient_accumulation_frequency",
    "gradient_accumulation_steps", "lr_boundaries", "lr_decay_start_steps", "lr_rates",
    "max_samples", "max_sequence_length", "model_bn_span", "model_eval_ema_factor",
    "model_weights_initialization_scale", "num_image_candidates", "num_warmup_steps",
    "oversampling", "sequence_length", "start_warmup_step", "training_input_shape",
])  # fmt: skip


def of_head(head: Block, followed: frozenset[str]) -> dict[str, Any]:
    """Return the hyperparameters in the ``head`` of a log that its rules do not follow."""
    keys = [key for key in _hyperparameters(tuple(head.indexes)) if key not in followed]
    if not keys:
        return {}
    return dict(zip(keys, head.values([head.indexes[key][0] for key in keys]), strict=True))


class RunDescription(msgspec.Struct, frozen=True):
    """What a log says of its run, by the first record of each key.

    ``described`` has each of ``SUBMISSION_KEYS``, without ``submission_``, and is empty where the
    value is not a string. ``hyperparameters`` are as JSON; numbers are as ``in_words`` writes them:
    ``1``, ``1.0`` and ``"1"`` are the same.
    """

    described: dict[str, str]
    hyperparameters: dict[str, str]


def description_of(
    seen: Seen, followed: frozenset[str], others: Mapping[str, Any]
) -> RunDescription:
    """Return what a log says of its run.

    The hyperparameters are those that its rules have ``followed``, then the ``others``.
    """
    texts = {key: bounded(seen[key].first) for key in SUBMISSION_KEYS if key in seen}
    values = {key: seen[key].first for key in _hyperparameters(followed) if key in seen}
    values.update(others)
    with suppress(OverflowError, UnicodeEncodeError, RecursionError):  # msgpack refuses a value
        encoded = msgspec.msgpack.encode((texts, values))
        if len(encoded) <= _REMEMBERED_BYTES:
            return _remembered(encoded)
    return _description(texts, values)


@lru_cache(maxsize=64)
def _remembered(encoded: bytes) -> RunDescription:
    """Return one object for all runs of which logs say the same: pickle sends it once."""
    return _description(*msgspec.msgpack.decode(encoded))


def _description(texts: Mapping[str, Any], values: Mapping[str, Any]) -> RunDescription:
    described = {}
    for key in SUBMISSION_KEYS:
        text = texts.get(key)
        described[key.removeprefix("submission_")] = text if isinstance(text, str) else ""
    return RunDescription(described, {key: in_words(value) for key, value in values.items()})


@lru_cache  # the runs of a result set log the same keys
def _hyperparameters(keys: frozenset[str] | tuple[str, ...]) -> list[str]:
    return sorted(filter(is_hyperparameter, keys))


@lru_cache(maxsize=1024)
def is_hyperparameter(key: str) -> bool:
    """Return whether the runs of a result set are compared by this key."""
    return key.startswith(_PREFIXES) or key in _HYPERPARAMETERS


def in_words(value: Any) -> str:
    """Return a value as JSON; numbers have six significant digits, whole ones all."""
    number = to_finite(read_number(value))
    if number is None:
        return shown(value)
    return digits(number)


# ---- tensors -----------------------------------------------------------------------------

_SHOWN_NAMES = 3
_MOST_NAMES = 1 << 16  # counted separately, more than any model has


class TensorList:
    """Counts the tensors of a model that a log names as it initialises them."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._uncounted: list[Any] = []  # counted only if necessary
        self._counts: Counter[str] = Counter()
        self._nameless = 0

    def add(self, tensors: Sequence[Any]) -> None:
        """Take the next names; a value that is not text does not name a tensor."""
        self._uncounted += tensors
        if len(self._uncounted) > _MOST_NAMES:
            self._count()

    def differences(self, expected: Set[str]) -> str:
        """Return the differences in words; empty if each ``expected`` name occurs once."""
        if not (self._counts or self._nameless) and len(self._uncounted) == len(expected):
            with suppress(TypeError):  # a list or an object does not name a tensor
                if expected == set(self._uncounted):
                    return ""
        self._count()
        once = Counter(expected)
        surplus = self._counts - once
        unknown = Counter({name: count for name, count in surplus.items() if name not in expected})
        groups = {
            "missing": once - self._counts,
            "not in the model": unknown,
            "repeated": surplus - unknown,
        }
        parts = []
        for remark, names in groups.items():
            if names:
                examples = ", ".join(map(shown, sorted(names)[:_SHOWN_NAMES]))
                more = "..." if len(names) > _SHOWN_NAMES else ""
                parts.append(f"{names.total()} {remark} ({examples}{more})")
        if self._nameless:
            parts.append(f"{self._nameless} without a name")
        return ", ".join(parts)

    def has_too_many(self, expected: Set[str]) -> bool:
        """Return whether a name is surplus, which no later record can change."""
        self._count()
        counts = self._counts
        return self._nameless > 0 or not counts.keys() <= expected or counts.total() > len(counts)

    def _count(self) -> None:
        names = [name for name in self._uncounted if isinstance(name, str)]
        self._nameless += len(self._uncounted) - len(names)
        self._uncounted.clear()
        if len(self._counts) > _MOST_NAMES:
            names = [name if name in self._counts else "..." for name in names]
        self._counts.update(names)


# ---- fingerprint -------------------------------------------------------------------------

_EVENTS = ("run_start", "eval_accuracy", "eval_error", "run_stop")
_LOSSES = ("train_loss", "tracked_stats")
_KEPT_VALUES = 16
_MOST_LOOKED_AT = 16  # records with losses: most of tracked_stats have none
_MOST_UNHASHED = 64  # evaluations


class Fingerprint:
    """Follows a run's start, stop and evaluations; ``digest`` is equal for copies of one run.

    Times count from ``run_start``, in milliseconds, so that shifting a copy in time or editing its
    seed does not hide it. ``evaluated`` and ``losses`` are the first numbers that were evaluated,
    and of the loss: those of a copy with other times are as near as the noise that was added.
    ``evaluated_ms`` are the times of these evaluations, in milliseconds since the epoch.
    """

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._hash: blake2b | None = None
        self._events: list[tuple[float, Any]] = []  # not hashed yet
        self._start: float | None = None
        self._stopped = False
        self._looked_at = 0
        self.evaluated: list[float] = []
        self.evaluated_ms: list[float] = []
        self.losses: list[float] = []

    def take_block(self, block: Block) -> None:
        """Take the next records: ``run_start``, ``run_stop``, evaluations and losses."""
        indexes = sorted(chain.from_iterable([block.indexes.get(key, ()) for key in _EVENTS]))
        for record in block.select(indexes):
            if record.key == "run_start":
                self._start = self._start or record.time_ms
            elif self._start is not None and not self._stopped:
                self._stopped = record.key == "run_stop"
                value = None if self._stopped else record.value
                self._events.append((record.time_ms - self._start, value))
                if len(self.evaluated) < _KEPT_VALUES:
                    self._keep(value, record.time_ms)
        while len(self._events) >= _MOST_UNHASHED:
            self._update_hash()
        for key in _LOSSES:
            if key in block.indexes and self._looked_at < _MOST_LOOKED_AT:
                self._take_losses(block, block.indexes[key])

    def _keep(self, value: Any, time_ms: float) -> None:
        """Keep what an evaluation gave, and its time."""
        if type(value) is float and math.isfinite(value):  # nearly always, and fast
            self.evaluated.append(value)
        else:
            numbers = _numbers(value)
            if not numbers:
                return
            self.evaluated += numbers
        finite_ms = to_finite(time_ms)
        self.evaluated_ms.append(nan if finite_ms is None else finite_ms)

    def _take_losses(self, block: Block, indexes: Sequence[int]) -> None:
        values = block.values(indexes[: _MOST_LOOKED_AT - self._looked_at])
        self._looked_at += len(values)
        for value in values:
            if len(self.losses) < _KEPT_VALUES:
                self.losses += _numbers(value, "loss")

    @property
    def digest(self) -> bytes | None:
        """The fingerprint; None for a run without an end or an evaluation."""
        if not self._stopped:
            return None
        if self._hash:
            if self._events:
                self._update_hash()
            return self._hash.digest()
        if len(self._events) <= 1:
            return None
        return self._encoded(self._events)

    def _update_hash(self) -> None:
        from hashlib import blake2b  # noqa: PLC0415 - slow to import; few runs are as long

        self._hash = self._hash or blake2b(digest_size=16)
        self._hash.update(self._encoded(self._events[:_MOST_UNHASHED]))
        del self._events[:_MOST_UNHASHED]

    @staticmethod
    def _encoded(events: list[tuple[float, Any]]) -> bytes:
        try:
            return msgspec.msgpack.encode(events)
        except (OverflowError, UnicodeEncodeError):  # msgpack cannot encode the value
            return repr(events).encode("utf-8", "backslashreplace")


def _numbers(value: Any, word: str = "") -> list[float]:
    """Return a value that is a finite number, or those in an object whose names contain a word."""
    if type(value) is not dict:
        number = to_finite(value)
        return [] if number is None else [number]
    numbers = []
    for name in sorted(value):
        if word in name and name != "loss_scale":
            number = to_finite(value[name])
            if number is not None:
                numbers.append(number)
    return numbers


# ---- metrics that are logged one by one and judged together -------------------------------


class Joiner:
    """Joins records of a log, such as Stable Diffusion's FID and CLIP of one checkpoint.

    Different scripts may calculate them offline and log them in any order.
    (mlperf-logging, key aggregated_eval_accuracy)
    """

    def __init__(self, joined: Joined) -> None:
        """Start at the head of a log."""
        self.joined = joined
        self._values: dict[Any, dict[Any, Any]] = {}
        self._times: dict[Any, tuple[float, int]] = {}
        self._metrics = 0

    def take(self, record: Record, number: int) -> None:
        """Take the next record, by its ``number`` in the log.

        Raises:
            Exception: the metadata lacks a field; the official checker crashes on it too.
            OverflowError: there are too many records.
        """
        name = self.joined.name
        by = self.joined.by
        if name not in record.metadata:
            return
        self._metrics += 1
        if self._metrics > MAX_METRICS:
            raise OverflowError(f"there are more than {MAX_METRICS:,} metrics")
        group = record.metadata[by]
        values = self._values.setdefault(group, {by: group})
        values[record.metadata[name]] = record.value
        time_ms, _ = self._times.get(group, (0.0, 0))
        self._times[group] = (max(record.time_ms, time_ms), number)

    def records(self) -> list[tuple[Record, int]]:
        """Return the joint records in order of first appearance, with the numbers of their last."""
        joint = []
        for group, (time_ms, number) in self._times.items():
            joint.append((Record(self.joined.key, time_ms, self._values[group], {}), number))
        return joint
