"""The baseline of a comparison, by the name that a user gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlperf_pkg.commands.compare.model import Result
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean


def baseline_test(name: str | None, results: Sequence[Result]) -> Callable[[Result], bool]:
    """Return a predicate for results of the baseline; without a name, those of the first argument.

    Raises:
        UserError: no result has this name.
    """
    if name is None:
        return lambda result: result.argument == 0
    if not any(result.matches(name) for result in results):
        names = {result.system for result in results}
        names |= {result.submitter or "" for result in results}
        suggestion = did_you_mean(name, sorted(names))
        raise UserError(
            f"--baseline {name}: no such system or submitter among the results{suggestion}"
        )
    return lambda result: result.matches(name)
