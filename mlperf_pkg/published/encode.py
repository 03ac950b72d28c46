"""Write the file of the published results, reproducibly."""

import struct
from collections import Counter
from collections.abc import Sequence
from datetime import date
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

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


class Log(Struct, frozen=True, order=True):
    """The hash of a log and the index of its result set."""

    hash: int
    set: int


class Facts(Struct, frozen=True):
    """Everything that the file holds; all else refers to ``sets`` by index.

    ``series`` are the first values of runs and their sets, ``runs`` the hashes of the fingerprints
    of those without a series.
    """

    made: date
    sets: Sequence[PublishedSet]
    logs: Sequence[Log]
    settings: Sequence[Setting]
    series: Sequence[tuple[tuple[float, ...], int]] = ()
    runs: Sequence[Log] = ()


def encoded(facts: Facts) -> bytes:
    """Return the bytes of the file."""
    facts = _in_order(facts)
    by_benchmark: dict[str, list[Setting]] = {}
    for setting in facts.settings:
        by_benchmark.setdefault(facts.sets[setting.set].benchmark, []).append(setting)
    columns = _columns(facts.sets, PublishedSet)
    file = File(
        format=f"{FORMAT}{VERSION}",
        provenance=_provenance(facts),
        sets={name: _packed(column) for name, column in columns.items()},
        logs=_compressed(_of_logs(facts.logs), _STORED),
        sharing=_packed(_sharing(facts)),
        series=_compressed(_numbered(f"<{LEAST_VALUES}f", facts.series)),
        runs=_compressed(_of_logs(facts.runs), _STORED),
        settings={
            name: _packed(_columns(by_benchmark[name], Setting)) for name in sorted(by_benchmark)
        },
    )
    return msgspec.msgpack.encode(replace(file, checksum=file.crc))


def _in_order(facts: Facts) -> Facts:
    """Sort the sets by usage, round and path, and all else by the new indexes."""
    order = sorted(range(len(facts.sets)), key=lambda index: _set_key(facts.sets[index]))
    new = {old: index for index, old in enumerate(order)}
    return Facts(
        made=facts.made,
        sets=[facts.sets[index] for index in order],
        logs=sorted(replace(log, set=new[log.set]) for log in facts.logs),
        series=sorted({(values, new[index]) for values, index in facts.series}),
        runs=sorted(replace(run, set=new[run.set]) for run in facts.runs),
        settings=sorted(
            (replace(setting, set=new[setting.set]) for setting in facts.settings),
            key=msgspec.structs.astuple,
        ),
    )


def _set_key(row: PublishedSet) -> tuple[bool, tuple[int, ...], str]:
    return (row.usage != "training", tuple(map(int, row.round.split("."))), row.path)


def _provenance(facts: Facts) -> Provenance:
    keys = [(row.usage, row.round) for row in facts.sets]
    sets, logs = Counter(keys), Counter(keys[log.set] for log in facts.logs)
    rounds = tuple(PublishedRound(*key, sets[key], logs[key]) for key in sets)
    return Provenance(SOURCE, LICENCE, facts.made, rounds)


def _of_logs(logs: Sequence[Log]) -> bytes:
    return _numbered("<Q", [((log.hash,), log.set) for log in logs])


def _numbered(form: str, rows: Sequence[tuple[tuple[float, ...], int]]) -> bytes:
    """Return numbers of runs or logs, and then the indexes of their sets."""
    numbers = b"".join(struct.pack(form, *values) for values, _ in rows)
    return numbers + b"".join(struct.pack("<H", index) for _, index in rows)


def _sharing(facts: Facts) -> list[int]:
    """Return the indexes of the sets that have a log, or a run, of a set before them."""
    hashes = ((log.hash, log.set) for log in (*facts.logs, *facts.runs))
    pairs = sorted((*hashes, *facts.series), key=itemgetter(1))
    first = dict(reversed(pairs))
    return sorted({index for key, index in pairs if index != first[key]})


def _columns(rows: Sequence[Struct], kind: type[Struct]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in kind.__struct_fields__}


def _packed(part: object) -> bytes:
    return _compressed(msgspec.msgpack.encode(part))


def _compressed(data: bytes, level: int = _LEVEL) -> bytes:
    # The bytes do not depend on the zlib of the machine; reading does not need this library.
    from deflate import zlib_compress

    return bytes(zlib_compress(data, level))
