"""One hostile submission in a round: the verdicts of all others stay as they are."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.limited import Outcome, can_refuse, run, run_all
from tests.helpers.trees import write_submission
from tests.hostile.cases import CASES, remove

ALICE, MALLORY = "Alice", "Mallory"
ROUND = "training_results_v2.0"
MEGABYTES = 400  # that any process of a command may take
BUG = "This is a bug"
BINARY = (".xlsx", ".sqlite", ".parquet", ".duckdb")

pytestmark = pytest.mark.skipif(not can_refuse(), reason="root may read everything")


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_submission(tmp_path_factory.mktemp("valid") / ALICE)


@pytest.fixture(scope="module")
def expected(valid: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The part of a report about the valid submission."""
    root = tmp_path_factory.mktemp("expected") / ROUND
    shutil.copytree(valid, root / ALICE)
    shutil.copytree(valid, root / MALLORY)
    return about(ALICE, run("check", root, "--format", "json"))


def about(submitter: str, outcome: Outcome) -> Any:
    report = json.loads(outcome.stdout)
    rows = [*report["systems"], *report["result_sets"], *report["runs"], *report["findings"]]
    return [row for row in rows if submitter in row["path"].split("/")]


@pytest.fixture(scope="module")
def hostile_round(valid: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A round of one valid submission and one of each hostile kind."""
    root = tmp_path_factory.mktemp("hostile") / ROUND
    shutil.copytree(valid, root / ALICE)
    for number, case in enumerate(CASES.values()):
        shutil.copytree(valid, root / f"{MALLORY}{number:02}")
        case(root / f"{MALLORY}{number:02}")
    yield root
    remove(root)


def test_check_by_two_processes(hostile_round: Path, expected: Any) -> None:
    outcome = run("check", hostile_round, "--format", "json", "--jobs", "2", parallel=True)
    assert outcome.status in (0, 1), outcome.text[-2000:]
    assert outcome.megabytes < MEGABYTES
    assert about(ALICE, outcome) == expected
    assert "CHECK10" not in outcome.stdout.decode(), outcome.text[-2000:]


# ---- every command that reads a tree --------------------------------------------------------


def submissions(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.name != ALICE)


def objections(root: Path, out: Path) -> list[str | Path]:
    """Judge an objection to the first hostile submission in all of the round."""
    fields = "{id: a, against: Mallory00, code: RN103, state: filed, about: [Mallory00]}"
    (out / "objections.yaml").write_text(f"objections: [{fields}]", "utf-8")
    return ["review", "objections", out / "objections.yaml", root]


COMMANDS: dict[str, Callable[[Path, Path], list[str | Path]]] = {
    "check": lambda root, out: [
        *("check", root, "--format", "json", "--log-output", out / "check.log")
    ],
    "score as CSV": lambda root, out: ["score", root, "-o", out / "scores.csv"],
    "score with ids": lambda root, out: [
        *("score", root, "--tables", out / "tables", "--private-ids", out / "ids.json")
    ],
    "results": lambda root, out: ["results", root, "-o", out / "summary"],
    "select": lambda root, out: ["select", root],
    "compare": lambda root, out: ["compare", root],
    "rcp check": lambda root, out: ["rcp", "check", root],
    "report": lambda root, out: ["report", root, "-o", out / "page.html"],
    "report of all rounds": lambda root, out: [
        *("report", "--history", root, "-o", out / "history.html")
    ],
    "diff": lambda root, out: ["diff", root / ALICE, root, "--borrowed-from", root],
    "review objection": lambda root, out: [
        *("review", "objection", "all,LOG,SYS,SET,TREE,RUN", root, "-o", out / "objections")
    ],
    "review objections": objections,
    "review": lambda root, out: ["review", root, "-o", out / "review"],
    "review compare previews": lambda root, out: ["review", "compare", "previews", "1.1", root],
    "review compare resubmitted": lambda root, out: [
        *("review", "compare", "resubmitted", root, "5.1")
    ],
    "report --draw": lambda root, out: [
        *("report", root, "-o", out / "charts", "--draw", "scoreboard")
    ],
    "export": lambda root, out: ["export", root, "-o", out / "results.csv", "--evaluations"],
    "export as SQLite": lambda root, out: ["export", root, "-o", out / "results.sqlite"],
    "export as Parquet": lambda root, out: ["export", root, "-o", out / "results.parquet"],
    "export as DuckDB": lambda root, out: ["export", root, "-o", out / "results.duckdb"],
    "system check": lambda root, out: [
        "system",
        "check",
        *(file for path in submissions(root) for file in (path / "systems").glob("*.json")),
    ],
}


def test_every_command(hostile_round: Path, expected: Any, tmp_path: Path) -> None:
    commands = [command(hostile_round, tmp_path) for command in COMMANDS.values()]
    outcomes = dict(zip(COMMANDS, run_all(commands), strict=True))
    assert about(ALICE, outcomes["check"]) == expected
    for name, outcome in outcomes.items():
        assert outcome.status in (0, 1), (name, outcome.text[-3000:])
        assert BUG not in outcome.text, name
        assert "internal error" not in outcome.text, name
        assert outcome.megabytes < 2 * MEGABYTES
        outcome.stdout.decode("utf-8")
        assert b"\x1b" not in outcome.stdout, name
    for file in filter(Path.is_file, tmp_path.rglob("*.*")):
        assert b"\x1b" not in file.read_bytes() or file.suffix in BINARY, file


def test_one_submission(hostile_round: Path, tmp_path: Path) -> None:
    """Commands about one tree end too, with a status and a message."""
    commands: list[list[str | Path]] = []
    for tree in submissions(hostile_round):
        logs = sorted(tree.glob("results/*/*/result_0.txt"))
        commands += [
            ["pack", tree, "-o", tmp_path / f"{tree.name}.tar.gz"],
            ["verify", tree],
            ["rcp", "new", tree],
            ["watch", *logs, "--timeout", "0.002", "--idle", "0.001", "--interval", "0.01"],
        ]
    for command, outcome in zip(commands, run_all(commands), strict=True):
        assert outcome.status in (0, 1, 2), (command, outcome.text[-2000:])
        assert BUG not in outcome.text, (command, outcome.text[-2000:])
        assert outcome.megabytes < MEGABYTES
