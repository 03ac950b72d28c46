"""The report as typed rows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mlperf_pkg.findings import Finding, Occurrence, Verdicts, Waiver, folded
from mlperf_pkg.render import FORMATS, View
from mlperf_pkg.results import report as rows
from mlperf_pkg.results.report import common_folder, folder, name
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


def test_paths() -> None:
    assert [
        (path, parts)
        for path, parts in [("a/b/c.txt", ("a/b", "c.txt")), ("c.txt", ("", "c.txt"))]
        if (folder(path), name(path)) != parts
    ] == []
    assert [
        (paths, top)
        for paths, top in [
            ("a/b/c", "a/b"),
            ("a/b/c a/b/d", "a/b"),
            ("a/b/c a/d/c", "a"),
            ("a b/c", ""),
        ]
        if common_folder(paths.split()) != top
    ] == []


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


ROWS = (
    *(
        rows.DriftRow,
        Verdicts,
        rows.SystemRow,
        rows.RcpRow,
        rows.SeedsRow,
        rows.ResultSetRow,
        rows.RunRow,
    ),
    *(Finding, Occurrence, Waiver),
)


def test_the_schema_describes_every_field() -> None:
    Draft202012Validator.check_schema(schema())
    names = ["format", *rows.Report.__struct_fields__]
    assert list(schema()["properties"]) == schema()["required"] == names
    _, *descriptions = schema()["$defs"].values()  # after the values of a verdict
    assert [
        (described, struct)
        for described, struct in zip(descriptions, ROWS, strict=True)
        if not (
            list(described["properties"]) == described["required"] == [*struct.__struct_fields__]
        )
    ] == []
    assert list(undescribed(schema())) == []


def undescribed(part: Any, path: str = "") -> Iterator[str]:
    for field, schema_ in part.get("properties", {}).items():
        if "description" not in schema_:
            yield f"{path}/{field}"
        yield from undescribed(schema_, f"{path}/{field}")
    for part_name, schema_ in part.get("$defs", {}).items():
        yield from undescribed(schema_, part_name)


@pytest.mark.parametrize(
    "made",
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
        report(
            findings=folded(
                [finding("a", n, found=f"{n}", expected=[n]) for n in range(1, 99)], "a", ["a"]
            )
        ),
        report(round=None, usage="hpc and training", hidden=3),
        hostile.hostile(),
    ],
)
def test_made_reports(made: Any) -> None:
    assert errors_of(made) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("usage", "other"), ("hidden", -1), ("verdict", {}), ("findings", None), ("new", 1)],
)
def test_what_is_wrong_is_found(field: str, value: Any) -> None:
    read = {**json.loads(FORMATS["json"](report(), View())), field: value}
    assert list(Draft202012Validator(closed(schema())).iter_errors(read))


def test_real_reports(tmp_path: Path) -> None:
    write_system(tmp_path / "ws/systems")
    write_set(tmp_path / "ws/logs", (*simulated()[:2], *simulated("bert")[:2]))
    assert complaints_on(tmp_path / "ws") == []
    assert complaints_on(tmp_path / "ws/logs/result_0.txt") == []
    tmp_path /= "broken"
    write_submission(tmp_path)
    write_system(tmp_path / "systems", number_of_nodes="many", division=3)
    (tmp_path / "results/bow-pod16/resnet/result_0.txt").write_text(":::MLLOG {}\n")
    write_set(tmp_path / "results/other/chess", simulated()[:1])
    assert complaints_on(tmp_path) == []
