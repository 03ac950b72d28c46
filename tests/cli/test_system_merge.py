"""``mlperf-pkg system init NODE...``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.system import UserValues, describe
from tests.helpers.machines import EPYC
from tests.helpers.program import call

GIVEN = ("--submitter", "ACME", "--division", "closed", "--name", "Pod", "--status", "cloud")


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Return a folder with the descriptions of three equal nodes."""
    fields = describe(EPYC.sources(tmp_path / "root"), UserValues("5.1"))
    folder = tmp_path / "nodes"
    folder.mkdir()
    for number in range(3):
        (folder / f"n{number}.json").write_text(json.dumps(fields), "utf-8")
    return folder


def change(folder: Path, number: int, **values: Any) -> None:
    file = folder / f"n{number}.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


def test_equal_nodes(nodes: Path, tmp_path: Path) -> None:
    file = tmp_path / "pod.json"
    result = call("system", "init", nodes, *GIVEN, "--round", "5.1", "-o", file)
    assert result.exit_code == 0
    assert result.stderr.startswith("fields to fill in: host_networking_topology, ")
    expected = describe(
        EPYC.sources(tmp_path / "root"),
        UserValues("5.1", "ACME", "closed", "cloud", "Pod", 3),
    )
    assert json.loads(file.read_text("utf-8")) == expected


@pytest.mark.parametrize(
    ("values", "difference", "merged"),
    [
        (
            {"accelerators_per_node": "7"},
            'accelerators_per_node: "8" (n0.json, n1.json); "7" (n2.json)',
            "FILL IN: 8 or 7",
        ),
        (
            {"host_memory_capacity": ""},
            'host_memory_capacity: "2048 GiB" (n0.json, n1.json); no value (n2.json)',
            "2048 GiB",
        ),
        (
            {"other_software_stack": {"new": "13"}},
            'other_software_stack.new: no value (n0.json, n1.json); "13" (n2.json)',
            "13",
        ),
        ({"other_software_stack": "CUDA 13"}, '; "CUDA 13" (n2.json)', "FILL IN: "),
        (
            {"number_of_nodes": "8"},
            'number_of_nodes: "8" (n2.json); expected 3, one for each file',
            "3",
        ),
        ({"cooling": "air\u202e"}, 'cooling: no value (n0.json, n1.json); "air\\u202e"', "air"),
    ],
)
def test_a_node_that_differs(
    nodes: Path, values: dict[str, Any], difference: str, merged: str
) -> None:
    change(nodes, 2, **values)
    result = call("system", "init", nodes)
    assert result.exit_code == 1
    assert difference in result.stderr
    (field,) = values
    assert merged in json.dumps(json.loads(result.stdout)[field])


def test_the_description_is_valid_json(nodes: Path) -> None:
    change(nodes, 0, sw_notes=1e400, hw_notes="half: \ud83d")
    result = call("system", "init", nodes, *GIVEN)
    assert ": Infinity" not in result.stdout
    assert json.loads(result.stdout)["sw_notes"] == ""


@pytest.mark.parametrize(
    "values",
    [{"number_of_nodes": "1"}, {"number_of_nodes": 3}, {"division": "open"}, {"status": "onprem"}],
)
def test_values_from_options_do_not_differ(nodes: Path, values: dict[str, Any]) -> None:
    change(nodes, 1, **values)
    assert call("system", "init", nodes, *GIVEN).exit_code == 0


def test_many_values_are_shortened(nodes: Path) -> None:
    for number in range(9):
        (nodes / f"n{number}.json").write_text(json.dumps({"hw_notes": f"serial {number % 5}"}))
    result = call("system", "init", nodes)
    assert result.stderr.endswith('; "serial 2" (n2.json, n7.json); 2 other values\n')


def test_the_check_reports_a_version_to_fill_in(nodes: Path, tmp_path: Path) -> None:
    file = tmp_path / "pod.json"
    change(nodes, 0, other_software_stack={"CUDA": "12"})
    change(nodes, 1, other_software_stack={"CUDA": "13"})
    call("system", "init", nodes, "-o", file)
    (line,) = [x for x in call("system", "check", file).stdout.splitlines() if "SYS203" in x]
    assert " fields are not filled in: " in line
    assert ", other_software_stack.CUDA" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [("[]", "x.json: the file holds []; expected an object"), ("{\n'", "x.json:2: found ")],
)
def test_files_that_are_not_descriptions(nodes: Path, content: str, message: str) -> None:
    (nodes / "x.json").write_text(content, "utf-8")
    result = call("system", "init", nodes)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_nodes_that_are_refused(nodes: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((nodes, nodes / "n0.json"), "n0.json: named twice; expected a file for each node"),
        ((nodes, "--nodes", "4"), "--nodes is 4; expected 3, one for each file"),
        ((nodes, "-o", nodes / "x.json"), "refusing to write inside an input folder"),
        ((tmp_path,), "no system description in this folder"),
        ((tmp_path / "no.json",), "no.json: No such file or directory"),
    ):
        result = call("system", "init", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
