"""What is planted in a round is named: by check or review alone, and by diff with the version
before.

Of edits of one log there is one; the others are in tests/run, tests/checks and tests/commands/diff.
"""

import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.diff.changes import ChangeKind
from mlperf_pkg.commands.diff.reading import compare_paths
from mlperf_pkg.commands.review import files
from mlperf_pkg.commands.review.resubmitted import resubmissions
from mlperf_pkg.commands.review.round import Choices, read_round, read_side, record_side
from mlperf_pkg.published import results
from mlperf_pkg.simulate import RunPlan, simulate_set
from tests.helpers.logs import edited, joined, records
from tests.helpers.trees import write_set, write_system
from tests.tools.export import encoded, of_rounds

BENCHMARK = "llama2_70b_lora"
RATE = "opt_base_learning_rate"
Plant = Callable[[Path], object]
Records = list[dict[str, Any]]
Change = Callable[[Records], Records]


def entry(tree: Path, submitter: str = "ACME", system: str = "box") -> Path:
    return tree / submitter / "results" / system / BENCHMARK


def plan_of(submitter: str, system: str, round_: str) -> RunPlan:
    names: Any = {"system": system, "organization": submitter, "division": "closed"}
    return RunPlan(round=round_, benchmark=BENCHMARK, minutes=20.0, **names)


