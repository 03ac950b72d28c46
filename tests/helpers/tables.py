"""The official tables that commands write into a folder, and CSV as others read it."""

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from mlperf_pkg.commands.results.official import OFFICIAL_FILES

TABLES = [name for name in sorted(OFFICIAL_FILES) if "weak" not in name]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def loaded(file: Path, *numbers: str) -> Any:
    """A CSV as pandas and DuckDB read it: one table with one header; ``numbers`` are numbers."""
    frame = pd.read_csv(file)
    relation = duckdb.read_csv(str(file), header=True, sample_size=-1)
    assert relation.columns == list(frame.columns)
    assert len(set(frame.columns)) == len(frame.columns)
    assert len(relation.fetchall()) == len(frame)
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    for name in numbers:
        assert types[name] in {"BIGINT", "DOUBLE"}, (name, types[name])
        assert frame[name].dtype.kind in "if", (name, frame[name].dtype)
    return frame
