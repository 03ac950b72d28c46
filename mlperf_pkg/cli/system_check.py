"""``mlperf-pkg system check``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from mlperf_pkg.checker import system_row, tool
from mlperf_pkg.checks.systems import SystemFile, check_system
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.diagnostics import Verdicts
from mlperf_pkg.render import FORMATS
from mlperf_pkg.report import Report
from mlperf_pkg.rulebook.load import load_round, rounds

_USAGE = "training"


@click.command(name="check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.round_option("The round, such as 2.0; by default the newest of the rulebook.")
@options.verbose_option
def command(files: tuple[str, ...], round_: str | None, verbose: bool) -> int:
    """Check system descriptions, systems/<system_desc_id>.json.

    Exit status: 0 if no error was found, 1 if one was, 2 if a file could not be
    read.

    \b
    Examples:
      mlperf-pkg system check systems/*.json
      mlperf-pkg system check systems/dgx-a100.json --round 2.0
    """
    name = load_round(_USAGE, round_ or rounds(_USAGE)[-1]).name
    systems = [check_system(file, Path(file).read_bytes(), _USAGE, name) for file in files]
    reason = "as given" if round_ else "the newest of the rulebook"
    report = _report(systems, name, reason)
    target = Output(verbose=verbose)
    target.write(FORMATS["text"](report, target.view()))
    return int(any(finding.is_error for finding in report.findings))


def _report(systems: Sequence[SystemFile], round_: str, reason: str) -> Report:
    findings = [finding for system in systems for finding in system.findings]
    rows = tuple(map(system_row, systems))
    return Report(
        tool=tool(),
        usage=_USAGE,
        round=round_,
        round_reason=reason,
        verdict=Verdicts.worst(row.verdict for row in rows),
        systems=rows,
        findings=tuple(sorted(findings, key=lambda finding: finding.sort_key)),
    )
