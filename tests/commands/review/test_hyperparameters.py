"""The hyperparameters of simulated rounds side by side, and those unlike all others."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review import hyperparameters
from mlperf_pkg.commands.review.files import markdown
from mlperf_pkg.commands.review.hyperparameters import (
    BenchmarkGroup,
    LoggedHyperparameters,
    ReferenceHyperparameters,
    outliers,
    outliers_of,
)
from mlperf_pkg.commands.review.round import Cell, ReviewedRound, ReviewSection
from mlperf_pkg.render.table import Table
from tests.helpers.logs import edited, joined, records
from tests.helpers.reports import finding
from tests.helpers.reviews import cells, titles, write_round
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission

LR = "lars_opt_base_learning_rate"
NAMES = ("ACME", "Beta", "Gamma", "Delta")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_round(tmp_path / "v2.0", *NAMES)


def section(root: Path) -> ReviewSection:
    return hyperparameters.section(ReviewedRound(check([str(root)], Options(jobs=1))))


def table_of(root: Path) -> Table:
    return section(root).tables["resnet-closed"]


def change(root: Path, name: str, key: str, values: Sequence[Any]) -> None:
    """Let the runs of a submitter log these values, the last value all further runs."""
    logs = simulated(seed=NAMES.index(name))
    padded = [*values, *[values[-1]] * len(logs)]
    changed = (edited(log, key, value=value) for log, value in zip(logs, padded, strict=False))
    write_set(root / name / "results" / SYSTEM / "resnet", tuple(changed))


def column(table: Table, title: str) -> list[Cell]:
    return [row[titles(table).index(title)] for row in cells(table)]


def marked(table: Table) -> set[tuple[Cell, str]]:
    """The marked cells by the first cell of their row and the title of their column."""
    return {(cells(table)[row][0], titles(table)[place]) for row, place in table.marked}


def test_equal_sets(root: Path) -> None:
    reviewed = section(root)
    assert reviewed.summary == ("0 outliers",)
    ((name, table),) = reviewed.tables.items()
    assert (name, table.title) == ("resnet-closed", "resnet, closed: 4 result sets")
    assert titles(table)[:3] == ["Batch size", "Submitter", "System"]
    assert column(table, "Submitter") == ["RCP", *sorted(NAMES)]
    assert column(table, "Batch size") == [3264] * 5
    assert "and in the reference: lars_epsilon 0, lars_opt_end_learning_rate 0.0001," in table.note
    assert "without a reference: gradient_accumulation_steps 1." in table.note


def test_an_outlier_learning_rate(root: Path) -> None:
    change(root, "Beta", LR, [31.5])
    reviewed = section(root)
    unlike = reviewed.tables["outliers"]
    ((*values, why),) = cells(unlike)
    assert values == ["resnet", 3264, "Beta", SYSTEM, LR, "31.5", "10.5"]
    assert why.startswith("all 3 other submitters at this batch size have 10.284; differs by")
    assert marked(unlike) == {("resnet", "Value")}
    table = reviewed.tables["resnet-closed"]
    place = titles(table).index(LR)
    assert {cells(table)[row][1] for row, of in table.marked if of == place} == {*NAMES}
    assert "| **31.5** |" in markdown(reviewed)
    assert reviewed.summary == (
        "1 outlier",
        f"resnet of Beta ({SYSTEM}): {LR} 31.5",
    )


def test_open_sets_have_no_outliers(root: Path) -> None:
    change(root, "Beta", LR, [31.5])
    write_submission(root / "Beta", "ssd", division="open")
    assert section(root).tables.keys() == {"resnet-closed", "resnet-open", "ssd-open"}


def test_runs_that_differ(root: Path) -> None:
    change(root, "Delta", LR, [11, 10.5])
    reviewed = section(root)
    assert "10.5 or 11" in column(reviewed.tables["resnet-closed"], LR)


def test_values_have_all_their_digits(root: Path) -> None:
    change(root, "Delta", LR, [10.50000012345])
    table = table_of(root)
    assert column(table, LR)[-2:] == [10.50000012345, 10.284]
    assert "| 10.50000012345 |" in markdown(section(root))


def test_by_batch_size_with_the_reference_points_around(root: Path) -> None:
    change(root, "ACME", "global_batch_size", [6000])
    change(root, "Gamma", "global_batch_size", [100])
    table = table_of(root)
    assert column(table, "Batch size") == [None, 100, 1632, 3264, 3264, 3264, 4096, 6000, 8192]
    names = ["rules", "Gamma", "RCP", "RCP", "Beta", "Delta", "RCP", "ACME", "RCP"]
    assert column(table, "Submitter") == names


def test_a_broken_log_and_a_missing_one(root: Path) -> None:
    (root / "ACME/results" / SYSTEM / "resnet/result_0.txt").write_bytes(b"\x00" * 50)
    for log in (root / "Beta/results" / SYSTEM / "resnet").iterdir():
        log.write_bytes(b"nothing\n")
    table = table_of(root)
    assert f"Without hyperparameters in the logs: Beta {SYSTEM}." in table.note
    assert "ACME" in column(table, "Submitter")


def test_hostile_hyperparameters_are_cut(root: Path) -> None:
    log = simulated(seed=0)[0]
    line = next(record for record in records(log) if record["key"] == LR)
    own = [{**line, "key": f"opt_{number}", "value": f"|<b>{number}"} for number in range(5000)]
    write_set(root / "ACME/results" / SYSTEM / "resnet", (joined([*own, *records(log)]),))
    table = table_of(root)
    assert "further hyperparameters not shown." in table.note
    assert len(table.note) < 2000
    assert len(titles(table)) <= 63


def test_a_record_whose_key_is_not_text(root: Path) -> None:
    change(root, "ACME", LR, [1.23456789])
    log = root / "ACME/results" / SYSTEM / "resnet/result_0.txt"
    first, *others = records(log.read_bytes())
    log.write_bytes(joined([first, {**first, "key": []}, *others]))
    assert "ACME" in column(table_of(root), "Submitter")


def test_a_benchmark_that_is_not_in_the_round(root: Path) -> None:
    (root / "ACME/results" / SYSTEM / "resnet").rename(root / "ACME/results" / SYSTEM / "llama9")
    reviewed = section(root)
    assert list(reviewed.tables) == ["resnet-closed"]
    assert reviewed.text[-1] == "Not shown: 1 result set of a benchmark that is not in the round."


# ---- outliers, as tables of submitters and values -----------------------------------------

RATE = "opt_base_learning_rate"


def entry(
    submitter: str, size: float, value: object, key: str = RATE, name: str = "dgx"
) -> LoggedHyperparameters:
    counts = {key: {str(value): 5}}
    return LoggedHyperparameters(f"{submitter}/{name}", submitter, submitter, name, size, counts)


def unlike(
    entries: Sequence[LoggedHyperparameters],
    points: Mapping[float, object],
    key: str = RATE,
    derived: frozenset[str] = frozenset(),
    published: Mapping[tuple[str, str], str] = {},
) -> dict[str, str]:
    """The reasons for the outliers, by submitter."""
    of_points = {size: {key: str(value)} for size, value in points.items()}
    group = BenchmarkGroup(
        "bert", "closed", tuple(entries), ReferenceHyperparameters(of_points, {}, {}, derived)
    )
    return {outlier.entry.submitter: outlier.why for outlier in outliers(group, published)}


BOTH = "both other submitters at this batch size have 0.4"
TWICE = "differs by a factor of 2 from the reference, which all others have"


MOST = "3 of 4 other submitters at this batch size have 1"
SOME = {8: 0.4, 16: 0.8, 32: 1.6}
OUTLIERS: list[tuple[dict[str, Any], Any, dict[str, str]]] = [
    ({"A": (8, 0.4), "B": (8, 0.4), "C": (8, 0.5)}, {}, {"C": BOTH}),
    ({"A": (8, 0.4), "B": (8, 0.4), "C": (16, 0.5)}, {}, {}),
    # two rare values among many
    ({**dict.fromkeys("ABC", (8, 1)), "D": (8, 2), "E": (8, 3)}, {}, dict.fromkeys("DE", MOST)),
    ({"A": (8, 1), "B": (8, 1), "C": (8, 2), "D": (8, 2)}, {}, {}),
    # not all others log the key
    ({"A": (8, 0.4), "B": (16, ""), "C": (32, 3.2)}, SOME, {"C": TWICE.replace("all", "1 of 2")}),
    # what the reference has is not an outlier
    ({"A": (8, 0.4), "B": (8, 0.4), "C": (8, 0.5)}, {8: 0.5}, {}),
    ({"A": (8, 0.4), "B": (8, 0.4), "C": (8, 0.5)}, {4: 0.3, 16: 0.6}, {}),
    # far from the reference, and the others are not
    ({"A": (8, 0.4), "B": (16, 0.8), "C": (32, 3.2)}, SOME, {"C": TWICE}),
    ({"A": (8, 0.4), "B": (16, 0.8), "C": (32, 0.8)}, SOME, {"C": TWICE}),
    ({"A": (8, 0.8), "B": (16, 0.8), "C": (32, 3.2)}, SOME, {}),
    ({"A": (8, 0.4), "B": (12, 1.6)}, {8: 0.4, 16: 0.8}, {"B": TWICE}),
    ({"A": (8, 4)}, {8: 0.4}, {"A": "differs by a factor of 10 from the reference"}),
    ({"A": (8, 3.9)}, {8: 0.4}, {}),
    # outside the range of the reference
    ({"A": (8, 0.4), "B": (32, 1.2)}, {8: 0.4, 16: 0.8}, {}),
    ({"A": (8, 0.4), "B": (32, 1.2)}, {8: 0.4, 16: 0.4}, {"B": TWICE.replace("2", "3")}),
    # far from all others where there is no reference
    (
        {"A": (8, 0.4), "B": (16, 0.5), "C": (32, 5)},
        {},
        {"C": "2 other submitters have 0.4 to 0.5"},
    ),
    ({"A": (8, 0.4), "B": (16, 0.5), "C": (32, 4.9)}, {}, {}),
    # not numbers, and numbers without a ratio
    ({"A": (8, '"LAMB"'), "B": (8, '"lamb"'), "C": (8, '"lamb"')}, {}, {}),
    ({"A": (8, "[1, 2]"), "B": (16, "[1, 2]"), "C": (32, "[9]")}, {8: "[1, 2]"}, {}),
    ({"A": (8, 0), "B": (16, 0.5), "C": (32, 5)}, {}, {}),
]


@pytest.mark.parametrize(("values", "points", "expected"), OUTLIERS)
def test_outliers(values: dict[str, Any], points: Any, expected: dict[str, str]) -> None:
    assert unlike([entry(name, *pair) for name, pair in values.items()], points) == expected


def test_sets_of_one_submitter_do_not_count_as_many() -> None:
    entries = [entry("A", 8, 0.4, name=f"box{number}") for number in range(5)]
    assert unlike([*entries, entry("B", 8, 0.5)], {}) == {}
    assert unlike([*entries, entry("B", 8, 0.5), entry("C", 8, 0.4)], {}) == {"B": BOTH}


@pytest.mark.parametrize(
    "key", ["gradient_accumulation_steps", "model_bn_span", "global_batch_size", RATE]
)
def test_what_follows_from_the_scale_or_from_others_is_not_compared(key: str) -> None:
    entries = [entry(name, 8, value, key) for name, value in (("A", 1), ("B", 1), ("C", 64))]
    assert unlike(entries, {} if key == RATE else {8: 1}, key, frozenset({RATE})) == {}


STEPS: list[tuple[Any, Any, Any, dict[str, str]]] = [
    ((8,), (37,), {8: 14523}, {}),
    ((8, 8, 8), (37, 37, 38), {8: 14523}, {"C": BOTH.replace("0.4", "37")}),
    ((8, 16, 32), (1, 1, 99), {}, {}),
]


@pytest.mark.parametrize(("sizes", "steps", "points", "expected"), STEPS)
def test_steps_are_compared_with_other_steps_and_not_with_the_reference(
    sizes: Any, steps: Any, points: Any, expected: dict[str, str]
) -> None:
    """Where there is no reference, at one batch size only."""
    key = "opt_learning_rate_decay_steps"
    entries = [entry(*values, key) for values in zip("ABC", sizes, steps, strict=False)]
    assert unlike(entries, points, key) == expected


def test_values_unlike_all_published_ones() -> None:
    why = "all published sets have 0.1"
    assert unlike([entry("A", 8, 0.7)], {}, published={("A/dgx", RATE): why}) == {"A": why}
    group = BenchmarkGroup(
        "bert", "closed", (entry("A", 8, 0.7),), ReferenceHyperparameters({}, {}, {}, frozenset())
    )
    of_check = finding("A/dgx", code="SET162", found=[f"{RATE} 0.7"], expected=[f"{RATE} 0.1"])
    assert [outlier.why for outlier in outliers_of([group], [of_check])] == [why]
