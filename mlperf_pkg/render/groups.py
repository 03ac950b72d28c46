"""Findings grouped by code, over all that they are about, and by submitter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import (
    Finding,
    Severity,
    Verdict,
    Verdicts,
    folded,
    verdicts_of,
    without_pass,
)
from mlperf_pkg.render import findings as words
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.submission.membership import submitters

_MOST_NAMED = 6  # result sets, or submitters, of one code
_SEVERITIES = tuple(Severity)


class CodeGroup(Struct, frozen=True):
    """All findings of one code, severity and basis; those of each waiver apart."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The first of them."""
        return self.findings[0]

    @property
    def text(self) -> str:
        """The message with the values of all findings; of several messages the first."""
        merged, *others = folded(self.findings)
        if not others:
            return merged.text
        return f"{merged.text} (and {wording.counted(len(others), 'similar message')})"

    @property
    def subjects(self) -> tuple[str, ...]:
        """The paths, or ids of sets of raw logs, of what they are about."""
        return tuple(dict.fromkeys(finding.about for finding in self.findings))


class SubmitterRow(Struct, frozen=True):
    """A submitter in a table: its verdicts, and its numbers of findings."""

    name: str
    result_sets: int
    verdicts: Verdicts
    errors: int
    warnings: int
    rcp_failures: int


def by_code(findings: Iterable[Finding]) -> list[CodeGroup]:
    """Return the findings by code, the most important first, waived ones last."""
    groups: dict[tuple[str, int, str, str], list[Finding]] = {}
    for finding in findings:
        rank = _SEVERITIES.index(finding.severity)
        waived = "\n".join(words.remarks(finding)) if finding.waiver else ""
        key = (waived, rank, finding.code, finding.basis.value)
        groups.setdefault(key, []).append(finding)
    return [CodeGroup(tuple(groups[key])) for key in sorted(groups)]


class Submitters:
    """The submitters of a report: which of them a path belongs to; ``number`` is how many."""

    def __init__(self, report: Report) -> None:
        """Take the submissions from the paths of result sets, and the submitters of raw logs."""
        self._report = report
        named = [row for row in report.result_sets if row.submitter is not None]
        submitted = [row for row in named if "/results/" in f"/{row.path}"]
        by_name = submitters(row.submitter or "" for row in named)
        names = {spelling: name for name, alike in by_name.items() for spelling in alike}
        self.number = len(submitters(row.submitter for row in report.results if row.submitter))
        self._names = {root(row.path): names[row.submitter or ""] for row in submitted}
        self._by_set = {row.id: names[row.submitter or ""] for row in named}

    @property
    def roots(self) -> Set[str]:
        """The paths of the submissions."""
        return self._names.keys()

    def of(self, finding: Finding) -> str | None:
        """Return the submitter of what a finding is about; None outside submissions."""
        if finding.set in self._by_set:
            return self._by_set[finding.set]
        parts = finding.path.split("/")
        prefixes = ("/".join(parts[:n]) for n in range(len(parts), -1, -1))
        return next((self._names[prefix] for prefix in prefixes if prefix in self._names), None)

    def rows(self) -> Iterator[SubmitterRow]:
        """Yield a row for each submitter, by name, and one for what is outside of them."""
        findings: dict[str | None, list[Finding]] = {}
        for finding in self._report.findings:
            findings.setdefault(self.of(finding), []).append(finding)
        sets: dict[str, list[ResultSetRow]] = {}
        for row in self._report.result_sets:
            if row.id in self._by_set:
                sets.setdefault(self._by_set[row.id], []).append(row)
        for name in sorted(sets, key=str.lower):
            yield self._row(name, sets[name], findings.pop(name, []))
        if rest := [finding for group in findings.values() for finding in group]:
            yield self._row("elsewhere", [], rest)

    def _row(
        self, name: str, rows: Sequence[ResultSetRow], findings: Sequence[Finding]
    ) -> SubmitterRow:
        counts = words.counts(findings)
        verdicts = [*(row.verdict for row in rows), verdicts_of(findings).failures]
        return SubmitterRow(
            name=name,
            result_sets=sum(row.runs_found > 0 for row in rows),
            verdicts=self._known(without_pass(Verdicts.worst(verdicts), findings)),
            errors=counts[Severity.ERROR],
            warnings=counts[Severity.WARNING],
            rcp_failures=sum(wording.rcp_state(row) == "fail" for row in rows),
        )

    def _known(self, verdicts: Verdicts) -> Verdicts:
        """Return verdicts; what was not checked in the whole report was not in a part of it."""
        if self._report.verdict.official is Verdict.NOT_CHECKED:
            return replace(verdicts, official=Verdict.NOT_CHECKED)
        return verdicts

    def of_group(self, group: CodeGroup) -> str:
        """Return how many findings of a code each submitter has: ``ACME 3, Dell 1``."""
        counts = Counter(self.of(finding) or "elsewhere" for finding in group.findings)
        return wording.shortened(
            [f"{name} {number}" for name, number in counts.most_common()], _MOST_NAMED
        )


def subjects_in_words(group: CodeGroup) -> str:
    """Return the number of result sets, or files, of a code, and the first of them."""
    return wording.shortened(list(group.subjects), _MOST_NAMED)


def root(path: str) -> str:
    """Return the path of the submission that holds a result set."""
    head, _, _ = f"/{path}".rpartition("/results/")
    return head.removeprefix("/")
