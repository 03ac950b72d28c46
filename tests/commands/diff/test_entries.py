"""The changes to the entries of a simulated round in its review."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.diff.changes import ChangeKind
from mlperf_pkg.rulebook.check import problem_of_source
from tests.helpers.logs import edited, joined, records
from tests.helpers.power import measure, node
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, remove, simulated, write_set, write_submission, write_system
from tests.helpers.workspaces import lay

RATE = "lars_opt_base_learning_rate"
WARMUP = "lars_opt_learning_rate_warmup_epochs"
SET = f"results/{SYSTEM}/resnet"
LENT = {RATE: 9.5, WARMUP: 3, "global_batch_size": 4096}

OPEN = {"submission_division": "open"}

Edit = Callable[[Path], object]


def write(tree: Path, values: Mapping[str, Any], seed: int = 7, system: str = SYSTEM) -> Path:
    """Write the only result set of a submission, with these values in all runs."""
    logs = simulated(seed=seed)
    for key, value in values.items():
        logs = tuple(edited(log, key, value=value) for log in logs)
    return write_set(tree / "results" / system / "resnet", logs)


def rerun(**values: Any) -> Edit:
    """Other runs, with these values of hyperparameters."""
    return lambda new: write(new / "ACME", values, seed=9)


def described(**fields: Any) -> Edit:
    return lambda new: write_system(new / "ACME/systems", **fields)


def both(*edits: Edit) -> Edit:
    return lambda new: [edit(new) for edit in edits]


def renamed(new: Path) -> None:
    (new / f"ACME/systems/{SYSTEM}.json").rename(new / "ACME/systems/x.json")
    (new / f"ACME/results/{SYSTEM}").rename(new / "ACME/results/x")


def to_open(new: Path) -> None:
    write_system(new / "ACME/systems", division="open")
    write(new / "ACME", OPEN)


def code(new: Path) -> None:
    files = dict.fromkeys(("resnet/train.py", "resnet/a/config.sh", "README.md"), b"text")
    lay(new / "ACME/benchmarks", files)


def noted(new: Path) -> None:
    for log in (new / "ACME" / SET).iterdir():
        log.write_bytes(log.read_bytes() + b"a line\n")


def log_edit(edit: Callable[[bytes], bytes], of: str = "result_0.txt") -> Edit:
    """The first log, written again from this one."""

    def write_log(new: Path) -> None:
        folder = new / "ACME" / SET
        (folder / "result_0.txt").write_bytes(edit((folder / of).read_bytes()))

    return write_log


def evaluated(log: bytes, first: int, **changes: Any) -> bytes:
    """The log from its ``first`` evaluation on, the last one with other fields."""
    every = records(log)
    evaluations = [record for record in every if record["key"] == "eval_accuracy"]
    evaluations[-1].update(changes)
    return joined([record for record in every if record not in evaluations[:first]])


def moved(log: bytes, by: int, key: str = "") -> bytes:
    """The log with later times, of the records of this key or of all."""
    every = records(log)
    for record in every:
        record["time_ms"] += by * (key in ("", record["key"]))
    return joined(every)


def repeated(log: bytes) -> bytes:
    """Another run with the same seed, which repeats the values, but not the times."""
    every = records(log)
    for number, record in enumerate(every):
        record["time_ms"] += 86_400_000 + 7919 * number % 997
    return joined(every)


def noisy(log: bytes) -> bytes:
    """A copy a day later, with another seed and noise in its evaluations."""
    every = records(moved(log, 86_400_000))
    for record in every:
        if record["key"] == "eval_accuracy":
            record["value"] *= 1 + 1e-6
    return edited(joined(every), "seed", value=99)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A round of two submitters: ACME on 16 accelerators, Other with other hyperparameters."""
    root = tmp_path / "old"
    write_submission(root / "ACME")
    write_submission(root / "Other", seed=8)
    write_system(root / "Other/systems", submitter="Other")
    write(root / "Other", LENT, seed=8)
    return root


@pytest.fixture
def new(old: Path) -> Path:
    """A copy of the round."""
    return Path(shutil.copytree(old, old.with_name("new")))


