"""The official tables of small simulated trees."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.official_tables import Summary, Table, summarize
from mlperf_pkg.commands.official_tables.specs import COLUMNS, REQUIRED, system_cells
from mlperf_pkg.errors import UserError
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.official_summarizer import official_files, rows
from tests.helpers.trees import (
    SYSTEM,
    simulated,
    simulated_models,
    write_set,
    write_submission,
    write_system,
)

DESCRIPTION = {
    **dict.fromkeys(REQUIRED, ""),
    "division": "closed",
    "number_of_nodes": "4",
    "host_processors_per_node": 2,
    "accelerators_per_node": "16",
}


KEPT = frozenset({KEEP_SCALING})  # as the summarizer alone


def summary_of(root: Path, round_: str = "2.0") -> Summary:
    return summarize(check([str(root)], Options(round=round_, flags=KEPT)))


def cells(table: Table) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


# ---- against the official summarizer ------------------------------------------------------


def scaled(root: Path) -> None:
    folder = root / "results" / SYSTEM / "resnet"
    (folder / "scaling.json").write_text('{"scaling_factor": 1.5}')


def two_systems(root: Path) -> None:
    write_system(root / "systems", "b", system_name="tpu-v3", accelerator_model_name="tpu-v3")
    write_set(root / "results" / "b" / "resnet", simulated())


def one_run_failed(root: Path) -> None:
    log = root / "results" / SYSTEM / "resnet" / "result_0.txt"
    log.write_bytes(log.read_bytes().replace(b'"success"', b'"aborted"'))


def no_convergence(root: Path) -> None:
    for log in (root / "results" / SYSTEM / "resnet").iterdir():
        log.write_bytes(log.read_bytes().replace(b'"success"', b'"aborted"'))


def no_batch_size(root: Path) -> None:
    for log in (root / "results" / SYSTEM / "resnet").iterdir():
        log.write_bytes(log.read_bytes().replace(b"global_batch_size", b"batch"))


def open_division(root: Path) -> None:
    write_system(root / "systems", division="open")


def commit_hash(root: Path) -> None:
    framework = "TensorFlow 2.4 commit hash = 0123 dirty"
    write_system(root / "systems", framework=framework, hw_notes="a, b", sw_notes="c")


def private_id(root: Path) -> None:
    (root / "results" / SYSTEM / "privateid.json").write_text('{"private_id": "red-oak"}')


def no_results(root: Path) -> None:
    write_system(root / "systems", "idle")
    (root / "results" / "idle").mkdir()


def no_description(root: Path) -> None:
    write_set(root / "results" / "unknown" / "resnet", simulated())


def odd_values(root: Path) -> None:
    write_system(root / "systems", number_of_nodes=1, status=None, framework='a "b", ü')


def large_batch(root: Path) -> None:
    for log in (root / "results" / SYSTEM / "resnet").iterdir():
        batch = b'"global_batch_size", "value": '
        head, _, tail = log.read_bytes().partition(batch)
        log.write_bytes(head + batch + b"10000000" + tail.lstrip(b"0123456789"))


CHANGES: list[Callable[[Path], None]] = [
    lambda root: None,
    scaled,
    two_systems,
    one_run_failed,
    no_convergence,
    no_batch_size,
    open_division,
    commit_hash,
    private_id,
    no_results,
    no_description,
    odd_values,
    large_batch,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_byte(tmp_path: Path, change: Callable[[Path], None]) -> None:
    root = write_submission(tmp_path / "Graphcore")
    change(root)
    ours = summary_of(root)
    assert official_files(root, "training", "2.0.0", tmp_path) == {
        "summary.csv": ours.plain.csv(),
        "summary.json": ours.plain.json(),
        "summary_detailed.csv": ours.detailed.csv(),
        "summary_detailed.json": ours.detailed.json(),
    }


NUMBERS = random.Random(4)


@pytest.mark.parametrize(
    "values",
    [
        [NUMBERS.uniform(-1e4, 1e4) for _ in range(500)],
        [NUMBERS.uniform(0, 1) * 10.0 ** NUMBERS.randint(-20, 20) for _ in range(500)],
        [0.0, -0.0, 0.5e-10, 1.5e-10, 0.99999999999, 1 / 3, 1e16, 1e15, 1e-15, math.inf, math.nan],
        [2.0**-k for k in range(60)],
    ],
)
def test_numbers_in_json_are_those_of_pandas(values: list[float]) -> None:
    ours = [json.loads(Table(("x",), ((v,),)).json())[0]["x"] for v in values]
    frame = pd.DataFrame({"x": values})
    assert ours == [record["x"] for record in json.loads(frame.to_json(orient="records"))]


# ---- what is ours -------------------------------------------------------------------------


def test_columns(tmp_path: Path) -> None:
    table = summary_of(write_submission(tmp_path / "Graphcore")).plain
    benchmarks = ("bert", "dlrm", "maskrcnn", "minigo", "resnet", "ssd", "rnnt", "unet3d")
    assert table.columns == (*COLUMNS, *benchmarks, "details_url", "code_url")


def test_left_out(tmp_path: Path) -> None:
    """The official summarizer crashes on all but the second."""
    root = write_submission(tmp_path / "ACME")
    write_set(root / "results" / SYSTEM / "chess", simulated())
    write_set(root / "results" / "unknown" / "resnet", simulated())
    write_system(root / "systems", "vague", number_of_nodes="many")
    write_set(root / "results" / "vague" / "resnet", simulated())
    summary = summary_of(root)
    assert summary.left_out == (
        f"results/{SYSTEM}/chess: not a benchmark of round 2.0",
        "results/unknown: no systems/unknown.json",
        "results/vague: systems/vague.json: number_of_nodes is not a whole number",
    )
    assert len(summary.plain.rows) == 1


def test_several_submissions_are_sorted(tmp_path: Path) -> None:
    for name in ("b", "a"):
        root = write_submission(tmp_path / name)
        write_system(root / "systems", submitter=name)
    assert [row["submitter"] for row in cells(summary_of(tmp_path).plain)] == ["a", "b"]


def test_loose_logs_have_no_tables(tmp_path: Path) -> None:
    write_set(tmp_path, simulated())
    with pytest.raises(UserError, match="expected submissions, all of one round"):
        summary_of(tmp_path)


def test_formulas_are_harmless_in_csv_only() -> None:
    table = Table(("x", "y"), (("=1+1", -1.5), (" @x", None)))
    assert rows(table.csv())[1:] == [["'=1+1", "-1.5"], ["' @x", ""]]
    assert json.loads(table.json())[0]["x"] == "=1+1"


def test_texts_are_visible_in_csv() -> None:
    table = Table(("x",), (("a\x1b[31m\ud800",),))
    assert rows(table.csv())[1:] == [["a\\x1b[31m\\ud800"]]


def test_empty_cells_come_last() -> None:
    table = Table.of(("x", "y"), [{"x": "b"}, {"y": 1.0}, {"x": "b", "y": 2.0}, {"x": "a"}])
    assert table.rows == (("a", None), ("b", 2.0), ("b", None), (None, 1.0))


@pytest.mark.parametrize(
    ("changes", "column", "expected"),
    [
        ({}, "accelerators_count", 64),
        ({}, "host_processors_count", 8),
        ({"status": None}, "availability", None),
        ({"hw_notes": "a", "sw_notes": ""}, "notes", "a"),
        ({"system_name": "tpu-v3"}, "system", "TPUv3.32"),
        ({"accelerator_model_name": "tpu-v3"}, "accelerator_model_name", "TPUv3"),
        ({"framework": "TensorFlow commit hash = 1"}, "framework", "TensorFlow"),
        ({"framework": "JAX commit hash = 1"}, "framework", "JAX commit hash = 1"),
    ],
)
def test_specs(changes: dict[str, Any], column: str, expected: object) -> None:
    assert system_cells({**DESCRIPTION, **changes}, None)[column] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, ""), ("{}", ""), ("[]", ""), ("{", ""), ('{"private_id": 7}', "7")],
)
def test_private_id(text: str | None, expected: str) -> None:
    assert system_cells(DESCRIPTION, text)["private_id"] == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("hw_notes", 1, "hw_notes or sw_notes is not a string"),
        ("accelerators_per_node", "", "accelerators_per_node is not a whole number"),
        ("number_of_nodes", None, "number_of_nodes is not a whole number"),
        ("number_of_nodes", 10**400, "number_of_nodes is too large"),
    ],
)
def test_unusable_specs(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        system_cells({**DESCRIPTION, name: value}, None)


def test_missing_specs() -> None:
    with pytest.raises(ValueError, match="no framework, no hw_notes"):
        system_cells(
            {k: v for k, v in DESCRIPTION.items() if k not in ("framework", "hw_notes")}, None
        )


# ---- weak scaling -------------------------------------------------------------------------


def write_hpc(root: Path, models: int) -> Path:
    """Many models trained at once, of which all but ``models`` fail the official checker."""
    write_system(root / "systems", "box")
    logs = simulated_models(12)
    lost = [log.replace(b'"run_start"', b'"start"') for log in logs[models:]]
    write_set(root / "results" / "box" / "weak" / "cosmoflow", (*logs[:models], *lost))
    return root


@pytest.mark.parametrize(("models", "counted"), [(9, None), (10, 10.0), (12, 12.0)])
def test_weak_scaling(tmp_path: Path, models: int, counted: float | None) -> None:
    root = write_hpc(tmp_path / "ACME", models)
    ours = summarize(check([str(root)], Options("hpc", "3.0")))
    assert ours.weak
    assert ours.weak.json() == official_files(root, "hpc", "3.0.0", tmp_path)["summary.json"]
    assert [row["cosmoflow:number_of_models"] for row in cells(ours.weak)] == [counted]
    assert ours.plain.rows == ours.detailed.rows == ()
