"""The checklist of a submission, from simulated rounds with changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review import checklist
from mlperf_pkg.commands.review.checklist import subjects
from mlperf_pkg.commands.review.files import markdown, page, review_of
from mlperf_pkg.commands.review.round import Entry, Round, Side
from mlperf_pkg.published.model import PublishedSet
from tests.helpers.logs import edited, without
from tests.helpers.published import published_set
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

LOGS = f"results/{SYSTEM}/resnet"
SET = f"{SYSTEM}/resnet"


def reviewed(root: Path, *published: PublishedSet) -> Round:
    earlier = Side("earlier", tuple(Entry(row, ()) for row in published))
    return Round(check([str(root)], Options(jobs=1)), previous=earlier)


def texts(root: Path, *published: PublishedSet, name: str = "ACME") -> list[str]:
    """The items of one submission, with their topics; ``published`` are sets of earlier rounds."""
    every = subjects(reviewed(root, *published))
    subject = next(subject for subject in every if subject.name == name)
    return [f"{item.topic}: {item.text}" for item in checklist.items(subject)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A round of one submission."""
    write_system(write_submission(tmp_path / "v2.0/ACME") / "systems", submitter="ACME")
    return tmp_path / "v2.0"


@pytest.fixture
def acme(root: Path) -> Path:
    return root / "ACME"


USUAL = [
    "Code: no benchmarks/ folder: does the code in the repository match the logs?",
    f"Statuses: Available on-premise ({SYSTEM}): can customers get the available systems now?",
    f"Software: framework: PopART, Poplar SDK 2.5.1 ({SYSTEM})",
]


def test_a_submission_without_changes(root: Path) -> None:
    assert texts(root) == USUAL


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
    assert section.tables["ACME"].note == (
        "1 result set of 1 system (resnet); 0 fail officially, 0 by the rules."
    )


def test_it_can_be_ticked_off(root: Path) -> None:
    round_ = reviewed(root)
    section = checklist.section(round_)
    assert "\n- [ ] Code: no benchmarks/ folder: " in markdown(section)
    html = page(review_of(round_, [section]))
    assert html.count('<input type="checkbox">') == 3
    assert "- [ ]" not in markdown(replace(section, checks=False))


def diverged(acme: Path) -> None:
    logs = simulated()
    write_set(acme / LOGS, (edited(logs[0], "run_stop", metadata={"status": "aborted"}), *logs[1:]))


def slow(acme: Path) -> None:
    logs = list(simulated())
    records = [json.loads(line.removeprefix(b":::MLLOG ")) for line in logs[1].splitlines()]
    begin = next(record["time_ms"] for record in records if record["key"] == "run_start")
    for record in records:
        record["time_ms"] += 2 * max(0, record["time_ms"] - begin)
    logs[1] = b"".join(b":::MLLOG " + json.dumps(record).encode() + b"\n" for record in records)
    write_set(acme / LOGS, tuple(logs))


def seedless(acme: Path) -> None:
    write_set(acme / LOGS, tuple(without(log, "seed") for log in simulated()))


def same_seed(acme: Path) -> None:
    write_set(acme / LOGS, tuple(edited(log, "seed", value=1) for log in simulated()))


def different_runs(acme: Path) -> None:
    logs = simulated()
    first = edited(logs[0], "lars_opt_base_learning_rate", value=17)
    write_set(acme / LOGS, (first, *logs[1:]))


def scaled(acme: Path) -> None:
    (acme / LOGS / "scaling.json").write_text('{"scaling_factor": 1.25}')


def preview(acme: Path) -> None:
    write_system(acme / "systems", status="preview", submitter="ACME")


def no_description(acme: Path) -> None:
    (acme / f"systems/{SYSTEM}.json").unlink()


def large(acme: Path) -> None:
    write_set(
        acme / LOGS, tuple(edited(log, "global_batch_size", value=1 << 20) for log in simulated())
    )


def coded(acme: Path) -> None:
    folder = acme / "benchmarks/resnet/implementations/tf"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("./run_and_time.sh")
    (folder / "run_and_time.sh").write_text("train")


