"""Pure functions from a report to text, in one table by the name of the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlperf_pkg.render import data
from mlperf_pkg.render.github import github
from mlperf_pkg.render.gitlab import gitlab
from mlperf_pkg.render.junit import junit
from mlperf_pkg.render.markdown import markdown
from mlperf_pkg.render.sarif import sarif
from mlperf_pkg.render.view import Checkout, View
from mlperf_pkg.report import Report


def _text(report: Report, view: View) -> str:
    from mlperf_pkg.render.text import text  # noqa: PLC0415 - it needs rich, which is slow to import

    return text(report, view)


FORMATS: Mapping[str, Callable[[Report, View], str]] = {
    "text": _text,
    "json": data.json,
    "markdown": markdown,
    "csv": data.csv,
    "sarif": sarif,
    "junit": junit,
    "github": github,
    "gitlab": gitlab,
}

__all__ = ["FORMATS", "Checkout", "View"]
