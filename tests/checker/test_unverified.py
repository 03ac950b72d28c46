"""What each command says where the installed mlperf-logging is not the verified one."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import copytree
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.helpers.logs import without
from tests.helpers.references import (
    BENCHMARK,
    OTHER,
    ROUND,
    VERIFIED,
    CopyOf,
    is_verified,
    run_with,
)
from tests.helpers.trees import SYSTEM, simulated, write_set, write_system

pytestmark = is_verified
ROOT = "Graphcore"
RETINANET = f"{ROOT}/results/{SYSTEM}/retinanet"
LORA = f"{ROOT}/results/{SYSTEM}/{BENCHMARK}"
LOG = f"{LORA}/result_0.txt"
DESCRIPTION = f"{ROOT}/systems/{SYSTEM}.json"
LORA_WRONG = "lora wrong"
RETINANET_WRONG = "retinanet wrong"
FAST = ("--interval", "0.05")
DIFFERS = f"the installed version {OTHER} differs in"
BY = f"official by mlperf-logging {VERIFIED}"
BY_POINTS = (
    f"with the reference points of mlperf-logging {OTHER}, which differ from those of version"
    f" {VERIFIED}"
)


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a submission of two benchmarks, and copies with logs that lack a key."""
    folder = tmp_path_factory.mktemp("unverified")
    write_system(folder / ROOT / "systems")
    write_set(folder / LORA, simulated(BENCHMARK, round_=ROUND))
    write_set(folder / RETINANET, simulated("retinanet", round_=ROUND))
    for name, logs in ((LORA_WRONG, LORA), (RETINANET_WRONG, RETINANET)):
        copytree(folder / ROOT, folder / name / ROOT)
        for path in (folder / name / logs).iterdir():
            path.write_bytes(without(path.read_bytes(), "opt_base_learning_rate"))
    return folder


Done = CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture(scope="session")
def run(here: Path, copy_of: CopyOf) -> Run:
    """Return what runs mlperf-pkg, once, with a copy of mlperf-logging that has a change."""

    @cache
    def of(change: str, *arguments: str) -> Done:
        return run_with(copy_of(change), here, "mlperf_pkg", *arguments)

    return of


def report_of(done: Done) -> Any:
    return json.loads(done.stdout)


# ---- check --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "arguments", "status", "says"),
    [
        ("none", (ROOT,), 0, f"official: pass (mlperf-logging {OTHER})\n"),
        ("new ruleset", (ROOT,), 0, f"official: pass (mlperf-logging {OTHER})\n"),
        (
            "rules",
            (ROOT,),
            0,
            f"{BY}: pass; {DIFFERS}\nthe rules of {BENCHMARK} in round {ROUND}\nrules: ",
        ),
        ("rules", (ROOT, "--fail-on", "official"), 1, f"{BY}: pass; "),
        ("rules", (LOG,), 0, f"{BY}: pass; {DIFFERS}\nthe rules of {BENCHMARK} in round {ROUND}\n"),
        ("rules", (LOG, "--fail-on", "official"), 1, f"{BY}: pass; "),
        ("rules", (RETINANET,), 0, f"official: pass (mlperf-logging {OTHER})"),
        ("rules", (f"{LORA_WRONG}/{ROOT}",), 1, f"{BY}: FAIL; {DIFFERS}\nthe rules of"),
        (
            "rules",
            (f"{RETINANET_WRONG}/{ROOT}",),
            1,
            f"official: FAIL (mlperf-logging {OTHER}), 2 errors in 1 of 2 result sets; ",
        ),
        (
            "rules",
            (ROOT, "--format", "log"),
            0,
            f"{BY} verdict: pass; {DIFFERS} the rules of {BENCHMARK} in round {ROUND}\n",
        ),
        (
            "rules",
            (ROOT, "--format", "markdown"),
            0,
            f"**{BY}**: pass; {DIFFERS} the rules of {BENCHMARK} in round {ROUND}\n",
        ),
        (
            "rules",
            (ROOT, "--format", "github"),
            0,
            f"{BY}: pass; {DIFFERS} the rules of {BENCHMARK} in round {ROUND}",
        ),
        (
            "points",
            (ROOT,),
            0,
            f"official: pass (mlperf-logging {OTHER}); the installed version {OTHER} differs in\n"
            f"the reference points of {BENCHMARK} in round {ROUND}\n",
        ),
        (
            "points that reject",
            (ROOT,),
            1,
            f"official: FAIL (mlperf-logging {OTHER}), 1 error in 1 of 2 result sets; the\n",
        ),
        ("code", (ROOT,), 0, f"{BY}: pass; {DIFFERS}\nthe code of the checkers\n"),
        ("code", (RETINANET, "--fail-on", "official"), 1, f"{BY}: pass; {DIFFERS}\nthe code"),
    ],
)
def test_check_says(
    run: Run, change: str, arguments: tuple[str, ...], status: int, says: str
) -> None:
    done = run(change, "check", *arguments)
    assert (done.returncode, done.stderr) == (status, "")
    assert says in done.stdout


