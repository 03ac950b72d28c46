"""The checklist of a submission, from simulated rounds with changes."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review import checklist
from mlperf_pkg.commands.review.checklist import subjects
from mlperf_pkg.commands.review.files import markdown, page, review_of
from mlperf_pkg.commands.review.round import ReviewedRound, ReviewSide, SideEntry
from mlperf_pkg.published.model import PublishedSet
from tests.helpers.logs import edited, joined, records, without
from tests.helpers.published import published_set
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

LOGS = f"results/{SYSTEM}/resnet"
SET = f"{SYSTEM}/resnet"
RESULT = f"ACME, {SYSTEM}, resnet"


def reviewed(root: Path, *published: PublishedSet) -> ReviewedRound:
    earlier = ReviewSide("earlier", tuple(SideEntry(row, ()) for row in published))
    return ReviewedRound(check([str(root)], Options(jobs=1)), previous=earlier)


def texts(root: Path, *published: PublishedSet) -> list[str]:
    """The items of the submission, with their topics; ``published`` are sets of earlier rounds."""
    round_ = reviewed(root, *published)
    (subject,) = subjects(round_)
    return [f"{item.topic}: {item.text}" for item in checklist.items(subject, round_.examined)]


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """The only submission of a round."""
    write_system(write_submission(tmp_path / "v2.0/ACME") / "systems", submitter="ACME")
    return tmp_path / "v2.0/ACME"


@pytest.fixture
def root(acme: Path) -> Path:
    return acme.parent


USUAL = [
    "Code: there is no folder benchmarks/: does the code in the repository match the logs?",
    f"Statuses: Available on-premise ({SYSTEM}): can customers get the available systems now?",
    f"Software: framework: PopART, Poplar SDK 2.5.1 ({SYSTEM})",
]


def test_the_reviewers_are_named(root: Path) -> None:
    for seed, name in enumerate(("Beta", "Gamma")):
        write_system(write_submission(root / name, seed=seed) / "systems", submitter=name)
    section = checklist.section(reviewed(root))
    assert [table.title for table in section.tables.values()] == [
        "ACME, reviewed by Beta, Gamma (by results)",
        "Beta, reviewed by ACME, Gamma (by results)",
        "Gamma, reviewed by ACME, Beta (by results)",
    ]
    assert section.summary == ("9 items for 3 submissions",)
    note = "1 result set of 1 system (resnet); 0 fail officially, 0 by the rules."
    assert section.tables["ACME"].note == note


def test_a_submission_without_changes_can_be_ticked_off(root: Path) -> None:
    assert texts(root) == USUAL
    round_ = reviewed(root)
    section = checklist.section(round_)
    assert "\n- [ ] Code: there is no folder benchmarks/: " in markdown(section)
    html = page(review_of(round_, [section]))
    assert html.count('<input type="checkbox">') == 3
    assert "- [ ]" not in markdown(replace(section, checks=False))


CHANGES: list[tuple[str, Any, int, str]] = [  # key, its new fields, in how many logs, the item
    (
        "run_stop",
        {"metadata": {"status": "aborted"}},
        1,
        f"Findings: warning RUN140 ({RESULT}, ",
    ),
    ("seed", {"value": 1}, 9, f"Seeds: all runs of a set have the same seed: 1 result set ({SET})"),
    ("lars_opt_base_learning_rate", {"value": 17}, 1, f"Findings: error SET122 ({RESULT}): "),
]


@pytest.mark.parametrize(("key", "fields", "number", "expected"), CHANGES)
def test_values_that_were_changed(
    key: str, fields: Any, number: int, expected: str, root: Path, acme: Path
) -> None:
    logs = simulated()
    changed = (edited(log, key, **fields) for log in logs[:number])
    write_set(acme / LOGS, (*changed, *logs[number:]))
    assert [text for text in texts(root) if text.startswith(expected)], expected


def slow(log: bytes) -> bytes:
    """The log of a run that takes three times as long."""
    begin = next(record["time_ms"] for record in records(log) if record["key"] == "run_start")
    times = {ms: ms + 2 * max(0, ms - begin) for ms in (r["time_ms"] for r in records(log))}
    return joined([{**record, "time_ms": times[record["time_ms"]]} for record in records(log)])


def test_a_slow_run_without_a_seed(root: Path, acme: Path) -> None:
    first, second, *others = (without(log, "seed") for log in simulated())
    write_set(acme / LOGS, (first, slow(second), *others))
    made = "\n".join(texts(root))
    assert (
        f"\nRuns: these runs are unlike the other runs of their set: {SET}/result_1.txt takes 3."
    ) in made
    assert f"Findings: error SEED101 ({RESULT}, result_0.txt): " in made


def test_a_preview(root: Path, acme: Path) -> None:
    (acme / LOGS / "scaling.json").write_text('{"scaling_factor": 1.25}')
    write_system(acme / "systems", status="preview", submitter="ACME")
    made = "\n".join(texts(root))
    assert f"\nStatuses: preview ({SYSTEM})\nStatuses: these Previews need " in made
    factor = "with scaling.json, the scaling factor is 1.25 (expected: 1) and the score is "
    assert f"Findings: note SET120 ({RESULT}, scaling.json): {factor}" in made
    (acme / f"systems/{SYSTEM}.json").unlink()
    assert f"Findings: error SET110 ({RESULT}" in "\n".join(texts(root))


def test_code(root: Path, acme: Path) -> None:
    folder = acme / "benchmarks/resnet/implementations/tf"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("./run_and_time.sh")
    (folder / "run_and_time.sh").write_text("train")
    (folder / "setup.sh").touch()
    (folder / "init_datasets.sh").touch()
    files, without = (text for text in texts(root) if text.startswith("Code: "))
    assert files == "Code: 4 files for resnet: does the code match the logs?"
    assert without.startswith(
        "Code: no file of the code is a configuration or is named after the system: 1 r"
    )
    (folder / f"config_{SYSTEM}.sh").write_text("A=1")
    (files,) = (text for text in texts(root) if text.startswith("Code: "))
    assert files == "Code: 5 files for resnet: does the code match the logs?"


def software(acme: Path, name: str, **fields: Any) -> None:
    """Write a system with this software, and its runs."""
    write_system(acme / "systems", name, submitter="ACME", **fields)
    write_set(acme / f"results/{name}/resnet", simulated(seed=len(name) + ord(name[0])))


def test_software_that_differs_within_the_submission(root: Path, acme: Path) -> None:
    for name, torch, cuda in (("one", "2.2", "12.1"), ("two", "2.1", "12.0")):
        stack = {"cuda": cuda, "nccl": "2"}
        software(acme, name, framework=f"PyTorch {torch}", other_software_stack=stack)
    assert [text for text in texts(root) if text.startswith("Software: ")] == [
        f"{USUAL[-1]}, PyTorch 2.2 (one), PyTorch 2.1 (two)",
    ]


@pytest.mark.parametrize(
    ("before", "item"),
    [
        ("Poplar SDK 2.4.9", None),
        ("Poplar SDK 2.5.1", None),
        ("PopART 9.9", None),
        ("TF 1.15, Poplar SDK 2.10", "Poplar SDK 2.5.1 is older than Poplar SDK 2.10"),
        ("PopART, Poplar-sdk v2.5.1.1", "Poplar SDK 2.5.1 is older than Poplar-sdk v2.5.1.1"),
    ],
)
def test_software_older_than_in_the_round_before(before: str, item: str | None, root: Path) -> None:
    sets = [
        published_set(round="1.1", framework=before),
        published_set(round="1.0", framework="Poplar SDK 9.0"),
        published_set(round="1.1", framework="Poplar SDK 9.0", submitter="Beta"),
        published_set(round="2.1", framework="Poplar SDK 9.0"),
    ]
    older = [text for text in texts(root, *sets) if " is older than " in text]
    assert older == ([] if item is None else [f"Software: {item}, which round 1.1 had"])


def test_many_items_are_cut_and_errors_are_kept(
    root: Path, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_system(acme / "systems", submitter="ACME", cooling="", framework=...)
    write_set(acme / LOGS, tuple(without(log, "seed") for log in simulated()))
    everything = texts(root)
    monkeypatch.setattr(checklist, "MOST_ITEMS", 4)
    made = texts(root)
    assert everything[0].startswith("Findings: error ")
    more = "findings with 2 more codes; 'mlperf-pkg check ACME' shows them"
    assert (len(made), made[0]) == (4, f"Findings: {more}")


def test_broken_logs_and_hostile_names(tmp_path: Path) -> None:
    root = tmp_path / "v2.0"
    write_submission(root / "A|<b>`x`")
    write_submission(root / "Empty")
    for log in (root / "Empty" / LOGS).iterdir():
        log.write_bytes(b"\xff" * 20)
    section = checklist.section(reviewed(root))
    assert len(section.tables) == 2
    assert "<b>" not in markdown(section)
