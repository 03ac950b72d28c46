"""Pure functions from a report to text, in one table by the name of the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlperf_pkg.render import data
from mlperf_pkg.render.markdown import markdown
from mlperf_pkg.render.text import text
from mlperf_pkg.render.view import View
from mlperf_pkg.report import Report

FORMATS: Mapping[str, Callable[[Report, View], str]] = {
    "text": text,
    "json": data.json,
    "markdown": markdown,
    "csv": data.csv,
}

__all__ = ["FORMATS", "View"]
