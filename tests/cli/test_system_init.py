"""``mlperf-pkg system init``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlperf_pkg.cli import system
from mlperf_pkg.rulebook.files import rounds
from tests.helpers.machines import EPYC
from tests.helpers.program import call

NEWEST = rounds("training")[-1]

KNOWN = ("--submitter", "ACME", "--division", "closed", "--name", "X8", "--nodes", "1")


@pytest.fixture(autouse=True)
def epyc(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = EPYC.sources(tmp_path_factory.mktemp("root"))
    monkeypatch.setattr(system, "this_machine", lambda: sources)


def test_to_standard_output() -> None:
    result = call("system", "init", *KNOWN, "--round", "v3.1", "--status", "cloud")
    assert result.exit_code == 0
    fields = json.loads(result.stdout)
    assert (fields["status"], fields["accelerators_per_node"]) == ("cloud", "8")
    assert result.stderr == (
        "fields to fill in: accelerator_memory_configuration, cooling, host_network_card_count\n"
    )


def test_to_a_file_that_the_check_then_refuses(tmp_path: Path) -> None:
    file = tmp_path / "x8.json"
    result = call("system", "init", *KNOWN, "-o", file)
    assert (result.exit_code, result.stdout) == (0, "")
    checked = call("system", "check", file)
    assert checked.exit_code == 1
    assert f"Errors\n  {file}:4: status is " in checked.stdout
    assert (
        f"  {file}:4: 4 fields are not filled in: status, accelerator_memory_configuration,"
    ) in checked.stdout
    assert call("system", "init", "-o", file).stderr.endswith("--force overwrites it\n")
    assert call("system", "init", "-o", file, "--force").exit_code == 0
    assert json.loads(file.read_text())["submitter"].startswith("FILL IN: ")
    assert [path.name for path in tmp_path.iterdir()] == ["x8.json"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--status", "soon"],
            f"unknown status of round {NEWEST}: 'soon' (known: Available on-premise;",
        ),
        (["--status", "onprm"], "'onprm'; did you mean onprem? (known: Available on-premise;"),
        (["--round", "9.9"], "9.9"),
        (["--division", "network"], "'network'"),
        (["--nodes", "0"], "x>=1"),
        (["-o", "no/such/folder/x.json"], "the folder no/such/folder does not exist"),
    ],
)
def test_init_refuses(options: list[str], message: str) -> None:
    result = call("system", "init", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_init_has_the_round_of_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlperf-pkg.yaml").write_text('round: "2.0"', "utf-8")
    assert json.loads(call("system", "init", "--status", "cloud").stdout)["status"] == "cloud"
    monkeypatch.chdir(tmp_path.parent)
    assert json.loads(call("system", "init", "--status", "cloud").stdout)["status"] != "cloud"
