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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.descriptions import as_published
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.published.model import (
    LEAST_VALUES,
    PublishedSet,
    Setting,
    digests_of,
    equal_values,
    log_hash,
    run_hash,
)
from mlperf_pkg.published.results import PATH
from mlperf_pkg.results.report import description_path
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import in_words, is_hyperparameter
from mlperf_pkg.submission.model import KEEP_SCALING, Place
from tests.tools.encode import Facts, Log, Series, encoded

BATCH_SIZE = "global_batch_size"
MAX_VALUES = 3  # of one hyperparameter in a result set


# ---- from round folders -------------------------------------------------------------------


def of_rounds(folders: Iterable[str], made: date) -> Facts:
    """Return the results in round folders, each checked by the rules of its own round."""
    sets: list[PublishedSet] = []
    logs: list[Log] = []
    settings: list[Setting] = []
    series: list[Series] = []
    hashes: list[Log] = []
    for folder in folders:
        checked = check([folder], Options(flags=frozenset({KEEP_SCALING})))
        runs = {run.path: run for run in checked.runs}
        systems = {system.path: system for system in checked.systems}
        sources = dict(chain.from_iterable(input_.places.items() for input_ in checked.inputs))
        for result in checked.sets:
            own, index = [runs[path] for path in result.runs], len(sets)
            of_set = list(settings_of(index, own))
            system = systems.get(description_path(result.row))
            sets.append(as_published(result.row, own, system, batch_size(of_set)))
            settings += of_set
            logs += ((hash_of(sources[path]), index) for path in result.runs)
            for run in own:
                own_series = series_of(run)
                series += ((values, index) for values in own_series)
                if run.fingerprint and not own_series:
                    hashes.append((run_hash(run.fingerprint), index))
    return Facts(made, sets, logs, settings, series, hashes)


def series_of(run: Run) -> list[tuple[float, ...]]:
    """Return the first values of the evaluations and of the losses of a run, if they suffice."""
    firsts = (values[:LEAST_VALUES] for values in (run.evaluated, run.losses))
    return [values for values in firsts if equal_values(values, (*values, 0.0))]


def hash_of(place: Place) -> int:
    return log_hash(digests_of({place.label: place.source})[place.label])


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
