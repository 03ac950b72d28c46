"""Rows as a pandas data frame."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec import inspect as types

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.resources import require

if TYPE_CHECKING:
    import pandas as pd

_LARGEST = 2**63  # integers in a column are smaller


def row_types(type_: type[Struct]) -> dict[str, type[Struct]]:
    """Return the row types of the fields that hold rows, by the name of the field."""
    of_rows = {}
    for field in getattr(types.type_info(type_), "fields", ()):
        if isinstance(field.type, types.VarTupleType):
            item_type = field.type.item_type
            if isinstance(item_type, types.StructType):
                of_rows[field.name] = item_type.cls
    return of_rows


def data_frame(rows: Sequence[Mapping[str, Any]], type_: type[Struct]) -> pd.DataFrame:
    """Return ``rows``, the JSON values of a type, with a column for each field of the type.

    A nested row has a column for each of its own fields, such as ``rcp_mean``. Several names become
    ``A+B``; other fields with several values have none. In fields of any type, lists and objects
    become JSON strings. The columns and their types do not depend on the rows, and are the same if
    there are none.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    pd = _pandas()
    columns = {}
    for path, (dtype, convert) in _columns(type_):
        values = [convert(_value(row, path)) for row in rows]
        columns["_".join(path)] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns)


def table_frame(columns: Iterable[tuple[str, type]], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Return rows of cells with columns of these names and types, as ``data_frame`` has them.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    pd = _pandas()
    series = {}
    for index, (name, type_) in enumerate(columns):
        dtype, convert = _DTYPES[_KINDS[type_]]
        series[name] = pd.Series([convert(row[index]) for row in rows], dtype=dtype)
    return pd.DataFrame(series)


def _pandas() -> Any:
    return require("pandas", "pandas", "a data frame")


_Column = tuple[str, Callable[[Any], Any]]


def _columns(
    type_: type[Struct], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], _Column]]:
    """Yield the path of each column in a row, and its type."""
    for field in getattr(types.type_info(type_), "fields", ()):
        alternatives = getattr(field.type, "types", (field.type,))  # those of a union
        kind = next(kind for kind in alternatives if not isinstance(kind, types.NoneType))
        path = (*above, field.name)
        if isinstance(kind, types.StructType):
            yield from _columns(kind.cls, path)
        elif isinstance(getattr(kind, "item_type", None), types.StrType):
            yield path, ("string", _joined)
        elif type(kind) in _DTYPES:
            yield path, _DTYPES[type(kind)]


def _value(row: Any, path: Sequence[str]) -> Any:
    value = row
    for name in path:
        if value is None:
            return None
        value = value[name]
    return value


def _integer(value: int | None) -> int | None:
    if value is None or abs(value) >= _LARGEST:
        return None
    return value


def _time(value: str | datetime | None) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _joined(names: Sequence[str]) -> str | None:
    return "+".join(names) or None


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


_DTYPES: Mapping[type[types.Type], _Column] = {
    types.IntType: ("Int64", _integer),
    types.FloatType: ("float64", to_finite),
    types.BoolType: ("boolean", _plain),
    types.StrType: ("string", _plain),
    types.DateTimeType: ("datetime64[ms, UTC]", _time),
    types.EnumType: ("string", _plain),
    types.AnyType: ("object", _plain),
}
_KINDS: Mapping[type, type[types.Type]] = {
    int: types.IntType,
    float: types.FloatType,
    bool: types.BoolType,
    str: types.StrType,
    datetime: types.DateTimeType,
}
