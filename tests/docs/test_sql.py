"""The questions in SQL have the answers that the page shows, and those counted without SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.published.results import published_results
from tests.helpers.console import DOCS
from tests.helpers.program import call

PAGE = (DOCS / "howto" / "questions-in-sql.md").read_text("utf-8")
QUESTIONS = re.findall(
    r"^## ([^\n]*)\n[^`]*```sql\n(.*?)```\n\n((?:\|[^\n]*\n)+)", PAGE, re.MULTILINE | re.DOTALL
)
RECORD = [row for row in published_results().sets if row.runs]
BATCH_SIZES = {
    published_results().sets[setting.set].path: int(setting.value)
    for setting in published_results().settings("llama31_405b")
    if setting.key == "global_batch_size"
}


def minutes(row: PublishedSet) -> float:
    assert row.score_minutes is not None
    return row.score_minutes


def is_closed(row: PublishedSet) -> bool:
    return row.division.lower() in ("closed", "close")


class Answer(NamedTuple):
    """The sets that a question is about, their groups, and the first values of each group."""

    is_meant: Callable[[PublishedSet], bool]
    group: Callable[[PublishedSet], Any]
    values: Callable[[list[PublishedSet]], Iterable[Any]]


def fastest(rows: list[PublishedSet]) -> PublishedSet:
    return min(rows, key=minutes)


ANSWERS = {
    "Who was fastest in a round?": Answer(
        lambda row: is_closed(row) and (row.usage, row.round) == ("training", "5.1"),
        lambda row: row.benchmark,
        lambda rows: (
            fastest(rows).submitter,
            fastest(rows).accelerators,
            round(minutes(fastest(rows)), 3),
        ),
    ),
    "How fast is one benchmark on eight accelerators, round by round?": Answer(
        lambda row: is_closed(row) and (row.benchmark, row.accelerators) == ("bert", 8),
        lambda row: row.round,
        lambda rows: (round(minutes(fastest(rows)), 2), fastest(rows).accelerator_model),
    ),
    "How much faster did software make the same accelerators?": Answer(
        lambda row: (
            is_closed(row)
            and (row.benchmark, row.submitter, row.accelerators) == ("resnet", "Graphcore", 16)
        ),
        lambda row: row.round,
        lambda rows: (round(minutes(fastest(rows)), 2),),
    ),
    "How many results does a round have?": Answer(
        lambda row: row.usage == "training",
        lambda row: row.round,
        lambda rows: (
            len({row.submitter for row in rows}),
            len(rows),
            sum(1 for row in rows if row.energy_joules is not None),
        ),
    ),
    "Which batch sizes do others use?": Answer(
        lambda row: row.path in BATCH_SIZES and row.benchmark == "llama31_405b",
        lambda row: BATCH_SIZES[row.path],
        lambda rows: (
            len(rows),
            min(row.accelerators or 0 for row in rows),
            max(row.accelerators or 0 for row in rows),
            round(minutes(fastest(rows)), 1),
        ),
    ),
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "history.duckdb"
    assert call("export", "--published", "-o", path).exit_code == 0
    return path


def test_all_questions_are_found() -> None:
    assert [question for question, *_ in QUESTIONS] == list(ANSWERS)
    assert len(QUESTIONS) == PAGE.count("```sql")


def rows_of(statement: str, history: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    with duckdb.connect(str(history), read_only=True) as database:
        result = database.execute(statement)
        return [name for name, *_ in result.description], result.fetchall()


@pytest.mark.parametrize(
    ("statement", "answer"),
    [texts[1:] for texts in QUESTIONS],
    ids=[texts[0] for texts in QUESTIONS],
)
def test_answers(statement: str, answer: str, history: Path) -> None:
    names, rows = rows_of(statement, history)
    shown = [
        [cell.strip() for cell in line.strip("|\n").split("|")] for line in answer.splitlines()
    ]
    shown[1] = []
    lines = [names, [], *rows]
    assert shown == [["" if cell is None else str(cell) for cell in line] for line in lines]


@pytest.mark.parametrize(
    ("question", "statement"),
    [texts[:2] for texts in QUESTIONS],
    ids=[texts[0] for texts in QUESTIONS],
)
def test_answers_are_those_counted_without_sql(
    question: str, statement: str, history: Path
) -> None:
    answer = ANSWERS[question]
    groups: dict[Any, list[PublishedSet]] = {}
    for row in filter(answer.is_meant, RECORD):
        groups.setdefault(answer.group(row), []).append(row)
    expected = [(key, *answer.values(rows)) for key, rows in sorted(groups.items())]
    assert [row[: len(expected[0])] for row in rows_of(statement, history)[1]] == expected
    counted = re.sub(r"SELECT.*?FROM", "SELECT count(*) FROM", statement, flags=re.DOTALL)
    counted = counted.partition("GROUP BY")[0]
    assert rows_of(counted, history)[1] == [(sum(map(len, groups.values())),)]


def test_a_join_by_keys_counts_each_set_once(history: Path) -> None:
    page = (DOCS / "export.md").read_text("utf-8")
    (statement,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert rows_of(statement, history)[1] == [(len(RECORD),)]
    assert f"all {len(RECORD):,}:" in page
