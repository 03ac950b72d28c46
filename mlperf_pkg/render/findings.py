"""What a view shows of a report, and findings, verdicts and counts in words."""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from msgspec import Struct, field

from mlperf_pkg.findings import MAX_LINES, Basis, Finding, Occurrence, Severity, Verdict
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.rulebook.rounds import has_ruleset

BASES = (Basis.OFFICIAL, Basis.RULES)  # of the two verdicts
WAIVERS = "WAIVE"  # findings about the configuration, whose path starts from the current folder
_MOST_FILES = 3  # files of a finding that are named one by one
_MOST_LINES = 3


# ---- the view ---------------------------------------------------------------------------


class Show(StrEnum):
    """The findings that a view shows: of this severity and above; ALL lists them one by one."""

    ERRORS = "errors"
    WARNINGS = "warnings"
    NOTES = "notes"
    ALL = "all"


class Checkout(Struct, frozen=True):
    """How paths of a report map into a repository, for programs that annotate its files.

    The paths of a report start from ``base``, that of its configuration from ``here``. The methods
    return paths from ``root``. All three are absolute.
    """

    root: str = "/"
    here: str = "/"
    base: str = "/"

    def path(self, label: str) -> str:
        """Return a path of the report, from the root of the repository."""
        return posixpath.relpath(posixpath.join(self.base, label), self.root)

    def path_of(self, finding: Finding, path: str | None = None) -> str:
        """Return a path of a finding, its first by default, from the root of the repository."""
        base = self.here if finding.code.startswith(WAIVERS) else self.base
        return posixpath.relpath(posixpath.join(base, path or finding.path), self.root)


class View(Struct, frozen=True):
    """``width`` in columns; ``color`` for a terminal; ``verbose`` shows all runs and result sets.

    On a terminal, every line ``wraps``; in a pipe or a file, a finding is one line.
    ``quiet`` shows the verdicts alone; ``statistics`` shows a table of codes instead of findings.
    """

    width: int = 80
    color: bool = False
    wraps: bool = False
    verbose: bool = False
    show: Show = Show.WARNINGS
    quiet: bool = False
    statistics: bool = False
    checkout: Checkout = field(default_factory=Checkout)


# ---- findings ---------------------------------------------------------------------------


def shown(findings: Iterable[Finding], view: View) -> list[Finding]:
    """Return the findings of the severities that the view shows, and waived findings."""
    severities = tuple(Severity)[: list(Show).index(view.show) + 1]
    return [finding for finding in findings if finding.waiver or finding.severity in severities]


def importance(finding: Finding) -> tuple[int, int]:
    """Return a sort key: errors first, both verdicts before one, waived findings last."""
    severity = len(Severity) if finding.waiver else tuple(Severity).index(finding.severity)
    return severity, tuple(Basis).index(finding.basis)


