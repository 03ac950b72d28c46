"""The findings of one log, limited to the first few of a kind."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Severity, Verdicts, verdicts_of

MAX_ALIKE = 10


class KeptFindings:
    """Keeps the first ``MAX_ALIKE`` findings of a kind: more do not change the verdict."""

    def __init__(self) -> None:
        """Start without a finding."""
        self._kept: list[Finding] = []
        self._alike: Counter[tuple[str, Severity, Basis]] = Counter()

    def add(self, finding: Finding) -> None:
        """Keep a finding, or only count it."""
        kind = (finding.code, finding.severity, finding.basis)
        self._alike[kind] += 1
        if self._alike[kind] <= MAX_ALIKE:
            self._kept.append(finding)

    @property
    def verdicts(self) -> Verdicts:
        """The verdicts that follow from these findings."""
        return verdicts_of(self._kept)

    def in_order(self) -> tuple[Finding, ...]:
        """Return the findings by line; the last one of a kind gives the number of those omitted."""
        last = {(f.code, f.severity, f.basis): index for index, f in enumerate(self._kept)}
        for kind, index in last.items():
            omitted = self._alike[kind] - MAX_ALIKE
            if omitted > 0:
                finding = self._kept[index]
                message = f"{finding.message} (and {omitted} more like this)"
                self._kept[index] = replace(finding, message=message)
        return tuple(sorted(self._kept, key=lambda finding: finding.sort_key))
