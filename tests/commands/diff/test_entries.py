"""The changes to the entries of a simulated round in its review."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.diff.entries import entry_verdict
from mlperf_pkg.commands.diff.model import Kind
from mlperf_pkg.rulebook.check import problem_of_source
from tests.helpers.logs import edited, joined, records
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, remove, simulated, write_set, write_submission, write_system

RATE = "lars_opt_base_learning_rate"
WARMUP = "lars_opt_learning_rate_warmup_epochs"
SET = f"results/{SYSTEM}/resnet"
LENT = {RATE: 9.5, WARMUP: 3, "global_batch_size": 4096}

OPEN = {"submission_division": "open"}

Edit = Callable[[Path], object]
Verdict = tuple[str, str, bool | None, str]


def write(tree: Path, values: Mapping[str, Any], seed: int = 7, system: str = SYSTEM) -> Path:
    """Write the only result set of a submission, with these values in all runs."""
    logs = simulated(seed=seed)
    for key, value in values.items():
        logs = tuple(edited(log, key, value=value) for log in logs)
    return write_set(tree / "results" / system / "resnet", logs)


def rerun(submitter: str = "ACME", /, **values: Any) -> Edit:
    """Other runs, with these values of hyperparameters."""
    return lambda new: write(new / submitter, values, seed=9)


def described(submitter: str = "ACME", **fields: Any) -> Edit:
    return lambda new: write_system(new / submitter / "systems", **fields)


def both(*edits: Edit) -> Edit:
    def edit(new: Path) -> None:
        for one in edits:
            one(new)

    return edit


def scaled(nodes: int, *, seed: int = 9, **values: Any) -> Edit:
    """The entry of ACME on another number of nodes, as a system of its own."""

    def edit(new: Path) -> None:
        shutil.rmtree(new / "ACME")
        write_system(new / "ACME/systems", "pod", number_of_nodes=str(nodes), system_name="pod")
        write(new / "ACME", values, seed=seed, system="pod")

    return edit


def renamed(new: Path) -> None:
    (new / f"ACME/systems/{SYSTEM}.json").rename(new / "ACME/systems/x.json")
    (new / f"ACME/results/{SYSTEM}").rename(new / "ACME/results/x")


def to_open(new: Path) -> None:
    write_system(new / "ACME/systems", division="open")
    write(new / "ACME", OPEN)


def code(new: Path) -> None:
    for name in ("train.py", "a/config.sh", "../README.md"):
        file = new / "ACME/benchmarks/resnet" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    write_system(new / "ACME/systems", cooling="water")


def noted(new: Path) -> None:
    for log in (new / "ACME" / SET).iterdir():
        log.write_bytes(log.read_bytes() + b"a line\n")


def edited_in(text: str) -> list[Verdict]:
    return [(f"ACME/{SET}", "logs edited", None, text)]


def log_edit(edit: Callable[[bytes], bytes], of: str = "result_0.txt") -> Edit:
    """The first log, written again from this one."""

    def write_log(new: Path) -> None:
        folder = new / "ACME" / SET
        (folder / "result_0.txt").write_bytes(edit((folder / of).read_bytes()))

    return write_log


def cut(log: bytes, number: int) -> bytes:
    """The log without the first evaluations."""
    gone = [record for record in records(log) if record["key"] == "eval_accuracy"][:number]
    return joined([record for record in records(log) if record not in gone])


def last(log: bytes, **changes: Any) -> bytes:
    """The log with other fields in its last evaluation."""
    every = records(log)
    index = max(i for i, record in enumerate(every) if record["key"] == "eval_accuracy")
    return joined([*every[:index], {**every[index], **changes}, *every[index + 1 :]])


def late(log: bytes, by: int) -> bytes:
    """The log with a later start of the clock."""
    return joined(
        [{**r, "time_ms": r["time_ms"] + by * (r["key"] == "run_start")} for r in records(log)]
    )


def noisy(log: bytes) -> bytes:
    """A copy a day later, with another seed and noise in its evaluations."""
    noise = {"eval_accuracy": 1 + 1e-6}
    every = [
        {
            **record,
            "time_ms": record["time_ms"] + 86_400_000,
            "value": record["value"] * noise.get(record["key"], 1)
            if record["key"] in noise
            else record["value"],
        }
        for record in records(log)
    ]
    return edited(joined(every), "seed", value=99)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A round of two submitters: ACME on 16 accelerators, Other with other hyperparameters."""
    root = tmp_path / "old"
    write_submission(root / "ACME")
    write_submission(root / "Other", seed=8)
    write(root / "Other", LENT, seed=8)
    return root


