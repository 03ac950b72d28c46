"""The report as typed rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from mlperf_pkg.findings import Finding, Occurrence, Verdicts, Waiver, folded
from mlperf_pkg.render import FORMATS, View
from mlperf_pkg.results.report import (
    RcpRow,
    Report,
    ResultSetRow,
    RunRow,
    SeedsRow,
    SystemRow,
    common_folder,
    folder,
    name,
)
from mlperf_pkg.simulate import FAILURES, RunPlan, simulate_set
from tests.helpers import hostile_reports as hostile
from tests.helpers.report_schema import closed, complaints_on, errors_of, schema
from tests.helpers.reports import (
    NOT_CHECKED,
    finding,
    on_raw_set,
    rcp,
    report,
    result_set,
    run,
    system,
)
from tests.helpers.trees import simulated, write_set, write_submission, write_system


@pytest.mark.parametrize(
    ("path", "parts"), [("a/b/c.txt", ("a/b", "c.txt")), ("c.txt", ("", "c.txt"))]
)
def test_parts_of_a_path(path: str, parts: tuple[str, str]) -> None:
    assert (folder(path), name(path)) == parts


@pytest.mark.parametrize(
    ("paths", "top"),
    [
        (["a/b/c"], "a/b"),
        (["a/b/c", "a/b/d"], "a/b"),
        (["a/b/c", "a/d/c"], "a"),
        (["a", "b/c"], ""),
    ],
)
def test_the_folder_of_all_files(paths: list[str], top: str) -> None:
    assert common_folder(paths) == top


ROWS = {
    "verdicts": Verdicts,
    "system": SystemRow,
    "rcp": RcpRow,
    "seeds": SeedsRow,
    "result_set": ResultSetRow,
    "run": RunRow,
    "finding": Finding,
    "place": Occurrence,
    "waiver": Waiver,
}

MADE = [
    finding(f"results/dgx/bert/result_{n % 12}.txt", n + 1, found=f"value {n}", expected=[n])
    for n in range(400)
]


@pytest.mark.parametrize(
    ("select", "ignore", "codes"),
    [
        ([], [], ["RCP101", "RUN101", "RUN102"]),
        (["RUN"], [], ["RUN101", "RUN102"]),
        ([], ["RUN"], ["RCP101"]),
        (["RUN", "SET"], ["RUN101", "X"], ["RUN102"]),
    ],
)
def test_findings_by_code(select: list[str], ignore: list[str], codes: list[str]) -> None:
    whole = report(findings=[finding(code=code) for code in ("RCP101", "RUN101", "RUN102")])
    part = whole.only(select, ignore)
    assert ([f.code for f in part.findings], part.hidden) == (codes, 3 - len(codes))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", ROWS)
def test_it_describes_every_field(name: str) -> None:
    names = list(ROWS[name].__struct_fields__)
    assert list(schema()["$defs"][name]["properties"]) == names
    assert schema()["$defs"][name]["required"] == names


def test_it_describes_the_whole() -> None:
    names = ["format", *Report.__struct_fields__]
    assert list(schema()["properties"]) == schema()["required"] == names


def undescribed(part: Any, path: str = "") -> Iterator[str]:
    for field, schema_ in part.get("properties", {}).items():
        if "description" not in schema_:
            yield f"{path}/{field}"
        yield from undescribed(schema_, f"{path}/{field}")
    for part_name, schema_ in part.get("$defs", {}).items():
        yield from undescribed(schema_, part_name)


def test_every_field_is_explained() -> None:
    assert list(undescribed(schema())) == []


@pytest.mark.parametrize(
    "report",
    [
        report(),
        report(
            systems=(system(), system(submitter=None, division=None, accelerators=None)),
            result_sets=(
                result_set(energy_joules=1.5, scaling="weak", number_of_models=2),
                result_set(rcp=rcp(mean=float("nan"), minimum=None), score_minutes=None),
                result_set(rcp=None, submitter=None, runs_required=None, verdict=NOT_CHECKED),
            ),
            runs=(run(), run(status=None, minutes=None, dropped="fastest", benchmark="", set=None)),
            findings=[finding(line=3, waiver=Waiver("agreed", "Jane", "2026-12-31"))],
        ),
        report(
            result_sets=(
                result_set(path=".", system_by="the folder name"),
                result_set(judged=False),
            ),
            findings=on_raw_set("alpha"),
            configuration="systems: {}\n",
        ),
        report(findings=folded(MADE, "results/dgx/bert", [f.path for f in MADE])),
        report(round=None, usage="hpc and training", hidden=3),
        hostile.hostile(),
    ],
    ids=["empty", "full", "raw logs", "folded", "rounds", "hostile"],
)
def test_made_reports(report: Report) -> None:
    assert errors_of(report) == []


@pytest.mark.parametrize(
    "change", [{"usage": "other"}, {"hidden": -1}, {"verdict": {}}, {"findings": None}, {"new": 1}]
)
def test_what_is_wrong_is_found(change: dict[str, Any]) -> None:
    read = {**json.loads(FORMATS["json"](report(), View())), **change}
    assert list(Draft202012Validator(closed(schema())).iter_errors(read))


def test_a_submission(tmp_path: Path) -> None:
    assert complaints_on(write_submission(tmp_path, "resnet", "bert")) == []


def test_raw_logs_in_a_workspace(tmp_path: Path) -> None:
    write_system(tmp_path / "systems")
    write_set(tmp_path / "logs", (*simulated()[:2], *simulated("bert")[:2]))
    assert complaints_on(tmp_path) == []
    assert complaints_on(tmp_path / "logs/result_0.txt") == []


def test_a_broken_submission(tmp_path: Path) -> None:
    write_submission(tmp_path)
    write_system(tmp_path / "systems", number_of_nodes="many", division=3)
    (tmp_path / "results/bow-pod16/resnet/result_0.txt").write_text(":::MLLOG {}\n")
    write_set(tmp_path / "results/other/chess", simulated()[:1])
    assert complaints_on(tmp_path) == []


@pytest.mark.parametrize("failure", FAILURES)
def test_runs_that_fail(tmp_path: Path, failure: str) -> None:
    plan = RunPlan(
        round="2.0", benchmark="bert", division="closed", system="s", organization="o", minutes=9.0
    )
    failed = replace(plan, failure=failure)
    write_set(tmp_path, (*simulate_set(plan, 1, 2), *simulate_set(failed, 1, 1)))
    assert complaints_on(tmp_path) == []
