"""Every number of ``rcp show`` against the official checker, live, as its viewer prints them.

The viewer (``rcp_checker/visualization_scripts/rcp_viewer.py`` of the repository) is not in the
package. It prints ``BS,RCP Mean,Min Epochs`` of the records of ``RCP_Checker``.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from mlperf_logging.rcp_checker import rcp_checker as official

from mlperf_pkg.commands.rcp.reference import benchmarks_with_points, reference, unit_key
from mlperf_pkg.commands.rcp.table import SHOW_FORMATS, PointRow, shown
from mlperf_pkg.render.findings import View
from mlperf_pkg.results import rcp
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import load_round
from tests.helpers.examples import SHARE, newest

FILES = [
    (usage, name, benchmark)
    for usage in usages()
    for name in rounds(usage)
    for benchmark in benchmarks_with_points(load_round(usage, name))
]
UNKNOWN = {"dlrm"}


def content_of(file: tuple[str, str, str]) -> tuple[str, str, str]:
    """What the points of a round are, and of what: rounds share many of them."""
    usage, _, benchmark = file
    return usage, benchmark, repr(reference(*file).points)


DIFFERENT = newest(FILES, content_of)
every_file = pytest.mark.parametrize(("usage", "round_name", "benchmark"), DIFFERENT)


@cache
def theirs(usage: str, round_name: str, benchmark: str) -> Any:
    """The official checker, with a number of runs for the benchmark that lacks it."""
    with pytest.MonkeyPatch.context() as patch:
        if benchmark in UNKNOWN:
            runs = reference(usage, round_name, benchmark).runs.required
            patch.setitem(official.submission_runs[usage], benchmark, runs)
        ruleset = load_round(usage, round_name).ruleset
        return official.RCP_Checker(usage, ruleset, benchmark, verbose=False)


def printed(record: Any) -> str:
    """A line of the viewer."""
    return f"{record['BS']},{record['RCP Mean']},{record['Min Epochs']}"


def lines(item: Sequence[PointRow]) -> list[str]:
    """The same columns of our CSV."""
    rows = csv.DictReader(io.StringIO(SHOW_FORMATS["csv"]([item], View())))
    return [f"{row['batch_size']},{row['mean']},{row['minimum']}" for row in rows]


def test_there_are_points_to_compare() -> None:
    assert len(FILES) >= 96
    assert sum(len(reference(*file).points) for file in FILES) >= 591
    assert {usage for usage, _, _ in FILES} == {"training", "hpc"}


@every_file
@pytest.mark.parametrize("pruned", [False, True])
def test_points(usage: str, round_name: str, benchmark: str, pruned: bool) -> None:
    checker = theirs(usage, round_name, benchmark)
    records = checker._get_rcp_data("pruned_rcps" if pruned else "full_rcps")
    ours = reference(usage, round_name, benchmark)
    assert lines(shown(ours, pruned=pruned)) == list(map(printed, records.values()))


@every_file
def test_batch_sizes_between_points(usage: str, round_name: str, benchmark: str) -> None:
    checker, ours = theirs(usage, round_name, benchmark), reference(usage, round_name, benchmark)
    sizes = list(chosen([int(point.batch_size) for point in ours.points]))
    assert lines(shown(ours, sizes)) == [at(checker, size) for size in sizes]
    smallest, largest = ours.used[0].batch_size, ours.used[-1].batch_size
    assert ours.every_size == range(int(smallest), int(largest) + 1)


def chosen(sizes: Sequence[int]) -> Iterator[int]:
    """Batch sizes below all, above all, the points, and some between."""
    low, high = min(sizes), max(sizes)
    step = max(1, (high - low) // (24 // SHARE))
    ends = [1, low - 1, low + 1, high - 1, high + 1]
    yield from sorted({*filter(None, ends), *sizes, *range(low, high, step)})


def at(checker: Any, size: int) -> str:
    """The output of the viewer for one batch size; ours if the viewer raises an error."""
    record = checker._find_rcp(size, "pruned_rcps")
    if record is None:
        above = checker._find_bottom_max_rcp(size, "pruned_rcps")
        below = checker._find_top_min_rcp(size, "pruned_rcps")
        if above is None:
            return f"{size},,"
        if below is None:
            smallest = checker._find_min_rcp("pruned_rcps")
            return printed({**smallest, "BS": size})
        _, record = checker._create_interp_rcp(size, below, above)
    return printed(record)


def test_benchmarks_that_the_checker_does_not_cover() -> None:
    """The checker crashes on these benchmarks only, in any round."""
    crashing = set()
    for usage, round_name, benchmark in {file[2]: file for file in FILES}.values():
        try:
            official.RCP_Checker(usage, load_round(usage, round_name).ruleset, benchmark, False)
        except KeyError:
            crashing.add(benchmark)
    assert crashing == UNKNOWN
    names = {benchmark for *_, benchmark in FILES}
    assert {name for name in names if not reference(None, None, name).covered} == UNKNOWN


def test_the_unit_of_the_points_of_each_benchmark() -> None:
    """The checker reads some points under another key, which a custom file must use too."""
    records = [
        (*file, record)
        for file in FILES
        for record in rcp._records(file[0], load_round(*file[:2]).ruleset, file[2]).values()
    ]
    assert len(records) >= 591
    assert [row for row in records if unit_key(row[-1]["Benchmark"]) not in row[-1]] == []
