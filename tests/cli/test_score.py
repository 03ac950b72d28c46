"""``mlperf-pkg score``."""

from pathlib import Path

import pytest

from tests.helpers.program import call
from tests.helpers.tables import TABLES, names
from tests.helpers.trees import simulated, write_set, write_submission


@pytest.mark.parametrize(
    ("runs", "status", "text"),
    [(5, 0, ", fastest"), (2, 1, "too few to drop the fastest")],
)
def test_exit_statuses(runs: int, status: int, text: str, tmp_path: Path) -> None:
    result = call("score", write_set(tmp_path / str(runs), simulated(runs=runs)))
    assert (result.exit_code, result.stderr) == (status, "")
    assert text in result.stdout


def test_official_tables(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "Graphcore")
    tables = tmp_path / "tables"
    result = call("score", tree, "--tables", tables)
    assert (result.exit_code, result.stderr, names(tables)) == (0, "", TABLES)
    assert ",Graphcore," in (tables / "summary.csv").read_text("utf-8")
