"""Rebuild the file of the published results, with the same bytes for the same results.

From round folders, as downloaded from the results repositories of MLCommons:

    python -m tests.tools.export --made 2026-11-22 --output FILE rounds ROUND...

From the tables ``sets.csv.gz``, ``logs.csv.gz`` and ``settings.csv.gz`` of a folder, with the first
values of the runs in those rounds that are at hand:

    python -m tests.tools.export --made 2026-11-22 --output FILE tables FOLDER [ROUND...]
"""

import argparse
import csv
import gzip
import json
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from deflate import zlib_compress
from msgspec import Struct
from msgspec.structs import astuple, replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.descriptions import as_published
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.published.model import (
    LEAST_VALUES,
    Provenance,
    PublishedRound,
    PublishedSet,
    Setting,
    digests_of,
    equal_values,
    log_hash,
    run_hash,
)
from mlperf_pkg.published.results import FORMAT, PATH, VERSION, File
from mlperf_pkg.results.report import description_path
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import in_words, is_hyperparameter
from mlperf_pkg.submission.model import AS_FILED

BATCH_SIZE = "global_batch_size"
MAX_VALUES = 3  # of one hyperparameter in a result set
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


# ---- from round folders -------------------------------------------------------------------


def of_rounds(folders: Iterable[str], made: date) -> Facts:
    """Return the results in round folders, each checked by the rules of its own round."""
    sets: list[PublishedSet] = []
    logs: list[Log] = []
    settings: list[Setting] = []
    series: list[Series] = []
    hashes: list[Log] = []
    for folder in folders:
        checked = check([folder], Options(flags=frozenset({AS_FILED})))
        runs = {run.path: run for run in checked.runs}
        systems = {system.path: system for system in checked.systems}
        sources = dict(chain.from_iterable(input_.places.items() for input_ in checked.inputs))
        for result in checked.sets:
            own, index = [runs[path] for path in result.runs], len(sets)
            of_set = list(settings_of(index, own))
            system = systems.get(description_path(result.row))
            published = as_published(result.row, own, system, batch_size(of_set))
            sets.append(replace(published, score_minutes=score_as_filed(result)))
            settings += of_set
            digests = digests_of({path: sources[path].source for path in result.runs})
            logs += ((log_hash(digests[path]), index) for path in result.runs)
            for run in own:
                firsts = (values[:LEAST_VALUES] for values in (run.evaluated, run.losses))
                enough = [values for values in firsts if equal_values(values, (*values, 0.0))]
                series += ((values, index) for values in enough)
                if run.fingerprint and not enough:
                    hashes.append((run_hash(run.fingerprint), index))
    return Facts(made, sets, logs, settings, series, hashes)


def score_as_filed(result: SetResult) -> float | None:
    """The mean of a set times the factor in its ``scaling.json``, as MLCommons publishes it."""
    mean = result.row.unscaled_minutes
    factor = result.summarized.scaling_factor
    return mean if mean is None or factor is None else mean * factor


def settings_of(index: int, runs: Iterable[Run]) -> Iterator[Setting]:
    values: dict[str, Counter[str]] = {}
    for run in runs:
        sizes = {BATCH_SIZE: run.batch_sizes[0]} if run.batch_sizes else {}
        for key, value in {**sizes, **run.hyperparameters}.items():
            values.setdefault(key, Counter())[value] += 1
    for key, counter in values.items():
        for value, number in counter.most_common(MAX_VALUES):
            yield Setting(index, key, value, number)


def batch_size(settings: Iterable[Setting]) -> int | None:
    sizes = [setting for setting in settings if setting.key == BATCH_SIZE]
    largest = max(sizes, key=lambda setting: setting.runs, default=None)
    return count(largest.value) if largest else None


# ---- from tables --------------------------------------------------------------------------


def of_tables(folder: Path, rounds: Iterable[str], made: date) -> Facts:
    """Return the results in the three tables, with the runs of the rounds that are at hand."""
    settings = [
        Setting(int(row["set"]), row["key"], in_words(json.loads(row["value"])), int(row["runs"]))
        for row in table(folder / "settings.csv.gz")
        if row["key"] == BATCH_SIZE or is_hyperparameter(row["key"])
    ]
    sizes: dict[int, list[Setting]] = {}
    for setting in settings:
        sizes.setdefault(setting.set, []).append(setting)
    sets = [set_of(row, sizes.get(int(row["set"]), ())) for row in table(folder / "sets.csv.gz")]
    logs = [(int(row["sha256_16"], 16), int(row["set"])) for row in table(folder / "logs.csv.gz")]
    at_hand = of_rounds(rounds, made)
    numbers = {(row.usage, row.round, row.path): number for number, row in enumerate(sets)}
    same = [numbers[row.usage, row.round, row.path] for row in at_hand.sets]
    series = [(values, same[index]) for values, index in at_hand.series]
    runs = [(key, same[index]) for key, index in at_hand.runs]
    return Facts(made, sets, logs, settings, series, runs)


def table(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def set_of(row: Mapping[str, str], settings: Iterable[Setting]) -> PublishedSet:
    counts = ("accelerators", "accelerators_per_node", "nodes", "runs")
    minutes = ("score_minutes", "unscaled_minutes", "official_minutes", "energy_joules")
    fields: dict[str, Any] = {name: row[name] for name in PublishedSet.__struct_fields__}
    fields |= {name: count(row[name]) for name in counts}
    fields |= {name: float(row[name]) if row[name] else None for name in minutes}
    size = count(row[BATCH_SIZE]) or batch_size(settings)
    return PublishedSet(**{**fields, BATCH_SIZE: size})


# ---- both ---------------------------------------------------------------------------------


def count(value: object) -> int | None:
    """Return a number of things, which descriptions also write as ``"8"`` or ``8.0``."""
    try:
        return int(float(value)) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None


# ---- the file -----------------------------------------------------------------------------


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


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    made = "day of the collection, YYYY-MM-DD"
    parser.add_argument("--made", required=True, type=date.fromisoformat, help=made)
    parser.add_argument("--output", type=Path, default=PATH)
    parser.add_argument("kind", choices=("rounds", "tables"))
    parser.add_argument("paths", nargs="+")
    options = parser.parse_args()
    if options.kind == "rounds":
        facts = of_rounds(options.paths, options.made)
    else:
        facts = of_tables(Path(options.paths[0]), options.paths[1:], options.made)
    write_whole(options.output, encoded(facts), replace=True)


if __name__ == "__main__":
    main()