def write_entry(
    tree: Path, submitter: str, system: str, seed: int, *, round_: str = "5.1", **fields: Any
) -> None:
    """An entry with runs of its own, whose logs name it."""
    fields = {"submitter": submitter, "system_name": system, "division": "closed", **fields}
    write_system(tree / submitter / "systems", system, **fields)
    plan = plan_of(submitter, system, round_)
    write_set(entry(tree, submitter, system), tuple(simulate_set(plan, seed=seed)))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The version before: two submitters, one with two systems."""
    tree = tmp_path_factory.mktemp("old") / "training_results_v5.1"
    write_entry(tree, "ACME", "box", seed=1)
    write_entry(tree, "ACME", "8xpod", seed=2, number_of_nodes="8")
    write_entry(tree, "Other", "rack", seed=3)
    return tree


@pytest.fixture(scope="module", autouse=True)
def published(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A round of the year before is published."""
    folder = tmp_path_factory.mktemp("published") / "v5.0"
    write_entry(folder, "ACME", "box", seed=4, round_="5.0")
    record = folder.with_name("results.msgpack")
    record.write_bytes(encoded(of_rounds([str(folder)], date(2026, 11, 22))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "PATH", record)
        yield folder


# ---- plants ---------------------------------------------------------------------------------


def in_log(change: Change, of: str = "result_1.txt") -> Plant:
    """A log with other records, by default its own."""

    def plant(tree: Path) -> None:
        log = (entry(tree) / of).read_bytes()
        (entry(tree) / "result_1.txt").write_bytes(joined(change(records(log))))

    return plant


def later(every: Records, seconds: float = 86_400) -> Records:
    return [{**r, "time_ms": r["time_ms"] + round(seconds * 1000)} for r in every]


def noisy(every: Records) -> Records:
    """With noise in the evaluations, another seed, and a day later."""
    made = later(every)
    for index, record in enumerate(made):
        if record["key"] == "eval_accuracy":
            record["value"] *= 1 + 2e-6 * (-1) ** index
        elif record["key"] == "seed":
            record["value"] = 4_000 + record["value"] % 999
    return made


def changed(key: str, value: Any) -> Change:
    """The last record of a key with another value."""

    def change(every: Records) -> Records:
        last = [record for record in every if record["key"] == key][-1]
        return [{**record, "value": value} if record is last else record for record in every]

    return change


def old_seed(tree: Path) -> None:
    """The runs of two systems have the same seeds."""
    for log in entry(tree).iterdir():
        seed = next(r["value"] for r in records(log.read_bytes()) if r["key"] == "seed")
        other = entry(tree, system="8xpod") / log.name
        other.write_bytes(edited(other.read_bytes(), "seed", value=seed))


def with_status(status: str) -> Plant:
    def plant(tree: Path) -> None:
        path = tree / "ACME/systems/8xpod.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "status": status}))

    return plant


def swapped(tree: Path) -> None:
    first, second, aside = entry(tree), entry(tree, "Other", "rack"), tree / "x"
    for source, target in ((first, aside), (second, first), (aside, second)):
        source.rename(target)


def joint(tree: Path) -> None:
    write_entry(tree, "ACME+Other", "half", seed=1, number_of_nodes="1")
    for log in entry(tree, "ACME+Other", "half").iterdir():
        log.write_bytes(joined(noisy(records(log.read_bytes()))))


def withdrawn(tree: Path) -> None:
    shutil.rmtree(entry(tree, system="8xpod").parent)
    (tree / "ACME/systems/8xpod.json").unlink()
    write_entry(tree, "ACME", "8xpod_b", seed=9, number_of_nodes="8")


def published_again(tree: Path) -> None:
    """A published run of the year before takes the place of a slow one, 200 days later."""
    (log, *_) = simulate_set(plan_of("ACME", "box", "5.0"), seed=4)
    shifted = joined(later(records(log), 200 * 86_400)) + b"\n"
    (entry(tree) / "result_1.txt").write_bytes(shifted)


def researched(tree: Path) -> None:
    """The logs say research, and so does the description."""
    with_status("Research, Development, or Internal (RDI)")(tree)
    for log in entry(tree, system="8xpod").iterdir():
        first, *rest = records(log.read_bytes())
        status = {**first, "key": "submission_status", "value": "research"}
        log.write_bytes(joined([first, status, *rest]))


def test_two_rounds_with_one_run(old: Path, published: Path, tmp_path: Path) -> None:
    """A copy with noise, another seed, a day later and an appended byte is the same run."""
    new = tmp_path / "new" / old.name
    shutil.copytree(old, new)
    log = entry(published) / "result_1.txt"
    copy = joined(noisy(records(log.read_bytes()))) + b"\n"
    (entry(new) / "result_0.txt").write_bytes(copy)
    published_side, new_side, old_side = (
        read_side(str(path), Options(jobs=1)) for path in (published, new, old)
    )
    record = record_side("training", "5.0")
    copies = {
        name: [
            (row.new.row.name, row.runs, row.identical) for row in resubmissions(earlier, new_side)
        ]
        for name, earlier in (("tree", published_side), ("record", record))
    }
    expected = [(f"ACME/box/{BENCHMARK}", 1, 0)]
    assert copies == {"tree": expected, "record": expected}
    assert not resubmissions(published_side, old_side)


PLANTS: list[tuple[str, Plant, str, set[ChangeKind]]] = [  # name, plant, code, rows of diff
    ("nothing", lambda _: None, "", set()),
    (
        "learning rate",
        in_log(changed(RATE, 3e-4)),
        "SET122",
        {ChangeKind.HYPERPARAMETERS, ChangeKind.EDITED},
    ),
    (
        "last evaluation below the target",
        in_log(changed("eval_accuracy", 0.931)),
        "LORA109",
        {ChangeKind.EDITED, ChangeKind.SCORE},
    ),
    (
        "scaling.json",
        lambda t: (entry(t) / "scaling.json").write_text('{"scaling_factor": 1.01}'),
        "SET120",
        {ChangeKind.SCALING},
    ),
    ("an old log shifted", published_again, "SET160", {ChangeKind.RUNS, ChangeKind.SCORE}),
    ("a joint copy on half the nodes", joint, "SET150", {ChangeKind.COPIED}),
    ("Preview after Available", with_status("Preview"), "SET164", {ChangeKind.AVAILABILITY}),
    (
        "logs of two submitters swapped",
        swapped,
        "SET115",
        {ChangeKind.COPIED, ChangeKind.RUNS, ChangeKind.SCORE},
    ),
    (
        "withdrawn and added again",
        withdrawn,
        "",
        {ChangeKind.AGAIN, ChangeKind.DESCRIPTION, ChangeKind.RUNS, ChangeKind.SCORE},
    ),
    ("seeds over systems", old_seed, "SEED106", {ChangeKind.EDITED}),
    (
        "a run copied with noise",
        in_log(noisy, of="result_3.txt"),
        "SET112",
        {ChangeKind.COPIED, ChangeKind.SCORE},
    ),
    (
        "research to available",
        with_status("Available on-premise"),
        "SET140",
        {ChangeKind.AVAILABILITY, ChangeKind.AGAINST_LOGS},
    ),
]


@pytest.mark.parametrize(
    ("plant", "code", "kinds"), [row[1:] for row in PLANTS], ids=[row[0] for row in PLANTS]
)
def test_plants(
    old: Path, tmp_path: Path, request: Any, plant: Plant, code: str, kinds: set[ChangeKind]
) -> None:
    before, after = tmp_path / "before" / old.name, tmp_path / "after" / old.name
    shutil.copytree(old, before)
    if request.node.callspec.id == "research to available":
        researched(before)
    shutil.copytree(before, after)
    plant(after)
    options = Options(jobs=1)
    reviewed = read_round(str(after), options, Choices())
    codes = {finding.code for finding in reviewed.report.findings} - {"CODE100"}
    assert codes >= {code} - {""}
    assert (codes == set()) == (not code)
    review = files.review_of(reviewed, list(files.sections(reviewed)))
    assert f" {code} (" in files.summary(review) or not code
    entries = compare_paths(str(before), str(after), options).entries
    assert {verdict.kind for verdict in entries} == kinds