@pytest.mark.parametrize(
    ("change", "differs", "official", "sets"),
    [
        ("none", None, "pass", {BENCHMARK: "pass", "retinanet": "pass"}),
        (
            "rules",
            [f"the rules of {BENCHMARK} in round {ROUND}"],
            "not_checked",
            {BENCHMARK: "not_checked", "retinanet": "pass"},
        ),
        (
            "points",
            [f"the reference points of {BENCHMARK} in round {ROUND}"],
            "pass",
            {BENCHMARK: "pass", "retinanet": "pass"},
        ),
        (
            "code",
            ["the code of the checkers"],
            "not_checked",
            {BENCHMARK: "not_checked", "retinanet": "not_checked"},
        ),
    ],
)
def test_check_as_json(
    run: Run, change: str, differs: list[str] | None, official: str, sets: dict[str, str]
) -> None:
    report = report_of(run(change, "check", ROOT, "--format", "json"))
    assert report["verdict"] == {"official": official, "rules": "pass"}
    assert {row["benchmark"]: row["verdict"]["official"] for row in report["result_sets"]} == sets
    if differs is None:
        assert report["drift"] is None
    else:
        assert report["drift"] == {
            "verified": f"mlperf-logging {VERIFIED}",
            "installed": f"mlperf-logging {OTHER}",
            "differs": differs,
            "official": "pass",
        }


@pytest.mark.parametrize("rows", ["result_sets", "runs"])
def test_no_official_score_of_what_is_concerned(run: Run, rows: str) -> None:
    report = report_of(run("rules", "check", ROOT, "--format", "json"))
    values = {row["benchmark"]: row["official_minutes"] for row in report[rows]}
    assert values[BENCHMARK] is None
    assert values["retinanet"] is not None


@pytest.mark.parametrize(
    ("change", "official"), [("rules", "pass"), ("points", "pass"), ("code", "not_checked")]
)
def test_a_system_description_is_judged_by_code_alone(run: Run, change: str, official: str) -> None:
    report = report_of(run(change, "check", ROOT, "--format", "json"))
    assert [row["verdict"]["official"] for row in report["systems"]] == [official]


def test_findings_by_points_that_differ_say_so(run: Run) -> None:
    report = report_of(run("points that reject", "check", ROOT, "--format", "json"))
    messages = [
        finding["message"] for finding in report["findings"] if finding["code"].startswith("RCP")
    ]
    assert [message.endswith(f", {BY_POINTS}") for message in messages] == [True]


def test_the_score_note_of_a_set_names_the_points(run: Run) -> None:
    report = report_of(run("points", "check", ROOT, "--format", "json"))
    notes = {row["benchmark"]: row["score_note"] for row in report["result_sets"]}
    assert notes[BENCHMARK].endswith(f"the score and the RCP margin are computed {BY_POINTS}")
    assert OTHER not in (notes["retinanet"] or "")


def test_the_score_is_normalised_by_points_that_differ(run: Run) -> None:
    minutes = {}
    for change in ("none", "points"):
        report = report_of(run(change, "check", ROOT, "--format", "json"))
        for row in report["result_sets"]:
            minutes[change, row["benchmark"]] = row["score_minutes"]
    assert minutes["points", BENCHMARK] > minutes["none", BENCHMARK]
    assert minutes["points", "retinanet"] == minutes["none", "retinanet"]


# ---- other commands -----------------------------------------------------------------------


def unwrapped(text: str) -> str:
    """The text without the line ends and the indentation of paragraphs."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("change", "arguments", "status", "says"),
    [
        ("points", ("score", ROOT), 0, f"the score and the RCP margin are computed {BY_POINTS}"),
        (
            "rules",
            ("doctor",),
            1,
            f"broken mlperf-logging {OTHER} differs from {VERIFIED}, which the rulebook was"
            f" verified against, in the rules of {BENCHMARK} in round {ROUND}"
            f" pip install 'mlperf-logging=={VERIFIED}'",
        ),
        ("code", ("doctor",), 1, "verified against, in the code of the checkers pip install"),
        ("none", ("doctor",), 0, f"ok mlperf-logging {OTHER}, with the rules of all rounds"),
        ("new ruleset", ("doctor",), 0, f"ok mlperf-logging {OTHER}, with the rules of all"),
        (
            "rules",
            ("watch", LOG, *FAST),
            0,
            f"official findings are those that mlperf-logging {VERIFIED} would report; {DIFFERS}"
            f" the rules of {BENCHMARK} in round {ROUND}",
        ),
        (
            "points",
            ("rcp", "show", BENCHMARK, "--round", ROUND),
            0,
            f"source: mlperf-logging {OTHER}, rcp_checker/training_5.1.0/rcps_{BENCHMARK}.json,"
            f" which differs from that of {VERIFIED} ",
        ),
        (
            "points",
            ("rcp", "check", ROOT),
            0,
            f"reference points: mlperf-logging {OTHER}, which differs from {VERIFIED} in the"
            f" reference points of {BENCHMARK} in round {ROUND} ",
        ),
        (
            "points",
            ("rcp", "diff", "5.0", ROUND),
            0,
            f"source: mlperf-logging {OTHER}, which differs from {VERIFIED} in the reference"
            f" points of {BENCHMARK} in round {ROUND} ",
        ),
    ],
)
def test_other_commands_say(
    run: Run, change: str, arguments: tuple[str, ...], status: int, says: str
) -> None:
    done = run(change, *arguments)
    assert (done.returncode, done.stderr) == (status, "")
    assert says in unwrapped(done.stdout)


@pytest.mark.parametrize(
    ("change", "arguments"),
    [
        ("points", ("watch", LOG, *FAST)),
        ("rules", ("watch", f"{RETINANET}/result_0.txt", *FAST)),
        ("points", ("rcp", "diff", "4.1", "5.0")),
        ("points", ("rcp", "check", RETINANET)),
        ("rules", ("rcp", "show", BENCHMARK, "--round", ROUND)),
    ],
)
def test_other_commands_say_nothing_of_what_is_not_concerned(
    run: Run, change: str, arguments: tuple[str, ...]
) -> None:
    done = run(change, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "differ" not in done.stdout


API = """\
import sys

