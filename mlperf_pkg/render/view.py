"""The view of a report: width, colours, and where its paths start."""

from __future__ import annotations

import posixpath

from msgspec import Struct, field

from mlperf_pkg.findings import Finding

WAIVERS = "WAIVE"  # findings about the configuration, whose path starts from the current folder


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

    def path_of(self, finding: Finding) -> str:
        """Return the path of a finding, from the root of the repository."""
        base = self.here if finding.code.startswith(WAIVERS) else self.base
        return posixpath.relpath(posixpath.join(base, finding.path), self.root)


class View(Struct, frozen=True):
    """``width`` in columns; ``color`` for a terminal; ``verbose`` shows all and folds nothing."""

    width: int = 80
    color: bool = False
    verbose: bool = False
    checkout: Checkout = field(default_factory=Checkout)
