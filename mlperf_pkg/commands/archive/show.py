"""Messages about packing: why a tree is not packed, and what was written."""

from __future__ import annotations

from pathlib import Path

from mlperf_pkg.commands.archive.encryption import Encryption
from mlperf_pkg.commands.archive.encryption import command as decrypt_command
from mlperf_pkg.commands.archive.packing import Packed
from mlperf_pkg.commands.archive.verification import integrity_failed
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report


def refusal(report: Report, *, keep_invalid: bool) -> str | None:
    """Return why a tree is not packed, None if it may be."""
    if integrity_failed(report.findings):
        return "the tree does not match its manifest, or contains something that cannot be packed"
    if keep_invalid or not report.has_errors:
        return None
    return (
        "fix the errors, or pack the tree anyway with --invalid keep;"
        " --invalid drop leaves out result sets that are not valid, if any others are valid"
    )


def packed_text(packed: Packed, target: Path, how: Encryption | None, report: Report) -> str:
    """Return the name, size and checksum of an archive, and the command that decrypts it.

    ``report`` is that on the tree, whose findings are counted.
    """
    size = f"{wording.counted(packed.files, 'file')}, {packed.unpacked:,} bytes in {packed.size:,}"
    lines = [f"packed {target}: {size}", f"sha256 {packed.sha256}"]
    if how:
        lines.append(f"decrypt with: {decrypt_command(how, target)}")
    lines.append(f"checked: {findings.counts_in_words(report)}")
    return "".join(f"{visible(line)}\n" for line in lines)
