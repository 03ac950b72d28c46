"""Options of commands that report findings: which to show, and which fail the command."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import UNREAD, Checked
from mlperf_pkg.cli.group import reads
from mlperf_pkg.cli.types import Choice
from mlperf_pkg.findings import Severity, Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import Show, View
from mlperf_pkg.results.report import Report

_Command = Callable[..., Any]
_NAMED = 3  # logs in a note
_OFFICIAL = "official"
_STATISTICS = "statistics"


def noted(checked: Checked) -> Checked:
    """Return ``checked``, whose findings are not shown; print which logs cannot be read."""
    files: dict[str, list[str]] = {}
    for finding in checked.report.findings:
        if finding.code in UNREAD:
            files.setdefault(finding.text, []).extend(p.path for p in finding.occurrences)
    for text, paths in files.items():
        more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
        click.echo(visible(f"note: {', '.join(paths[:_NAMED])}{more}: {text}"), err=True)
    return checked


class Showing(Struct, frozen=True):
    """What a command shows of its findings."""

    show: Show
    quiet: bool
    statistics: bool

    def view(self, view: View) -> View:
        """Return the view with these settings."""
        return replace(view, show=self.show, quiet=self.quiet, statistics=self.statistics)


Status = Callable[[Report], int]
"""Return the exit status for a report: 1 if a finding or a verdict fails the command."""


def shown(function: _Command) -> _Command:
    """Add ``--show`` and read ``--quiet``: the function receives ``showing``."""

    @reads("quiet")
    @wraps(function)
    def with_showing(show: str, quiet: bool | None, **others: Any) -> Any:
        statistics = show == _STATISTICS
        level = Show.WARNINGS if statistics else Show(show)
        return function(showing=Showing(level, bool(quiet), statistics), **others)

    option: Callable[[_Command], _Command] = click.option(
        "--show",
        type=Choice([*(level.value for level in Show), _STATISTICS]),
        default=Show.WARNINGS.value,
        show_default=True,
        help="Show findings of this severity and above; 'all' lists each with its source,"
        " 'statistics' counts them by code and submitter, as a table.",
    )
    return option(with_showing)


def failing(function: _Command) -> _Command:
    """Add ``--fail-on``: the function receives ``status`` (``Status``)."""

    @wraps(function)
    def with_status(fail_on: str, **others: Any) -> Any:
        if fail_on == _OFFICIAL:
            return function(
                status=lambda report: int(report.verdict.official is not Verdict.PASS), **others
            )
        severity = Severity(fail_on)
        return function(status=lambda report: int(report.fails_on(severity)), **others)

    option: Callable[[_Command], _Command] = click.option(
        "--fail-on",
        type=Choice([*(severity.value for severity in Severity), _OFFICIAL]),
        default=Severity.ERROR.value,
        show_default=True,
        help="Exit with status 1 on findings of this severity and above, or only if the official"
        " verdict is not pass (official).",
    )
    return option(with_status)