def counts(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Count the findings of each severity, without waived ones."""
    by_severity = Counter(finding.severity for finding in findings if not finding.waiver)
    return {severity: by_severity[severity] for severity in Severity}


def location(finding: Finding) -> str:
    """Return the only file with its line, or what several files belong to.

    Of several files in the folder that was checked, which has no name of its own, it is the first.
    A finding on a whole set of raw logs is at the id, as their folder may hold several sets.
    """
    of_raw_set = finding.set and finding.set == finding.subject and not finding.runs
    if of_raw_set or (len(finding.occurrences) > 1 and not _unnamed(finding)):
        return finding.about
    return finding.path if finding.line is None else f"{finding.path}:{finding.line}"


def sentence(finding: Finding) -> str:
    """Return the message, and in brackets at which places it applies."""
    extent = _extent(finding)
    return f"{finding.text} ({extent})" if extent else finding.text


def label(finding: Finding) -> str:
    """Return the code, and the basis unless both verdicts depend on the finding."""
    return finding.code if finding.basis is Basis.BOTH else f"{finding.code} [{finding.basis}]"


def remarks(finding: Finding) -> list[str]:
    """Return the lines below the message: a hint or the waiver."""
    waiver = finding.waiver
    if waiver:
        return [f"waived by {waiver.approved_by} until {waiver.until}: {waiver.reason}"]
    return [f"hint: {finding.hint}"] if finding.hint else []


def _extent(finding: Finding) -> str:
    below = f"{finding.about}/"
    names = [
        place.path.removeprefix(below) + (f":{place.lines[0]}" if place.lines else "")
        for place in finding.occurrences
    ]
    runs = f"{finding.runs} of {wording.counted(finding.of_runs or 0, 'run')}" * bool(finding.runs)
    if len(names) == 1:
        more = _more_lines(finding.occurrences[0])
        return runs + (more if runs else more.removeprefix(", "))
    if _unnamed(finding):
        rest = wording.shortened(names[1:], _MOST_FILES)
        return runs or f"and {wording.counted(len(names) - 1, 'other file')}: {rest}"
    if runs:
        return f"{runs}; first {names[0]}"
    return f"{len(names)} files: {wording.shortened(names, _MOST_FILES)}"


def _unnamed(finding: Finding) -> bool:
    """Return whether the files of a finding have nothing in common that has a name."""
    return finding.subject in (None, ".")


def _more_lines(place: Occurrence) -> str:
    """Return the lines after the first, or their number, which may be larger than what is kept."""
    others = len(place.lines) - 1 if len(place.lines) < MAX_LINES else place.count - 1
    if others <= 0:
        return ""
    if others <= _MOST_LINES:
        lines = ", ".join(map(str, place.lines[1:]))
        return f", also on line{'' if others == 1 else 's'} {lines}"
    return f", and {others} more lines"


# ---- verdicts, counts and titles --------------------------------------------------------

NOT_DESCRIBED = "SET117"
"""The code of the finding that a system description was not checked."""

_MOST_SYSTEMS = 4  # systems found by the same evidence
_TO_JUDGE_SETS = "to judge sets, check a folder without --partial"

NO_RESULT_SET = "no result set: no log names its benchmark"


def system_titles(report: Report) -> Callable[[ResultSetRow], str]:
    """Return the name of the system of a result set, with details that make it unique.

    It is the id of the set where other sets of the benchmark have the same details.
    """
    differ = len({row.submitter for row in report.result_sets}) > 1

    def title(row: ResultSetRow) -> str:
        owner = f"{row.submitter}: " if row.submitter and differ else ""
        system = row.system or "unnamed system"
        details = [row.division or "no division"]
        if row.submitter is None and row.path != ".":
            details.append(f"in {row.path}")
        if report.round is None:
            details.append(f"round {row.round}")
        return f"{owner}{system} ({', '.join(details)})"

    named = Counter((title(row), wording.benchmark(row)) for row in report.result_sets)
    return lambda row: row.id if named[title(row), wording.benchmark(row)] > 1 else title(row)


def verdict_in_words(report: Report, basis: Basis) -> str:
    """Return what follows a verdict (OFFICIAL or RULES): its findings, and what was not checked.

    Such as ``12 warnings in 8 of 184 result sets``; it may be empty.
    """
    verdict: Verdict = getattr(report.verdict, basis)
    if verdict is Verdict.NOT_CHECKED:
        return _reason(report, basis)
    parts = list(_amounts(report, basis))
    rows = report.result_sets or report.runs
    unchecked = sum(getattr(row.verdict, basis) is Verdict.NOT_CHECKED for row in rows)
    if unchecked:
        noun = "result set" if report.result_sets else "log"
        parts.append(f"{unchecked} of {wording.counted(len(rows), noun)} not checked")
    if basis is Basis.RULES:
        return ", ".join(parts)
    waived = sum(f.waiver is not None and f.fails(Basis.OFFICIAL) for f in report.findings)
    if waived and verdict is Verdict.FAIL:
        parts.append(f"{waived} waived, which the official checker ignores")
    if any(f.code == NOT_DESCRIBED for f in report.findings):
        parts.append("description not checked")
    outcome = "rejects" if verdict is Verdict.FAIL else "accepts"
    what = "the logs" if {row.judged for row in report.result_sets} == {False} else "this"
    subject = f"{report.tool['reference']} {outcome} {what}"
    return ": ".join(filter(None, (subject, ", ".join(parts))))


def verdict_sentence(report: Report, basis: Basis) -> str:
    """Return a verdict and what follows it: ``pass, 12 warnings in 8 of 184 result sets``."""
    word = wording.VERDICTS[getattr(report.verdict, basis)]
    return ", ".join(part for part in (word, verdict_in_words(report, basis)) if part)


def _reason(report: Report, basis: Basis) -> str:
    """Return why nothing was checked."""
    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    if any(finding.code.startswith("PACK") for finding in errors):
        return "not confirmed as the files that were packed"
    if not (report.result_sets or report.runs):
        if report.round is None:
            return report.round_reason
        if all(getattr(row.verdict, basis) is not Verdict.NOT_CHECKED for row in report.systems):
            return "there is no result set"
    if basis is not Basis.OFFICIAL:
        return "the rulebook does not have the benchmark"
    why = f"skips what is not a benchmark of round {report.round}"
    if report.round is None:
        why = "has no rules for these rounds, or skips these benchmarks"
    elif not has_ruleset(report.usage, report.round):
        why = f"has no rules for round {report.round}"
    return f"{report.tool['reference']} {why}"


def _amounts(report: Report, basis: Basis) -> Iterator[str]:
    """Yield the numbers of errors and warnings of a basis, and the result sets that have them."""
    of_basis = [f for f in report.findings if not f.waiver and f.basis in (Basis.BOTH, basis)]
    for severity in (Severity.ERROR, Severity.WARNING):
        findings = [finding for finding in of_basis if finding.severity is severity]
        if findings:
            in_sets = len({f.set for f in findings} & {row.id for row in report.results})
            total = wording.counted(len(report.results), "result set")
            where = f" in {in_sets} of {total}" if in_sets else ""
            yield f"{wording.counted(len(findings), severity.value)}{where}"


def counts_in_words(report: Report) -> str:
    """Return ``2 errors, 1 warning, 0 notes``, and how many were waived or hidden."""
    numbers = counts(report.findings)
    parts = [wording.counted(numbers[severity], severity.value) for severity in Severity]
    waived = sum(finding.waiver is not None for finding in report.findings)
    if waived:
        parts.append(f"{waived} waived")
    if report.hidden:
        parts.append(f"{wording.counted(report.hidden, 'finding')} hidden by --select or --ignore")
    return ", ".join(parts)


def sets_in_words(report: Report) -> Iterator[str]:
    """Yield sentences on how systems of raw logs were found, and on what was not judged."""
    pairs = ((row.system_by, row.system or "") for row in report.result_sets if row.system_by)
    for evidence, names in by_key(dict.fromkeys(pairs)).items():
        systems = wording.shortened(names, _MOST_SYSTEMS)
        yield f"{'systems' if len(names) > 1 else 'system'} found by {evidence}: {systems}"
    hints = (finding.hint or "" for finding in report.findings if finding.code == NOT_DESCRIBED)
    yield from dict.fromkeys(f"description not checked: {hint}" for hint in hints)
    unjudged = sum(not row.judged for row in report.result_sets)
    if unjudged:
        number = len(report.result_sets)
        which = f" in {unjudged} of {number} result sets" if unjudged < number else ""
        yield f"only the logs were judged{which}: {_TO_JUDGE_SETS}"


def round_in_words(report: Report) -> str:
    """Return the round and why it was chosen."""
    prefix = f"round {report.round}: " if report.round else ""
    return f"{prefix}{report.round_reason}"
