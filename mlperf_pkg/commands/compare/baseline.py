"""The baseline of a comparison, by the name that a user gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlperf_pkg.commands.compare.ratios import Entry, named
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean


def baseline_test(name: str | None, entries: Sequence[Entry]) -> Callable[[Entry], bool]:
    """Return a test whether an entry is of the baseline; None names the first argument.

    Raises:
        UserError: no entry has this name.
    """
    if name is None:
        return lambda entry: entry.argument == 0
    if not any(named(entry, name) for entry in entries):
        names = {entry.system for entry in entries} | {entry.submitter or "" for entry in entries}
        suggestion = did_you_mean(name, sorted(names))
        raise UserError(
            f"--baseline {name}: no such system or submitter among the results{suggestion}"
        )
    return lambda entry: named(entry, name)
