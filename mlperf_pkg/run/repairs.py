"""A log that is damaged in places, read again with every record that can be read with certainty.

The official verdict is on the log as it is, the verdict by the rules on what the run wrote: records
before other text or another record, records behind a damaged marker, and of records that several
processes wrote alike, one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, in_order, verdicts_of
from mlperf_pkg.log.damage import repaired
from mlperf_pkg.log.reader import OF_LINES
from mlperf_pkg.log.record import TOKEN, decode
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.run.relations import TOGETHER_MS

if TYPE_CHECKING:
    from mlperf_pkg.run.model import Run

_MOST_OF = 0.75  # the share of records that processes write alike, at least
_SEGMENT = rb"[^\r\n]+"


class WholeLog(Struct, frozen=True):
    """The text of a log with all of its records, each once.

    ``processes`` wrote each of them; ``line`` is the first that holds a repeated one.
    """

    text: bytes
    processes: int = 1
    line: int = 1


def whole_log(text: bytes) -> WholeLog:
    """Return the text of a log with every record that can be read, each once."""
    text = repaired(text)
    repeats = _Repeats()
    single = re.sub(_SEGMENT, repeats.without, text)
    processes = repeats.processes()
    if processes == 1:
        return WholeLog(text)
    line = text.count(b"\n", 0, repeats.first) + 1
    return WholeLog(single, processes, line)


class _Repeats:
    """Finds equal records that were written within a second of each other.

    ``first`` is the offset of the first one that repeats another.
    """

    def __init__(self) -> None:
        """Start at the head of a log."""
        self.first = 0
        self._groups: dict[str, tuple[float, int]] = {}  # the last of each value: time and size
        self._sizes: dict[int, int] = {}  # how many records are in groups of each size

    def processes(self) -> int:
        """Return the number of processes that write every record, at the end of a log."""
        for _, size in self._groups.values():
            self._count(size)
        most = max(self._sizes, key=self._sizes.__getitem__, default=1)
        if self._sizes.get(most, 0) < _MOST_OF * sum(self._sizes.values()):
            return 1
        return most

    def without(self, line: re.Match[bytes]) -> bytes:
        """Return a line, without text if it is a record that repeats an earlier one."""
        _, marker, raw = line[0].rpartition(TOKEN)
        record = decode(raw) if marker else None
        if record is None:
            return line[0]
        value = repr((record.key, record.value, record.metadata))
        start_ms, size = self._groups.get(value, (float("-inf"), 0))
        if not abs(record.time_ms - start_ms) <= TOGETHER_MS:
            self._count(size)
            self._groups[value] = (record.time_ms, 1)
            return line[0]
        self._groups[value] = (start_ms, size + 1)
        self.first = self.first or line.start()
        return b""

    def _count(self, size: int) -> None:
        self._sizes[size] = self._sizes.get(size, 0) + size


def combined(run: Run, whole: Run, log: WholeLog) -> Run:
    """Return a run with the official verdict of its log as it is, and the rules' of the ``whole``.

    What the official tools read stays as they read it.
    """
    findings = [finding for finding in run.findings if finding.code.startswith(OF_LINES)]
    if log.processes > 1:
        findings.append(_of_processes(run.path, log))
    official = _official(run, whole)
    findings += official
    findings += _by_rules(run, whole)
    findings_in_order = in_order(findings)
    return replace(
        whole,
        findings=findings_in_order,
        verdicts=known_verdicts(verdicts_of(findings_in_order), run.usage, run.round),
        records=run.records,
        official_span_ms=run.official_span_ms,
        convergence=run.convergence,
        epochs=run.epochs,
        seeds=run.seeds,
        seeds_unreadable=run.seeds_unreadable,
        crash=run.crash,
        lost={**whole.lost, **run.lost},
        by_damage=_by_damage(official, whole),
    )


def _by_damage(official: Iterable[Finding], whole: Run) -> tuple[str, ...]:
    """Return the codes of the ``official`` findings on the log as it is that damage alone causes.

    What is logged too often is not what the whole log lacks, although both have one code.
    """
    of_whole = set()
    for finding in whole.findings:
        if finding.fails(Basis.OFFICIAL):
            of_whole.add((finding.code, type(finding)))
    codes: dict[str, None] = {}
    for finding in official:
        if (finding.code, type(finding)) not in of_whole:
            codes[finding.code] = None
    return tuple(codes)


def _of_processes(path: str, log: WholeLog) -> Finding:
    message = "{found} processes write every record; expected {expected}"
    hint = "let one process log, such as the one of rank 0; the repeated records are not counted"
    return finding_of(
        "LOG114", message, path, line=log.line, found=log.processes, expected="one", hint=hint
    )


def _official(run: Run, whole: Run) -> list[Finding]:
    """Return what the official checker alone finds in the log as it is."""
    codes = {finding.code for finding in whole.findings if finding.basis is Basis.BOTH}
    findings = []
    for finding in run.findings:
        is_of_lines = finding.code.startswith(OF_LINES)
        if finding.fails(Basis.OFFICIAL) and not is_of_lines and finding.code not in codes:
            findings.append(replace(finding, basis=Basis.OFFICIAL))
    return findings


def _by_rules(run: Run, whole: Run) -> list[Finding]:
    """Return what the whole log breaks, by the rules alone where the official checker is silent."""
    codes = {finding.code for finding in run.findings if finding.fails(Basis.OFFICIAL)}
    findings = []
    for finding in whole.findings:
        if finding.code.startswith(OF_LINES) or finding.basis is Basis.OFFICIAL:
            continue
        if finding.fails(Basis.OFFICIAL) and finding.code not in codes:
            findings.append(replace(finding, basis=Basis.RULES))
        else:
            findings.append(finding)
    return findings