ACME, OTHER = f"ACME/{SET}", f"Other/{SET}"
ALL = f"all 9 hyperparameters of {OTHER}"
BORROWED = {RATE: 9.5, WARMUP: 3}
CHANGED = "the software changed in framework; the system changed in cooling"
COOLING = "description changed (None): cooling (the same runs)"
OF_RUN = "5 runs, 19.565 minutes"
FASTER = "by +1.5 %: 19.565 to 19.864 minutes"
NEW = ["runs replaced (None): 5 of 5 runs new, 5 gone", f"score changed (None): {FASTER}"]
LOAN = [f"borrowed (True): {ALL}", *(text.replace("(None)", "(True)") for text in NEW)]
AGAINST = "description against logs (None)"
DESCRIPTION = f"ACME/systems/{SYSTEM}.json"

EDITED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("evaluations removed", lambda log: evaluated(log, 2)),
    ("evaluations altered", lambda log: evaluated(log, 0, value=0.7591)),
    ("lines of code altered", lambda log: log.replace(b'"lineno": ', b'"lineno": 1')),
    ("times moved", lambda log: moved(log, 12_000, "run_start")),
    ("times moved", lambda log: moved(log, 5_000)),
]
"""What is found of an edit in one log."""


@pytest.mark.parametrize(
    ("edit", "verdicts"),
    [
        (lambda _: None, []),
        (rerun(), NEW),
        (rerun(**BORROWED), LOAN),
        (rerun(**BORROWED, global_batch_size=4000), LOAN),
        (
            rerun(**{RATE: 9.5}),
            [f"borrowed in part (False): 8 of 9 from {OTHER}; different: {WARMUP}", *NEW],
        ),
        (
            both(rerun(**BORROWED), described(framework="new", cooling="water")),
            [
                f"borrowed (False): {ALL}; {CHANGED}",
                "description changed (None): cooling, framework (new runs)",
                *NEW,
            ],
        ),
        (
            lambda new: write(new / "ACME", BORROWED),
            [
                f"borrowed (False): {ALL}; still has 5 runs of the earlier entry",
                "logs edited (None): hyperparameters altered in 5 logs",
            ],
        ),
        (rerun(**{RATE: 7.5}), [f"hyperparameters changed (None): {RATE} 10.284 -> 7.5", *NEW]),
        (
            rerun(global_batch_size=4096),
            ["hyperparameters changed (None): global_batch_size 3264 -> 4096", *NEW],
        ),
        (described(cooling="water"), [COOLING]),
        (noted, ["logs edited (None): text outside the records in 5 logs"]),
        (
            log_edit(repeated),
            ["runs replaced (None): 1 of 5 runs new, 1 gone"],
        ),
        *((log_edit(edit), [f"logs edited (None): {text} in 1 log"]) for text, edit in EDITED),
        (
            log_edit(noisy, "result_3.txt"),
            [
                "copied (False): 1 run from this entry itself: result_3.txt as result_0.txt",
                "score changed (None): by +0.2 %: 19.565 to 19.597 minutes",
            ],
        ),
        (to_open, [f"moved to Open (True): {OF_RUN}"]),
        (
            both(to_open, lambda new: write(new / "ACME", {**OPEN, RATE: 9.5}, seed=9)),
            [
                f"hyperparameters changed (True): {RATE} 10.284 -> 9.5",
                "moved to Open (True): 5 runs, 19.864 minutes",
                *NEW,
            ],
        ),
        (
            code,
            [
                "ACME/benchmarks/resnet: code changed (None): 2 files: a/config.sh added,"
                " train.py added"
            ],
        ),
        (lambda new: remove(new / "ACME"), [f"withdrawn (True): {OF_RUN}"]),
        (
            lambda new: write_submission(new / "Late", seed=10),
            [f"Late/{SET}: added (None): 5 runs, 19.586 minutes"],
        ),
        (
            lambda new: write_submission(new / "Late"),
            [f"Late/{SET}: copied (False): 5 of 5 runs from {ACME}"],
        ),
        (renamed, [f"ACME/results/x/resnet: renamed (None): was {ACME}"]),
        (
            both(renamed, lambda new: write(new / "ACME", {}, seed=9, system="x")),
            [
                f"ACME/results/x/resnet: {text}"
                for text in (f"withdrawn and added again (None): was {ACME}", *NEW)
            ],
        ),
        (
            described(number_of_nodes=8, accelerators_per_node=2),
            [
                "nodes changed (None): 1 to 8 (the same runs)",
                "description changed (None): accelerators_per_node (the same runs)",
            ],
        ),
        (
            described(status="Research"),
            [
                "availability changed (None): Available on-premise to Research",
                f'{AGAINST}: submission_status is "onprem"; expected "Research", as in'
                f" {DESCRIPTION}",
            ],
        ),
        (
            described(division="open"),
            [
                f"moved to Open (True): {OF_RUN}",
                f'{AGAINST}: the division is "closed" in the logs, but "open" in {DESCRIPTION}',
            ],
        ),
        (
            lambda new: (new / ACME / "scaling.json").write_text('{"scaling_factor": 1.1}'),
            ["scaling.json changed (None): scaling.json added"],
        ),
    ],
    ids=[
        "nothing",
        "new runs",
        "borrowed hyperparameters",
        "another batch size",
        "borrowed in part",
        "borrowed, described anew",
        "borrowed by old runs",
        "own hyperparameters",
        "own batch size",
        "another description",
        "text outside the records",
        "a run that was repeated",
        *(text for text, _ in EDITED),
        "a copy with noise",
        "moved to Open",
        "moved to Open, other runs",
        "other code",
        "withdrawn",
        "added",
        "added as a copy",
        "renamed",
        "withdrawn and added",
        "other nodes",
        "another availability",
        "another division",
        "scaled",
    ],
)
def test_verdicts(old: Path, new: Path, edit: Edit, verdicts: list[str]) -> None:
    edit(new)
    assert found(old, new) == verdicts


