"""Published result sets, where they come from, and the hashes by which their logs are found."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import Source

_SCALINGS = ("strong", "weak")
_DECIMALS = 9  # of minutes: scores of different runs never agree to this precision
_HASH_BYTES = 8


class PublishedRound(Struct, frozen=True):
    """A round of a usage, with the number of its result sets and of their logs."""

    usage: str
    name: str
    sets: int
    logs: int


class Provenance(Struct, frozen=True):
    """Where the published results come from: ``made`` is the day of the collection."""

    source: str
    licence: str
    made: date
    rounds: tuple[PublishedRound, ...]

    @property
    def end_ms(self) -> float:
        """The end of the day on which they were collected: later runs were not published."""
        day = datetime.combine(self.made, time.max, UTC)
        return day.timestamp() * 1000


class PublishedSet(Struct, frozen=True, gc=False):
    """A published result set, from its system description and its logs.

    Texts are empty and numbers None if the description lacks them. ``division`` and ``status`` are
    spelt as there. ``accelerators`` is the number in the whole system; ``path`` is below the round,
    of raw logs the id of the set.
    ``score_minutes`` is as published, ``official_minutes`` is as in ``ResultSetRow``.
    """

    usage: str
    round: str
    submitter: str
    system: str
    benchmark: str
    division: str
    path: str
    status: str
    system_name: str
    accelerators: int | None
    accelerator_model: str
    accelerators_per_node: int | None
    nodes: int | None
    host_processor: str
    framework: str
    global_batch_size: int | None
    runs: int
    score_minutes: float | None
    unscaled_minutes: float | None
    official_minutes: float | None
    energy_joules: float | None

    @property
    def name(self) -> str:
        """The set within its round, such as ``Dell/XE9680/bert``."""
        return name_in_round(self.path)

    @property
    def scaling(self) -> str | None:
        """The kind of scaling, strong or weak, of a set of MLPerf HPC."""
        # The last part of the id of raw logs, else the one before it.
        return next((name for name in self.path.split("/")[-2:] if name in _SCALINGS), None)


class PublishedName(Struct, frozen=True):
    """A published result set by its ``index``; ``name`` is as in ``PublishedSet``."""

    index: int
    usage: str
    round: str
    name: str


class Setting(Struct, frozen=True, gc=False):
    """A value of a hyperparameter, the first in ``runs`` logs of the set of index ``set``.

    Values are JSON, as in ``Run.hyperparameters``; ``global_batch_size`` is among the keys.
    """

    set: int
    key: str
    value: str
    runs: int


def known_division(division: str | None) -> str:
    """Return a division as the rules spell it, or an empty string; some have ``close``."""
    name = (division or "").strip().lower()
    return "closed" if name == "close" else name


def name_in_round(path: str) -> str:
    """Return the path of a result set below its round without the folder ``results``."""
    return path.replace("/results/", "/", 1)


def comparable(minutes: float) -> float:
    """Round a score, so that a published one equals the same score computed again, and no other."""
    return round(minutes, _DECIMALS)


# ---- the hashes by which published logs are found -----------------------------------------------

_CHUNK_BYTES = 1 << 20


def digests_of(sources: Mapping[str, Source]) -> dict[str, bytes]:
    """Return the SHA-256 of logs by path, without those that cannot be read."""
    digests = {}
    for path, source in sources.items():
        from hashlib import sha256  # noqa: PLC0415 - most checks have no log to hash

        with suppress(OSError, UserError), source.open() as stream:
            log_digest = sha256()
            # A buffer of its own, as in file_digest, takes longer than hashing a short log.
            while chunk := stream.read(_CHUNK_BYTES):
                log_digest.update(chunk)
            digests[path] = log_digest.digest()
    return digests


def log_hash(digest: bytes) -> int:
    """Return the part of a digest that the published results hold."""
    return int.from_bytes(digest[:_HASH_BYTES], "big")


def run_hash(fingerprint: bytes) -> int:
    """Return what the published results hold of the fingerprint of a run."""
    from hashlib import sha256  # noqa: PLC0415 - most checks need none

    return log_hash(sha256(fingerprint).digest())


# ---- the first values of a run, by which a dressed-up log is found ------------------------------

NOISE = 1e-5  # of a value, in proportion
LEAST_VALUES = 4  # that are equal in two runs, if one has more
_DIFFERENT = 3


def is_series(values: Sequence[float]) -> bool:
    """Return whether the evaluations or losses of a run tell it from all others."""
    return len(set(values)) >= _DIFFERENT


def is_near(value: float, other: float) -> bool:
    """Return whether two values are the same but for noise, which may be in both."""
    return abs(value - other) <= 2 * NOISE * max(abs(value), abs(other))


def equal_values(values: Sequence[float], others: Sequence[float]) -> int:
    """Return how many values two runs begin with that are all the same but for noise.

    It is 0 if one value differs, or if there are too few to tell the runs from all others.
    """
    if not all(map(is_near, values, others)):  # at once, as most runs differ
        return 0
    number = min(len(values), len(others))
    is_enough = len(values) == len(others) or number >= LEAST_VALUES
    return number if is_enough and is_series(values[:number]) else 0