ACME, OTHER = f"ACME/{SET}", f"Other/{SET}"
ALL = f"all 9 hyperparameters of {OTHER}"
BORROWED = {RATE: 9.5, WARMUP: 3}
IN_PART = f"8 of 9 from {OTHER}; different: {WARMUP}"
CHANGED = "software changed: framework; system changed: cooling"
COOLING = "cooling (the same runs)"
FASTER: Verdict = (ACME, "score changed", None, "by +1.5 %: 19.565 to 19.864 minutes")
NEW: Verdict = (ACME, "runs replaced", None, "5 of 5 runs new, 5 gone")
ALLOWED: list[Verdict] = [(entry, kind, True, text) for entry, kind, _, text in (NEW, FASTER)]
LOAN: list[Verdict] = [(ACME, "borrowed", True, ALL), *ALLOWED]


@pytest.mark.parametrize(
    ("edit", "verdicts"),
    [
        (lambda _: None, []),
        (rerun(), [NEW, FASTER]),
        (rerun(**BORROWED), LOAN),
        (rerun(**BORROWED, global_batch_size=4000), LOAN),
        (rerun(**{RATE: 9.5}), [(ACME, "borrowed in part", False, IN_PART), NEW, FASTER]),
        (
            both(rerun(**BORROWED), described(framework="new", cooling="water")),
            [
                (ACME, "borrowed", False, f"{ALL}; {CHANGED}"),
                (ACME, "description changed", None, "cooling, framework (new runs)"),
                NEW,
                FASTER,
            ],
        ),
        (
            lambda new: write(new / "ACME", BORROWED),
            [
                (ACME, "borrowed", False, f"{ALL}; 5 runs of the earlier entry"),
                (ACME, "logs edited", None, "hyperparameters altered in 5 logs"),
            ],
        ),
        (
            rerun(**{RATE: 7.5}),
            [(ACME, "hyperparameters changed", None, f"{RATE} 10.284 -> 7.5"), NEW, FASTER],
        ),
        (
            rerun(global_batch_size=4096),
            [
                (ACME, "hyperparameters changed", None, "global_batch_size 3264 -> 4096"),
                NEW,
                FASTER,
            ],
        ),
        (described(cooling="water"), [(ACME, "description changed", None, COOLING)]),
        (noted, edited_in("text outside the records in 5 logs")),
        (log_edit(lambda log: cut(log, 2)), edited_in("evaluations removed in 1 log")),
        (log_edit(lambda log: last(log, value=0.7591)), edited_in("evaluations altered in 1 log")),
        (
            log_edit(lambda log: log.replace(b'"lineno": ', b'"lineno": 1')),
            edited_in("lines of code altered in 1 log"),
        ),
        (log_edit(lambda log: edited(log, "seed", value=4)), edited_in("seeds altered in 1 log")),
        (
            log_edit(lambda log: edited(log, RATE, value=9.5)),
            [
                (ACME, "hyperparameters changed", None, f"{RATE} 10.284 -> 10.284, 9.5"),
                *edited_in("hyperparameters altered in 1 log"),
            ],
        ),
        (log_edit(lambda log: late(log, 12_000)), edited_in("times moved in 1 log")),
        (
            log_edit(
                lambda log: joined([{**r, "time_ms": r["time_ms"] + 5000} for r in records(log)])
            ),
            edited_in("times moved in 1 log"),
        ),
        (
            log_edit(noisy, "result_3.txt"),
            [
                (
                    ACME,
                    "copied",
                    False,
                    "1 run from this entry itself: result_3.txt as result_0.txt",
                ),
                (ACME, "score changed", None, "by +0.2 %: 19.565 to 19.597 minutes"),
            ],
        ),
        (to_open, [(ACME, "moved to Open", True, "5 runs, 19.565 minutes")]),
        (
            both(to_open, lambda new: write(new / "ACME", {**OPEN, RATE: 9.5}, seed=9)),
            [
                (ACME, "hyperparameters changed", True, f"{RATE} 10.284 -> 9.5"),
                (ACME, "moved to Open", True, "5 runs, 19.864 minutes"),
                NEW,
                FASTER,
            ],
        ),
        (
            code,
            [
                ("ACME/benchmarks/resnet", "code changed", None, "2 files"),
                (ACME, "description changed", None, COOLING),
            ],
        ),
        (lambda new: remove(new / "ACME"), [(ACME, "withdrawn", True, "5 runs, 19.565 minutes")]),
        (
            lambda new: write_submission(new / "Late", seed=10),
            [(f"Late/{SET}", "added", None, "5 runs, 19.586 minutes")],
        ),
        (
            lambda new: write_submission(new / "Late"),
            [(f"Late/{SET}", "copied", False, f"5 of 5 runs from {ACME}")],
        ),
        (renamed, [("ACME/results/x/resnet", "renamed", None, f"was {ACME}")]),
        (
            both(renamed, lambda new: write(new / "ACME", {}, seed=9, system="x")),
            [
                ("ACME/results/x/resnet", "withdrawn and added again", None, f"was {ACME}"),
                ("ACME/results/x/resnet", *NEW[1:]),
                ("ACME/results/x/resnet", *FASTER[1:]),
            ],
        ),
        (
            described(number_of_nodes=8, accelerators_per_node=2),
            [
                (ACME, "nodes changed", None, "1 to 8 (the same runs)"),
                (ACME, "description changed", None, "accelerators_per_node (the same runs)"),
            ],
        ),
        (
            described(status="Research"),
            [
                (ACME, "availability changed", None, "Available on-premise to Research"),
                (
                    ACME,
                    "description against logs",
                    None,
                    "submission_status is onprem; expected Research as in"
                    f" ACME/systems/{SYSTEM}.json",
                ),
            ],
        ),
        (
            described(division="open"),
            [
                (ACME, "moved to Open", True, "5 runs, 19.565 minutes"),
                (
                    ACME,
                    "description against logs",
                    None,
                    f"the division is closed in the logs, but open in ACME/systems/{SYSTEM}.json",
                ),
            ],
        ),
        (
            lambda new: (new / ACME / "scaling.json").write_text('{"scaling_factor": 1.1}'),
            [(ACME, "scaling.json changed", None, "scaling.json added")],
        ),
    ],
)
def test_verdicts(old: Path, tmp_path: Path, edit: Edit, verdicts: list[Verdict]) -> None:
    new = tmp_path / "new"
    shutil.copytree(old, new)
    edit(new)
    assert found(old, new) == verdicts


