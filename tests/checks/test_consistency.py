"""The runs of a set against each other and their description; more of it in ``test_traps``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.consistency import short_paths
from mlperf_pkg.checks.descriptions import logged_statuses, statuses
from mlperf_pkg.log.record import Record
from mlperf_pkg.run.readers import InstanceScale
from tests.helpers.logs import edited, joined, records
from tests.helpers.models import models
from tests.helpers.stored import compared
from tests.helpers.trees import SYSTEM, simulated, write_set, write_system

NODES = [  # scaling, nodes, accelerators of a node, the finding and its key
    ("strong", "2", "8", None),
    ("strong", "2", "4", "error rules accelerators_per_node"),
    ("strong", "2", "x", None),
    ("strong", "1", "16", "note advice number_of_nodes"),
    ("strong", "16", "8", "error rules number_of_nodes"),
    ("strong", "1", "8", "error rules number_of_nodes"),
    ("strong", "two", "8", None),
    ("strong", "2", "0", "error rules accelerators_per_node"),
    ("weak", "16", "8", None),
    ("weak", "16", "16", None),
    ("weak", "16", "4", "error rules accelerators_per_node"),
    ("weak", "1", "8", "error rules number_of_nodes"),
]


@pytest.mark.parametrize(("scaling", "nodes", "accelerators", "finding"), NODES)
def test_nodes(
    tmp_path: Path, scaling: str, nodes: str, accelerators: str, finding: str | None
) -> None:
    root = tmp_path / "Graphcore"
    write_system(root / "systems", number_of_nodes=nodes, accelerators_per_node=accelerators)
    write_set(root / "results" / SYSTEM / scaling / "deepcam", models())
    findings = compared(check([str(root)], Options("hpc", "2.0", jobs=1))).report.findings
    texts = [f"{f.severity} {f.basis} {f.text}" for f in findings if f.code == "SET142"]
    logged, described = (8, accelerators) if "per_node" in str(finding) else (2, nodes)
    words = f"{finding} is {logged} in the log; expected {described}, as in systems/{SYSTEM}.json"
    assert texts == ([words] if finding else [])


@pytest.mark.parametrize(
    ("value", "nodes"),
    [(2, 2), ("3", 3), (4.0, 4), (None, None), ("x", None), (1e300, None), (-1, None)],
)
def test_nodes_of_a_log(value: Any, nodes: int | None) -> None:
    reader = InstanceScale()
    reader.take(Record("number_of_nodes", 0, value, {}), 0)
    assert reader.nodes == nodes


def test_every_availability_has_a_status_in_logs() -> None:
    names = [*statuses("training", "0.7"), *statuses("training", "4.0")]
    assert all(map(logged_statuses, names))
    logged = {status for name in names for status in logged_statuses(name)}
    assert logged == {"onprem", "cloud", "preview", "research"}
    assert logged_statuses(" Available ") == ["onprem", "cloud"]
    assert not logged_statuses("soon")


SEEDS = ("SEED101", "SEED102", "SEED103")


def damaged(log: bytes) -> bytes:
    """A record that is not a seed is cut off."""
    return log + b':::MLLOG {"key": "eval_accu\n'


def without_line(log: bytes) -> bytes:
    """The seeds do not say which line logged them."""
    return edited(log, "seed", metadata={})


def twice(log: bytes) -> bytes:
    """The seeds of a log are those of another, and a record is damaged."""
    return damaged(edited(log, "seed", value=7))


def text(log: bytes) -> bytes:
    """Each seed is text that ``int()`` converts."""
    fields = records(log)
    return joined([r | {"value": str(r["value"])} if r["key"] == "seed" else r for r in fields])


@pytest.mark.parametrize(
    ("change", "logs", "expected"),
    [
        (text, 10, set()),
        (damaged, 1, {"SEED103 official"}),
        (without_line, 1, {"SEED103 both"}),
        (twice, 2, {"SEED102 both", "SEED103 official"}),
    ],
)
def test_seeds(
    tmp_path: Path, change: Callable[[bytes], bytes], logs: int, expected: set[str]
) -> None:
    all_logs = simulated("rgat", "closed", "5.1")
    folder = tmp_path / "v5.1" / "Submitter" / "results" / SYSTEM / "rgat"
    write_set(folder, (*map(change, all_logs[:logs]), *all_logs[logs:]))
    report = compared(check([str(folder)], Options(round="5.1"))).report
    assert {f"{f.code} {f.basis}" for f in report.findings if f.code in SEEDS} == expected


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("Graphcore", "the name of the submission folder"),
        (f"Graphcore/results/{SYSTEM}/resnet", "as in most runs"),
    ],
    ids=["a submission", "a result set"],
)
def test_which_organisation_is_expected(tmp_path: Path, named: str, words: str) -> None:
    first, *others = simulated()
    folder = tmp_path / "Graphcore/results" / SYSTEM / "resnet"
    write_set(folder, (edited(first, "submission_org", value="Others"), *others))
    report = compared(check([str(tmp_path / named)], Options(round="2.0", jobs=1))).report
    texts = [finding.text for finding in report.findings if finding.code == "SET115"]
    assert texts == [f'submission_org is "Others"; expected "Graphcore", {words}']


def test_an_official_crash_names_the_benchmarks_of_the_logs(tmp_path: Path) -> None:
    first, *others = simulated()
    logs = (edited(first, "submission_benchmark", value="bert"), *others)
    folder = write_set(tmp_path / "Graphcore/results" / SYSTEM / "resnet", logs)
    report = compared(check([str(folder)], Options(round="2.0", jobs=1))).report
    (text,) = [finding.text for finding in report.findings if finding.code == "RCP103"]
    assert "crashes, as the logs are not of one benchmark, but of bert and resnet; " in text


@pytest.mark.parametrize(
    ("files", "paths"),
    [
        pytest.param(["train.py"], ["train.py"], id="a name"),
        pytest.param(["/src/train.py"], [".../train.py"], id="one file"),
        pytest.param(["/src/a.py", "/src/b.py"], [".../a.py", ".../b.py"], id="two files"),
        pytest.param(["a/t.py", "b/t.py"], ["a/t.py", "b/t.py"], id="two folders"),
        pytest.param(
            ["/x/1/code/t.py", "/x/2/code/t.py"],
            [".../1/.../t.py", ".../2/.../t.py"],
            id="folders between others",
        ),
        pytest.param(["/x/t.py", None], ["/x/t.py", "None"], id="a file that is not logged"),
    ],
)
def test_paths_are_cut_to_what_differs(files: list[str | None], paths: list[str]) -> None:
    assert list(short_paths(files).values()) == paths
