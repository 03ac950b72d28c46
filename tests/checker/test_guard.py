"""What goes wrong in the check of one thing is a finding about it; any number of processes gives
the same report.
"""

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker import judge, plan, reading
from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks import tree
from mlperf_pkg.findings import Verdict
from mlperf_pkg.render.table import json_text
from mlperf_pkg.results.report import Report, as_json
from mlperf_pkg.run.reading import read_run
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission

NOT_CHECKED = Verdict.NOT_CHECKED
READ: Any = read_run
SET = f"Mallory/results/{SYSTEM}/resnet"
LOG = f"{SET}/result_0.txt"


@pytest.fixture(scope="module")
def whole_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round of two submitters."""
    root = tmp_path_factory.mktemp("round") / "training_results_v2.0"
    write_submission(root / "Alice")
    write_submission(root / "Mallory", seed=8)
    return root


def failing(function: Callable[..., Any], is_hostile: Callable[..., bool], error: Exception) -> Any:
    def call_or_fail(*arguments: Any) -> Any:
        if is_hostile(*arguments):
            raise error
        return function(*arguments)

    return call_or_fail


def report_of(root: Path, **more: Any) -> Report:
    return check([str(root)], Options(**more)).report


def of(report: Report, submitter: str) -> Any:
    """All that a report says about a submitter, but for companies: those are of the whole round."""
    sets = [replace(row, companies=()) for row in report.result_sets]
    rows = as_json((*report.systems, *sets, *report.runs, *report.findings))
    return [row for row in rows if submitter in row["path"]]


GUARDED: list[tuple[str, Any, str, Callable[..., bool]]] = [
    (LOG, reading, "read_run", lambda log: log.source.label == LOG),
    (SET, judge, "check_set", lambda context, *_: context.path == SET),
    (
        f"Mallory/systems/{SYSTEM}.json",
        judge,
        "check_system",
        lambda path, *_: path.startswith("Mallory"),
    ),
    ("Mallory", tree, "check_contents", lambda submission: submission.name == "Mallory"),
    ("Mallory", judge, "_judge_submission", lambda plan, *_: plan.label == "Mallory"),
    ("Mallory", plan, "_plan_sets", lambda sets, choice, submission: submission.name == "Mallory"),
]


@pytest.mark.parametrize("case", GUARDED, ids=[case[2] for case in GUARDED])
@pytest.mark.parametrize("error", [RecursionError("too deep"), MemoryError(), KeyError("x")])
def test_a_defect_ends_the_check_of_one_thing(
    case: Any, error: Exception, whole_round: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, module, name, is_hostile = case
    expected = report_of(whole_round)
    monkeypatch.setattr(module, name, failing(getattr(module, name), is_hostile, error))
    report = report_of(whole_round)
    assert of(report, "Alice") == of(expected, "Alice")
    [finding] = [finding for finding in report.findings if finding.code == "CHECK101"]
    assert (finding.path, type(error).__name__ in finding.text) == (path, True)
    assert report.has_errors
    assert report.verdict == type(report.verdict)(NOT_CHECKED, NOT_CHECKED)
    rows: list[Any] = [*report.result_sets, *report.runs, *report.systems]
    assert all(row.verdict == report.verdict for row in rows if row.path == path)


def test_the_exit_status_and_the_traceback(
    whole_round: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = failing(READ, lambda log: log.source.label == LOG, ZeroDivisionError("odd"))
    monkeypatch.setattr(reading, "read_run", read)
    result = call("check", whole_round)
    assert result.exit_code == 1
    assert "ZeroDivisionError: odd" in result.stdout
    assert "Traceback" not in caplog.text
    with caplog.at_level(logging.DEBUG):
        call("--debug", "check", whole_round)
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_that_is_killed_is_replaced_and_its_file_read_once_more(
    times: int, whole_round: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = report_of(whole_round)
    killed = tmp_path / "killed"

    def killed_at_first(log: Any) -> Any:
        count = len(killed.read_bytes()) if killed.exists() else 0
        if log.source.label == LOG and count < times:
            killed.write_bytes(b"x" * (count + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return READ(log)

    monkeypatch.setattr(reading, "read_run", killed_at_first)
    monkeypatch.setattr(reading, "PARALLEL_FROM_BYTES", 0)
    report = report_of(whole_round, jobs=2)
    assert of(report, "Alice") == of(expected, "Alice")
    lost = [finding for finding in report.findings if finding.code == "CHECK102"]
    if times == 1:
        assert as_json(report) == as_json(expected)
    else:
        assert [finding.path for finding in lost] == [LOG]
        assert "SIGKILL" in lost[0].text


def report(logs: Path, jobs: int) -> str:
    return json_text(as_json(check([str(logs)], Options(jobs=jobs)).report))


def test_the_report_does_not_depend_on_the_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two loose result sets, whose logs are of different sizes."""
    monkeypatch.setattr(reading, "PARALLEL_FROM_BYTES", 0)
    for benchmark in ("resnet", "bert"):
        logs = simulated(benchmark)
        cut = tuple(log[: len(log) - 300 * index] for index, log in enumerate(logs))
        write_set(tmp_path / benchmark, cut)
    alone = report(tmp_path, 1)
    assert '"LOG101"' in alone
    assert report(tmp_path, 2) == report(tmp_path, 5) == alone