def found(*arguments: Any) -> list[Verdict]:
    result = call("diff", *arguments, "--round", "2.0", "--format", "json")
    assert result.stderr == ""
    entries = json.loads(result.stdout)["entries"]
    return [(e["entry"], e["kind"], e["allowed"], e["text"]) for e in entries]


@pytest.mark.parametrize(
    ("nodes", "values", "allowed", "text"),
    [
        (4, BORROWED, True, "16 to 64 accelerators"),
        (8, BORROWED, False, "16 to 128 accelerators; the largest scale submitted is 64"),
        (4, {}, False, "16 to 64 accelerators; without borrowed hyperparameters"),
    ],
)
def test_scale(
    old: Path, tmp_path: Path, nodes: int, values: dict[str, Any], allowed: bool, text: str
) -> None:
    write_system(old / "ACME/systems", "large", number_of_nodes="4")
    bert = simulated("bert")
    write_set(old / "ACME/results/large/bert", bert)
    new = tmp_path / "new"
    shutil.copytree(old, new)
    scaled(nodes, **values)(new)
    write_set(new / "ACME/results/pod/bert", bert)
    by_kind = {kind: verdict for _, kind, *verdict in found(old, new)}
    assert by_kind["scale changed"] == [allowed, text]
    assert ("borrowed" in by_kind) == bool(values)


