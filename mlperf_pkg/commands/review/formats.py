"""The formats of a review: Markdown, CSV, JSON, and the printed summary."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlperf_pkg.commands.review.round import Cell, Round, Section, Table
from mlperf_pkg.infra.text import escape_markdown, visible
from mlperf_pkg.render.table import csv_text
from mlperf_pkg.render.tables import json_text
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json

FORMAT = "mlperf-pkg/review/1"
MARKED = "Marked"  # the column of a CSV that names the marked cells of a row

_WIDTH = 80
_MOST_PROBLEMS, _MOST_LINES = 8, 8


def cell_text(value: Cell) -> str:
    """Return the text of a cell in a document."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return wording.NOTHING
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def numbers(table: Table) -> list[bool]:
    """Return whether each column contains numbers."""
    cells = [[row[index] for row in table.rows] for index in range(len(table.columns))]
    filled = [[value for value in column if value is not None] for column in cells]
    return [bool(c) and all(isinstance(value, int | float) for value in c) for c in filled]


# ---- Markdown and CSV -----------------------------------------------------------------------


def markdown(section: Section) -> str:
    """Return a section as a document of Markdown; marked cells are bold."""
    paragraphs = (escape_markdown(text) for text in section.text)
    tables = (_table(table) for table in section.tables)
    return "\n\n".join([f"# {escape_markdown(section.title)}", *paragraphs, *tables]) + "\n"


def _table(table: Table) -> str:
    if table.checks:
        body = "\n".join(f"- [ ] {': '.join(row)}" for row in _rows(table))
    else:
        rules = ("---:" if is_number else "---" for is_number in numbers(table))
        lines = [map(escape_markdown, table.columns), rules, *_rows(table)]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    parts = (f"## {escape_markdown(table.title)}", body, escape_markdown(table.note))
    return "\n\n".join(part for part in parts if part)


def _rows(table: Table) -> Iterator[list[str]]:
    for number, row in enumerate(table.rows):
        texts = [escape_markdown(cell_text(value)) for value in row]
        yield [
            f"**{text}**" if (number, column) in table.marked else text
            for column, text in enumerate(texts)
        ]


def csv(table: Table) -> str:
    """Return a table as CSV; if cells are marked, a last column names their columns."""
    if not table.marked:
        return csv_text(table.columns, table.rows)
    marks: dict[int, list[str]] = {}
    for row, column in sorted(table.marked):
        marks.setdefault(row, []).append(table.columns[column])
    rows = [(*row, ", ".join(marks.get(number, ()))) for number, row in enumerate(table.rows)]
    return csv_text((*table.columns, MARKED), rows)


# ---- JSON -----------------------------------------------------------------------------------


def json(reviewed: Round, sections: Sequence[Section], files: Mapping[str, str]) -> str:
    """Return everything as JSON; ``files`` are those of the tables, by section and table."""
    report = reviewed.report
    return json_text(
        {
            "format": FORMAT,
            "tool": report.tool,
            "usage": report.usage,
            "round": report.round,
            "round_reason": report.round_reason,
            "choices": reviewed.choices,
            "problems": reviewed.problems,
            "sections": [_section_json(section, files) for section in sections],
        }
    )


def _section_json(section: Section, files: Mapping[str, str]) -> dict[str, Any]:
    tables = [
        {
            "name": table.name,
            "title": table.title,
            "file": files[f"{section.name}/{table.name}"],
            "columns": table.columns,
            "rows": as_json(table.rows),
            "marked": sorted(table.marked),
            "note": table.note,
        }
        for table in section.tables
    ]
    names = ("name", "title", "text", "summary")
    return {**{name: getattr(section, name) for name in names}, "tables": tables}


# ---- the summary ----------------------------------------------------------------------------


def summary(reviewed: Round, sections: Sequence[Section]) -> str:
    """Return the text that the command prints: the problems, and a few lines of each section."""
    lines = [reviewed.title]
    if reviewed.problems:
        lines += ["", "missing or unclear", *_cut(reviewed.problems, _MOST_PROBLEMS, "README.md")]
    for section in sections:
        if section.summary:
            lines += ["", section.title.lower()]
            lines += _cut(section.summary, _MOST_LINES, f"{section.name}.md")
    return "\n".join(lines) + "\n"


def _cut(texts: Sequence[str], most: int, file: str) -> list[str]:
    """Return at most ``most`` indented lines; if there are more, the last names a file."""
    lines = [line for text in texts for line in _wrapped(text)]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"  ... {len(lines) - most + 1} more lines: see {file}"]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        visible(text), _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
