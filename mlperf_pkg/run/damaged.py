"""The run of a damaged log: both verdicts on it, and which findings are about what it has lost.

The official verdict is on the log as it is, the verdict by the rules on every record that is
certain. That a record is missing follows from a damaged line only if the record stands there: the
damaged text names its key, or lies where it belongs, between a record and the next of its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, in_order, verdicts_of
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.damage import DamagedLog, Gap, may_be_of_processes, read_gaps, read_records
from mlperf_pkg.log.reader import OF_LINES
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.rulebook.table import CompiledRule, RuleTable, related_keys
from mlperf_pkg.run.readers import OTHER_RECORDS

if TYPE_CHECKING:
    from mlperf_pkg.run.model import Run

_MOST_BYTES = 1 << 28  # of a log that is read again; the largest published one has 2 ** 26
_CHUNK_BYTES = 1 << 20
_ABOUT_OTHERS = frozenset({"after", "before", "same_as", "within_minutes", "metadata"})
_SEEDS = "SEED103"  # the official seed checker refuses the log
_KEYS = {"SEED101": "seed", "RUN130": "run_stop", "RUN140": "run_stop"}
"""The keys that are missing where a code is reported that is not a rule's."""


def read_again(source: Source, *, is_damaged: bool, has_lost: bool) -> DamagedLog | None:
    """Read a log once more, line by line; return None if it is too large.

    Its records are read if it ``is_damaged``. If it has not lost any, None is returned unless
    several processes write every record.

    Raises:
        OSError: the log cannot be read.
    """
    with source.open() as stream:
        # Not at once, which would reserve the memory for as many bytes.
        chunks = iter(partial(stream.read, _CHUNK_BYTES), b"")
        text = b"".join(islice(chunks, _MOST_BYTES // _CHUNK_BYTES + 1))
    if len(text) > _MOST_BYTES or not (has_lost or may_be_of_processes(text)):
        return None
    log = read_gaps(text, source.first_line)
    if is_damaged:
        log = read_records(log, text, source.first_line)
    return log if has_lost or log.processes > 1 else None


# ---- two verdicts -------------------------------------------------------------------------


def combined(run: Run, whole: Run, log: DamagedLog) -> Run:
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
        by_damage=_by_damage(official, whole),
    )


def _by_damage(official: Iterable[Finding], whole: Run) -> tuple[str, ...]:
    """Return the codes of the ``official`` findings on the log as it is that damage alone causes.

    What is logged too often is not what the whole log lacks, although both have one code.
    """
    failing = [finding for finding in whole.findings if finding.fails(Basis.OFFICIAL)]
    of_whole = {(finding.code, type(finding)) for finding in failing}
    alone = [finding for finding in official if (finding.code, type(finding)) not in of_whole]
    return tuple(dict.fromkeys([finding.code for finding in alone]))


def _of_processes(path: str, log: DamagedLog) -> Finding:
    message = "{found} processes write every record; expected {expected} process"
    return finding_of("LOG114", message, path, line=log.line, found=log.processes, expected="one")


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


# ---- what the log has lost ----------------------------------------------------------------


def with_lost(run: Run, log: DamagedLog, table: RuleTable, findings: Sequence[Finding]) -> Run:
    """Return a run with the lines of damaged text that holds what ``findings`` lack, by code."""
    lost: dict[str, tuple[int, ...]] = {}
    if run.seeds_unreadable == OTHER_RECORDS:
        lost[_SEEDS] = tuple([gap.line for gap in log.gaps])
    for want in _wants(findings, table):
        lines = _lines_with(want, log, table.followed)
        if lines:
            lost[want.code] = lines
    return replace(run, lost=lost)


class _Want(Struct):
    """What a finding lacks: a record of one of the ``keys``, before its ``lines``.

    Without lines, it may be anywhere. Of the key ``between``, it is after the record before.
    """

    code: str
    keys: frozenset[str]
    lines: tuple[int, ...] = ()
    between: str = ""


def _wants(findings: Iterable[Finding], table: RuleTable) -> Iterator[_Want]:
    """Yield what the findings lack that may be due to a missing record."""
    for code, key in _KEYS.items():
        yield _Want(code, frozenset([key]))
    rules: dict[str, CompiledRule] = {}
    for key_rules in table.keys.values():
        rules.update((compiled.rule.code, compiled) for compiled in key_rules.rules)
    for finding in findings:
        compiled = rules.get(finding.code)
        if compiled is None:
            continue
        place = finding.occurrences[0]
        if not place.lines:
            yield _Want(finding.code, _counted_keys(compiled))
        elif place.count == len(place.lines):
            yield from _wants_at(compiled, place.lines)


def _counted_keys(compiled: CompiledRule) -> frozenset[str]:
    rule = compiled.rule
    keys = {rule.key}
    if isinstance(rule.occurs, Mapping) and "or" in rule.occurs:
        keys.add(rule.occurs["or"])
    return frozenset(keys)


def _wants_at(compiled: CompiledRule, lines: tuple[int, ...]) -> Iterator[_Want]:
    """Yield what a rule lacks that is broken on these lines; nothing if a value breaks it."""
    rule = compiled.rule
    if compiled.reaches:
        yield _Want(rule.code, frozenset([rule.key]))
        return
    if not rule.constraints.keys() <= _ABOUT_OTHERS:
        return
    keys = {*related_keys(rule), *rule.constraints.get("after", ())} - {rule.key}
    formula = compiled.in_passing or compiled.at_the_end
    between = ""
    if rule.nth_since or (formula and formula.previous):
        between = rule.key
        keys.add(between)
    if keys:
        yield _Want(rule.code, frozenset(keys), lines, between)


def _lines_with(want: _Want, log: DamagedLog, keys: Iterable[str]) -> tuple[int, ...]:
    """Return the lines of the gaps that hold what is wanted; nothing if one line lacks it yet."""
    if not want.lines:
        torn = [gap for gap in log.named.get("", ()) if gap.holds_any(want.keys, keys)]
        gaps = chain(torn, *[log.named.get(key, ()) for key in want.keys])
        return tuple(sorted({gap.line for gap in gaps}))
    lines: dict[int, None] = {}
    for line in want.lines:
        before = [gap for gap in log.gaps if gap.line < line]
        found_lines = [gap.line for gap in before if _fills(gap, want, line, log, keys)]
        if not found_lines:
            return ()
        lines.update(dict.fromkeys(found_lines))
    return tuple(lines)


def _fills(gap: Gap, want: _Want, line: int, log: DamagedLog, keys: Iterable[str]) -> bool:
    """Return whether a gap before a line holds what is wanted there."""
    if gap.holds_any(want.keys - {want.between}, keys):
        return True
    if not want.between:
        return False
    earlier = [other for other in log.lines.get(want.between, ()) if other < line]
    if earlier and gap.line < earlier[-1]:
        return False
    return gap.holds_any({want.between}, keys) or (bool(earlier) and not gap.names)
