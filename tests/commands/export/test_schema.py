"""The tables, and the page that describes them."""

import re
from collections.abc import Sequence
from datetime import datetime

from mlperf_pkg.commands.export.schema import TABLES, ExportColumn
from tests.helpers.console import DOCS

NAMES = {str: "text", int: "integer", float: "number", bool: "boolean", datetime: "time"}


def cells(column: ExportColumn) -> str:
    kind = NAMES[column.type] + (", may be null" if column.nullable else "")
    return f"| `{column.name}` | {kind} | {column.unit} | {column.meaning} |"


PAGE = (DOCS / "export.md").read_text("utf-8")


def test_the_page_describes_all_columns() -> None:
    pattern = r"^### (\w+)\n\n(.+)\n\n\| Column .*\n.*\n((?:\|.*\n)+)"
    sections = re.findall(pattern, PAGE, re.MULTILINE)
    assert sections == [
        (table.name, table.meaning, "".join(f"{cells(column)}\n" for column in table.columns))
        for table in TABLES.values()
    ]


def codes(texts: Sequence[str]) -> str:
    return "<br>".join(f"`{text}`" for text in texts)


def test_the_page_describes_all_keys_and_indexes() -> None:
    (section,) = re.findall(r"^\| Table \| Keys .*\n.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert section.splitlines() == [
        f"| `{table.name}` | {codes(table.keys)} | {codes(table.indexes)} |"
        for table in TABLES.values()
    ]
