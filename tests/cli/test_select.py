"""``mlperf-pkg select``."""

import json
from pathlib import Path

import pytest

from mlperf_pkg.commands.select.select import SELECT_FORMATS
from tests.helpers.logs import edited, without
from tests.helpers.program import call
from tests.helpers.trees import simulated, simulated_models, write_set

SEVEN = simulated(runs=7)
CHESS = edited(SEVEN[0], "submission_benchmark", value="chess")
NAMELESS = without(SEVEN[0], "submission_benchmark")


def last_fail(number: int) -> tuple[bytes, ...]:
    failed = (edited(log, "run_stop", metadata={"status": "aborted"}) for log in SEVEN[-number:])
    return (*SEVEN[:-number], *failed)


@pytest.mark.parametrize(
    ("logs", "status", "text"),
    [
        (SEVEN[:5], 0, "nothing to select, as the set has only the 5 runs that are required"),
        (SEVEN[:4], 1, "no valid result: only 4 of the 5 required runs are there"),
        (last_fail(1), 0, "submit result_"),
        (last_fail(2), 0, "runs 3 to 7 infinite 2 runs did not converge or have no time-to-train"),
        (last_fail(3), 1, "no valid result: the median is infinite, as 2 of 3 windows"),
        (last_fail(2)[2:], 1, "no valid result: 2 runs did not converge or have no time-to-train"),
        ((*SEVEN[1:], without(SEVEN[0], "run_start")), 0, "1 run without run_start, sorted last"),
        ((CHESS,), 2, "not checked: no rules of chess"),
        ((NAMELESS,), 2, "there is no result set, as no log names its benchmark"),
    ],
)
def test_text(tmp_path: Path, logs: tuple[bytes, ...], status: int, text: str) -> None:
    result = call("select", write_set(tmp_path, logs))
    assert (result.exit_code, text in " ".join(result.stdout.split())) == (status, True)


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    (write_set(tmp_path, SEVEN[:5]) / "r5.log").write_bytes(SEVEN[5].replace(b"G {", b"G{"))
    result = call("select", tmp_path, "--format", "json")
    (note,) = json.loads(result.stdout)["not_counted"]
    assert note.startswith("r5.log: no space follows the marker ':::MLLOG'")


def test_the_order_is_that_of_start_not_of_names(tmp_path: Path) -> None:
    result = call("select", write_set(tmp_path, SEVEN[::-1]), "--format", "json")
    only = json.loads(result.stdout)["result_sets"][0]
    assert [run["path"] for run in only["runs"]] == [f"result_{n}.txt" for n in range(7)][::-1]
    windows = [(window["first"], window["last"]) for window in only["windows"]]
    assert windows == [(1, 5), (2, 6), (3, 7)]
    window = next(window for window in only["windows"] if window["chosen"])
    numbers = [number for number, run in enumerate(only["runs"], 1) if run["chosen"]]
    assert numbers == list(range(window["first"], window["last"] + 1))
    assert window["minutes"] == only["minutes"] == only["median_minutes"]
    assert only["state"] == "selected"


@pytest.mark.parametrize(
    ("models", "status", "text"), [(10, 0, "all models of weak"), (9, 1, "only 9 of 10 models")]
)
def test_weak_scaling(tmp_path: Path, models: int, status: int, text: str) -> None:
    write_set(tmp_path / "ACME/results/box/weak/cosmoflow", simulated_models(models))
    result = call("select", tmp_path / "ACME", "--usage", "hpc", "--round", "3.0")
    assert (result.exit_code, text in result.stdout) == (status, True)


@pytest.mark.parametrize("format_", SELECT_FORMATS)
def test_formats(format_: str, tmp_path: Path) -> None:
    """A run outside result sets is in each but CSV; a hostile name is escaped."""
    logs = [edited(log, "submission_platform", value="=a\x1b[31m") for log in SEVEN]
    folder = write_set(tmp_path, (*logs, NAMELESS))
    result = call("select", folder, "--format", format_)
    assert result.exit_code == 0
    assert ("\x1b" in result.stdout, "[31m" in result.stdout) == (False, True), format_
    assert result.stdout.count("result_7.txt") == (format_ != "csv")
