"""Our package checker and the functions of all tools beside the official ones, live."""

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.rcp_checker import rcp_checker as official_rcp_checker
from mlperf_logging.result_summarizer import result_summarizer as official_summarizer

from mlperf_pkg.compat import compliance_checker, package_checker, rcp_checker, result_summarizer
from mlperf_pkg.errors import UserError
from tests.checks.traps import ALL
from tests.compat import sequences
from tests.compat.sequences import STATES, written
from tests.helpers import trees
from tests.helpers.broken_runs import SET, every_log, fast, same_seed, slightly_fast, twice
from tests.helpers.examples import SHARE
from tests.helpers.logs import edited, without
from tests.helpers.official import run_package_checker
from tests.helpers.traps import Trap, submission
from tests.helpers.trees import SYSTEM, remove, simulated, write_set, write_submission, write_system

Change = Callable[[bytes], bytes]

UNLIKE = {
    # The official checker takes "[" for a pattern, and ends without a final line on a Closed set.
    "[ in a system's name",
    "[ in a submitter's name",
    "[ in a name that matches another",
    "no division in round 0.7",  # it ends without a final line
    "a division that is a path",  # it runs the file; we report that a log is never run
}
"""Traps on which the exit status or a line differs."""


TRAPS = [trap for trap in ALL[::SHARE] if trap.name not in UNLIKE]
FINAL = "PACKAGE CHECKER FOUND"
ACME = ["ACME", "training", "2.0.0"]


def outcomes(lines: Sequence[str]) -> list[str]:
    """Return the lines on which scripts rely, in an order that does not depend on the folder's."""
    kinds = (FINAL, "RCP Test", "comply", "Seed checker failed")
    kept = (line for line in lines if any(kind in line for kind in kinds))
    return sorted(line for line in kept if "found the following" not in line)


