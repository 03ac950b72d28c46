"""The values of rows, and those of the published results."""

from collections import Counter

import pytest

from mlperf_pkg.commands.export.rows import Rows, exported_sets, rows_of_published
from mlperf_pkg.commands.export.schema import TABLES
from mlperf_pkg.published.results import published_results


@pytest.fixture(scope="module")
def record() -> Rows:
    return rows_of_published(published_results())


def values(record: Rows, name: str, *fields: str) -> list[tuple[str, ...]]:
    places = [[column.name for column in TABLES[name].columns].index(field) for field in fields]
    return [tuple(row[place] for place in places) for row in record[name]]


def test_published_keys_are_unique_and_exist(record: Rows) -> None:
    ids = values(record, "result_sets", "usage", "round", "id")
    assert len(ids) == len({*ids}) == sum(1 for row in published_results().sets if row.runs) == 2195
    systems = values(record, "systems", "usage", "round", "path")
    assert len(systems) == len({*systems}) == 1062
    assert {*values(record, "result_sets", "usage", "round", "system_path")} == {*systems}
    settings = values(record, "settings", "usage", "round", "set", "key", "value")
    assert len(settings) == len({*settings}) == 24314
    assert {setting[:3] for setting in settings} <= {*ids}


def test_published_divisions_and_availabilities(record: Rows) -> None:
    divisions = Counter(
        division for (division,) in values(record, "result_sets", "division_by_rules")
    )
    assert divisions == {"closed": 2156, "open": 31, None: 8}
    status_of = {
        tuple(key): status
        for *key, status in values(record, "systems", "usage", "round", "path", "status_by_rules")
    }
    sets = values(record, "result_sets", "usage", "round", "system_path")
    statuses = Counter(status_of[key] for key in sets)
    assert statuses == {"onprem": 1869, "cloud": 202, "preview": 72, "research": 52}


def test_exported_sets_are_the_published_ones(record: Rows) -> None:
    exported = {(row.usage, row.round, row.path): row for row in exported_sets(record)}
    assert exported == {
        (row.usage, row.round, row.path): row for row in published_results().sets if row.runs
    }
