"""Read the published results, which are a file of this package, part by part when asked.

The file is MessagePack: the format and the provenance, then parts that are compressed with zlib,
columns of equal length. ``encode.py`` writes it.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from types import GenericAlias
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.opening import read_file
from mlperf_pkg.published.model import Hashes, Provenance, PublishedSet, Setting

VERSION = 1
FORMAT = "mlperf-pkg/published/"
PATH = Path(__file__).parent / "results.msgpack"

_MAX_BYTES = 16 << 20
_MAX_PART = 64 << 20  # decompressed

_Columns = TypeVar("_Columns")


class File(Struct, frozen=True):
    """The file: its parts are compressed, the settings by benchmark."""

    format: str
    provenance: Provenance
    sets: bytes
    hashes: bytes
    settings: dict[str, bytes]


class _Head(Struct, frozen=True):
    format: str


class PublishedResultsError(UserError):
    """The published results cannot be read, or do not have what is asked."""


class PublishedResults:
    """The published results of all rounds; each part is read when it is first used.

    Raises:
        PublishedResultsError: a part is damaged; any property may raise this.
    """

    def __init__(self, file: File, path: Path) -> None:
        """Start with a file whose parts are not read yet."""
        self._file, self._path = file, path
        self._settings: dict[str, tuple[Setting, ...]] = {}

    @property
    def provenance(self) -> Provenance:
        """Where the results come from, and of which rounds they are."""
        return self._file.provenance

    @cached_property
    def sets(self) -> tuple[PublishedSet, ...]:
        """All result sets, by usage, round and path."""
        return tuple(PublishedSet(*row) for row in self._rows(self._file.sets, PublishedSet))

    def round(self, usage: str, name: str) -> tuple[PublishedSet, ...]:
        """Return the result sets of a round.

        Raises:
            PublishedResultsError: they are not among the published results, which the message
                describes.
        """
        self._refuse_other_round(usage, name)
        return tuple(s for s in self.sets if (s.usage, s.round) == (usage, name))

    def sets_with(self, log_hash: int) -> tuple[int, ...]:
        """Return the indexes in ``sets`` of all that have a log, by ``log_hash`` of its bytes."""
        hashes, sets = self._hashes.hashes, self._hashes.sets
        first = bisect_left(hashes, log_hash)
        alike = takewhile(lambda index: hashes[index] == log_hash, range(first, len(hashes)))
        return tuple(dict.fromkeys(sets[index] for index in alike))

    def settings(self, benchmark: str) -> tuple[Setting, ...]:
        """Return the hyperparameters of all sets of a benchmark; none if it was never published."""
        if benchmark not in self._file.settings:
            return ()
        if benchmark not in self._settings:
            rows = self._rows(self._file.settings[benchmark], Setting)
            self._settings[benchmark] = tuple(Setting(*row) for row in rows)
        return self._settings[benchmark]

    @cached_property
    def _hashes(self) -> Hashes:
        return self._part(self._file.hashes, Hashes)

    def _rows(self, part: bytes, row: type[Struct]) -> zip[Any]:
        fields = msgspec.structs.fields(row)
        lists = [(field.name, GenericAlias(list, (field.type,))) for field in fields]
        columns = self._part(part, msgspec.defstruct("_Columns", lists))
        return zip(*msgspec.structs.astuple(columns), strict=True)

    def _part(self, part: bytes, columns: type[_Columns]) -> _Columns:
        try:
            data = zlib.decompressobj().decompress(part, _MAX_PART)
            return msgspec.msgpack.decode(data, type=columns)
        except (zlib.error, msgspec.MsgspecError) as error:
            raise _damaged(self._path, error) from error

    def _refuse_other_round(self, usage: str, name: str) -> None:
        rounds = [r for r in self.provenance.rounds if r.usage == usage]
        if any(round_.name == name for round_ in rounds):
            return
        names = ", ".join(round_.name for round_ in rounds) or "none"
        raise PublishedResultsError(
            f"round {name} of {usage} is not among the published results of this mlperf-pkg,"
            f" of {self.provenance.made}, which has {names}"
        )


@cache
def published_results(path: Path = PATH) -> PublishedResults:
    """Return the published results in a file, by default that of this package.

    Raises:
        PublishedResultsError: the file is missing, damaged, or of another version of the format.
    """
    try:
        data = read_file(path, _MAX_BYTES)
    except FileNotFoundError as error:
        message = f"{path}: the published results are missing: reinstall mlperf-pkg"
        raise PublishedResultsError(message) from error
    except OSError as error:
        raise PublishedResultsError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        _refuse_other_version(path, msgspec.msgpack.decode(data, type=_Head).format)
        return PublishedResults(msgspec.msgpack.decode(data, type=File), path)
    except msgspec.MsgspecError as error:
        raise _damaged(path, error) from error


def _refuse_other_version(path: Path, format_: str) -> None:
    version = format_.removeprefix(FORMAT)
    if version == str(VERSION):
        return
    if version == format_ or not version.isdecimal():
        raise _damaged(path, f"the format is {format_!r}")
    older = int(version) < VERSION
    remedy = "make the file anew" if older else "update mlperf-pkg"
    raise PublishedResultsError(
        f"{path}: the published results have version {version} of the format; expected {VERSION}:"
        f" {remedy}"
    )


def _damaged(path: Path, reason: object) -> PublishedResultsError:
    message = f"{path}: the published results are damaged ({reason}): reinstall mlperf-pkg"
    return PublishedResultsError(message)
