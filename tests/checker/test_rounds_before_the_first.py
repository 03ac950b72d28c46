"""Logs and trees of rounds before the first of the rules: refused, by what they say themselves."""

from pathlib import Path

import pytest

from tests.helpers.logs import joined, records
from tests.helpers.program import call
from tests.helpers.trees import simulated_models
from tests.helpers.workspaces import RESNET, lay

OF_06 = b':::MLL 1558.071 submission_benchmark: {"value": "resnet", "metadata": {}}\n'
OF_05 = b":::MLPv0.5.0 resnet 1541.149 (x.py:1) submission_benchmark: resnet\n"
TREE = "ACME/results/box/resnet"
FORMAT_06 = "this is the format of round 0.6; the rules begin with round 0.7"
FORMAT_05 = "this is the format of round 0.5; the rules begin with round 0.7"
HPC = "this is the format of HPC round 0.7; the rules begin with HPC round 1.0"


def in_2020(log: bytes) -> bytes:
    """The log of an HPC run, dated 1 August 2020."""
    fields = records(log)
    earlier_ms = fields[0]["time_ms"] - 1_596_240_000_000
    return joined([{**record, "time_ms": record["time_ms"] - earlier_ms} for record in fields])


OLD = in_2020(simulated_models(1)[0])


@pytest.mark.parametrize(
    ("files", "argument", "reason"),
    [
        pytest.param({"logs/a.log": OF_06}, "logs", FORMAT_06, id="logs"),
        pytest.param({"logs/a.log": OF_05}, "logs/a.log", FORMAT_05, id="a log"),
        pytest.param({"logs/result_0.txt": OF_06}, "logs", FORMAT_06, id="by name a result"),
        pytest.param({f"{TREE}/result_0.txt": OF_06}, TREE, FORMAT_06, id="a result set"),
        pytest.param(
            {f"{TREE}/result_0.txt": OF_06, "ACME/systems/box.json": b"{}"},
            "ACME",
            FORMAT_06,
            id="a submission",
        ),
        pytest.param(
            {f"training_results_v0.6/{TREE}/result_0.txt": RESNET[0]},
            "training_results_v0.6",
            FORMAT_06,
            id="a tree by its name",
        ),
        pytest.param(
            {f"hpc_results_v0.7/{TREE}/result_0.txt": OLD},
            "hpc_results_v0.7",
            HPC,
            id="a tree of HPC by its name",
        ),
        pytest.param({"logs/a.log": OLD}, "logs", HPC, id="logs of HPC by their time"),
    ],
)
@pytest.mark.parametrize("command", ["check", "score"])
def test_refused(
    tmp_path: Path, command: str, files: dict[str, bytes], argument: str, reason: str
) -> None:
    result = call(command, lay(tmp_path, files) / argument)
    assert (result.exit_code, reason in " ".join(result.output.split())) == (2, True)


def test_old_logs_among_others_are_named(tmp_path: Path) -> None:
    result = call("check", lay(tmp_path, {"a.log": RESNET[0], "b.log": OF_06}), "--partial")
    assert (result.exit_code, FORMAT_06 in " ".join(result.output.split())) == (0, True)


@pytest.mark.parametrize("round_", ["0.5", "0.6"])
def test_a_round_that_is_named(tmp_path: Path, round_: str) -> None:
    result = call("check", lay(tmp_path, {"a.log": RESNET[0]}), "--round", round_)
    reason = f"this is the format of round {round_}; the rules begin with round 0.7"
    assert (result.exit_code, reason in result.output) == (2, True)
