"""The questions in SQL have the answers that the page shows."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mlperf_pkg.published.results import published_results
from tests.helpers.console import DOCS
from tests.helpers.program import call

PAGE = (DOCS / "howto" / "questions-in-sql.md").read_text("utf-8")
QUESTIONS = re.findall(
    r"^## ([^\n]*)\n[^`]*```sql\n(.*?)```\n\n((?:\|[^\n]*\n)+)", PAGE, re.MULTILINE | re.DOTALL
)
VIEWS = PAGE.split("```sql\n")[1].split("```")[0]
RECORD = [row for row in published_results().sets if row.runs]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "history.parquet"
    assert call("export", "--published", "-o", path).exit_code == 0
    return path


def rows_of(statement: str, history: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    with duckdb.connect() as database:
        database.execute(VIEWS.replace(history.name, str(history)))
        result = database.execute(statement)
        return [name for name, *_ in result.description], result.fetchall()


def test_every_question_has_an_answer() -> None:
    assert len(QUESTIONS) == PAGE.count("```sql") - 1 == 5


@pytest.mark.parametrize(
    ("statement", "answer"),
    [pytest.param(statement, answer, id=question) for question, statement, answer in QUESTIONS],
)
def test_answers(statement: str, answer: str, history: Path) -> None:
    names, rows = rows_of(statement, history)
    header, _, *shown = [
        [cell.strip() for cell in line.strip("|\n").split("|")] for line in answer.splitlines()
    ]
    assert header == names
    assert shown == [["" if cell is None else str(cell) for cell in row] for row in rows]


def test_a_join_by_keys_counts_each_set_once(history: Path) -> None:
    page = (DOCS / "export.md").read_text("utf-8")
    (statement,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert rows_of(statement, history)[1] == [(len(RECORD),)]
    assert f"all {len(RECORD):,}:" in page
