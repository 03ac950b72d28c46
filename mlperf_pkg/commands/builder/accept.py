"""The last look at a tree, before it has its name: the check that everyone else will make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.builder.judge import failures
from mlperf_pkg.commands.builder.prepare import Prepared
from mlperf_pkg.errors import UserError
from mlperf_pkg.results.wording import location


def accepts(prepared: Prepared) -> Callable[[Path], None]:
    """A function that checks a tree and raises ``UserError`` where it is not valid.

    What was found before the tree was written, and waived, is not held against it.
    """
    known = {finding.code for each in prepared.judged for finding in each.findings}
    round_ = prepared.workspace.round

    def accept(tree: Path) -> None:
        found = check([str(tree)], Options(round_.usage, round_.name)).report.findings
        wrong = [finding for finding in failures(found) if finding.code not in known]
        if wrong:
            told = [f"  {location(each)}: {each.code}: {each.message}" for each in wrong]
            raise UserError("\n".join(["the tree would not be valid:", *told]))

    return accept
