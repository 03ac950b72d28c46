"""``mlperf-pkg simulate``: logs that pass the check, and the description of their system."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.program import call
from tests.helpers.trees import write_system
from tests.helpers.workspaces import bytes_below, lay

RESNET = ("--benchmark", "resnet", "--system", "dgx-a100-640gb", "--submitter", "ACME")


def names(folder: Path) -> list[str]:
    return sorted(bytes_below(folder))


@pytest.mark.parametrize(
    ("layout", "log"), [("flat", "{}_resnet_{}.log"), ("tree", "{}/resnet/result_{}.txt")]
)
def test_layouts(layout: str, log: str, tmp_path: Path) -> None:
    folder = tmp_path / layout / "logs"
    result = call("simulate", folder, *RESNET, "--runs", "2", "--layout", layout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert names(folder) == [log.format("dgx-a100-640gb", number) for number in range(2)]
    described = f"{folder.parent}/systems/dgx-a100-640gb.json (system description)"
    assert result.stdout.splitlines() == [*(f"{folder}/{n}" for n in names(folder)), described]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    taken = lay(tmp_path, {"logs/dgx-a100-640gb_resnet_3.log": b"mine"})
    taken /= "logs/dgx-a100-640gb_resnet_3.log"
    result = call("simulate", taken.parent, *RESNET)
    assert result.exit_code == 2
    assert result.stderr == f"mlperf-pkg: error: {taken} exists already and is not overwritten\n"
    assert bytes_below(tmp_path) == {f"logs/{taken.name}": b"mine"}
    assert not (tmp_path / "systems").exists()


SYSTEM_X = ("--system", "x", "--submitter", "ACME", "--runs", "1")
HPC = ("--usage", "hpc", "--benchmark", "cosmoflow")


@pytest.mark.parametrize(
    ("options", "name", "scale"),
    [
        ((*RESNET, "--division", "open", "--round", "2.0"), "DGX A100 640GB", (1, 8)),
        ((*RESNET, "--accelerators", "32"), "DGX A100 640GB", (4, 8)),
        (("--benchmark", "llama31_8b", "--round", "6.0", *SYSTEM_X), "Simulated system x", (2, 8)),
        ((*HPC, *SYSTEM_X, "--accelerators", "20"), "Simulated system x", (4, 5)),
        ((*HPC, *SYSTEM_X, "--division", "open", "--system", "bow-pod64"), "Bow Pod64", (1, 64)),
    ],
)
def test_the_system_is_described(
    tmp_path: Path, options: tuple[str, ...], name: str, scale: tuple[int, int]
) -> None:
    """As the logs are, and validly in their round: beside the logs, the tree is a submission."""
    result = call("simulate", tmp_path / "results", *options, "--layout", "tree")
    assert (result.exit_code, result.stderr) == (0, "")
    (path,) = (tmp_path / "systems").iterdir()
    fields = json.loads(path.read_text("utf-8"))
    division = "open" if "open" in options else "closed"
    assert (fields["submitter"], fields["division"], fields["system_name"]) == (
        "ACME",
        division,
        name,
    )
    assert (fields["number_of_nodes"], fields["accelerators_per_node"]) == (*map(str, scale),)
    report = json.loads(call("check", tmp_path, "--format", "json").stdout)
    (system,) = report["systems"]
    assert system["verdict"] == {"official": "pass", "rules": "pass"}
    assert [f for f in report["findings"] if f["code"] in {"SET140", "SET141", "SET142"}] == []


@pytest.mark.parametrize("folder", ["logs/bert", "results/x/more", "runs", "."])
def test_the_description_is_beside_the_logs(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("systems", "dgx-a100-640gb.json")
    result = call("simulate", folder, *RESNET, "--runs", "1")
    assert result.stdout.splitlines()[1:] == [f"{path} (system description)"], folder
    path.unlink()


ALIKE = {
    "submitter": "ACME",
    "division": "closed",
    "number_of_nodes": "1",
    "accelerators_per_node": "8",
}
OTHER = {**ALIKE, "division": "open", "number_of_nodes": "2"}


def test_a_description_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "systems" / "dgx-a100-640gb.json"
    path.parent.mkdir()
    path.write_text("not JSON")
    result = call("simulate", tmp_path / "logs", *RESNET, "--runs", "1")
    assert result.stdout.splitlines() == [f"{tmp_path}/logs/dgx-a100-640gb_resnet_0.log"]
    assert (result.exit_code, result.stderr) == (0, "")
    assert path.read_text() == "not JSON"


@pytest.mark.parametrize(
    ("write", "message"),
    [
        pytest.param(
            lambda path: write_system(path.parent, path.stem, **OTHER),
            " describes another system: "
            'the division is "open", but "closed" in the logs to be written; '
            "the number of accelerators is 16, but 8 in the logs to be written; "
            "choose another --system, or another FOLDER",
            id="of another division and size",
        ),
        pytest.param(
            lambda path: write_system(path.parent, path.stem, **{**ALIKE, "submitter": "Other"}),
            ' describes another system: the submitter is "Other", '
            'but "ACME" in the logs to be written; '
            "choose another --system, or another FOLDER",
            id="of another submitter",
        ),
        pytest.param(Path.mkdir, ": cannot be read: Is a directory", id="a folder"),
    ],
)
def test_the_description_of_another_system_is_refused(
    tmp_path: Path, write: Callable[[Path], object], message: str
) -> None:
    path = tmp_path / "systems" / "dgx-a100-640gb.json"
    path.parent.mkdir()
    write(path)
    before = bytes_below(tmp_path)
    result = call("simulate", tmp_path / "logs", *RESNET, "--runs", "1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"mlperf-pkg: error: {path}{message}\n"
    assert bytes_below(tmp_path) == before


def test_a_whole_round(tmp_path: Path) -> None:
    target = tmp_path / "round"
    options = ("--round", "v4.1", "--submitters", "2", "--system-count", "3", "--sets", "1")
    chosen = ("--benchmark", "ssd", "--benchmark", "gnn", "--division", "closed")
    result = call("simulate", target, *options, *chosen, "--with", "code", "--records", "10")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{target}: training 4.1, 3 systems, 3 result sets, 25 logs, ")
    assert len(names(target)) == 3 + 25 + 1 + 3 * 5
    report = json.loads(call("check", target, "--format", "json").stdout)
    assert report["verdict"] == {"official": "pass", "rules": "pass"}
    assert (report["round"], report["findings"]) == ("4.1", [])
    again = call("simulate", target, "--submitters", "3")
    assert again.exit_code == 2
    assert again.stderr == f"mlperf-pkg: error: {target} exists already; --force replaces it\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*RESNET, "--system", "../x"], "--system '../x' is not a valid file name"),
        ([*RESNET, "--minutes", "-1"], "minutes is -1.0; expected a positive number"),
        ([*RESNET, "--optimizer", "adam"], "unknown optimizer of resnet: 'adam'"),
        (
            ["--benchmark", "bert"],
            "missing --system, --submitter; to write a whole round, give --submitters instead",
        ),
        (
            ["--benchmark", "resnt", *RESNET[2:]],
            "unknown benchmark of training: 'resnt'; expected one of",
        ),
        ([*RESNET, "--benchmark", "bert"], "a result set has one benchmark"),
        (["--system-count", "3", "--runs", "3"], "--runs is an option of one result set"),
        ([*RESNET, "--with", "power"], "--with is an option of a whole round"),
        (["--system-count", "2", "--submitters", "3"], "2 systems of 3 submitters"),
        (["--submitters", "3", "--benchmark", "resnt"], "unknown benchmark of round"),
    ],
)
def test_options_that_do_not_fit(options: list[str], message: str, tmp_path: Path) -> None:
    result = call("simulate", tmp_path / "new", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []
