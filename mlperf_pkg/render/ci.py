"""What the formats for other programs share: the order, the words and the marks of findings."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import headings
from mlperf_pkg.render.findings import Folded
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report

_LINES = re.compile(r"\blines? [0-9]+(, [0-9]+)*")
_SEVERITIES = tuple(Severity)
_BASES = tuple(Basis)


def importance(finding: Finding) -> tuple[int, int]:
    """Errors first, those of both verdicts before those of one; what is waived comes last."""
    severity = len(_SEVERITIES) if finding.waiver else _SEVERITIES.index(finding.severity)
    return severity, _BASES.index(finding.basis)


def said(folded: Folded) -> str:
    """A finding and its remarks as lines of visible text."""
    return "\n".join(map(visible, (folded.message, *folded.remarks)))


def verdicts_in_words(report: Report) -> str:
    """Both verdicts of a report, one a line."""
    return "\n".join(
        f"{basis}: {wording.VERDICTS[getattr(report.verdict, basis)]}"
        f" - {visible(headings.verdict_in_words(report, basis))}"
        for basis in (Basis.OFFICIAL, Basis.RULES)
    )


def fingerprints(findings: Iterable[Finding], view: View) -> list[str]:
    """A mark of each finding, in their order, by which it is known again in a later check.

    Lines are no part of it, as they move. Of findings that are alike the first, the second and so
    on are told apart.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    return [_fingerprint(finding, view, seen) for finding in findings]


def _fingerprint(finding: Finding, view: View, seen: Counter[tuple[str, ...]]) -> str:
    message = _LINES.sub("line", finding.message)
    known = (finding.code, view.checkout.place(finding), finding.basis.value, message)
    seen[known] += 1
    text = "\0".join((*known, str(seen[known])))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
