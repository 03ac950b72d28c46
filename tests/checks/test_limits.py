"""Checks at their limits: just enough, and one less; in the one kind of round, and the other."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks import copies
from mlperf_pkg.checks.descriptions import check_system
from tests.helpers.descriptions import written
from tests.helpers.logs import edited, good_log, joined, records
from tests.helpers.trees import SYSTEM, simulated, write_set, write_system


def codes_of(folder: Path, round_: str) -> set[str]:
    report = check([str(folder)], Options(round=round_)).report
    return {finding.code for finding in report.findings}


def halved(log: bytes) -> bytes:
    """A run that claims to have converged in half the epochs."""
    fields = records(log)
    for record in fields:
        if record["key"] == "eval_accuracy":
            record["metadata"]["epoch_num"] /= 2
    return joined(fields)


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        pytest.param(("a.py", "a.py"), {"SEED102"}, id="one file"),
        pytest.param(("a.py", "b.py"), {"SEED104"}, id="two files"),
    ],
)
def test_a_seed_is_that_of_a_file(tmp_path: Path, files: tuple[str, str], codes: set[str]) -> None:
    logs = list(simulated("resnet", "closed"))
    for index, file in enumerate(files):
        metadata = {"file": file, "lineno": 1}
        logs[index] = edited(logs[index], "seed", value=5, metadata=metadata)
    write_set(tmp_path / "results" / SYSTEM / "resnet", tuple(logs))
    write_system(tmp_path / "systems")
    assert codes_of(tmp_path, "2.0") & {"SEED102", "SEED104"} == codes


@pytest.mark.parametrize(
    ("benchmark", "round_", "codes"),
    [
        pytest.param("resnet", "2.0", {"RCP101", "RCP107"}, id="reviews approved"),
        pytest.param("rgat", "5.1", {"RCP101"}, id="the rules forbid"),
    ],
)
def test_only_reviews_that_approved_have_a_limit(
    tmp_path: Path, benchmark: str, round_: str, codes: set[str]
) -> None:
    folder = tmp_path / f"v{round_}" / "Submitter" / "results" / SYSTEM / benchmark
    write_set(folder, tuple(map(halved, simulated(benchmark, "closed", round_))))
    assert codes_of(folder, round_) & {"RCP101", "RCP107"} == codes


@pytest.mark.parametrize(
    ("name", "usage", "round_", "reported"),
    [
        pytest.param("anvil_n1", "training", "2.0", True, id="one of two nodes"),
        pytest.param("anvil_n1", "hpc", "3.0", False, id="the nodes of one model"),
        pytest.param("anvil_n3", "hpc", "3.0", True, id="not a part of the nodes"),
    ],
)
def test_the_number_in_a_name(name: str, usage: str, round_: str, reported: bool) -> None:
    system = check_system(f"Acme/systems/{name}.json", written(), usage, round_)
    assert ("SYS206" in {finding.code for finding in system.findings}) is reported


def context(*seeds: int) -> Any:
    """A result set of one run with some seeds."""
    run = SimpleNamespace(seeds=[SimpleNamespace(value=seed) for seed in seeds])
    return SimpleNamespace(
        runs=[run],
        origin=SimpleNamespace(has_folder=True),
        round=SimpleNamespace(usage="training", name="2.0"),
        submitter="Acme",
        files=SimpleNamespace(benchmark="resnet"),
        label="the other set",
        finding=lambda code, message, **fields: (code, fields["found"]),
    )


@pytest.mark.parametrize(
    ("seeds", "findings"),
    [
        pytest.param((1, 2, 8, 9), [(1, ("SEED106", 2))], id="half"),
        pytest.param((1, 7, 8, 9), [], id="less than half"),
    ],
)
def test_seeds_of_another_set(seeds: tuple[int, ...], findings: list[Any]) -> None:
    assert list(copies.check_seeds([context(1, 2, 3, 4), context(*seeds)])) == findings


@pytest.mark.parametrize(
    ("rounds", "judged"),
    [
        pytest.param(("1.1", "2.0", "2.0"), ["2.0", "2.0", "2.0"], id="most are of the next round"),
        pytest.param(("1.1", "1.1", "2.0", "2.0"), ["1.1", "1.1", "2.0", "2.0"], id="a tie"),
    ],
)
def test_the_round_of_most_submissions(
    tmp_path: Path, rounds: tuple[str, ...], judged: list[str]
) -> None:
    for number, round_ in enumerate(rounds):
        submission = tmp_path / f"Submitter{number}"
        write_system(submission / "systems")
        log = good_log(round_=round_, seed=number)
        write_set(submission / "results" / SYSTEM / "resnet", (log,))
    report = check([str(tmp_path)], Options()).report
    assert [run.round for run in report.runs] == judged
