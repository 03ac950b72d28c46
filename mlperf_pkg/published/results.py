"""Read the published results, a file of this package, one part at a time.

The file is MessagePack: the format and the provenance, then parts in zlib format, which are columns
of equal length. ``tests/tools/export.py`` writes it.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from functools import cache, cached_property, reduce
from itertools import takewhile
from pathlib import Path
from types import GenericAlias
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.published.model import (
    LEAST_VALUES,
    NOISE,
    Provenance,
    PublishedName,
    PublishedSet,
    Setting,
    comparable,
    equal_values,
    known_division,
    name_in_round,
)

Names: TypeAlias = tuple[PublishedName, ...]

VERSION = 2
FORMAT = "mlperf-pkg/published/"
PATH = Path(__file__).parent / "results.msgpack"

_MAX_BYTES = 16 << 20
_MAX_PART = 64 << 20  # decompressed


class File(Struct, frozen=True):
    """The file: its parts are compressed, the sets by field and the settings by benchmark.

    ``logs`` holds numbers, little-endian: the hashes of all logs in order (eight bytes each), then
    the indexes of their sets (two bytes each). ``sharing`` are the indexes of the sets that have a
    log of an earlier set. ``series`` holds, in the same way, the first values of runs
    (``LEAST_VALUES`` single-precision numbers each), and ``runs`` the hashes of the fingerprints of
    runs that have fewer.
    """

    format: str
    provenance: Provenance
    sets: dict[str, bytes]
    logs: bytes
    sharing: bytes
    series: bytes
    runs: bytes
    settings: dict[str, bytes]
    checksum: int = 0

    @property
    def crc(self) -> int:
        """The CRC-32 of all parts, to compare with ``checksum``."""
        of_logs = (self.logs, self.sharing, self.series, self.runs)
        parts = (*self.sets.values(), *of_logs, *self.settings.values())
        return reduce(lambda crc, part: zlib.crc32(part, crc), parts, 0)


class SettingColumns(Struct, frozen=True):
    """The columns of ``Setting``."""

    set: list[int]
    key: list[str]
    value: list[str]
    runs: list[int]


class ScoreColumns(Struct, frozen=True):
    """The columns of ``PublishedSet`` that tell a set and its score."""

    division: list[str]
    runs: list[int]
    unscaled_minutes: list[float | None]
    score_minutes: list[float | None]


class _Head(Struct, frozen=True):
    format: str


class PublishedResultsError(UserError):
    """The published results cannot be read."""


class PublishedResults:
    """The published results of all rounds; each part is read when it is first used.

    Raises:
        PublishedResultsError: a part is damaged; any property may raise this.
    """

    def __init__(self, file: File, path: Path) -> None:
        """Start with a file whose parts are not read yet."""
        self._file = file
        self._path = path
        self._settings: dict[str, tuple[Setting, ...]] = {}
        self._read_columns: dict[str, list[Any]] = {}

    @property
    def provenance(self) -> Provenance:
        """The source of the results, and their rounds."""
        return self._file.provenance

    @cached_property
    def sets(self) -> tuple[PublishedSet, ...]:
        """All result sets, by usage, round and path."""
        return tuple(map(PublishedSet, *self._columns(*PublishedSet.__struct_fields__)))

    def set_at(self, index: int) -> PublishedSet:
        """Return one result set by its index."""
        columns = self._columns(*PublishedSet.__struct_fields__)
        return PublishedSet(*(column[index] for column in columns))

    def load(self) -> None:
        """Read the names of the result sets and the logs, which most checks need."""
        _ = self._names, self._logs

    def names_with(self, log_hash: int) -> Names:
        """Return all result sets that have a log, by its ``log_hash``; the first first."""
        return self._names_at(_sets_with(log_hash, *self._logs))

    def names_of_run(self, fingerprint: int | None, *series: Sequence[float]) -> Names:
        """Return all result sets that have a run, whatever the bytes of its log; the first first.

        It is found by its ``series``, evaluations and losses, but for noise, or by the ``log_hash``
        of its fingerprint.
        """
        matches: set[int] = set()
        if fingerprint is not None:
            matches.update(_sets_with(fingerprint, *self._runs))
        firsts, rows, indexes = self._series
        for values in series:
            if len(values) >= LEAST_VALUES:
                reach = abs(values[0]) * 4 * NOISE
                start = bisect_left(firsts, values[0] - reach)
                stop = bisect_left(firsts, values[0] + reach)
                near = (n for n in range(start, stop) if equal_values(rows[n], values))
                matches.update(indexes[n] for n in near)
        return self._names_at(sorted(matches))

    def names_scored(self, usage: str, runs: int, minutes: float | None) -> Names:
        """Return all result sets with a number of runs and a mean in ``minutes``; the first first.

        No two published sets have the same mean by chance.
        """
        key = None if minutes is None else (usage, runs, comparable(minutes))
        return self._names_at(self._indexes_by_mean.get(key, ()))

    def hashes(self) -> tuple[tuple[int, ...], ...]:
        """Return the ``log_hash`` of the logs of each set, by its index."""
        by_set: tuple[list[int], ...] = tuple([] for _ in self._names[0])
        for log_hash, index in zip(*self._logs, strict=True):
            if index >= len(by_set):
                raise _damaged(self._path, "a log names a result set that does not exist")
            by_set[index].append(log_hash)
        return tuple(map(tuple, by_set))

    def index_of(
        self, name: tuple[str, str, str], division: str | None, runs: int, minutes: float
    ) -> int | None:
        """Return the index of a published set by its usage, round and name in it; None if none is.

        It also has the same division, as many runs, and the same mean in ``minutes``.
        """
        index = self._indexes.get(name)
        if index is None:
            return None
        scores = self._scores
        mean = scores.unscaled_minutes[index]
        is_same = (
            known_division(scores.division[index]) == known_division(division)
            and scores.runs[index] == runs
            and mean is not None
            and comparable(mean) == comparable(minutes)
        )
        return index if is_same else None

    def score_minutes(self, index: int) -> float | None:
        """Return the score of a set by its index, in minutes; None if the record has none."""
        return self._scores.score_minutes[index]

    def is_first_of_its_runs(self, index: int) -> bool:
        """Return whether no set before this one has its logs, or its mean of as many runs."""
        if index in self._sharing:
            return False
        usages = self._names[0]
        runs = self._scores.runs
        means = self._scores.unscaled_minutes
        other = self._first_with_mean[means[index]]
        while other < index:
            if (usages[other], runs[other]) == (usages[index], runs[index]):
                return False
            other = means.index(means[index], other + 1)
        return True

    def settings(self, benchmark: str) -> tuple[Setting, ...]:
        """Return the hyperparameters of all sets of a benchmark; none if it was never published."""
        part = self._file.settings.get(benchmark)
        if part is not None and benchmark not in self._settings:
            columns = msgspec.structs.astuple(self._decoded(part, SettingColumns))
            self._refuse_unequal(columns)
            self._settings[benchmark] = tuple(map(Setting, *columns))
        return self._settings.get(benchmark, ())

    def _names_at(self, indexes: Iterable[int]) -> Names:
        return tuple(map(self._name, dict.fromkeys(indexes)))

    def _name(self, index: int) -> PublishedName:
        usages, rounds, paths = self._names
        if index >= len(paths):  # looked up here, as looking at all indexes takes time
            raise _damaged(self._path, "a log names a result set that does not exist")
        return PublishedName(index, usages[index], rounds[index], name_in_round(paths[index]))

    @cached_property
    def _names(self) -> list[list[str]]:
        return self._columns("usage", "round", "path")

    @cached_property
    def _indexes(self) -> dict[tuple[str, str, str], int]:
        keys = zip(*self._names[:2], map(name_in_round, self._names[2]), strict=True)
        return {key: index for index, key in enumerate(keys)}

    @cached_property
    def _scores(self) -> ScoreColumns:
        return ScoreColumns(*self._columns(*ScoreColumns.__struct_fields__))

    @cached_property
    def _sharing(self) -> frozenset[int]:
        return self._decoded(self._file.sharing, frozenset[int])  # type: ignore[no-any-return]

    @cached_property
    def _indexes_by_mean(self) -> dict[tuple[str, int, float] | None, list[int]]:
        indexes: dict[tuple[str, int, float] | None, list[int]] = {}
        scores = self._scores
        means = zip(self._names[0], scores.runs, scores.unscaled_minutes, strict=True)
        for index, (usage, runs, mean) in enumerate(means):
            if mean is not None:
                indexes.setdefault((usage, runs, comparable(mean)), []).append(index)
        return indexes

    @cached_property
    def _first_with_mean(self) -> dict[float | None, int]:
        means = self._scores.unscaled_minutes
        return dict(zip(reversed(means), reversed(range(len(means))), strict=True))

    @cached_property
    def _logs(self) -> tuple[array[int], array[int]]:
        return self._numbered(self._file.logs, "Q")

    @cached_property
    def _runs(self) -> tuple[array[int], array[int]]:
        return self._numbered(self._file.runs, "Q")

    @cached_property
    def _series(self) -> tuple[array[float], list[array[float]], array[int]]:
        values, indexes = self._numbered(self._file.series, "f", LEAST_VALUES)
        rows = [values[n : n + LEAST_VALUES] for n in range(0, len(values), LEAST_VALUES)]
        return values[::LEAST_VALUES], rows, indexes

    def _numbered(self, part: bytes, code: str, per_log: int = 1) -> tuple[array[Any], array[int]]:
        """Return numbers, ``per_log`` of each log, and the indexes of their sets."""
        data = self._decompressed(part)
        numbers = array(code)
        indexes = array("H")
        count, rest = divmod(len(data), per_log * numbers.itemsize + indexes.itemsize)
        split = count * per_log * numbers.itemsize
        numbers.frombytes(data[:split])
        indexes.frombytes(data[split : len(data) - rest])
        if sys.byteorder == "big":
            numbers.byteswap()
            indexes.byteswap()
        if rest or (not self._names[0] and numbers):
            raise _damaged(self._path, "the logs do not fit the result sets")
        return numbers, indexes

    def _columns(self, *names: str) -> list[list[Any]]:
        """Return columns of the result sets by the names of their fields; each is read once."""
        missing = {*names} - self._read_columns.keys()
        for field in msgspec.structs.fields(PublishedSet) if missing else ():
            if field.name in missing:
                part = self._file.sets.get(field.name, b"")
                column = self._decoded(part, GenericAlias(list, (field.type,)))
                self._read_columns[field.name] = column
        columns = [self._read_columns[name] for name in names]
        self._refuse_unequal(columns)
        return columns

    def _decoded(self, part: bytes, type_: Any) -> Any:
        try:
            return msgspec.msgpack.decode(self._decompressed(part), type=type_)
        except msgspec.MsgspecError as error:
            raise _damaged(self._path, error) from error

    def _refuse_unequal(self, columns: Sequence[Sized]) -> None:
        if len(set(map(len, columns))) > 1:
            raise _damaged(self._path, "the columns differ in length")

    def _decompressed(self, part: bytes) -> bytes:
        try:
            return zlib.decompressobj().decompress(part, _MAX_PART)
        except zlib.error as error:
            raise _damaged(self._path, error) from error


def _sets_with(number: int, hashes: array[int], indexes: array[int]) -> Iterator[int]:
    """Yield the indexes of the sets that have a hash."""
    first = bisect_left(hashes, number)
    alike = takewhile(lambda place: hashes[place] == number, range(first, len(hashes)))
    return (indexes[place] for place in alike)


def published_results() -> PublishedResults:
    """Return the published results of this package.

    Raises:
        PublishedResultsError: as ``read_results``.
    """
    return read_results(PATH)


def usable_results() -> PublishedResults | None:
    """Return the published results of this package, None if they cannot be read."""
    with suppress(PublishedResultsError):
        published_results().load()
        return published_results()
    return None


@cache
def read_results(path: Path) -> PublishedResults:
    """Return the published results in a file.

    Raises:
        PublishedResultsError: the file is missing, damaged, or of another version of the format.
    """
    try:
        data = read_file(path, _MAX_BYTES)
    except FileNotFoundError as error:
        message = f"{path}: the published results are missing; reinstall mlperf-pkg"
        raise PublishedResultsError(message) from error
    except OSError as error:
        raise PublishedResultsError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        _refuse_other_version(path, msgspec.msgpack.decode(data, type=_Head).format)
        file = msgspec.msgpack.decode(data, type=File)
    except msgspec.MsgspecError as error:
        raise _damaged(path, error) from error
    if file.crc != file.checksum:
        raise _damaged(path, "the checksum is wrong")
    return PublishedResults(file, path)


def _refuse_other_version(path: Path, format_: str) -> None:
    version = format_.removeprefix(FORMAT)
    if version == format_ or not version.isdecimal():
        raise _damaged(path, f"the format is {format_!r}")
    if int(version) != VERSION:
        remedy = "rebuild the file" if int(version) < VERSION else "update mlperf-pkg"
        raise PublishedResultsError(
            f"{path}: the published results have version {version} of the format; expected"
            f" {VERSION}; {remedy}"
        )


def _damaged(path: Path, reason: object) -> PublishedResultsError:
    return PublishedResultsError(
        f"{path}: the published results are damaged ({reason}); reinstall mlperf-pkg"
    )
