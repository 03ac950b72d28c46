"""Write the file of the published results: the same bytes for the same results."""

import struct
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

import msgspec
from deflate import zlib_compress
from msgspec import Struct
from msgspec.structs import astuple, replace

from mlperf_pkg.published.model import (
    LEAST_VALUES,
    Provenance,
    PublishedRound,
    PublishedSet,
    Setting,
)
from mlperf_pkg.published.results import FORMAT, VERSION, File

SOURCE = "the results repositories of MLCommons, github.com/mlcommons"
LICENCE = "Apache-2.0"

_LEVEL, _STORED = 12, 0  # hashes cannot be compressed: only reading them would take time

Log: TypeAlias = tuple[int, int]
"""The hash of a log, or of the fingerprint of a run, and the index of its set."""

Series: TypeAlias = tuple[tuple[float, ...], int]
"""The first values of a run, and the index of its set."""


class Facts(Struct, frozen=True):
    """Everything that the file holds; all else refers to ``sets`` by index.

    ``runs`` are those without a series.
    """

    made: date
    sets: Sequence[PublishedSet]
    logs: Collection[Log]
    settings: Collection[Setting]
    series: Collection[Series] = ()
    runs: Collection[Log] = ()


def encoded(facts: Facts) -> bytes:
    """Return the bytes of the file: the sets by usage, round and path, all else by these."""
    order = sorted(range(len(facts.sets)), key=lambda index: _set_key(facts.sets[index]))
    new = {index: place for place, index in enumerate(order)}
    sets = [facts.sets[index] for index in order]
    logs, runs = (
        sorted((key, new[index]) for key, index in rows) for rows in (facts.logs, facts.runs)
    )
    series = sorted({(values, new[index]) for values, index in facts.series})
    settings = sorted((replace(row, set=new[row.set]) for row in facts.settings), key=astuple)
    by_benchmark: dict[str, list[Setting]] = {row.benchmark: [] for row in sets}
    for setting in settings:
        by_benchmark[sets[setting.set].benchmark].append(setting)
    file = File(
        format=f"{FORMAT}{VERSION}",
        provenance=_provenance(facts.made, sets, logs),
        sets={name: _packed(column) for name, column in _columns(sets, PublishedSet).items()},
        logs=_numbered("<Q", [((key,), index) for key, index in logs], _STORED),
        sharing=_packed(_sharing([*logs, *runs, *series])),
        series=_numbered(f"<{LEAST_VALUES}f", series, _LEVEL),
        runs=_numbered("<Q", [((key,), index) for key, index in runs], _STORED),
        settings={
            name: _packed(_columns(rows, Setting))
            for name, rows in sorted(by_benchmark.items())
            if rows
        },
    )
    return msgspec.msgpack.encode(replace(file, checksum=file.crc))


def _set_key(row: PublishedSet) -> tuple[bool, tuple[int, ...], str]:
    return (row.usage != "training", tuple(map(int, row.round.split("."))), row.path)


def _provenance(made: date, sets: Sequence[PublishedSet], logs: Sequence[Log]) -> Provenance:
    keys = list(map(attrgetter("usage", "round"), sets))
    of_sets, of_logs = Counter(keys), Counter(keys[index] for _, index in logs)
    rounds = tuple(PublishedRound(*key, number, of_logs[key]) for key, number in of_sets.items())
    return Provenance(SOURCE, LICENCE, made, rounds)


def _sharing(rows: Sequence[tuple[Any, int]]) -> list[int]:
    """Return the indexes of the sets that have a log, or a run, of a set before them."""
    first: dict[Any, int] = {}
    pairs = sorted(rows, key=itemgetter(1))
    return sorted({index for key, index in pairs if first.setdefault(key, index) != index})


def _numbered(form: str, rows: Sequence[tuple[tuple[float, ...], int]], level: int) -> bytes:
    """Return numbers of runs or logs, and then the indexes of their sets."""
    numbers = b"".join(struct.pack(form, *values) for values, _ in rows)
    return _compressed(numbers + b"".join(struct.pack("<H", index) for _, index in rows), level)


def _columns(rows: Sequence[Struct], kind: type[Struct]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in kind.__struct_fields__}


def _packed(part: object) -> bytes:
    return _compressed(msgspec.msgpack.encode(part), _LEVEL)


def _compressed(data: bytes, level: int) -> bytes:
    """The bytes do not depend on the zlib of the machine; reading does not need this library."""
    return bytes(zlib_compress(data, level))
