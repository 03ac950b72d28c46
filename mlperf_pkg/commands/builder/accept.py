"""Check a tree before it gets its name, as everyone else will check it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.builder.judge import failures
from mlperf_pkg.commands.builder.prepare import Prepared
from mlperf_pkg.errors import UserError
from mlperf_pkg.render.findings import location, sentence


def acceptance(prepared: Prepared) -> Callable[[Path], None]:
    """Return a function that checks a tree and raises ``UserError`` if it is not valid.

    Findings that the plan had already, and that were waived or kept, do not count against it.
    """
    accepted = {finding.code for judged in prepared.judged for finding in judged.findings}
    round_ = prepared.workspace.round

    def accept(tree: Path) -> None:
        findings = check([str(tree)], Options(round_.usage, round_.name)).report.findings
        new = [finding for finding in failures(findings) if finding.code not in accepted]
        if new:
            lines = (f"{location(f)}: {f.code}: {sentence(f)}" for f in new)
            raise UserError("\n  ".join(["the tree would not be valid:", *lines]))

    return accept
