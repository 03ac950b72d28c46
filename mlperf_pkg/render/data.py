"""A report as JSON and CSV, for programs."""

from __future__ import annotations

from mlperf_pkg.render import tables
from mlperf_pkg.render.view import View
from mlperf_pkg.results.report import Report


def json(report: Report, _: View) -> str:
    """Render the whole report in the format ``mlperf-pkg/report/3``."""
    return tables.json_text(report)


def csv(report: Report, _: View) -> str:
    """Render the results, one row per result set."""
    return tables.results_csv(report)