def both(
    root: Path, scratch: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[tuple[int, list[str]], tuple[int, list[str]]]:
    """The exit status and the lines of ours and of theirs, which gets a copy: it writes there."""
    # Copied twice: a copy in memory lists its files in reverse order, in which the tools read them.
    first = shutil.copytree(root, scratch / "first" / root.name, symlinks=True)
    copy = shutil.copytree(first, scratch / "copy" / root.name, symlinks=True)
    their_status, records = run_package_checker(str(copy), *arguments)
    theirs = [f"{record.levelname} - {record.getMessage()}" for record in records]
    capsys.readouterr()
    log = ("--log_output", str(scratch / "package_checker.log"))
    status = package_checker.main([str(root), *arguments, *log])
    lines = capsys.readouterr().err.replace(str(root), str(copy)).splitlines()
    return (status, lines), (their_status, theirs)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_traps_as_theirs(trap: Trap, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = submission(tmp_path / trap.submitter, trap)
    trap.change(root)
    ours, theirs = both(root, tmp_path, capsys, "training", f"{trap.round}.0")
    (status, lines), (their_status, their_lines) = ours, theirs
    assert status == their_status
    if their_status == 0:
        assert outcomes(lines) == outcomes(their_lines)
    else:  # they end with a traceback
        assert any("FOUND ERRORS" in line for line in lines)


# ---- options ------------------------------------------------------------------------------


BYPASSES = ("--rcp-bypass", "--seed-checker-bypass", "--rcp-bert")
BROKEN: dict[str, Change] = {"valid": bytes, "fast": fast, "same seed": same_seed, "twice": twice}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("options", ["", "--werror", "--quiet", *BYPASSES])
def test_options(
    name: str, options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = every_log(BROKEN[name], write_submission(tmp_path / "ACME"))
    ours, theirs = both(root, tmp_path, capsys, "training", "2.0.0", *options.split())
    assert ours[0] == theirs[0] == 0
    assert outcomes(ours[1]) == outcomes(theirs[1])


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        (".", "FOUND ERRORS"),  # the verify scripts turn them into options
        (SET, "passed using rcp_bypass"),
        (f"results/{SYSTEM}", "passed using rcp_bypass"),
    ],
    ids=["submission", "result set", "system"],
)
def test_which_flags_are_read(
    folder: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = every_log(fast, write_submission(tmp_path / "ACME"))
    (root / folder / "package_checker_params").write_text("rcp-bypass")
    ours, theirs = both(root, tmp_path, capsys, "training", "2.0.0")
    assert outcomes(ours[1]) == outcomes(theirs[1])
    assert any(line in one for one in ours[1])


# ---- what differs on purpose --------------------------------------------------------------


def test_the_exit_status_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_submission(tmp_path / "ACME")
    assert package_checker.main([*ACME, "--exit-status"]) == 0
    every_log(fast, tmp_path / "ACME")
    assert package_checker.main([*ACME, "--exit-status"]) == 1
    monkeypatch.setenv("MLPERF_PKG_EXIT_STATUS", "1")
    assert package_checker.main(ACME) == 1


def test_the_log_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines are added to it; it is never written beside logs."""
    monkeypatch.chdir(tmp_path)
    root = write_submission(tmp_path / "ACME")
    for _ in range(2):
        package_checker.main(ACME)
    text = (tmp_path / "package_checker.log").read_text("utf-8")
    assert text.count(FINAL) == 2
    assert "** Detailed log output is also at package_checker.log" in capsys.readouterr().out
    monkeypatch.chdir(root)
    assert package_checker.main([".", "training", "2.0.0", "--log_output", f"{SET}/log"]) == 0
    assert not (root / SET / "log").exists()
    output = capsys.readouterr()
    assert f"{SET}/log: is inside the results, and is not written" in output.err
    assert "Detailed" not in output.out


@pytest.mark.parametrize("name", ["nowhere", "logs", "."])
def test_what_is_not_a_submission(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    assert package_checker.main([name, "training", "2.0.0"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("ERROR - ")


@pytest.fixture(autouse=True)
def _fresh() -> None:
    mlp_compliance.enqueued_configs.clear()


def files(tree: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in tree.rglob("scaling.json")}


@pytest.mark.parametrize(
    "change",
    [bytes, twice, partial(without, key="opt_name"), lambda _: b""],
    ids=["valid", "twice", "no opt_name", "empty"],
)
@pytest.mark.parametrize("werror", [False, True])
def test_logs(change: Change, werror: bool, tmp_path: Path) -> None:
    log = str(every_log(change, write_submission(tmp_path / "ACME")) / SET / "result_0.txt")
    config = "training_2.0.0/common.yaml"
    ours, theirs = (
        module.main(log, config, module.make_checker("training", "2.0.0", False, werror))
        for module in (compliance_checker, mlp_compliance)
    )
    assert ours == theirs


@pytest.mark.parametrize(
    "kind", [("training", "5.1.0", "llama2_70b_lora"), ("hpc", "3.0.0", "oc20")]
)
def test_reference_points(kind: tuple[str, str, str]) -> None:
    ours = rcp_checker.RCP_Checker(*kind, False)
    theirs = official_rcp_checker.RCP_Checker(*kind, False)
    assert ours.submission_runs == theirs.submission_runs
    assert [
        which
        for which in ("rcp_data", "pruned_rcp_data")
        if [*getattr(ours, which)] != [*getattr(theirs, which)]
    ] == []
    assert ours.rcp_data == theirs.rcp_data
    sizes = [record["BS"] for record in theirs.pruned_rcp_data.values()]
    assert [
        size
        for size in (sizes[0] - 1, *sizes, sizes[0] + 1, sizes[-1] + 1)
        if [
            name
            for name in ("_find_rcp", "_find_top_min_rcp", "_find_bottom_max_rcp")
            if [
                points
                for points in ("pruned_rcps", "full_rcps")
                if getattr(ours, name)(size, points) != getattr(theirs, name)(size, points)
            ]
            != []
        ]
        != []
    ] == []
    low, *_, high = theirs.rcp_data.values()
    between = (low["BS"] + 1, low, high)
    assert ours._create_interp_rcp(*between) == theirs._create_interp_rcp(*between)


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (slightly_fast, {}),
        (fast, {"rcp_bypass": True}),
        *((change, {"set_scaling": True}) for change in (bytes, slightly_fast, fast)),
        (lambda text: edited(text, "global_batch_size", value=3000), {"set_scaling": True}),
        (lambda text: edited(text, "global_batch_size", value=99999), {}),
    ],
    ids=[
        "slightly fast",
        "fast, bypassed",
        "valid, scaled",
        "slightly fast, scaled",
        "fast, scaled",
        "between points, scaled",
        "beyond all points",
    ],
)
def test_convergence(change: Change, options: dict[str, Any], tmp_path: Path) -> None:
    root = every_log(change, write_submission(tmp_path / "ours"))
    written('{"scaling_factor": 3}')(root)
    copy = shutil.copytree(root, tmp_path / "theirs")
    arguments = ("training", "2.0.0", False, False, None, "pruned_rcps")
    ours = rcp_checker.check_directory(str(root / SET), *arguments, **options)
    assert ours == official_rcp_checker.check_directory(str(copy / SET), *arguments, **options)
    assert files(root) == files(copy)


def test_tables(tmp_path: Path) -> None:
    root = every_log(slightly_fast, write_submission(tmp_path / "ours" / "ACME"))
    written('{"scaling_factor": 3}')(root)
    copy = shutil.copytree(root, tmp_path / "theirs" / "ACME")
    ours = result_summarizer.summarize_results(str(root), "training", "2.0.0")
    theirs = official_summarizer.summarize_results(str(copy), "training", "2.0.0")
    assert [len(table) for table in ours] == [len(table) for table in theirs]
    for index, is_detailed in ((0, False), (2, True)):
        schema = official_summarizer._get_column_schema("training", "2.0.0", detailed=is_detailed)
        pd.testing.assert_frame_equal(ours[index].astype(schema), theirs[index].astype(schema))
    assert files(root) == files(copy)


CHECKER = compliance_checker.make_checker("training", "2.0.0", False, False)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        pytest.param(
            package_checker.check_training_package,
            (*ACME, *[False] * 5, "a.log"),
            id="the package checker",
        ),
        pytest.param(
            result_summarizer.summarize_results,
            ("ACME", "training", "9.9.0"),
            id="the summarizer, of an unknown round",
        ),
        pytest.param(
            CHECKER.check_file,
            (f"ACME/{SET}/result_9.txt",),
            id="the compliance checker, without a log",
        ),
        pytest.param(
            rcp_checker.RCP_Checker,
            ("training", "2.0.0", "chess"),
            id="the RCP checker, of an unknown benchmark",
        ),
        pytest.param(
            rcp_checker.check_directory,
            (*ACME, False, False),
            id="the RCP checker, of a submission",
        ),
    ],
)
def test_what_raises(
    call: Callable[..., object],
    arguments: tuple[Any, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = write_submission(tmp_path / "ACME")
    remove(root / "systems")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        call(*arguments)


# ---- sequences of tools: status, tables, and ``scaling.json`` -----------------------------

Edit = Callable[[Path], object]

SEQUENCES = (
    ("check", "summarize"),
    ("summarize",),
    ("summarize", "summarize"),
    ("summarize", "check", "summarize"),
    ("check --rcp-bypass --seed-checker-bypass", "summarize"),
)


def logs(change: Callable[[bytes], bytes]) -> Edit:
    """Edit every log of the submission."""
    return lambda root: every_log(change, root)


def batch(size: int) -> Callable[[bytes], bytes]:
    return lambda text: edited(text, "global_batch_size", value=size)


def system(name: str = SYSTEM, **fields: Any) -> Edit:
    return lambda root: write_system(root / "systems", name, **fields)


def two_sizes(root: Path) -> None:
    log = root / SET / "result_0.txt"
    log.write_bytes(batch(512)(log.read_bytes()))


def a_set(path: str) -> Edit:
    return lambda root: write_set(root / "results" / path, simulated())


QUICK = logs(slightly_fast)
CHANGES: dict[str, tuple[Edit, ...]] = {
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

EVERY = [(name, state, steps) for name in CHANGES for state in STATES for steps in SEQUENCES]
# 11 has no divisor in common with 4 and 5, so that every pair of a state and a sequence is tried.
SOME = EVERY if SHARE == 1 else EVERY[::11]


@pytest.mark.parametrize(("name", "state", "steps"), SOME)
def test_as_theirs(name: str, state: str, steps: tuple[str, ...], tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Graphcore")
    for change in CHANGES[name]:
        change(root)
    if state == "fresh":
        written('{"scaling_factor": 1.0}')(root)
    STATES[state](root)
    ours, theirs = sequences.both(root, "training", "2.0.0", steps, tmp_path)
    assert ours == theirs


@pytest.mark.parametrize(("state", "steps"), [("deleted", SEQUENCES[0]), ("stale", SEQUENCES[3])])
def test_both_kinds_of_scaling(state: str, steps: tuple[str, ...], tmp_path: Path) -> None:
    """The table of weak scaling is appended to the other; that of its energy has no scores."""
    root = tmp_path / "ACME"
    write_system(root / "systems", "box")
    logs = trees.simulated_models(10)
    for scaling in ("strong", "weak"):
        write_set(root / "results" / "box" / scaling / "cosmoflow", logs)
    STATES[state](root)
    ours, theirs = sequences.both(root, "hpc", "3.0.0", steps, tmp_path)
    assert ours == theirs
    assert {name.rpartition("_")[2] for name in ours[1][-1]} > {"power.csv", "power.json"}


def folder_for_log(root: Path) -> None:
    (root / SET / "result_9.txt").mkdir()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (a_set(f"{SYSTEM}/chess"), "/chess: not a benchmark of round 2.0"),
        (system(number_of_nodes="many"), f"{SYSTEM}.json: number_of_nodes is not a whole number"),
        (written("{"), f"results/{SYSTEM}/resnet: scaling.json without a factor"),
        (folder_for_log, f"results/{SYSTEM}/resnet/result_9.txt"),
    ],
    ids=["unknown benchmark", "not a number", "not JSON", "a folder for a log"],
)
def test_where_their_summarizer_crashes(
    change: Edit,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(write_submission(tmp_path / "ACME"))
    monkeypatch.chdir(tmp_path)
    assert result_summarizer.main(ACME) == 1
    assert message in capsys.readouterr().err
    assert not Path("summary.json").exists()


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


@pytest.mark.parametrize("change", [bytes, slightly_fast])
def test_a_link_is_not_followed(
    change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written, and removed where there is no factor."""
    monkeypatch.chdir(tmp_path)
    root, outside = write_submission(tmp_path / "ACME"), tmp_path / "outside.json"
    outside.write_text("{}")
    (every_log(change, root) / SET / "scaling.json").symlink_to(outside)
    assert package_checker.main(["ACME", "training", "2.0.0"]) == 0
    assert outside.read_text() == "{}"
    assert not (root / SET / "scaling.json").is_symlink()
