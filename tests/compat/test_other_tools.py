"""The other tools beside the official ones, each as a process: exit status and the last lines."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.compat import rcp_viewer
from tests.helpers.broken_runs import SET, every_log, fast, twice
from tests.helpers.logs import edited, without
from tests.helpers.official import official
from tests.helpers.trees import SYSTEM, remove, write_submission, write_system

LOG = f"ACME/{SET}/result_0.txt"
DESCRIPTION = f"ACME/systems/{SYSTEM}.json"
Change = Callable[[Path], object]


def ran(package: str, arguments: list[str], here: Path) -> tuple[int, str, list[str]]:
    """Exit status, standard output, and the lines that scripts read on standard error."""
    done = official(f"{package}.{arguments[0]}", *arguments[1:], cwd=here)
    ends = ("PASSED", "FAILED", "SUCCESS", "System description checker", "rcp_bypass")
    lines = [line for line in done.stderr.splitlines() if any(end in line for end in ends)]
    return done.returncode, done.stdout, [line.partition(" : ")[0] for line in lines]


def log(change: Callable[[bytes], bytes]) -> Change:
    def of_first(root: Path) -> None:
        path = root / SET / "result_0.txt"
        path.write_bytes(change(path.read_bytes()))

    return of_first


nothing = log(bytes)


RCP = ["rcp_checker", f"ACME/{SET}", "--rcp_version", "2.0.0"]
COMPLIANCE = ["compliance_checker", LOG, "--ruleset", "2.0.0"]
SYSTEM_DESC = ["system_desc_checker", DESCRIPTION, "training", "2.0.0"]
REPO = ["repo_checker", "ACME", "training", "2.0.0"]
BATCH = "global_batch_size"

CASES: dict[str, tuple[list[str], Change]] = {
    "log": (COMPLIANCE, nothing),
    "log of another round": ([*COMPLIANCE[:-1], "4.0.0"], nothing),
    "log without a key": (COMPLIANCE, log(lambda text: without(text, "opt_name"))),
    "log without records": (COMPLIANCE, log(lambda _: b"x\n")),
    "log with a warning": (COMPLIANCE, log(twice)),
    "log with a warning, --werror": ([*COMPLIANCE, "--werror"], log(twice)),
    "log, --quiet": ([*COMPLIANCE, "--quiet"], log(twice)),
    "log of its own configuration": (
        [*COMPLIANCE, "--config", "training_2.0.0/common.yaml"],
        nothing,
    ),
    "no log": (COMPLIANCE, lambda root: remove(root / SET / "result_0.txt")),
    "description": (SYSTEM_DESC, nothing),
    "description without a field": (
        SYSTEM_DESC,
        lambda r: write_system(r / "systems", cooling=...),
    ),
    "description with a number": (SYSTEM_DESC, lambda r: write_system(r / "systems", framework=1)),
    "description that is not JSON": (
        SYSTEM_DESC,
        lambda r: (r / "systems" / f"{SYSTEM}.json").write_text("{"),
    ),
    "description of another usage": ([*SYSTEM_DESC[:2], "hpc", "2.0.0"], nothing),
    "no description": (SYSTEM_DESC, lambda root: remove(root / "systems")),
    "files": (REPO, nothing),
    "a space": (REPO, lambda root: (root / "a b").touch()),
    "a hidden file": (REPO, lambda root: (root / ".x").touch()),
    "a broken link": (REPO, lambda root: (root / "x").symlink_to("/nowhere/at/all")),
    "convergence": (RCP, nothing),
    "convergence too fast": (RCP, lambda root: every_log(fast, root)),
    "convergence by all points": ([*RCP, "--rcp_pass", "full_rcps"], nothing),
    "convergence of different logs": (RCP, log(lambda text: edited(text, BATCH, value=512))),
    "convergence of no log": (RCP, lambda root: remove(root / SET)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_theirs(name: str, tmp_path: Path) -> None:
    arguments, change = CASES[name]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    change(write_submission(ours / "ACME"))
    shutil.copytree(ours, theirs, symlinks=True)
    status, output, lines = ran("mlperf_pkg.compat", arguments, ours)
    their_status, their_output, their_lines = ran("mlperf_logging", arguments, theirs)
    assert status == their_status
    if their_lines:  # else they end with a traceback
        assert lines[-1] == their_lines[-1]
        assert output == their_output


@pytest.mark.parametrize("options", [[], ["-csv", "s.csv"]], ids=" ".join)
def test_tables(options: list[str], tmp_path: Path) -> None:
    """All bytes are equal."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_submission(ours / "ACME", "resnet", "bert")
    write_submission(ours / "Other", seed=8)
    shutil.copytree(ours, theirs)
    arguments = ["result_summarizer", "./{ACME,Other}", "training", "2.0.0", *options]
    status, output, _ = ran("mlperf_pkg.compat", arguments, ours)
    their_status, their_output, _ = ran("mlperf_logging", arguments, theirs)
    assert status == their_status == 0
    assert output.splitlines()[0] == their_output.splitlines()[0]
    files = {path.name: path.read_bytes() for path in ours.iterdir() if path.is_file()}
    assert files == {path.name: path.read_bytes() for path in theirs.iterdir() if path.is_file()}
    assert not list((ours / "ACME").rglob("scaling.json"))


def test_private_ids_and_a_score(tmp_path: Path) -> None:
    """Their ids are in the tree, ours in one file here. Their score raises an exception
    (4.1.68).
    """
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_submission(ours / "ACME")
    shutil.copytree(ours, theirs)
    arguments = ["result_summarizer", "ACME", "training", "2.0.0", "--csv", "s.csv"]
    arguments.append("--generate_private_ids")
    assert ran("mlperf_pkg.compat", arguments, ours)[0] == 0
    assert ran("mlperf_logging", arguments, theirs)[0] == 0
    (entry,) = json.loads((ours / "privateid.json").read_text("utf-8")).values()
    text = (theirs / "ACME" / "results" / SYSTEM / "privateid.json").read_text("utf-8")
    assert entry["private_id"] == json.loads(text)["private_id"]
    assert (ours / "s.json").read_bytes() == (theirs / "s.json").read_bytes()

    score = ["result_summarizer.compute_score", "--benchmark_folder", f"ACME/{SET}"]
    score += ["--usage", "training", "--ruleset", "2.0.0"]
    status, output, _ = ran("mlperf_pkg.compat", score, ours)
    (row,) = json.loads((theirs / "s.json").read_text("utf-8"))
    name, _, minutes = output.splitlines()[-1].rpartition(": ")
    assert (status, name) == (0, "Final score - Time to Train (minutes)")
    assert float(minutes) == pytest.approx(row["resnet"])


def test_points(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers are those of ``rcp show``, which a test compares with the official ones."""
    arguments = ["bert", "--version", "5.0.0"]
    assert rcp_viewer.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["BS,Mean,Min", "448,2414421.3333333335,2274732.0290379203"]
    arguments += ["--no-header", "--jackknife"]
    assert rcp_viewer.main([*arguments, "3072"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["submission_runs: 10"]
    assert rcp_viewer.main([*arguments, "3073"]) == 1