import mlperf_pkg

report = mlperf_pkg.check(sys.argv[1])
print(report.verdict.official.value, report.drift and report.drift.differs)
"""


@pytest.mark.parametrize(
    ("change", "printed"),
    [
        ("none", "pass None\n"),
        ("rules", f"not_checked ('the rules of {BENCHMARK} in round {ROUND}',)\n"),
        ("points", f"pass ('the reference points of {BENCHMARK} in round {ROUND}',)\n"),
    ],
)
def test_the_report_of_the_api(here: Path, copy_of: CopyOf, change: str, printed: str) -> None:
    (here / "through_api.py").write_text(API, "utf-8")
    done = run_with(copy_of(change), here, "through_api", ROOT)
    assert (done.stdout, done.stderr) == (printed, "")


# ---- the tools of mlperf-logging ----------------------------------------------------------


TOOLS: dict[str, tuple[str, ...]] = {
    "compliance_checker": (LOG, "--ruleset", "5.1.0"),
    "package_checker": (ROOT, "training", "5.1.0"),
    "rcp_checker": (LORA, "--rcp_version", "5.1.0"),
    "rcp_viewer": (BENCHMARK, "--version", "5.1.0"),
    "repo_checker": (ROOT, "training", "5.1.0"),
    "result_summarizer": (ROOT, "training", "5.1.0"),
    "result_summarizer.compute_score": (
        *("--benchmark_folder", LORA),
        *("--usage", "training"),
        *("--ruleset", "5.1.0"),
    ),
    "system_desc_checker": (DESCRIPTION, "training", "5.1.0"),
}
OF_TREES = ("package_checker", "repo_checker", "system_desc_checker")
OF_LOGS = [name for name in TOOLS if name not in OF_TREES]
THAT_WRITE = ("package_checker", "result_summarizer")  # scaling.json, as the points normalise


def files_in(folder: Path) -> list[Path]:
    return sorted((folder / ROOT).rglob("*"))


@pytest.mark.parametrize(
    ("change", "tool", "differs"),
    [
        *(("code", tool, "the code of the checkers") for tool in OF_TREES),
        *(("rules", tool, f"the rules of {BENCHMARK} in round {ROUND}") for tool in OF_LOGS),
        *(
            ("points", tool, f"the reference points of {BENCHMARK} in round {ROUND}")
            for tool in THAT_WRITE
        ),
    ],
)
def test_a_tool_refuses_to_speak_for_what_differs(
    here: Path, copy_of: CopyOf, change: str, tool: str, differs: str
) -> None:
    before = files_in(here)
    done = run_with(copy_of(change), here, f"mlperf_pkg.compat.{tool}", *TOOLS[tool])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"ERROR - mlperf-logging {OTHER} is installed, which differs from mlperf-logging"
        f" {VERIFIED} in {differs}: run its own tools, or pip install"
        f" 'mlperf-logging=={VERIFIED}'\n"
    )
    assert files_in(here) == before


@pytest.mark.parametrize(
    ("change", "tool", "arguments"),
    [
        ("rules", "repo_checker", TOOLS["repo_checker"]),
        ("rules", "rcp_viewer", ("retinanet", "--version", "5.1.0")),
        ("none", "compliance_checker", TOOLS["compliance_checker"]),
    ],
)
def test_a_tool_works_on_what_is_not_concerned(
    here: Path, copy_of: CopyOf, change: str, tool: str, arguments: tuple[str, ...]
) -> None:
    done = run_with(copy_of(change), here, f"mlperf_pkg.compat.{tool}", *arguments)
    assert done.returncode == 0
    assert "differs" not in done.stderr
