"""The questions in SQL have the answers that the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from tests.helpers.console import DOCS
from tests.helpers.program import call

PAGE = (DOCS / "howto" / "questions-in-sql.md").read_text("utf-8")
QUESTIONS = re.findall(
    r"^## ([^\n]*)\n[^`]*```sql\n(.*?)```\n\n((?:\|[^\n]*\n)+)", PAGE, re.MULTILINE | re.DOTALL
)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "history.duckdb"
    assert call("export", "--published", "-o", path).exit_code == 0
    return path


def test_all_questions_are_found() -> None:
    assert len(QUESTIONS) == PAGE.count("```sql") == 5


@pytest.mark.parametrize(
    ("statement", "answer"),
    [texts[1:] for texts in QUESTIONS],
    ids=[texts[0] for texts in QUESTIONS],
)
def test_answers(statement: str, answer: str, history: Path) -> None:
    with duckdb.connect(str(history), read_only=True) as database:
        result = database.execute(statement)
        lines = [[name for name, *_ in result.description], [], *result.fetchall()]
    shown = [
        [cell.strip() for cell in line.strip("|\n").split("|")] for line in answer.splitlines()
    ]
    shown[1] = []
    assert shown == [["" if cell is None else str(cell) for cell in line] for line in lines]
