"""How a reader wants to see a report."""

from __future__ import annotations

import posixpath

from msgspec import Struct, field

from mlperf_pkg.findings import Finding

WAIVERS = "WAIVE"  # findings about the configuration, which lies where the command is run


class Checkout(Struct, frozen=True):
    """Where reports lie in a repository, for programs that show findings beside its files.

    The paths of a report start from ``base``, that of its configuration from ``here``; what they
    become starts from ``root``. All three are absolute.
    """

    root: str = "/"
    here: str = "/"
    base: str = "/"

    def path(self, label: str) -> str:
        """A path of the report, from the root of the repository."""
        return posixpath.relpath(posixpath.join(self.base, label), self.root)

    def place(self, finding: Finding) -> str:
        """The path of a finding, from the root of the repository."""
        base = self.here if finding.code.startswith(WAIVERS) else self.base
        return posixpath.relpath(posixpath.join(base, finding.path), self.root)


class View(Struct, frozen=True):
    """``width`` in columns; ``color`` for a terminal; ``verbose`` shows all and folds nothing."""

    width: int = 80
    color: bool = False
    verbose: bool = False
    checkout: Checkout = field(default_factory=Checkout)
