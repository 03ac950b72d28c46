"""Runs that were published before, in trees of several rounds with the same simulated logs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks import published
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source
from mlperf_pkg.published import results
from mlperf_pkg.published.encode import encoded
from mlperf_pkg.published.model import digests_of
from tests.helpers.trees import SYSTEM, write_submission, write_system
from tests.tools.export import of_rounds

NAME = f"Graphcore/{SYSTEM}/resnet"
SET = f"Graphcore/results/{SYSTEM}/resnet"
SAME = " with the same system, as far as its description is published"
AGAIN = f"note advice 5/5 published in 2.0 as {NAME}{SAME}"
BROKEN = f"warning rules 5/5 published in 2.0 as {NAME}; expected"


def findings(*paths: Path) -> list[Finding]:
    report = check([str(path) for path in paths], Options(jobs=1)).report
    return [f for f in report.findings if f.code in ("SET160", "SET161", "CHECK103")]


def texts(*paths: Path) -> list[str]:
    return [f"{f.severity} {f.basis} {f.runs}/{f.of_runs} {f.text}" for f in findings(*paths)]


def publish(monkeypatch: pytest.MonkeyPatch, *roots: Path, made: date = date(2026, 11, 22)) -> None:
    """Replace the published results by those of round folders."""
    path = roots[0].parent / f"{made}-{len(roots)}.msgpack"
    path.write_bytes(encoded(of_rounds(list(map(str, roots)), made)))
    monkeypatch.setattr(results, "PATH", path)


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Round 2.0, which is published."""
    write_submission(tmp_path / "v2.0/Graphcore")
    publish(monkeypatch, tmp_path / "v2.0")
    return tmp_path / "v2.0"


def resubmitted(first: Path, round_: str = "v2.1") -> Path:
    return Path(shutil.copytree(first, first.parent / round_))


def nothing(_: Path) -> None:
    """Change nothing."""


def another_framework(root: Path) -> None:
    write_system(root / "Graphcore/systems", division="closed", framework="another")


def another_count(root: Path) -> None:
    write_system(
        root / "Graphcore/systems", division="closed", accelerators_per_node=8, number_of_nodes=2
    )


def another_status(root: Path) -> None:
    write_system(root / "Graphcore/systems", division="closed", status="preview")


def another_spelling(root: Path) -> None:
    write_system(root / "Graphcore/systems", division="closed", status="Available on-premise")


def another_submitter(root: Path) -> None:
    (root / "Graphcore").rename(root / "Zebra")


def another_system(root: Path) -> None:
    (root / SET).parent.rename((root / SET).parent.with_name("other"))
    systems = root / "Graphcore/systems"
    (systems / f"{SYSTEM}.json").rename(systems / "other.json")


def another_run(root: Path) -> None:
    with (root / SET / "result_0.txt").open("ab") as stream:
        stream.write(b"\n")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (nothing, [AGAIN]),
        (another_spelling, [AGAIN]),
        (another_system, [AGAIN]),
        (another_run, [AGAIN.replace("5/5", "4/5")]),
        (another_framework, [f"{BROKEN} the same system description, which differs in framework"]),
        (another_status, [f"{BROKEN} the same system description, which differs in status"]),
        (
            another_count,
            [
                f"{BROKEN} the same system description, which differs in accelerators_per_node,"
                " number_of_nodes"
            ],
        ),
        (another_submitter, [f"{BROKEN} runs of Zebra"]),
    ],
)
def test_resubmitted(first: Path, change: Callable[[Path], None], expected: list[str]) -> None:
    root = resubmitted(first)
    change(root)
    assert texts(root) == expected


