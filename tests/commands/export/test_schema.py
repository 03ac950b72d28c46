"""The tables, and the page that describes them."""

import re
from collections.abc import Sequence
from datetime import datetime

import pytest

from mlperf_pkg.commands.export.schema import TABLES, ExportColumn
from tests.helpers import reports
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


OF_RUNS = ("set_path", "division_by_rules")
OF_SETS = ("division_by_rules", "system_path", "global_batch_size")
OF_SYSTEMS = (
    *("usage", "round", "division_by_rules", "status_by_rules", "system_name", "nodes"),
    *("accelerators_per_node", "accelerator_model", "host_processor", "framework"),
)


@pytest.mark.parametrize(
    ("table", "others"),
    [
        ("systems", OF_SYSTEMS),
        ("result_sets", OF_SETS),
        ("runs", OF_RUNS),
        ("findings", ("usage", "round", "count")),
    ],
)
def test_columns_have_the_names_of_the_report(table: str, others: Sequence[str]) -> None:
    """Other columns are those that the report does not have."""
    names = {column.name for column in TABLES[table].columns}
    assert names - {*reports.report().to_pandas(table).columns} == {*others}
