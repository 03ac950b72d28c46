"""``mlperf-pkg system init``."""

import json
from pathlib import Path

import pytest

from mlperf_pkg.commands.system import machine
from mlperf_pkg.commands.system.description import UserValues, describe
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.rounds import has_ruleset
from tests.helpers.machines import EPYC
from tests.helpers.program import call
from tests.helpers.workspaces import RESNET, lay

NEWEST = rounds("training")[-1]

KNOWN = ("--submitter", "ACME", "--division", "closed", "--name", "X8", "--nodes", "1")


@pytest.fixture(autouse=True)
def epyc(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = EPYC.sources(tmp_path_factory.mktemp("root"))
    monkeypatch.setattr(machine, "this_machine", lambda: sources)


def test_to_a_file_that_the_check_then_refuses(tmp_path: Path) -> None:
    file = tmp_path / "x8.json"
    result = call("system", "init", *KNOWN, "-o", file)
    assert (result.exit_code, result.stdout) == (0, "")
    checked = call("system", "check", file)
    assert checked.exit_code == 1
    assert f"  {file}:4: 5 fields are not filled in: status, accelerator_memory" in checked.stdout
    assert call("system", "init", "-o", file).stderr.endswith("--force overwrites it\n")
    assert call("system", "init", "-o", file, "--force").exit_code == 0
    assert json.loads(file.read_text())["submitter"].startswith("FILL IN: ")
    assert [path.name for path in tmp_path.iterdir()] == ["x8.json"]


GIVEN = ("--submitter", "ACME", "--division", "closed", "--name", "Pod", "--status", "cloud")


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Return a folder with the descriptions of three equal nodes."""
    fields = json.dumps(describe(EPYC.sources(tmp_path / "root"), UserValues("5.1"))).encode()
    return lay(tmp_path / "nodes", {f"n{number}.json": fields for number in range(3)})


def test_equal_nodes(nodes: Path, tmp_path: Path) -> None:
    file = tmp_path / "pod.json"
    result = call("system", "init", nodes, *GIVEN, "--round", "5.1", "-o", file)
    assert result.exit_code == 0
    assert result.stderr.startswith("fields to fill in: host_networking_topology, ")
    values = UserValues("5.1", "ACME", "closed", "cloud", "Pod", 3)
    expected = describe(EPYC.sources(tmp_path / "root"), values)
    assert json.loads(file.read_text("utf-8")) == expected


def test_a_node_that_differs(nodes: Path) -> None:
    file = nodes / "n2.json"
    values = {"accelerators_per_node": "7", "other_software_stack": {"new": "13"}}
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")
    result = call("system", "init", nodes)
    assert result.exit_code == 1
    assert [
        difference
        for difference in (
            'accelerators_per_node: "8" (n0.json, n1.json); "7" (n2.json)',
            'other_software_stack.new: no value (n0.json, n1.json); "13" (n2.json)',
        )
        if difference not in result.stderr
    ] == []
    fields = json.loads(result.stdout)
    assert fields["accelerators_per_node"] == "FILL IN: 8 or 7"
    assert fields["other_software_stack"]["new"] == "13"


def test_the_folder_of_descriptions_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As hints of other commands print it."""
    monkeypatch.chdir(tmp_path)
    result = call("system", "init", "--division", "closed", "-o", "systems/box.json")
    assert result.exit_code == 0
    assert json.loads(Path("systems/box.json").read_text("utf-8"))["division"] == "closed"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--status onprm", "'onprm'; did you mean onprem? (the statuses are Available on-premise;"),
        ("-o no/such/folder/x.json", "the folder no/such/folder does not exist"),
        ("{nodes} {nodes}/n0.json", "n0.json: named twice; expected a file for each node"),
        ("{nodes} --nodes 4", "--nodes is 4; expected 3, the number of descriptions of nodes"),
        ("{nodes} -o {nodes}/x.json", "refusing to write inside an input folder"),
        ("{nodes}/..", "no system description in this folder"),
        ("{nodes}/no.json", "no.json: no such file or folder"),
    ],
)
def test_nodes_that_are_refused(line: str, message: str, nodes: Path) -> None:
    result = call("system", "init", *line.format(nodes=nodes).split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


INFERRED = "inferred as the first round after the resnet run of 2022-05-06"
FILES = sorted(data_folder("systems").glob("*.json"))


def test_the_descriptions_that_travel_with_the_package() -> None:
    result = call("system", "check", *FILES)
    assert (result.exit_code, result.stderr) == (0, "")
    official = "pass    " if has_ruleset("training", rounds("training")[-1]) else "not checked"
    assert f"\n  dgx-a100-640gb   closed               8  {official}  pass\n" in result.stdout
    assert "the newest round that mlperf-pkg knows\n\n" in result.stdout


def test_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("system", "check")
    assert result.exit_code == 2
    assert "no PATH given, and there is no folder systems/ here" in result.stderr
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "x.json").write_bytes(FILES[0].read_bytes())
    assert call("system", "check").exit_code == 0


@pytest.mark.parametrize(
    ("log", "config", "paths", "round_"),
    [
        (RESNET[0], "", (), f"round 2.0: from the logs in logs/, {INFERRED}"),
        (b"", "", (), f"round {NEWEST}: the newest round that mlperf-pkg knows"),
        (b"", "usage: hpc", (), "round 3.0: the newest round that mlperf-pkg knows"),
        (RESNET[0], 'round: "2.1"', (), "round 2.1: as mlperf-pkg.yaml says"),
        (b"", 'round: "2.1"', ("systems/x.json", "--round", "2.0"), "round 2.0: as given"),
    ],
)
def test_the_round_of_the_logs(
    log: bytes,
    config: str,
    paths: tuple[()] | tuple[str, str, str],
    round_: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {"logs/a.log": b"hello", "systems/x.json": FILES[0].read_bytes()}
    monkeypatch.chdir(lay(tmp_path, files))
    lay(tmp_path, {"logs/b.log": log, CONFIG_NAME: config.encode()})
    assert round_ in " ".join(call("system", "check", *paths).stdout.split())
