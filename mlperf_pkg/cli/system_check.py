"""``mlperf-pkg system check``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from mlperf_pkg.checker.fold import system_row, tool
from mlperf_pkg.checks.systems import SystemFile, check_system
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdicts
from mlperf_pkg.render import FORMATS
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.load import load_round, rounds

_USAGE = "training"
_FOLDER = "systems"


@click.command(name="check")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@options.round_option("The round, such as 2.0; by default the newest of the rulebook.")
@options.verbose_option
def command(paths: tuple[str, ...], round_: str | None, verbose: bool) -> int:
    """Check system descriptions, systems/<system_desc_id>.json.

    PATH is a description, or a folder of which all *.json are checked; without
    one it is systems/.

    Exit status: 0 if no error was found, 1 if one was, 2 if a file could not be
    read.

    \b
    Examples:
      mlperf-pkg system check
      mlperf-pkg system check systems/dgx-a100.json --round 2.0
    """
    name = load_round(_USAGE, round_ or rounds(_USAGE)[-1]).name
    files = [file for path in paths or _default() for file in _files(path)]
    systems = [check_system(file, Path(file).read_bytes(), _USAGE, name) for file in files]
    reason = "as given" if round_ else "the newest of the rulebook"
    report = _report(systems, name, reason)
    target = Output(verbose=verbose)
    target.write(FORMATS["text"](report, target.view()))
    return int(any(finding.is_error for finding in report.findings))


def _default() -> tuple[str]:
    if not Path(_FOLDER).is_dir():
        raise click.UsageError(f"no PATH given, and there is no folder {_FOLDER}/ here")
    return (_FOLDER,)


def _files(path: str) -> list[str]:
    """The file itself, or the descriptions in a folder.

    Raises:
        UserError: a folder holds none.
    """
    if not Path(path).is_dir():
        return [path]
    found = sorted(str(file) for file in Path(path).glob("*.json") if file.is_file())
    if not found:
        raise UserError(f"{path}: no system description here (no file is named *.json)")
    return found


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
