"""What must not be in the message of a finding about a log."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mlperf_pkg.findings import Finding

_FORMULA = re.compile(
    r"math\.|&&|\|\||==|<=|>=|previous\.|metadata\.| \? |\bvalue [-+*/<>]|[-+*/] value\b|\bdouble\("
)
_PYTHON = re.compile(r"\bTrue\b|\bFalse\b|\bNone\b|\['|\{'|\bdict\b|NoneType|Error:")
_UNFILLED = re.compile(r"\{(found|expected)|\bnull\b")
_EXPECTED = re.compile(r"; expected \S")


def faults_of(finding: Finding) -> Iterator[str]:
    """Yield what is wrong with the message of a broken rule."""
    text = finding.text
    for name, pattern in (("formula", _FORMULA), ("Python", _PYTHON)):
        if match := pattern.search(text):
            yield f"{finding.code}: {name} text {match[0]!r} in {text!r}"
    if not _EXPECTED.search(text) or finding.expected in (None, ""):
        yield f"{finding.code}: nothing expected in {text!r}"
    if "{found" in finding.message and finding.found is None and "null" not in text:
        yield f"{finding.code}: nothing found in {text!r}"
    if "{" in finding.message and _UNFILLED.search(text.replace('"null"', "")) and finding.found:
        yield f"{finding.code}: a placeholder is left in {text!r}"