def test_not_lent(tmp_path: Path) -> None:
    """The logs of llama31_405b have their own rules; its hyperparameters are not borrowed."""
    root = tmp_path / "old"
    for name, rate in (("ACME", 1.0), ("Other", 2.0)):
        logs = simulated("llama31_405b", round_="5.0", seed=7)
        write_system(root / name / "systems")
        logs = tuple(edited(log, "opt_base_learning_rate", value=rate) for log in logs)
        write_set(root / name / f"results/{SYSTEM}/llama31_405b", logs)
    shutil.copytree(root, tmp_path / "new")
    logs = simulated("llama31_405b", round_="5.0", seed=9)
    logs = tuple(edited(log, "opt_base_learning_rate", value=2.0) for log in logs)
    write_set(tmp_path / f"new/ACME/results/{SYSTEM}/llama31_405b", logs)
    result = call("diff", root, tmp_path / "new", "--round", "5.0", "--format", "json")
    entry = json.loads(result.stdout)["entries"][0]
    assert (entry["kind"], entry["allowed"]) == ("borrowed", False)
    assert "not allowed for llama31_405b" in entry["text"]


def test_one_submission_of_a_round(old: Path, tmp_path: Path) -> None:
    """The lender is in the round that is named, or of which the new side is a submission."""
    new = tmp_path / "new"
    shutil.copytree(old, new)
    rerun(**BORROWED)(new)
    for arguments in ([old, new / "ACME"], [old / "ACME", new / "ACME", "--borrowed-from", old]):
        assert [rest for _, *rest in found(*arguments)] == [list(verdict[1:]) for verdict in LOAN]
    assert found(old / "ACME", new / "ACME")[0][1] == "hyperparameters changed"


@pytest.mark.parametrize(
    ("fields", "status", "allowed", "text"),
    [
        ({}, "onprem", True, "with the same description"),
        ({"cooling": "water"}, "onprem", False, "with another description: cooling"),
        ({}, "preview", False, "of a Preview"),
    ],
)
def test_resubmitted(
    tmp_path: Path, fields: dict[str, Any], status: str, allowed: bool, text: str
) -> None:
    old, new = (tmp_path / f"training_results_{round_}" for round_ in ("v2.0", "v2.1"))
    for folder, values in ((old, {"status": status}), (new, {"status": "onprem", **fields})):
        write_submission(folder / "ACME")
        write_system(folder / "ACME/systems", **values)
    result = call("diff", old, new, "--format", "json")
    entry, *others = json.loads(result.stdout)["entries"]
    assert entry["kind"] == "resubmitted"
    assert entry["text"] == f"5 of 5 runs from {SET} of round 2.0; {text}"
    assert entry["allowed"] is allowed
    assert [item["text"] for item in others] == (
        ["preview to onprem"] if status == "preview" else []
    )


def test_rules() -> None:
    for kind in Kind:
        verdict = entry_verdict(kind, "entry", "text", allowed=None)
        assert verdict.rule
        assert not problem_of_source(verdict.source)


def test_text(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    shutil.copytree(old, new)
    both(rerun(**{RATE: 9.5}), rerun("Other"))(new)
    for format_, heading in (("text", ""), ("markdown", "### ")):
        result = call("diff", old, new, "--round", "2.0", "--format", format_)
        assert f"{heading}borrowed in part - against the rules" in result.stdout
        assert "training_rules, Hyperparameter Borrowing" in " ".join(result.stdout.split())
        assert result.exit_code == 1


def test_the_folder_of_a_submission_may_have_any_name(old: Path, tmp_path: Path) -> None:
    """Descriptions identify a single submission; another submitter is not a new version."""
    new = tmp_path / "fixed"
    shutil.copytree(old / "ACME", new)
    write_system(new / "systems", cooling="water")
    assert found(old / "ACME", new) == [(SET, "description changed", None, COOLING)]
    write_system(new / "systems", submitter="Somebody else")
    assert found(old / "ACME", new) == []
