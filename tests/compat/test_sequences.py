"""Sequences of our tools and of the official ones, live: status, tables, and ``scaling.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.compat import package_checker
from mlperf_pkg.compat import result_summarizer as summarizer
from tests.compat.sequences import STATES, both, written
from tests.helpers.broken_runs import SET, every_log, fast, slightly_fast
from tests.helpers.logs import edited
from tests.helpers.trees import (
    SYSTEM,
    remove,
    simulated,
    simulated_models,
    write_set,
    write_submission,
    write_system,
)

Change = Callable[[Path], object]

SEQUENCES = (
    ("check", "summarize"),
    ("summarize",),
    ("summarize", "summarize"),
    ("summarize", "check", "summarize"),
    ("check --rcp-bypass --seed-checker-bypass", "summarize"),
)


def quick(root: Path) -> None:
    every_log(slightly_fast, root)


def too_quick(root: Path) -> None:
    every_log(fast, root)


def beyond_all_points(root: Path) -> None:
    every_log(lambda text: edited(text, "global_batch_size", value=99999), root)


def below_all_points(root: Path) -> None:
    every_log(lambda text: edited(text, "global_batch_size", value=16), root)


def between_points(root: Path) -> None:
    every_log(lambda text: edited(slightly_fast(text), "global_batch_size", value=3000), root)


def open_division(root: Path) -> None:
    quick(root)
    write_system(root / "systems", division="open")


def capital(root: Path) -> None:
    quick(root)
    write_system(root / "systems", division="Closed")


def two_sizes(root: Path) -> None:
    log = root / SET / "result_0.txt"
    log.write_bytes(edited(log.read_bytes(), "global_batch_size", value=512))


def two_sets(root: Path) -> None:
    quick(root)
    write_system(root / "systems", "a", status="Preview")
    write_set(root / "results" / "a" / "resnet", simulated())


def no_description(root: Path) -> None:
    """The package checker crashes on it, the summarizer leaves it out."""
    quick(root)
    write_set(root / "results" / "a" / "resnet", simulated())


def no_benchmark(root: Path) -> None:
    """The package checker leaves it out, the summarizer crashes."""
    quick(root)
    write_set(root / "results" / SYSTEM / "chess", simulated())


def no_count(root: Path) -> None:
    quick(root)
    write_system(root / "systems", number_of_nodes="many")


CHANGES: tuple[Change, ...] = (
    quick,
    too_quick,
    beyond_all_points,
    below_all_points,
    between_points,
    open_division,
    capital,
    two_sizes,
    two_sets,
    no_description,
    no_count,
)


# Every pair of a change, a state and a sequence, or with MLPERF_PKG_FULL=1 every combination.
CASES = [
    pytest.param(change, state, steps, id=f"{change.__name__}, {state}: {' then '.join(steps)}")
    for row, change in enumerate(CHANGES)
    for column, steps in enumerate(SEQUENCES)
    for number, state in enumerate(STATES)
    if os.environ.get("MLPERF_PKG_FULL") or number == (row + column) % len(STATES)
]


@pytest.mark.parametrize(("change", "state", "steps"), CASES)
def test_as_theirs(change: Change, state: str, steps: tuple[str, ...], tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Graphcore")
    change(root)
    if state == "fresh":
        written('{"scaling_factor": 1.0}')(root)
    STATES[state](root)
    ours, theirs = both(root, "training", "2.0.0", steps, tmp_path)
    assert ours == theirs


@pytest.mark.parametrize("steps", SEQUENCES[:4], ids=" then ".join)
@pytest.mark.parametrize("state", ["deleted", "stale"])
def test_both_kinds_of_scaling(state: str, steps: tuple[str, ...], tmp_path: Path) -> None:
    """The table of weak scaling is appended to the other; that of its energy has no scores."""
    root = tmp_path / "ACME"
    write_system(root / "systems", "box")
    logs = simulated_models(10)
    for scaling in ("strong", "weak"):
        write_set(root / "results" / "box" / scaling / "cosmoflow", logs)
    STATES[state](root)
    ours, theirs = both(root, "hpc", "3.0.0", steps, tmp_path)
    assert ours == theirs
    assert {name.rpartition("_")[2] for name in ours.tables[-1]} > {"power.csv", "power.json"}


CRASHES: dict[str, tuple[Change, str]] = {
    "no description": (lambda root: remove(root / "systems"), "SET110"),
    "no JSON": (lambda root: (root / "systems" / f"{SYSTEM}.json").write_text("{"), "SYS001"),
    "two batch sizes": (two_sizes, "RCP103"),
}


@pytest.mark.parametrize("name", CRASHES)
def test_where_their_package_checker_crashes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_submission(tmp_path / "ACME")
    change, code = CRASHES[name]
    change(root)
    options = ["--log_output", str(tmp_path / "log")]
    assert package_checker.main([str(root), "training", "2.0.0", *options]) == 1
    assert code in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (no_benchmark, f"not in the tables: results/{SYSTEM}/chess: not a benchmark of round 2.0"),
        (no_count, f"results/{SYSTEM}: systems/{SYSTEM}.json: number_of_nodes is not a whole number"),
        (written("{"), f"results/{SYSTEM}/resnet: scaling.json without a factor"),
        (lambda root: (root / SET / "result_9.txt").mkdir(), f"results/{SYSTEM}/resnet/result_9.txt"),
    ],
)  # fmt: skip
def test_where_their_summarizer_crashes(
    change: Change,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = write_submission(tmp_path / "ACME")
    change(root)
    monkeypatch.chdir(tmp_path)
    assert summarizer.main(["ACME", "training", "2.0.0"]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "summary.json").exists()


def test_in_the_folder_of_the_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and log files may stand beside results, but not in them."""
    root = every_log(slightly_fast, write_submission(tmp_path / "ACME"))
    monkeypatch.chdir(root)
    assert package_checker.main([".", "training", "2.0.0"]) == 0
    assert summarizer.main([".", "training", "2.0.0", "--csv", "summary.csv"]) == 0
    assert {path.name for path in root.glob("*.*")} == {
        *("package_checker.log", "summary.csv", "summary.json"),
        *("summary_detailed.csv", "summary_detailed.json"),
    }
    factor = json.loads((root / SET / "scaling.json").read_text("utf-8"))["scaling_factor"]
    (row,) = json.loads(Path("summary_detailed.json").read_text("utf-8"))
    assert row["resnet:rcp_scaling_factor"] == pytest.approx(factor)
    assert summarizer.main([".", "training", "2.0.0", "--csv", f"{SET}/s.csv"]) == 1
    assert not (root / SET / "s.csv").exists()


@pytest.mark.parametrize("change", [slightly_fast, bytes], ids=["written", "removed"])
def test_a_link_is_not_followed(
    change: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = every_log(change, write_submission(tmp_path / "ACME"))
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    (root / SET / "scaling.json").symlink_to(outside)
    assert package_checker.main(["ACME", "training", "2.0.0"]) == 0
    assert outside.read_text() == "{}"
    assert not (root / SET / "scaling.json").is_symlink()
