"""Findings as values: what was found, what was expected, where, and by which rule."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class Severity(StrEnum):
    """How much a finding weighs. Only errors fail a verdict and the exit status."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Basis(StrEnum):
    """The rule that a finding is based on.

    BOTH: the written rules and the official checker. OFFICIAL: the checker rejects what the
    rules allow. RULES: the rules forbid what the checker accepts. ADVICE: neither, our judgement.
    """

    BOTH = "both"
    OFFICIAL = "official"
    RULES = "rules"
    ADVICE = "advice"


class Verdict(StrEnum):
    """The outcome of a check. What was not checked never passes."""

    PASS = "pass"  # noqa: S105 - a verdict, not a secret
    FAIL = "fail"
    NOT_CHECKED = "not_checked"

    @classmethod
    def of(cls, failed: bool) -> Verdict:
        """Return FAIL if ``failed``, else PASS."""
        return cls.FAIL if failed else cls.PASS

    @classmethod
    def worst(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """Return FAIL if any failed, else PASS if any was checked, else NOT_CHECKED."""
        distinct = set(verdicts)
        return next((v for v in (cls.FAIL, cls.PASS) if v in distinct), cls.NOT_CHECKED)


class Verdicts(Struct, frozen=True):
    """The two verdicts on one thing, always kept apart."""

    official: Verdict
    rules: Verdict

    @classmethod
    def worst(cls, pairs: Iterable[Verdicts]) -> Verdicts:
        """Return the worst official verdict, and the worst by the rules."""
        verdicts = list(pairs)
        return cls(
            Verdict.worst(v.official for v in verdicts), Verdict.worst(v.rules for v in verdicts)
        )


class Waiver(Struct, frozen=True):
    """An approval of a finding, until the end of a day (ISO 8601, UTC)."""

    reason: str
    approved_by: str
    until: str


class Finding(Struct, frozen=True, kw_only=True):
    """One observation about a submission.

    ``path`` is relative to the argument that was checked, with ``/``; ``line`` is the 1-based line
    of that file, or None if the finding is about all of it. ``found`` and ``expected`` are JSON
    values; ``source`` names the document and section of the rule. A finding with a ``waiver`` is
    reported but fails the official verdict alone, as the official checker ignores waivers.
    """

    code: str
    message: str
    path: str
    line: int | None = None
    severity: Severity = Severity.ERROR
    basis: Basis = Basis.BOTH
    found: Any = None
    expected: Any = None
    hint: str | None = None
    source: str | None = None
    waiver: Waiver | None = None

    @property
    def is_error(self) -> bool:
        """Whether this is an error that is not waived."""
        return self.severity is Severity.ERROR and self.waiver is None

    @property
    def sort_key(self) -> tuple[str, int, str, str]:
        """The order of findings: by file, then line, then code."""
        return (self.path, self.line or 0, self.code, self.message)

    def fails(self, basis: Basis) -> bool:
        """Return whether this finding fails the verdict of ``basis`` (OFFICIAL or RULES)."""
        counts = self.is_error if basis is Basis.RULES else self.severity is Severity.ERROR
        return counts and self.basis in (Basis.BOTH, basis)


class Pending(Finding, frozen=True):
    """A finding that later records of a growing log may resolve: something is missing so far."""


def verdicts_of(findings: Iterable[Finding]) -> Verdicts:
    """Return the verdicts that follow from findings alone."""
    all_findings = list(findings)
    return Verdicts(
        official=Verdict.of(any(f.fails(Basis.OFFICIAL) for f in all_findings)),
        rules=Verdict.of(any(f.fails(Basis.RULES) for f in all_findings)),
    )


def without_official(finding: Finding, hint: str) -> Finding:
    """Return the finding for something that the official checker accepts; ``hint`` says why."""
    if not finding.fails(Basis.OFFICIAL):
        return finding
    if finding.basis is Basis.BOTH:
        return replace(finding, basis=Basis.RULES)
    return replace(finding, severity=Severity.WARNING, hint=finding.hint or hint)
