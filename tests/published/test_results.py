"""The file of published results: its contents, and the errors of an invalid one."""

from datetime import date
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mlperf_pkg.published.model import PublishedName, Setting
from mlperf_pkg.published.results import (
    File,
    PublishedResults,
    PublishedResultsError,
    published_results,
    read_results,
)
from tests.helpers.published import published_set
from tests.tools.export import Facts, encoded

DAY = date(2026, 11, 22)
BERT = published_set(round="5.0", benchmark="bert")
AGAIN = published_set(round="5.1", benchmark="bert")
HPC = published_set(usage="hpc", round="3.0", benchmark="deepcam")
LORA = published_set(round="5.1", benchmark="llama2_70b_lora")
FACTS = Facts(
    made=DAY,
    sets=[HPC, LORA, AGAIN, BERT],
    logs=[(7, 0), (2**64 - 1, 2), (2**64 - 1, 3), (5, 3)],
    settings=[Setting(3, "opt_name", '"lamb"', 10), Setting(1, "lora_alpha", "32", 9)],
    series=[((0.1, 0.2, 0.3, 0.4), 3), ((0.1, 0.2, 0.3, 0.41), 2), ((0.1, 0.2, 0.3, 0.4), 0)],
    runs=[(5, 1)],
)


FILE = msgspec.msgpack.decode(encoded(FACTS), type=File)
CHANGED = [replace(FILE, sets={**FILE.sets, "usage": b"."}), replace(FILE, settings={"bert": b"."})]


def written(folder: Path, file: File = FILE) -> Path:
    path = folder / "results.msgpack"
    path.write_bytes(msgspec.msgpack.encode(file))
    return path


@pytest.fixture
def results(tmp_path: Path) -> PublishedResults:
    return read_results(written(tmp_path))


def test_sets_are_in_order_and_have_settings(results: PublishedResults) -> None:
    assert results.sets == (BERT, AGAIN, LORA, HPC)
    assert results.settings("bert") == (Setting(0, "opt_name", '"lamb"', 10),)
    assert results.settings("llama2_70b_lora") == (Setting(2, "lora_alpha", "32", 9),)
    assert results.settings("resnet") == ()
    assert [(r.usage, r.name, r.sets, r.logs) for r in results.provenance.rounds] == [
        ("training", "5.0", 1, 2),
        ("training", "5.1", 2, 1),
        ("hpc", "3.0", 1, 1),
    ]


def test_a_log_may_be_in_several_sets(results: PublishedResults) -> None:
    assert [
        (log, indexes)
        for log, indexes in {2**64 - 1: [0, 1], 5: [0], 7: [3], 6: [], 0: []}.items()
        if [name.index for name in results.names_with(log)] != indexes
    ] == []
    assert results.names_with(7) == (PublishedName(3, "hpc", "3.0", "ACME/box/deepcam"),)


@pytest.mark.parametrize(
    ("fingerprint", "series", "sets"),
    [
        (None, [(0.1, 0.2, 0.3, 0.4)], [0, 3]),
        (None, [(0.100001, 0.2, 0.299998, 0.4, 0.9)], [0, 3]),
        (None, [(0.10001, 0.2, 0.3, 0.4)], []),
        (None, [(0.1, 0.2, 0.3)], []),
        (None, [(), (0.1, 0.2, 0.3, 0.41)], [1]),
        (5, [], [2]),
        (7, [], []),
    ],
)
def test_a_run_is_found_by_its_values(
    fingerprint: int | None,
    series: list[tuple[float, ...]],
    sets: list[int],
    results: PublishedResults,
) -> None:
    names = results.names_of_run(fingerprint, *series)
    assert [name.index for name in names] == sets


def test_sets_are_found_by_their_mean(results: PublishedResults) -> None:
    names = results.names_scored("training", 10, 20.0 + 1e-12)
    assert [name.index for name in names] == [0, 1, 2]
    assert [
        key
        for key in (("training", 9, 20.0), ("hpc", 10, 21.0), ("hpc", 10, None))
        if results.names_scored(*key) != ()
    ] == []


def test_bytes_do_not_depend_on_the_order() -> None:
    names = ("logs", "settings", "series", "runs")
    backwards = {name: getattr(FACTS, name)[::-1] for name in names}
    assert encoded(replace(FACTS, **backwards)) == encoded(FACTS)


def test_a_file_without_results(tmp_path: Path) -> None:
    empty = encoded(Facts(DAY, [], [], []))
    results = read_results(written(tmp_path, msgspec.msgpack.decode(empty, type=File)))
    assert results.sets == ()
    assert results.names_with(5) == ()


def test_another_format(tmp_path: Path) -> None:
    for format_, message in [
        ("mlperf-pkg/published/1", "have version 1 of the format; expected 2; rebuild the file$"),
        ("mlperf-pkg/published/3", "have version 3 of the format; expected 2; update mlperf-pkg$"),
        ("mlperf-pkg/report/3", r"are damaged \(the format is 'mlperf-pkg/report/3'\); reinstall"),
        ("mlperf-pkg/published/x", r"are damaged \(the format is"),
    ]:
        with pytest.raises(PublishedResultsError, match=message):
            read_results(written(tmp_path, replace(FILE, format=format_)))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "results.msgpack"
    for data, message in [
        (None, r"results are missing; reinstall mlperf-pkg$"),
        *((data, "results are damaged") for data in (b"", b"\xc1", encoded(FACTS)[:-5])),
        *((msgspec.msgpack.encode(file), r"damaged \(the checksum is wrong\)") for file in CHANGED),
    ]:
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(PublishedResultsError, match=message):
            read_results(path)
    with pytest.raises(PublishedResultsError, match=r"cannot be read: Is a directory$"):
        read_results(tmp_path)


def test_a_damaged_part(tmp_path: Path) -> None:
    for part in [b"", b"no zlib", encoded(FACTS)]:
        damaged = replace(FILE, sets={"usage": part}, logs=part, settings={"bert": part})
        results = PublishedResults(damaged, tmp_path)
        for name, arguments in [("hashes", ()), ("names_with", (5,)), ("settings", ("bert",))]:
            with pytest.raises(PublishedResultsError, match="results are damaged"):
                getattr(results, name)(*arguments)
        with pytest.raises(PublishedResultsError, match="results are damaged"):
            _ = results.sets


# ---- the file of this package -------------------------------------------------------------


def test_the_file_of_this_package() -> None:
    results = published_results()
    rounds, sets = results.provenance.rounds, results.sets
    assert sum(round_.sets for round_ in rounds) == len(sets) == 2198
    assert sum(round_.logs for round_ in rounds) == 24413
    names = "0.7 1.0 1.1 2.0 2.1 3.0 3.1 4.0 4.1 5.0 5.1 1.0 2.0 3.0"
    assert [round_.name for round_ in rounds] == names.split()
    assert [
        benchmark
        for benchmark in {row.benchmark for row in sets}
        if not all(sets[s.set].benchmark == benchmark for s in results.settings(benchmark))
    ] == []
