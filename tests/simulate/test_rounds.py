"""Whole rounds: both checkers pass them, and the plan and the seed alone decide what they hold."""

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.builder.prepare import Order, prepare
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.commands.builder.writing import write_tree
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.infra import files
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.rounds import has_ruleset
from mlperf_pkg.simulate import RoundPlan, write_round
from mlperf_pkg.simulate.rounds import deal
from tests.helpers.examples import FULL, newest
from tests.helpers.official import package_verdict
from tests.helpers.rulesets import EVERY_ROUND, require_ruleset
from tests.helpers.workspaces import bytes_below as contents

PASS = Verdicts(Verdict.PASS, Verdict.PASS)
UNKNOWN = Verdicts(Verdict.NOT_CHECKED, Verdict.PASS)
"""Those of a round that the installed mlperf-logging does not have."""

SOME_ROUNDS = newest(EVERY_ROUND, lambda row: (row[0], row == EVERY_ROUND[0]))
SMALL = RoundPlan("training", "5.1", systems=2, submitters=1, benchmarks=("retinanet",))


def report_on(folder: Path, usage: str = "training", round_: str | None = None) -> Report:
    return check([str(folder)], Options(usage, round_)).report


@pytest.mark.parametrize(("usage", "name"), SOME_ROUNDS)
def test_every_benchmark_of_every_round_passes(usage: str, name: str, tmp_path: Path) -> None:
    plan = RoundPlan(usage, name, submitters=2, systems=2, sets=99, code=True)
    written = write_round(plan, tmp_path / "new" / "round")
    report = report_on(tmp_path / "new" / "round", usage)
    assert report.verdict == (PASS if has_ruleset(usage, name) else UNKNOWN)
    assert report.findings == ()
    assert (report.round, len(report.systems)) == (name, 2)
    assert (len(report.result_sets), len(report.runs)) == written[:2]
    benchmarks = load_round(usage, name).benchmarks
    assert {result_set.benchmark for result_set in report.result_sets} == set(benchmarks)
    assert [row.division for row in report.systems] == ["closed", "open"]


PACKAGED = newest([("training", "2.0"), ("training", "5.1"), ("hpc", "3.0")], lambda row: row[0])


@pytest.mark.parametrize(("usage", "name"), PACKAGED)
def test_the_official_package_checker_passes(
    usage: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Every benchmark is in the tests of the compliance and of the RCP checker.
    sets = 99 if FULL else 2
    plan = RoundPlan(usage, name, submitters=1, systems=2, sets=sets, power=True, code=True)
    write_round(plan, tmp_path / "round")
    ruleset = load_round(usage, name).ruleset
    verdict = package_verdict(tmp_path / "round" / "Submitter1", caplog, usage, ruleset)
    assert verdict == "pass"
    assert "RCP Test Failed" not in caplog.text


def test_a_closed_submission_of_every_benchmark_of_the_newest_round(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Built of its logs and descriptions; the official package checker finds no error in it."""
    newest = rounds("training")[-1]
    plan = RoundPlan("training", newest, 1, 1, sets=99, divisions=("closed",))
    write_round(plan, tmp_path / "round")
    inputs = tmp_path / "round" / "Submitter1"
    prepared = prepare(Folders.of(inputs, output=tmp_path / "built"), Order())
    assert prepared.refusals == ()
    write_tree(prepared.target, prepared.files, force=False)
    planned = [judged_set.planned for judged_set in prepared.judged]
    built = {(planned_set.system.id, planned_set.benchmark) for planned_set in planned}
    assert len(built) == len(load_round("training", newest).benchmarks)
    require_ruleset("training", newest)
    ruleset = load_round("training", newest).ruleset
    assert package_verdict(prepared.target, caplog, ruleset=ruleset) == "pass"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("round_", "benchmark", "division"), [("5.1", "llama31_8b", "closed"), ("2.0", "dlrm", "open")]
)
def test_divisions_that_cannot_have_a_benchmark(round_: str, benchmark: str, division: str) -> None:
    dealt = deal(RoundPlan("training", round_, benchmarks=(benchmark,)))
    assert {system.division for system in dealt} == {division}
    assert len(dealt) == 10


def test_failures_in_turn_and_power_of_small_systems(tmp_path: Path) -> None:
    plan = replace(SMALL, sets=1, divisions=("closed",), failures=("diverged", "missing_key"))
    failures = [failure for s in deal(replace(plan, systems=21)) for _, failure, _ in s.sets]
    expected = {0: "diverged", 10: "missing_key", 20: "diverged"}
    assert {at: failure for at, failure in enumerate(failures) if failure} == expected
    write_round(replace(plan, systems=3, power=True), tmp_path / "round")
    report = report_on(tmp_path / "round")
    assert [run.status for run in report.runs] == [*["success"] * 4, "aborted", *["success"] * 10]
    assert report.verdict == PASS
    measured = {result_set.system for result_set in report.result_sets if result_set.energy_joules}
    assert measured == {"system1_8x", "system2_16x"}
    assert [*tmp_path.glob("round/*/results/system2_16x/retinanet/power/result_4/sw_0.txt")]


def test_the_same_bytes_by_any_number_of_processes(tmp_path: Path) -> None:
    plan = replace(SMALL, statistics=3, power=True)
    for name, jobs, seed in (("one", 1, 0), ("three", 3, 0), ("other", 1, 1)):
        write_round(replace(plan, seed=seed), tmp_path / name, jobs=jobs)
    one, three, other = (contents(tmp_path / name) for name in ("one", "three", "other"))
    assert one == three
    assert one.keys() == other.keys()
    assert {name for name in one if name.endswith("_0.txt") and one[name] == other[name]} == set()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"benchmarks": ("bert",)},
            "unknown benchmark of round 5.1: 'bert' \\(.*\\); the last round of bert was 5.0",
        ),
        ({"round": "9.9"}, "unknown round: '9.9'"),
        ({"submitters": 3}, "2 systems of 3 submitters; expected at least as many"),
        (
            {"divisions": ("open",), "benchmarks": ("llama31_8b",)},
            "accepts no open result of llama31_8b in round 5.1",
        ),
    ],
)
def test_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        write_round(replace(SMALL, **changes), tmp_path / "round")
    assert list(tmp_path.iterdir()) == []


def test_only_a_simulated_round_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "round"
    write_round(SMALL, target)
    before = contents(target)
    with pytest.raises(UserError, match="--force replaces it"):
        write_round(replace(SMALL, seed=1), target)
    assert contents(target) == before
    write_round(replace(SMALL, seed=1), target, force=True)
    assert contents(target) != before
    (target / "README.md").write_text("mine")
    with pytest.raises(UserError, match="not a round that mlperf-pkg simulated; it is not"):
        write_round(SMALL, target, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["round"]


def test_nothing_stays_of_a_round_that_was_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(28, "No space left on device")
    monkeypatch.setattr(files, "_install", mock.Mock(side_effect=error))
    with pytest.raises(UserError, match="round: cannot be written: No space left on device"):
        write_round(SMALL, tmp_path / "deep" / "round")
    assert list(tmp_path.iterdir()) == []
