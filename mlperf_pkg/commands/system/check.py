"""System descriptions checked by themselves, outside a submission."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlperf_pkg.checker.fold import system_row, tool
from mlperf_pkg.checks.systems import SystemFile, check_system
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdicts, folded, in_order
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.files import rounds
from mlperf_pkg.rulebook.load import load_round

USAGE = "training"


def check_descriptions(paths: Sequence[str], round_: str | None) -> Report:
    """Check descriptions, and all ``*.json`` of folders, by a round (None: the newest).

    Raises:
        UserError: the rulebook has no such round, or a folder has no ``*.json``.
        OSError: a file cannot be read.
    """
    name = load_round(USAGE, round_ or rounds(USAGE)[-1]).name
    files = [file for path in paths for file in _files(path)]
    systems = [check_system(file, Path(file).read_bytes(), USAGE, name) for file in files]
    return _report(systems, name, "as given" if round_ else "the newest of the rulebook")


def _files(path: str) -> list[str]:
    if not Path(path).is_dir():
        return [path]
    files = sorted(str(file) for file in Path(path).glob("*.json") if file.is_file())
    if not files:
        raise UserError(f"{path}: no system description in this folder (no file named *.json)")
    return files


def _report(systems: Sequence[SystemFile], round_: str, reason: str) -> Report:
    findings = [f for system in systems for f in folded(system.findings, system.path)]
    rows = tuple(system_row(system, USAGE, round_) for system in systems)
    return Report(
        tool=tool(),
        usage=USAGE,
        round=round_,
        round_reason=reason,
        verdict=Verdicts.worst(row.verdict for row in rows),
        systems=rows,
        findings=in_order(findings),
    )
