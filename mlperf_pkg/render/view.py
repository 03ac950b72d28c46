"""The view of a report: width, colours, how much it shows, and where its paths start."""

from __future__ import annotations

import posixpath
from enum import StrEnum

from msgspec import Struct, field

from mlperf_pkg.findings import Finding, Severity

WAIVERS = "WAIVE"  # findings about the configuration, whose path starts from the current folder


class Show(StrEnum):
    """The findings that a view shows: of this severity and above; ALL lists them one by one."""

    ERRORS = "errors"
    WARNINGS = "warnings"
    NOTES = "notes"
    ALL = "all"

    @property
    def severities(self) -> tuple[Severity, ...]:
        """The severities that are shown, the most important first."""
        return tuple(Severity)[: list(Show).index(self) + 1]


class Checkout(Struct, frozen=True):
    """How paths of a report map into a repository, for programs that annotate its files.

    The paths of a report start from ``base``, that of its configuration from ``here``. The methods
    return paths from ``root``. All three are absolute.
    """

    root: str = "/"
    here: str = "/"
    base: str = "/"

    def path(self, label: str) -> str:
        """Return a path of the report, from the root of the repository."""
        return posixpath.relpath(posixpath.join(self.base, label), self.root)

    def path_of(self, finding: Finding, path: str | None = None) -> str:
        """Return a path of a finding, its first by default, from the root of the repository."""
        base = self.here if finding.code.startswith(WAIVERS) else self.base
        return posixpath.relpath(posixpath.join(base, path or finding.path), self.root)


class View(Struct, frozen=True):
    """``width`` in columns; ``color`` for a terminal; ``verbose`` shows all runs and result sets.

    ``quiet`` shows the verdicts alone; ``statistics`` shows a table of codes instead of findings.
    """

    width: int = 80
    color: bool = False
    verbose: bool = False
    show: Show = Show.WARNINGS
    quiet: bool = False
    statistics: bool = False
    checkout: Checkout = field(default_factory=Checkout)
