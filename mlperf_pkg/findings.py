"""Findings as values: what was found, what was needed, where, and by whose rule."""

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
    """Whose rule a finding rests on.

    BOTH: the written rules and the official checker. OFFICIAL: the checker rejects what the
    rules allow. RULES: the rules forbid what the checker passes. ADVICE: neither, our judgement.
    """

    BOTH = "both"
    OFFICIAL = "official"
    RULES = "rules"
    ADVICE = "advice"


class Verdict(StrEnum):
    """What was concluded. What was not checked is never a pass."""

    PASS = "pass"  # noqa: S105 - a verdict, not a secret
    FAIL = "fail"
    NOT_CHECKED = "not_checked"

    @classmethod
    def of(cls, failed: bool) -> Verdict:
        """FAIL where ``failed``, else PASS."""
        return cls.FAIL if failed else cls.PASS

    @classmethod
    def worst(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """FAIL if any failed; else PASS if any was checked; else NOT_CHECKED."""
        seen = set(verdicts)
        return next((v for v in (cls.FAIL, cls.PASS) if v in seen), cls.NOT_CHECKED)


class Verdicts(Struct, frozen=True):
    """The two verdicts of one thing, never blurred into one."""

    official: Verdict
    rules: Verdict

    @classmethod
    def worst(cls, several: Iterable[Verdicts]) -> Verdicts:
        """The worst of each, taken separately."""
        listed = list(several)
        return cls(
            Verdict.worst(v.official for v in listed), Verdict.worst(v.rules for v in listed)
        )


class Waiver(Struct, frozen=True):
    """Somebody's word that a finding may stand, until the end of a day (ISO 8601, UTC)."""

    reason: str
    approved_by: str
    until: str


class Finding(Struct, frozen=True, kw_only=True):
    """One finding.

    ``path`` is relative to the argument that was checked, with ``/``; ``line`` is a true 1-based
    line of that file, or None where the finding is about the whole of it. ``found`` and
    ``expected`` are JSON values; ``source`` names the document and section of the rule. A finding
    with a ``waiver`` is told all the same, and fails nothing but the official verdict: the
    official checker knows of no waivers.
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
        """Whether somebody must act: an error that is not waived."""
        return self.severity is Severity.ERROR and self.waiver is None

    @property
    def sort_key(self) -> tuple[str, int, str, str]:
        """Findings are shown by file, then line, then code."""
        return (self.path, self.line or 0, self.code, self.message)

    def fails(self, basis: Basis) -> bool:
        """Whether this finding fails the verdict of ``basis`` (OFFICIAL or RULES)."""
        standing = self.is_error if basis is Basis.RULES else self.severity is Severity.ERROR
        return standing and self.basis in (Basis.BOTH, basis)


class Pending(Finding, frozen=True):
    """A finding that a log which goes on may yet mend: of what is absent, or the last so far."""


def verdicts_of(findings: Iterable[Finding]) -> Verdicts:
    """The verdicts that follow from findings alone."""
    listed = list(findings)
    return Verdicts(
        official=Verdict.of(any(f.fails(Basis.OFFICIAL) for f in listed)),
        rules=Verdict.of(any(f.fails(Basis.RULES) for f in listed)),
    )


def without_official(finding: Finding, hint: str) -> Finding:
    """The finding where the official checker accepts what it is about; ``hint`` says why."""
    if not finding.fails(Basis.OFFICIAL):
        return finding
    if finding.basis is Basis.BOTH:
        return replace(finding, basis=Basis.RULES)
    return replace(finding, severity=Severity.WARNING, hint=finding.hint or hint)