def found(*arguments: Any, round_: str = "2.0") -> list[str]:
    """The kinds of changes, whether they are allowed, and the details; entries other than
    ACME's.
    """
    result = call("diff", *arguments, *["--round", round_][: 2 * bool(round_)], "--format", "json")
    assert result.stderr == ""
    return [
        f"{e['entry']}: {e['kind']} ({e['allowed']}): {e['text']}".removeprefix(f"{ACME}: ")
        for e in json.loads(result.stdout)["entries"]
    ]


@pytest.mark.parametrize(
    ("nodes", "values", "allowed", "text"),
    [
        (4, BORROWED, True, "16 to 64 accelerators"),
        (
            8,
            BORROWED,
            False,
            "16 to 128 accelerators; the new scale is larger than the largest scale submitted"
            " (64 accelerators)",
        ),
        (4, {}, False, "16 to 64 accelerators; without borrowed hyperparameters"),
    ],
)
def test_scale(
    old: Path, new: Path, nodes: int, values: dict[str, Any], allowed: bool, text: str
) -> None:
    """The entry of ACME on another number of nodes, as a system of its own."""
    write_system(old / "ACME/systems", "large", number_of_nodes="4")
    bert = simulated("bert")
    write_set(old / "ACME/results/large/bert", bert)
    shutil.rmtree(new / "ACME")
    write_system(new / "ACME/systems", "pod", number_of_nodes=str(nodes), system_name="pod")
    write(new / "ACME", values, seed=9, system="pod")
    write_set(new / "ACME/results/pod/bert", bert)
    verdicts = found(old, new)
    assert f"ACME/results/pod/resnet: scale changed ({allowed}): {text}" in verdicts
    assert any(": borrowed (" in verdict for verdict in verdicts) is bool(values)


def test_not_lent(tmp_path: Path) -> None:
    """The logs of llama31_405b have their own rules; its hyperparameters are not borrowed."""
    name = "llama31_405b"
    for path, rate, seed in (("old/ACME", 1, 7), ("old/Other", 2, 7), ("new/ACME", 2, 9)):
        logs = simulated(name, round_="5.0", seed=seed)
        logs = tuple(edited(log, "opt_base_learning_rate", value=rate) for log in logs)
        write_set(tmp_path / path / f"results/{SYSTEM}/{name}", logs)
        write_system(tmp_path / path / "systems", submitter=path.rpartition("/")[2])
    borrowed = found(tmp_path / "old", tmp_path / "new/ACME", round_="5.0")[0]
    assert " borrowed (False): " in borrowed
    assert "borrowing is not allowed for llama31_405b" in borrowed


def test_one_submission_of_a_round(old: Path, new: Path) -> None:
    """The lender is in the round that is named, or of which the new side is a submission."""
    rerun(**BORROWED)(new)
    assert [
        arguments
        for arguments in ([old, new / "ACME"], [old / "ACME", new / "ACME", "--borrowed-from", old])
        if found(*arguments) != [f"{SET}: {verdict}" for verdict in LOAN]
    ] == []
    assert "hyperparameters changed" in found(old / "ACME", new / "ACME")[0]


ALLOWED = "the rules allow submitting these runs again, because the system description is the same"
LATER = " (the rules forbid such changes only from round 5.1 on)"


