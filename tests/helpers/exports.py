"""Exports of one row a table."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlperf_pkg.commands.export.formats import Destination
from mlperf_pkg.commands.export.rows import in_order
from mlperf_pkg.commands.export.schema import TABLES

TIME = datetime(2022, 4, 20, 20, 31, 30, 146000, tzinfo=UTC)
OF_TYPE: dict[type, Any] = {str: "text", int: 1, float: 1.5, bool: True, datetime: TIME}


def row(name: str, **others: Any) -> tuple[Any, ...]:
    values = {column.name: OF_TYPE[column.type] for column in TABLES[name].columns}
    return tuple((values | {"usage": "training", "round": "5.1"} | others).values())


def written(folder: Path, ending: str) -> Path:
    path = folder / f"results{ending}"
    Destination(path).write(in_order({name: [row(name)] for name in TABLES}), replace=False)
    return path
