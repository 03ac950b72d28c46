"""Pure functions from a report to text, in one table by the name of the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from mlperf_pkg.render.view import Checkout, View
from mlperf_pkg.results.report import Report

Renderer = Callable[[Report, View], str]


def _of(module: str, name: str) -> Renderer:
    """A function of a module that is imported when it is called: some are slow to import."""

    def render(report: Report, view: View) -> str:
        function: Renderer = getattr(import_module(f"{__name__}.{module}"), name)
        return function(report, view)

    return render


FORMATS: Mapping[str, Renderer] = {
    "text": _of("text", "text"),
    "json": _of("data", "json"),
    "markdown": _of("markdown", "markdown"),
    "csv": _of("data", "csv"),
    "sarif": _of("sarif", "sarif"),
    "junit": _of("junit", "junit"),
    "github": _of("github", "github"),
    "gitlab": _of("gitlab", "gitlab"),
}

__all__ = ["FORMATS", "Checkout", "View"]