@pytest.mark.parametrize(
    ("status", "cooling", "verdict"),
    [
        ("onprem", "Air-cooled", f"(True): {ALLOWED} ({{}})"),
        ("Available on-premise", "Air-cooled", f"(True): {ALLOWED} ({{}})"),
        ("onprem", "water", f"(None): the description differs in cooling{LATER} ({{}})"),
        ("preview", "Air-cooled", f"(None): a former Preview needs new runs{LATER} ({{}})"),
    ],
)
def test_resubmitted(tmp_path: Path, status: str, cooling: str, verdict: str) -> None:
    old, new = (tmp_path / f"training_results_{round_}" for round_ in ("v2.0", "v2.1"))
    for folder in (old, new):
        write_submission(folder / "ACME")
    write_system(old / "ACME/systems", status=status)
    write_system(new / "ACME/systems", status="onprem", cooling=cooling)
    origin = f"round 2.0: 5 of 5 runs from {SET}"
    resubmitted, *others = found(old, new, round_="")
    assert resubmitted == f"{SET}: resubmitted {verdict.format(origin)}"
    assert len(others) == (status == "preview")  # which became available


@pytest.mark.parametrize("kind", ChangeKind)
def test_rules(kind: ChangeKind) -> None:
    assert kind.rule
    assert not problem_of_source(kind.source)


def test_the_folder_of_a_submission_may_have_any_name(old: Path, tmp_path: Path) -> None:
    """Descriptions identify a single submission; another submitter is not a new version."""
    new = tmp_path / "fixed"
    shutil.copytree(old / "ACME", new)
    write_system(new / "systems", cooling="water")
    assert found(old / "ACME", new) == [f"{SET}: {COOLING}"]
    write_system(new / "systems", submitter="Somebody else")
    assert found(old / "ACME", new) == []


# ---- power and code -------------------------------------------------------------------------

NODE = "node_0.txt"


def swapped(power: Path) -> None:
    """The power logs of two runs, each in the folder of the other."""
    (power / "result_0").rename(power / "x")
    (power / "result_1").rename(power / "result_0")
    (power / "x").rename(power / "result_1")


def from_other(power: Path) -> None:
    """A power log of the other submitter's first run."""
    other = power.parents[4] / OTHER / "power/result_0" / NODE
    (power / "result_2" / NODE).write_bytes(other.read_bytes())


@pytest.mark.parametrize(
    ("edit", "verdict"),
    [
        (
            swapped,
            "power logs changed (None): 1 log moved from power/result_0 to power/result_1;"
            " 1 log moved from power/result_1 to power/result_0",
        ),
        (
            from_other,
            f"power logs changed (False): 1 log moved here from {OTHER}",
        ),
        (
            lambda power: (power / "result_0" / NODE).rename(power / "result_0/node_1.txt"),
            "power logs changed (None): 1 log renamed in power/result_0",
        ),
        (
            lambda power: (power / "result_0" / NODE).write_bytes(node(watts=400.0)),
            "power logs changed (None): 1 log changed",
        ),
        (
            lambda power: shutil.rmtree(power / "result_3"),
            "power logs changed (None): 1 log removed",
        ),
    ],
    ids=["swapped", "from another entry", "renamed", "changed", "removed"],
)
def test_power_logs(old: Path, tmp_path: Path, edit: Edit, verdict: str) -> None:
    for number, submitter in enumerate(("ACME", "Other")):
        measure(old / submitter, watts=500.0 + number)
    new = Path(shutil.copytree(old, tmp_path / "new"))
    edit(new / ACME / "power")
    assert verdict in found(old, new)


def test_energy(old: Path, new: Path) -> None:
    measure(old / "ACME", watts=500.0)
    measure(new / "ACME", watts=600.0)
    power, energy = found(old, new)
    assert power == "power logs changed (None): 5 logs changed"
    assert energy.startswith("energy changed (None): by +20.00 %: ")


def test_removed_code(old: Path, tmp_path: Path) -> None:
    """Code that is gone is an entry where other code of the benchmark stays."""
    code(old)
    new = Path(shutil.copytree(old, tmp_path / "new"))
    (new / "ACME/benchmarks/resnet/train.py").unlink()
    assert found(old, new) == [
        "ACME/benchmarks/resnet: code changed (None): 1 file: train.py removed"
    ]
    remove(new / "ACME/benchmarks/resnet")
    assert found(old, new) == []
