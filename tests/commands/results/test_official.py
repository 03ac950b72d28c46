"""The official tables of small simulated trees."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.results.official import (
    OfficialTable,
    Summary,
    official_workbook,
    summarize,
)
from mlperf_pkg.commands.results.systems import REQUIRED, own_id, system_cells, written_id
from mlperf_pkg.errors import UserError
from mlperf_pkg.submission.model import AS_FILED
from tests.helpers import trees
from tests.helpers.logs import edited
from tests.helpers.official import official_files, rows
from tests.helpers.trees import (
    SYSTEM,
    described,
    simulated,
    write_set,
    write_submission,
    write_system,
)
from tests.helpers.workbooks import read

DESCRIPTION = {
    **dict.fromkeys(REQUIRED, ""),
    "division": "closed",
    "number_of_nodes": "4",
    "host_processors_per_node": 2,
    "accelerators_per_node": "16",
}


def summary_of(root: Path) -> Summary:
    """The tables as of the summarizer alone."""
    return summarize(check([str(root)], Options(round="2.0", flags=frozenset({AS_FILED}))))


# ---- against the official summarizer ------------------------------------------------------


def logs_with(old: bytes, new: bytes, name: str = "result_*.txt") -> Callable[[Path], None]:
    """A change of the logs of a submission."""

    def change(root: Path) -> None:
        for log in (root / "results" / SYSTEM / "resnet").glob(name):
            log.write_bytes(log.read_bytes().replace(old, new))

    return change


def with_file(path: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / "results" / SYSTEM / path).write_text(text)


def two_systems(root: Path) -> None:
    write_system(root / "systems", "b", system_name="tpu-v3", accelerator_model_name="tpu-v3")
    write_set(root / "results" / "b" / "resnet", simulated())


def no_results(root: Path) -> None:
    write_system(root / "systems", "idle")
    (root / "results" / "idle").mkdir()


def large_batch(root: Path) -> None:
    logs = (edited(log, "global_batch_size", value=10_000_000) for log in simulated())
    write_set(root / "results" / SYSTEM / "resnet", tuple(logs))


COMMIT = "TensorFlow 2.4 commit hash = 0123 dirty"
CHANGES: dict[str, Callable[[Path], object]] = {
    "none": lambda root: None,
    "scaled": with_file("resnet/scaling.json", '{"scaling_factor": 1.5}'),
    "two systems": two_systems,
    "one run failed": logs_with(b'"success"', b'"aborted"', "result_0.txt"),
    "no convergence": logs_with(b'"success"', b'"aborted"'),
    "no batch size": logs_with(b"global_batch_size", b"batch"),
    "open division": described(division="open"),
    "commit hash": described(framework=COMMIT, hw_notes="a, b", sw_notes="c"),
    "private id": with_file("privateid.json", '{"private_id": "red-oak"}'),
    "no results": no_results,
    "no description": lambda root: write_set(root / "results" / "x" / "resnet", simulated()),
    "odd values": described(number_of_nodes=1, status=None, framework='a "b", ü'),
    "large batch": large_batch,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_byte(tmp_path: Path, change: str) -> None:
    root = write_submission(tmp_path / "Graphcore")
    CHANGES[change](root)
    ours = summary_of(root)
    files = {"summary.csv": ours.plain.csv(), "summary.json": ours.plain.json()}
    files["summary_detailed.csv"] = ours.detailed.csv()
    files["summary_detailed.json"] = ours.detailed.json()
    assert official_files(root, "training", "2.0.0", tmp_path) == files


def random_numbers() -> dict[str, list[float]]:
    numbers = random.Random(4)
    return {
        "of any size": [numbers.uniform(-1e4, 1e4) for _ in range(500)],
        "of any exponent": [
            numbers.uniform(0, 1) * 10.0 ** numbers.randint(-20, 20) for _ in range(500)
        ],
    }


NUMBERS = {
    **random_numbers(),
    "zeros": [0.0, -0.0],
    "near a rounding": [0.5e-10, 1.5e-10, 0.99999999999, 1 / 3],
    "near an exponent": [1e16, 1e15, 1e-15],
    "not finite": [math.inf, math.nan],
    "powers of two": [2.0**-k for k in range(60)],
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
def test_numbers_in_json_are_those_of_pandas(values: list[float]) -> None:
    ours = json.loads(OfficialTable(("x",), tuple((value,) for value in values)).json())
    frame = pd.DataFrame({"x": values})
    assert ours == json.loads(frame.to_json(orient="records"))


# ---- what is ours -------------------------------------------------------------------------


def test_left_out(tmp_path: Path) -> None:
    """The official summarizer crashes on all but the second."""
    root = write_submission(tmp_path / "ACME")
    write_set(root / "results" / SYSTEM / "chess", simulated())
    write_set(root / "results" / "unknown" / "resnet", simulated())
    write_system(root / "systems", "vague", number_of_nodes="many")
    write_set(root / "results" / "vague" / "resnet", simulated())
    summary = summary_of(root)
    assert summary.left_out == [
        f"results/{SYSTEM}/chess: not a benchmark of round 2.0",
        "results/unknown: no systems/unknown.json",
        "results/vague: systems/vague.json: number_of_nodes is not a whole number",
    ]
    assert len(summary.plain.rows) == 1
    with pytest.raises(UserError, match="they need submissions of one round"):  # but loose logs
        summary_of(root / "results" / SYSTEM / "resnet")


def test_formulas_are_harmless_in_csv_only() -> None:
    table = OfficialTable(
        ("x", "y"), (("=1+1", -1.5), (" @x", None), ("a\x1b[31m\ud800", math.nan))
    )
    assert rows(table.csv())[1:] == [["'=1+1", "-1.5"], ["' @x", ""], ["a\\x1b[31m\\ud800", ""]]
    assert json.loads(table.json())[0]["x"] == "=1+1"


LONG_ID = "x" * 101


@pytest.mark.parametrize(
    ("text", "written", "own"),
    [
        pytest.param(None, "", None, id="no file"),
        pytest.param("{", "", None, id="not JSON"),
        pytest.param("[]", "", None, id="not a mapping"),
        pytest.param("{}", "", None, id="no id"),
        pytest.param('{"private_id": 7}', 7, None, id="a number"),
        pytest.param('{"private_id": "a\\nb"}', "a\nb", None, id="two lines"),
        pytest.param(json.dumps({"private_id": LONG_ID}), LONG_ID, None, id="too long"),
        pytest.param('{"private_id": "red-oak"}', "red-oak", "red-oak", id="words"),
    ],
)
def test_private_id(text: str | None, written: str | int, own: str | None) -> None:
    """What the official tables have, and the id that a summary takes: one that can be compared."""
    system: Any = SimpleNamespace(folder=SimpleNamespace(private_id=text))
    assert (written_id(system), own_id(system)) == (written, own)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (DESCRIPTION | {"hw_notes": 1}, "hw_notes or sw_notes is not a string"),
        (DESCRIPTION | {"number_of_nodes": None}, "number_of_nodes is not a whole number"),
        (DESCRIPTION | {"number_of_nodes": 10**400}, "number_of_nodes is too large"),
        (dict.fromkeys(set(REQUIRED) - {"framework", "hw_notes"}), "no framework and no hw_notes"),
    ],
    ids=["notes are not text", "not a number", "too large", "fields lack"],
)
def test_unusable_specs(description: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        system_cells(description)


# ---- weak scaling -------------------------------------------------------------------------


@pytest.mark.parametrize(("models", "counted"), [(9, None), (10, 10.0), (12, 12.0)])
def test_weak_scaling(tmp_path: Path, models: int, counted: float | None) -> None:
    """Many models trained at once, of which all but ``models`` fail the official checker."""
    root = tmp_path / "ACME"
    write_system(root / "systems", "box")
    logs = trees.simulated_models(12)
    lost = [log.replace(b'"run_start"', b'"start"') for log in logs[models:]]
    write_set(root / "results" / "box" / "weak" / "cosmoflow", (*logs[:models], *lost))
    ours = summarize(check([str(root)], Options("hpc", "3.0")))
    assert ours.weak
    assert ours.weak.json() == official_files(root, "hpc", "3.0.0", tmp_path)["summary.json"]
    place = ours.weak.columns.index("cosmoflow:number_of_models")
    assert [row[place] for row in ours.weak.rows] == [counted]
    assert ours.plain.rows == ours.detailed.rows == ()


SHEET = ("division", "availability", "resnet")


def tables_of(*rows: tuple[Any, ...], weak: OfficialTable | None = None) -> Any:
    usage = "hpc" if weak else "training"
    return SimpleNamespace(usage=usage, round="2.0", plain=OfficialTable(SHEET, rows), weak=weak)


def test_sheets_sections_and_numbers() -> None:
    summary = tables_of(
        ("closed", "cloud", 1.5),
        ("closed", "Available on-premise", 2.5),
        ("closed", "on the moon", None),
        ("ajar", None, 5.5),
    )
    header, blank = ["ID", *SHEET], [""] * 3
    assert read(official_workbook(summary)) == {
        "closed": [
            header,
            ["Available on-premise", *blank],
            ["2.0-0000", "closed", "Available on-premise", "2.5"],
            ["Available cloud", *blank],
            ["2.0-0001", "closed", "cloud", "1.5"],
            ["on the moon", *blank],
            ["2.0-0002", "closed", "on the moon"],
        ],
        "open": [header],
        "other": [header, ["no availability", *blank], ["2.0-0003", "ajar", "5.5"]],
    }


def test_weak_scaling_has_sheets_of_its_own() -> None:
    sheets = read(
        official_workbook(tables_of(weak=OfficialTable(SHEET, (("closed", "cloud", 1.0),))))
    )
    assert list(sheets) == ["closed", "open", "closed weak scaling"]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        pytest.param("=1+1", "=1+1", id="a string, which no spreadsheet computes"),
        pytest.param("\ud800\x1b[31m\ufffe", "\\ud800\\x1b[31m\\ufffe", id="control characters"),
        pytest.param(10**400, str(10**400), id="not a double"),
    ],
)
def test_cells_of_a_workbook(cell: str | int, shown: str) -> None:
    data = official_workbook(tables_of(("closed", "cloud", cell)))
    assert read(data)["closed"][-1] == ["2.0-0000", "closed", "cloud", shown]


def test_a_workbook_is_the_same_in_every_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tables_of(("closed", "cloud", 10**400))
    data = official_workbook(summary)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert official_workbook(summary) == data
