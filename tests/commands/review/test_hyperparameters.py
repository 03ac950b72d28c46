"""The hyperparameters of simulated rounds side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review import hyperparameters
from mlperf_pkg.commands.review.files import csv, markdown
from mlperf_pkg.commands.review.round import Cell, Round, Section, Table
from tests.helpers.logs import edited
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission

LR = "lars_opt_base_learning_rate"
NAMES = ("ACME", "Beta", "Gamma", "Delta")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for seed, name in enumerate(NAMES):
        write_submission(tmp_path / "v2.0" / name, seed=seed)
    return tmp_path / "v2.0"


def section(root: Path) -> Section:
    return hyperparameters.section(Round(check([str(root)], Options(jobs=1))))


def change(root: Path, name: str, key: str, values: Sequence[Any]) -> None:
    """Let the runs of a submitter log these values, the last value all further runs."""
    logs = simulated(seed=NAMES.index(name))
    padded = [*values, *[values[-1]] * len(logs)]
    changed = (edited(log, key, value=value) for log, value in zip(logs, padded, strict=False))
    write_set(root / name / "results" / SYSTEM / "resnet", tuple(changed))


def by_name(reviewed: Section) -> Mapping[str, Table]:
    return {table.name: table for table in reviewed.tables}


def column(table: Table, title: str) -> list[Cell]:
    index = table.columns.index(title)
    return [row[index] for row in table.rows]


def marked(table: Table) -> set[tuple[Cell, str]]:
    """The marked cells by the first cell of their row and the title of their column."""
    return {(table.rows[row][0], table.columns[column]) for row, column in table.marked}


def test_equal_sets(root: Path) -> None:
    reviewed = section(root)
    assert reviewed.summary == ("0 outliers; runs differ in 0 result sets",)
    (table,) = reviewed.tables
    assert (table.name, table.title) == ("resnet-closed", "resnet, closed: 4 result sets")
    assert table.columns[1:] == ("RCP 3264", *(f"{name} {SYSTEM}" for name in sorted(NAMES)))
    assert table.rows[0] == ("Batch size", 3264, 3264, 3264, 3264, 3264)
    assert "and in the reference: lars_epsilon 0, lars_opt_end_learning_rate 0.0001," in table.note
    assert "without a reference: gradient_accumulation_steps 1." in table.note


def test_an_outlier_learning_rate(root: Path) -> None:
    change(root, "Beta", LR, [31.5])
    reviewed = section(root)
    outliers = by_name(reviewed)["outliers"]
    assert column(outliers, "Submitter") == ["Beta"]
    assert column(outliers, "Value") == ["31.5"]
    assert column(outliers, "Reference") == ["10.5"]
    (why,) = column(outliers, "Why")
    assert str(why).startswith("all 3 other submitters at this batch size have 10.284; differs by")
    assert outliers.marked == {(0, outliers.columns.index("Value"))}
    table = by_name(reviewed)["resnet-closed"]
    assert (LR, f"Beta {SYSTEM}") in marked(table)
    assert (LR, "RCP 3264") not in marked(table)
    assert "| **31.5** |" in markdown(reviewed)
    assert f"Beta {SYSTEM}" in csv(table).splitlines()[0]
    assert reviewed.summary == (
        "1 outlier; runs differ in 0 result sets",
        f"resnet of Beta ({SYSTEM}): {LR} 31.5",
    )


def test_open_sets_have_no_outliers(root: Path) -> None:
    change(root, "Beta", LR, [31.5])
    write_submission(root / "Beta", "ssd", division="open")
    reviewed = section(root)
    assert "outliers" not in by_name(reviewed)
    assert "resnet-open" in by_name(reviewed)


def test_runs_that_differ(root: Path) -> None:
    change(root, "Delta", LR, [11, 10.5])
    reviewed = section(root)
    assert by_name(reviewed)["differing-runs"].rows == (
        ("resnet", "closed", "Delta", SYSTEM, LR, "10.5 in 4 runs, 11 in 1 run"),
    )
    assert reviewed.summary[0] == "0 outliers; runs differ in 1 result set"
    (row,) = (row for row in by_name(reviewed)["resnet-closed"].rows if row[0] == LR)
    assert "10.5 or 11" in row


def test_sets_are_rows_if_they_are_many(root: Path) -> None:
    for number in range(6):
        write_submission(root / f"Other{number}", seed=10 + number)
    table = by_name(section(root))["resnet-closed"]
    assert table.columns[:3] == ("Batch size", "Submitter", "System")
    assert column(table, "Submitter")[:2] == ["RCP", "ACME"]
    assert len(table.rows) == 11
    assert {title for _, title in marked(table)} == {LR, "lars_opt_learning_rate_decay_steps"}


def test_by_batch_size_with_the_reference_points_around(root: Path) -> None:
    change(root, "ACME", "global_batch_size", [6000])
    change(root, "Gamma", "global_batch_size", [100])
    table = by_name(section(root))["resnet-closed"]
    assert column(table, "Batch size") == [None, 100, 1632, 3264, 3264, 3264, 4096, 6000, 8192]
    names = ["rules", "Gamma", "RCP", "RCP", "Beta", "Delta", "RCP", "ACME", "RCP"]
    assert column(table, "Submitter") == names


def test_a_broken_log_and_a_missing_one(root: Path) -> None:
    (root / "ACME/results" / SYSTEM / "resnet/result_0.txt").write_bytes(b"\x00" * 50)
    for log in (root / "Beta/results" / SYSTEM / "resnet").iterdir():
        log.write_bytes(b"nothing\n")
    table = by_name(section(root))["resnet-closed"]
    assert f"Without hyperparameters in the logs: Beta {SYSTEM}." in table.note
    assert f"ACME {SYSTEM}" in table.columns


def test_hostile_hyperparameters_are_cut(root: Path) -> None:
    log = simulated(seed=0)[0]
    line = b':::MLLOG {"namespace": "", "time_ms": 0, "event_type": "POINT_IN_TIME", "key": "opt_%d", "value": "|<b>%d", "metadata": {"file": "a", "lineno": 1}}\n'
    lines = b"".join(line % (number, number) for number in range(5000))
    write_set(root / "ACME/results" / SYSTEM / "resnet", (lines + log,))
    reviewed = section(root)
    table = by_name(reviewed)["resnet-closed"]
    assert "further hyperparameters not shown." in table.note
    assert len(table.note) < 2000
    assert len(table.rows) <= 62


def test_a_benchmark_that_is_not_in_the_round(root: Path) -> None:
    (root / "ACME/results" / SYSTEM / "resnet").rename(root / "ACME/results" / SYSTEM / "llama9")
    reviewed = section(root)
    assert list(by_name(reviewed)) == ["resnet-closed"]
    assert reviewed.text[-1] == "Not shown: 1 result set of a benchmark that is not in the round."
