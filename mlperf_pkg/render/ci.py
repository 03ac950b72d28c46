"""Shared parts of the formats for CI servers: order, words and fingerprints of findings."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings as words
from mlperf_pkg.render import headings
from mlperf_pkg.render.view import View
from mlperf_pkg.results.report import Report

_LINES = re.compile(r"\blines? [0-9]+(, [0-9]+)*")
_SEVERITIES = tuple(Severity)
_BASES = tuple(Basis)


def importance(finding: Finding) -> tuple[int, int]:
    """Return a sort key: errors first, both verdicts before one, waived findings last."""
    severity = len(_SEVERITIES) if finding.waiver else _SEVERITIES.index(finding.severity)
    return severity, _BASES.index(finding.basis)


def finding_text(finding: Finding) -> str:
    """Return a finding with its basis, its places and its remarks, as lines of visible text."""
    basis = "" if finding.basis is Basis.BOTH else f" [{finding.basis}]"
    return "\n".join(map(visible, (f"{words.sentence(finding)}{basis}", *words.remarks(finding))))


def text_with_set(finding: Finding) -> str:
    """Return the text of a finding, after the id of its set if this is one of raw logs."""
    text = finding_text(finding)
    is_of_raw_logs = finding.set and finding.set == finding.subject
    return f"{visible(finding.subject or '')}: {text}" if is_of_raw_logs else text


def verdicts_in_words(report: Report) -> str:
    """Return both verdicts of a report, one per line."""
    return "\n".join(
        f"{basis}: {visible(headings.verdict_sentence(report, basis))}"
        for basis in (Basis.OFFICIAL, Basis.RULES)
    )


def fingerprints(findings: Iterable[Finding], view: View) -> list[str]:
    """Return a fingerprint of each finding, which identifies it in later checks.

    It contains the id of the result set or, without one, the path, but no lines and values, as
    these change. Equal findings are numbered.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    return [_fingerprint(finding, view, counts) for finding in findings]


def _fingerprint(finding: Finding, view: View, counts: Counter[tuple[str, ...]]) -> str:
    message = _LINES.sub("line", finding.message)
    about = finding.set or view.checkout.path_of(finding, finding.about)
    identity = (finding.code, about, finding.basis.value, message)
    counts[identity] += 1
    text = "\0".join((*identity, str(counts[identity])))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