def configured(acme: Path) -> None:
    coded(acme)
    (acme / f"benchmarks/resnet/implementations/tf/config_{SYSTEM}.sh").write_text("A=1")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (diverged, f"Runs: warning RUN140, {SET}: run_stop says"),
        (slow, f"Runs: unlike the other runs of their set: {SET}/result_1.txt takes 3."),
        (seedless, f"Seeds: error SEED101, {SET}: "),
        (same_seed, f"Seeds: the same seed in all runs: 1 result set ({SET})"),
        (different_runs, f"Hyperparameters: error SET122, {SET}: the runs have different"),
        (scaled, f"Convergence: note SET120, {SET}: scaling_factor is 1.25"),
        (
            preview,
            f"Statuses: Previews, which require Available successors with new logs: {SYSTEM}",
        ),
        (preview, f"Statuses: preview ({SYSTEM})"),
        (no_description, f"Descriptions: error SET110, {SET}: "),
        (large, f"Convergence: no reference point: 1 result set ({SET})"),
        (coded, "Code: 2 files for resnet: does the code match the logs?"),
        (coded, "Code: no file is named after the system or is a configuration: 1 result set"),
        (configured, "Code: 3 files for resnet: does the code match the logs?"),
    ],
)
def test_what_was_changed(
    root: Path, acme: Path, change: Callable[[Path], None], expected: str
) -> None:
    assert not any(text.startswith(expected) for text in USUAL)
    change(acme)
    assert [text for text in texts(root) if text.startswith(expected)]


def test_a_configuration(root: Path, acme: Path) -> None:
    configured(acme)
    assert not any(text.startswith("Code: no file is named") for text in texts(root))


def software(acme: Path, name: str, **fields: Any) -> None:
    """Write a system with this software, and its runs."""
    write_system(acme / "systems", name, submitter="ACME", **fields)
    write_set(acme / f"results/{name}/resnet", simulated(seed=len(name) + ord(name[0])))


def test_software_that_differs_within_the_submission(root: Path, acme: Path) -> None:
    for name, torch, cuda in (("one", "2.2", "12.1"), ("two", "2.1", "12.0")):
        stack = {"cuda": cuda, "nccl": "2"}
        software(acme, name, framework=f"PyTorch {torch}", other_software_stack=stack)
    made = texts(root)
    assert (
        f"Software: framework: PopART, Poplar SDK 2.5.1 ({SYSTEM}), PyTorch 2.2 (one), PyTorch 2.1 (two)"
        in made
    )
    assert "Software: differs between systems: cuda 12.1 (one), 12.0 (two)" in made


def test_software_older_than_in_the_round_before(root: Path) -> None:
    for before, item in (
        ("Poplar SDK 2.4.9", None),
        ("Poplar SDK 2.5.1", None),
        ("PopART 9.9", None),
        ("TF 1.15, Poplar SDK 2.10", "Poplar SDK 2.5.1; before Poplar SDK 2.10"),
        ("PopART, Poplar-sdk v2.5.1.1", "Poplar SDK 2.5.1; before Poplar-sdk v2.5.1.1"),
    ):
        sets = [
            published_set(round="1.1", framework=before),
            published_set(round="1.0", framework="Poplar SDK 9.0"),
            published_set(round="1.1", framework="Poplar SDK 9.0", submitter="Beta"),
            published_set(round="2.1", framework="Poplar SDK 9.0"),
        ]
        older = [text for text in texts(root, *sets) if text.startswith("Software: older")]
        assert older == ([] if item is None else [f"Software: older than in 1.1: {item}"])


def test_many_items_are_cut_and_errors_are_kept(
    root: Path, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_system(acme / "systems", submitter="ACME", cooling="", framework=...)
    seedless(acme)
    everything = texts(root)
    monkeypatch.setattr(checklist, "MOST_ITEMS", 4)
    made = texts(root)
    errors = [text for text in everything if ": error " in text]
    assert len(everything) > 4
    assert len(made) == 4
    assert made[-1] == (
        f"Files: {len(everything) - 3} more kinds of findings; mlperf-pkg check ACME shows them"
    )
    assert all(text in made for text in errors[:3])


def test_broken_logs_and_hostile_names(tmp_path: Path) -> None:
    root = tmp_path / "v2.0"
    write_submission(root / "A|<b>`x`")
    write_submission(root / "Empty")
    for log in (root / "Empty" / LOGS).iterdir():
        log.write_bytes(b"\xff" * 20)
    section = checklist.section(reviewed(root))
    assert len(section.tables) == 2
    assert "<b>" not in markdown(section)
