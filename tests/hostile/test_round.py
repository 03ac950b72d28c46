"""One hostile submission in a round: the verdicts of all others stay as they are."""

import json
import shutil
from collections.abc import Iterator
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
BINARY = (".xlsx", ".sqlite", ".parquet")

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


COMMANDS = (
    "check {root} --format json --log-output {out}/check.log",
    "score {root} -o {out}/scores.csv",
    "score {root} --tables {out}/tables --private-ids {out}/ids.json",
    "results {root} -o {out}/summary",
    *("select {root}", "compare {root}", "rcp check {root}"),
    "report {root} -o {out}/page.html",
    "report --history {root} -o {out}/history.html",
    "report {root} -o {out}/charts --draw scoreboard",
    "diff {root}/Alice {root} --borrowed-from {root}",
    "review objection all,LOG,SYS,SET,TREE,RUN {root} -o {out}/objections",
    "review objections {out}/objections.yaml {root}",
    "review {root} -o {out}/review",
    *("review compare previews 1.1 {root}", "review compare resubmitted {root} 5.1"),
    "export {root} -o {out}/results.csv --evaluations",
    *(f"export {{root}} -o {{out}}/results.{kind}" for kind in ("sqlite", "parquet")),
    "system check {systems}",
)


def test_every_command(hostile_round: Path, expected: Any, tmp_path: Path) -> None:
    """Among them one that judges an objection to the first hostile submission in all of the
    round.
    """
    fields = "{id: a, against: Mallory00, code: RN103, state: filed, about: [Mallory00]}"
    (tmp_path / "objections.yaml").write_text(f"objections: [{fields}]", "utf-8")
    trees = submissions(hostile_round)
    systems = " ".join(str(file) for tree in trees for file in (tree / "systems").glob("*.json"))
    places = {"root": hostile_round, "out": tmp_path, "systems": systems}
    lines = [line.format(**places).split() for line in COMMANDS]
    outcomes = dict(zip(COMMANDS, run_all(lines), strict=True))
    assert about(ALICE, outcomes[COMMANDS[0]]) == expected
    rows = outcomes.items()
    assert {line: o.text[-3000:] for line, o in rows if o.status not in (0, 1)} == {}
    assert [line for line, o in rows if BUG in o.text or "internal error" in o.text] == []
    assert {line: o.megabytes for line, o in rows if o.megabytes >= 2 * MEGABYTES} == {}
    assert [line for line, o in rows if "\x1b" in o.stdout.decode("utf-8")] == []
    assert [
        file
        for file in filter(Path.is_file, tmp_path.rglob("*.*"))
        if not (b"\x1b" not in file.read_bytes() or file.suffix in BINARY)
    ] == []


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
    rows = list(zip(commands, run_all(commands), strict=True))
    assert [(command, o) for command, o in rows if o.status not in (0, 1, 2)] == []
    assert [(command, o) for command, o in rows if BUG in o.text] == []
    assert [(command, o) for command, o in rows if o.megabytes >= MEGABYTES] == []