def test_a_preview_is_not_proved_by_its_own_runs(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = resubmitted(first)
    another_status(first)
    publish(monkeypatch, first, made=date(2026, 11, 21))
    assert texts(root) == [f"{BROKEN} new runs, as these were of a Preview"]


def test_logs_that_the_newer_checker_rejects(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = first / SET / "result_0.txt"
    path.write_bytes(path.read_bytes().replace(b'"global_batch_size"', b'"globl_batch_size"'))
    publish(monkeypatch, first, made=date(2026, 11, 21))
    root = resubmitted(first)
    assert texts(root) == [f"{BROKEN} logs that pass the checker of 2.1"]


def test_a_published_round_is_not_compared_with_itself(first: Path) -> None:
    assert texts(first) == []
    assert texts(first / SET) == []


def test_an_earlier_round_is_not_compared_with_a_later_one(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(monkeypatch, resubmitted(first))
    assert texts(first) == []


def test_both_rounds_checked_together(first: Path) -> None:
    assert texts(first, resubmitted(first)) == []


def test_loose_logs_are_always_named(first: Path, tmp_path: Path) -> None:
    shutil.copytree(first / SET, tmp_path / "logs")
    name = f"note advice 5/5 published in 2.0 as {NAME}"
    assert texts(tmp_path / "logs") == [name]
    assert texts(tmp_path / "logs/result_1.txt") == [name.replace("5/5", "1/1")]


def test_another_set_of_the_round(first: Path) -> None:
    another_system(first)
    another_framework(first)
    (first / "Graphcore/systems" / f"{SYSTEM}.json").rename(first / "Graphcore/systems/other.json")
    assert texts(first) == [f"{BROKEN} the same system description, which differs in framework"]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the logs that are hashed."""
    names: list[str] = []

    def spy(sources: Mapping[str, Source]) -> dict[str, bytes]:
        names.extend(path.rpartition("/")[2] for path in sources)
        return digests_of(sources)

    monkeypatch.setattr(published, "digests_of", spy)
    return names


RUNS = [f"result_{number}.txt" for number in range(5)]


def test_runs_later_than_the_collection_are_not_hashed(
    first: Path, monkeypatch: pytest.MonkeyPatch, hashed: list[str]
) -> None:
    publish(monkeypatch, first, made=date(2020, 1, 1))
    assert texts(resubmitted(first)) == []
    assert hashed == []


def test_a_published_set_is_not_hashed(first: Path, hashed: list[str]) -> None:
    assert texts(first) == []
    assert texts(first / SET) == []  # outside of its submission
    assert hashed == []


def test_a_published_set_with_a_changed_time_is_hashed(first: Path, hashed: list[str]) -> None:
    log = first / SET / "result_2.txt"
    records = log.read_bytes().split(b"\n")
    (stop,) = (number for number, line in enumerate(records) if b'"run_stop"' in line)
    records[stop] = re.sub(
        rb'"time_ms": (\d+)', lambda m: b'"time_ms": %d' % (int(m[1]) + 1), records[stop]
    )
    log.write_bytes(b"\n".join(records))
    assert texts(first) == []
    assert hashed == RUNS


def test_published_logs_of_an_earlier_round_are_noted_in_their_later_round(
    first: Path, monkeypatch: pytest.MonkeyPatch, hashed: list[str]
) -> None:
    second = resubmitted(first)
    publish(monkeypatch, first, second)
    hashed.clear()  # by what makes the published results
    assert texts(second) == [AGAIN]
    assert hashed == RUNS
    hashed.clear()
    assert texts(first) == []
    assert hashed == []


@pytest.mark.parametrize("data", [None, b"", b"no results"])
def test_without_published_results(
    first: Path, monkeypatch: pytest.MonkeyPatch, data: bytes | None
) -> None:
    path = first.parent / "none"
    if data is not None:
        path.write_bytes(data)
    monkeypatch.setattr(results, "PATH", path)
    [finding] = findings(first, resubmitted(first))
    assert finding.code == "CHECK103"
    assert finding.text.startswith(
        f"not compared with the published results: {path}: the published"
    )
    assert finding.text.endswith(": reinstall mlperf-pkg")
