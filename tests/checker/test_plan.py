"""The usage and the round of an input that names neither, and how sure they are."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts
from mlperf_pkg.infra.resources import data_folder, rules_read_from
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import submission_date
from mlperf_pkg.simulate import RunPlan, simulate_set
from tests.helpers.logs import without
from tests.helpers.own_rules import written
from tests.helpers.trees import simulated, write_set, write_system

PASS = Verdicts(Verdict.PASS, Verdict.PASS)
YEAR = 365

UNKNOWN = (data_folder("rules") / "training/2.0/round.yaml").read_text("utf-8")
UNKNOWN = UNKNOWN.replace("ruleset: 2.0.0", "ruleset: 99.0.0")
"""Round 2.0 as if the official checker did not know it."""


def logs_of(usage: str, round_: str, benchmark: str) -> tuple[bytes, ...]:
    plan = RunPlan(round_, benchmark, "closed", "bow-pod16", "Graphcore", usage=usage)
    return tuple(simulate_set(plan, seed=7))


DEEPCAM, RESNET = logs_of("hpc", "2.0", "deepcam"), simulated("resnet")


def moved(logs: Iterable[bytes], days: int) -> tuple[bytes, ...]:
    """The logs with all times later."""

    def later(time: re.Match[bytes]) -> bytes:
        return b"%s%d" % (time[1], int(time[2]) + days * 86_400_000)

    return tuple(re.sub(rb'("time_ms": )(\d+)', later, log) for log in logs)


def nameless(logs: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(without(log, "submission_benchmark") for log in logs)


def timeless(logs: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(re.sub(rb'("time_ms": )\d+', rb"\g<1>0", log) for log in logs)


def write_tree(root: Path, folder: str, logs: tuple[bytes, ...]) -> Path:
    """A submission with one result set in a folder of ``results/<system>/``."""
    write_system(root / "systems")
    write_set(root / "results" / "bow-pod16" / folder, logs)
    return root


def report_on(path: Path, usage: str | None = None, round_: str | None = None) -> Report:
    return check([str(path)], Options(usage, round_, jobs=1)).report


def doubts(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.code.startswith("ROUND")]


# ---- usage --------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["logs", "v2.0/logs", "results/sys/strong/deepcam"])
def test_loose_logs_of_hpc(tmp_path: Path, folder: str) -> None:
    report = report_on(write_set(tmp_path / folder, DEEPCAM))
    assert (report.usage, report.round, report.verdict) == ("hpc", "2.0", PASS)
    assert report.round_reason.endswith("; hpc by the benchmark deepcam")


def test_a_submission_of_hpc_whose_logs_name_no_benchmark(tmp_path: Path) -> None:
    report = report_on(write_tree(tmp_path, "strong/deepcam", nameless(DEEPCAM)))
    assert (report.usage, report.round) == ("hpc", "2.0")
    assert not doubts(report)


@pytest.mark.parametrize(
    ("folder", "options", "usage", "round_"),
    [
        ("logs", {"usage": "training"}, "training", "2.1"),
        ("logs", {"round_": "5.1"}, "training", "5.1"),
        ("logs", {"round_": "3.0"}, "hpc", "3.0"),
        ("hpc_results_v3.0/logs", {}, "hpc", "3.0"),
        ("v4.1/logs", {}, "training", "4.1"),
    ],
)
def test_where_something_names_the_usage_or_its_round(
    tmp_path: Path, folder: str, options: dict[str, str], usage: str, round_: str
) -> None:
    report = report_on(write_set(tmp_path / folder, DEEPCAM), **options)
    assert (report.usage, report.round) == (usage, round_)
    if "usage" in options:
        configured = Options(jobs=1, config=Config(usage=usage))
        assert check([str(tmp_path / folder)], configured).report.usage == usage


def test_the_configuration_of_a_workspace_names_the_usage(tmp_path: Path) -> None:
    write_system(tmp_path / "systems")
    (tmp_path / CONFIG_NAME).write_text("usage: training", "utf-8")
    report = report_on(write_set(tmp_path / "logs", DEEPCAM))
    assert (report.usage, report.round) == ("training", "2.1")


def test_loose_logs_of_both_usages(tmp_path: Path) -> None:
    write_set(tmp_path / "deepcam", DEEPCAM)
    write_set(tmp_path / "resnet", RESNET)
    report = report_on(tmp_path)
    assert (report.usage, report.round, report.verdict) == ("hpc and training", None, PASS)
    assert report.round_reason == "several rounds: hpc 2.0, training 2.0"
    assert {f"{run.benchmark} {run.round}" for run in report.runs} == {"deepcam 2.0", "resnet 2.0"}


@pytest.mark.parametrize(
    ("days", "rounds"),
    [
        ((0, 180, 180), ["2.1", "2.1", "2.1"]),
        ((0, 0, 180), ["2.0", "2.0", "2.1"]),
        ((0, 4 * YEAR, 4 * YEAR), ["2.0", "5.0", "5.0"]),
    ],
)
def test_logs_of_the_previous_round_are_of_that_of_most_submissions(
    tmp_path: Path, days: tuple[int, ...], rounds: list[str]
) -> None:
    bert = simulated("bert")
    for number, later in enumerate(days):
        write_tree(tmp_path / f"{number}", "bert", moved(bert, later))
    assert [row.round for row in report_on(tmp_path).result_sets] == rounds


def test_the_name_of_a_link_and_of_what_it_leads_to_have_the_round(tmp_path: Path) -> None:
    for folder, link in (("download", "hpc_results_v3.0"), ("hpc_v2.0", "download_2")):
        write_tree(tmp_path / "v5.1" / folder / "ACME", "strong/deepcam", DEEPCAM)
        (tmp_path / link).symlink_to(tmp_path / "v5.1" / folder)
    links = [tmp_path / "hpc_results_v3.0", tmp_path / "download_2"]
    assert [report_on(link, "hpc").round for link in links] == ["3.0", "2.0"]


# ---- a round that the installed mlperf-logging lacks ---------------------------------------


@pytest.mark.parametrize("kind", ["log", "logs", "submission", "no system description"])
def test_the_official_verdict_on_an_unknown_round(tmp_path: Path, kind: str) -> None:
    """Neither a pass nor a failure, of anything."""
    logs = (*RESNET[:-1], b"no log at all\n")
    root = write_tree(tmp_path / "in", "resnet", logs)
    if kind == "no system description":
        (root / "systems" / "bow-pod16.json").unlink()
    folder = root / "results" / "bow-pod16" / "resnet"
    path = {"log": folder / "result_0.txt", "logs": folder}.get(kind, root)
    rules = written(tmp_path / "rules", {"training/2.0/round.yaml": UNKNOWN})
    with rules_read_from(rules):
        report = report_on(path, round_="2.0")
    rows: list[Any] = [report, *report.systems, *report.result_sets, *report.runs]
    assert {row.verdict.official for row in rows} == {Verdict.NOT_CHECKED}


# ---- rounds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        ("v2.0", RESNET, "2.0", None, ""),
        ("logs", (*nameless(RESNET[:1]), *RESNET[1:]), "2.0", None, ""),
        ("v2.0", (*moved(RESNET[:1], -YEAR), *RESNET[1:]), "2.0", None, ""),
        (
            "v2.0",
            moved(RESNET, -YEAR),
            "2.0",
            "ROUND101",
            "expected 2021-10-16 or later for round 2.0",
        ),
        (
            "v2.0",
            moved(RESNET, YEAR),
            "2.0",
            "ROUND103",
            "expected 2022-06-17 or earlier for round 2.0",
        ),
        ("logs", moved(RESNET, -4 * YEAR), "0.7", "ROUND101", "or later for round 0.7"),
        (
            "logs",
            moved(RESNET, 9 * YEAR),
            "4.0",
            "ROUND102",
            ", so the newest round is assumed; expected 2024-06-07 or earlier for round 4.0",
        ),
        (
            "logs",
            timeless(RESNET),
            "4.0",
            "ROUND102",
            "no run has a timestamp, so the newest round, 4.0, is assumed",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["loose", "submission"])
def test_a_doubtful_round_is_one_warning_that_names_the_option(
    tmp_path: Path, case: Any, kind: str
) -> None:
    folder, logs, round_, code, text = case
    root = tmp_path / folder
    path = write_set(root, logs) if kind == "loose" else write_tree(root, "resnet", logs)
    report = report_on(path)
    assert (report.round, {run.round for run in report.runs}) == (round_, {round_})
    assert [finding.code for finding in doubts(report)] == ([code] if code else [])
    assert [
        finding
        for finding in doubts(report)
        if (finding.severity, finding.basis) != (Severity.WARNING, Basis.ADVICE)
    ] == []
    assert [finding for finding in doubts(report) if "--round" not in (finding.hint or "")] == []
    assert [finding for finding in doubts(report) if not finding.text.endswith(text)] == []
    assert [finding for finding in doubts(report) if len(finding.occurrences) != len(logs)] == []


@pytest.mark.parametrize("days", [-YEAR, YEAR])
def test_a_round_as_given_is_not_doubted(tmp_path: Path, days: int) -> None:
    folder = write_set(tmp_path, moved(RESNET, days))
    assert not doubts(report_on(folder, round_="2.0"))
    options = Options(jobs=1, config=Config(round="2.0"))
    assert not doubts(check([str(folder)], options).report)


def test_logs_after_the_newest_round_of_all(tmp_path: Path) -> None:
    """Nothing is known of the rules of such logs but that those of the newest round may change."""
    newest = rounds("training")[-1]
    late = (submission_date("training", newest) - submission_date("training", "2.0")).days + 60
    report = report_on(write_set(tmp_path, moved(nameless(RESNET), late)))
    assert (report.round, [finding.code for finding in doubts(report)]) == (newest, ["ROUND102"])
