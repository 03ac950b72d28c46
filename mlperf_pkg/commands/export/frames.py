"""Tables of an export as pandas data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.export.rows import (
    Rows,
    published_companies,
    rows_of,
    rows_of_published,
)
from mlperf_pkg.commands.export.schema import TABLES
from mlperf_pkg.errors import UserError
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.published.results import published_results
from mlperf_pkg.results.report import Report, as_json
from mlperf_pkg.submission.membership import set_id

if TYPE_CHECKING:
    import pandas as pd

_SETTINGS = "settings"


class CheckedReport(Report, frozen=True, kw_only=True):
    """A report that keeps what was checked, for tables that JSON does not have."""

    checked: Checked

    def to_pandas(self, table: str = "result_sets") -> pd.DataFrame:
        """Return a table as that of a ``Report``, or ``settings`` or ``evaluations``.

        Raises:
            UserError: there is no such table, or pandas is not installed.
        """
        if table in (_SETTINGS, "evaluations"):
            return _frame(rows_of(self.checked), table)
        return Report.to_pandas(self, table)


def checked_report(checked: Checked) -> CheckedReport:
    """Return the report of a check with the option ``curves``, with all its tables."""
    report = checked.report
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    return CheckedReport(**fields, checked=checked)


def published_frame(table: str) -> pd.DataFrame:
    """Return ``result_sets`` or ``settings`` of the published results.

    The columns of result sets are named as in a report, so that both can be concatenated.

    Raises:
        UserError: there is no such table, the published results are missing or damaged, or pandas
            is not installed.
    """
    from mlperf_pkg.results.data_frame import data_frame

    if table == _SETTINGS:
        return _frame(rows_of_published(published_results()), table)
    if table != "result_sets":
        raise UserError(f"the table is {table!r}; expected result_sets or settings")
    sets = [published for published in published_results().sets if published.runs]
    frame = data_frame(as_json(sets), PublishedSet).rename(columns={"runs": "runs_found"})
    ids = []
    for row in sets:
        ids.append(set_id(row.submitter, row.system, row.benchmark, row.division, row.scaling))
    scalings = [row.scaling for row in sets]
    frame = frame.assign(id=ids, scaling=scalings, companies=published_companies(sets))
    return frame.astype({"id": "string", "scaling": "string", "companies": "string"})


def _frame(rows: Rows, table: str) -> pd.DataFrame:
    from mlperf_pkg.results.data_frame import table_frame

    columns = [(column.name, column.type) for column in TABLES[table].columns]
    return table_frame(columns, rows[table])
