"""Sequences of our tools and of the official ones, live: status, tables, and ``scaling.json``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.compat import package_checker, result_summarizer
from tests.compat.sequences import STATES, both, written
from tests.helpers import trees
from tests.helpers.broken_runs import SET, every_log, fast, slightly_fast
from tests.helpers.examples import SHARE
from tests.helpers.logs import edited
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

Change = Callable[[Path], object]

SEQUENCES = (
    ("check", "summarize"),
    ("summarize",),
    ("summarize", "summarize"),
    ("summarize", "check", "summarize"),
    ("check --rcp-bypass --seed-checker-bypass", "summarize"),
)


def logs(change: Callable[[bytes], bytes]) -> Change:
    """Change every log of the submission."""
    return lambda root: every_log(change, root)


def batch(size: int) -> Callable[[bytes], bytes]:
    return lambda text: edited(text, "global_batch_size", value=size)


def system(name: str = SYSTEM, **fields: Any) -> Change:
    return lambda root: write_system(root / "systems", name, **fields)


def two_sizes(root: Path) -> None:
    log = root / SET / "result_0.txt"
    log.write_bytes(batch(512)(log.read_bytes()))


def a_set(path: str) -> Change:
    return lambda root: write_set(root / "results" / path, simulated())


QUICK = logs(slightly_fast)
CHANGES: dict[str, tuple[Change, ...]] = {
    "quick": (QUICK,),
    "too quick": (logs(fast),),
    "beyond all points": (logs(batch(99999)),),
    "below all points": (logs(batch(16)),),
    "between points": (QUICK, logs(batch(3000))),
    "open division": (QUICK, system(division="open")),
    "capital": (QUICK, system(division="Closed")),
    "two sizes": (two_sizes,),
    "two sets": (QUICK, system("a", status="Preview"), a_set("a/resnet")),
    "no description": (QUICK, a_set("a/resnet")),  # theirs crashes, and leaves it out
    "no count": (QUICK, system(number_of_nodes="many")),
}

ALL = [(name, state, steps) for name in CHANGES for state in STATES for steps in SEQUENCES]
# 11 has no divisor in common with 4 and 5, so that every pair of a state and a sequence is tried.
SOME = ALL if SHARE == 1 else ALL[::11]


@pytest.mark.parametrize(("name", "state", "steps"), SOME)
def test_as_theirs(name: str, state: str, steps: tuple[str, ...], tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Graphcore")
    for change in CHANGES[name]:
        change(root)
    if state == "fresh":
        written('{"scaling_factor": 1.0}')(root)
    STATES[state](root)
    ours, theirs = both(root, "training", "2.0.0", steps, tmp_path)
    assert ours == theirs


@pytest.mark.parametrize(
    ("state", "steps"),
    [("deleted", SEQUENCES[0]), ("stale", SEQUENCES[1]), ("stale", SEQUENCES[3])],
)
def test_both_kinds_of_scaling(state: str, steps: tuple[str, ...], tmp_path: Path) -> None:
    """The table of weak scaling is appended to the other; that of its energy has no scores."""
    root = tmp_path / "ACME"
    write_system(root / "systems", "box")
    logs = trees.simulated_models(10)
    for scaling in ("strong", "weak"):
        write_set(root / "results" / "box" / scaling / "cosmoflow", logs)
    STATES[state](root)
    ours, theirs = both(root, "hpc", "3.0.0", steps, tmp_path)
    assert ours == theirs
    assert {name.rpartition("_")[2] for name in ours.tables[-1]} > {"power.csv", "power.json"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (a_set(f"{SYSTEM}/chess"), f"not in the tables: results/{SYSTEM}/chess: not a benchmark of round 2.0"),
        (system(number_of_nodes="many"), f"results/{SYSTEM}: systems/{SYSTEM}.json: number_of_nodes is not a whole number"),
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
    assert result_summarizer.main(["ACME", "training", "2.0.0"]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "summary.json").exists()


def test_in_the_folder_of_the_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and log files may stand beside results, but not in them."""
    root = every_log(slightly_fast, write_submission(tmp_path / "ACME"))
    monkeypatch.chdir(root)
    assert package_checker.main([".", "training", "2.0.0"]) == 0
    assert result_summarizer.main([".", "training", "2.0.0", "--csv", "summary.csv"]) == 0
    assert {path.name for path in root.glob("*.*")} == {
        *("package_checker.log", "summary.csv", "summary.json"),
        *("summary_detailed.csv", "summary_detailed.json"),
    }
    factor = json.loads((root / SET / "scaling.json").read_text("utf-8"))["scaling_factor"]
    (row,) = json.loads(Path("summary_detailed.json").read_text("utf-8"))
    assert row["resnet:rcp_scaling_factor"] == pytest.approx(factor)
    assert result_summarizer.main([".", "training", "2.0.0", "--csv", f"{SET}/s.csv"]) == 1
    assert not (root / SET / "s.csv").exists()


def test_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written, and removed where there is no factor."""
    monkeypatch.chdir(tmp_path)
    root, outside = write_submission(tmp_path / "ACME"), tmp_path / "outside.json"
    outside.write_text("{}")
    for change in (bytes, slightly_fast):
        (every_log(change, root) / SET / "scaling.json").symlink_to(outside)
        assert package_checker.main(["ACME", "training", "2.0.0"]) == 0
        assert outside.read_text() == "{}"
        assert not (root / SET / "scaling.json").is_symlink()
