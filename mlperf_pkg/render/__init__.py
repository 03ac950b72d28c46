"""Renderers: pure functions from a report to text, in one table by the name of the format."""

from collections.abc import Callable, Mapping
from importlib import import_module

from mlperf_pkg.render.findings import Checkout, Show, View
from mlperf_pkg.results.report import Report

Renderer = Callable[[Report, View], str]


def _lazy(module: str, name: str) -> Renderer:
    """Return a renderer that imports its module on the first call: some are slow to import."""

    def render(report: Report, view: View) -> str:
        function: Renderer = getattr(import_module(f"{__name__}.{module}"), name)
        return function(report, view)

    return render


FORMATS: Mapping[str, Renderer] = {
    "text": _lazy("text", "text"),
    "json": _lazy("table", "report_json"),
    **{name: _lazy("text", name) for name in ("markdown", "csv")},
    **{name: _lazy("ci", name) for name in ("sarif", "junit", "github", "gitlab")},
    "log": _lazy("text", "log"),
    "concise": _lazy("ci", "concise"),
}

__all__ = ["FORMATS", "Checkout", "Show", "View"]
