"""What a view shows of a report, and findings, verdicts and counts in words."""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from mlperf_pkg.findings import MAX_LINES, Basis, Finding, Occurrence, Severity, Verdict, Verdicts
from mlperf_pkg.results import wording
from mlperf_pkg.results.amounts import Subjects
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.rulebook.rounds import has_ruleset

BASES = (Basis.OFFICIAL, Basis.RULES)  # of the two verdicts
WAIVERS = "WAIVE"  # findings about the configuration, whose path starts from the current folder
_MOST_FILES = 3  # files of a finding that are named one by one
_MOST_LINES = 3
_SEVERITIES = tuple(Severity)
_BASES = tuple(Basis)


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
    Of several submitters it shows the most important kinds of findings, unless ``all_kinds``.
    """

    width: int = 80
    color: bool = False
    wraps: bool = False
    verbose: bool = False
    show: Show = Show.WARNINGS
    all_kinds: bool = False
    quiet: bool = False
    statistics: bool = False
    checkout: Checkout = field(default_factory=Checkout)


# ---- findings ---------------------------------------------------------------------------


def shown(findings: Iterable[Finding], view: View) -> list[Finding]:
    """Return the findings of the severities that the view shows, and waived findings."""
    depth = list(Show).index(view.show) + 1
    severities = _SEVERITIES[:depth]
    return [finding for finding in findings if finding.waiver or finding.severity in severities]


def followers(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return what follows from the causes among findings, by the id of the first cause.

    What follows from a cause that is waived, or not among them, follows from none. A waived finding
    stands for itself.
    """
    unwaived = [finding for finding in findings if finding.waiver is None]
    by_id = {finding.id: finding for finding in unwaived}
    following: dict[str, list[Finding]] = {}
    for finding in unwaived:
        cause = finding
        while cause.cause in by_id:
            cause = by_id[cause.cause]
        if cause is not finding:
            following.setdefault(cause.id, []).append(finding)
    return following


def importance(finding: Finding) -> tuple[int, int]:
    """Return a sort key: errors first, both verdicts before one, waived findings last."""
    basis = _BASES.index(finding.basis)
    if finding.waiver:
        return len(_SEVERITIES), basis
    return _SEVERITIES.index(finding.severity), basis


def counts(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Count the findings of each severity, without waived ones."""
    by_severity = Counter(finding.severity for finding in findings if not finding.waiver)
    return {severity: by_severity[severity] for severity in Severity}


def location(finding: Finding) -> str:
    """Return the only file with its line, or what several files belong to.

    Of several files in the folder that was checked, which has no name of its own, it is the first.
    A finding on a whole set of raw logs is at the id, as their folder may hold several sets. The
    folder that was checked is named in words.
    """
    is_of_raw_set = finding.set and finding.set == finding.subject and not finding.runs
    has_several_files = len(finding.occurrences) > 1
    if is_of_raw_set or (has_several_files and not _unnamed(finding)):
        return "the submission" if finding.about == "." else finding.about
    if finding.path == ".":
        return "the submission" if finding.subject else "this check"
    if finding.line is None:
        return finding.path
    return f"{finding.path}:{finding.line}"


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
    names = [_place_below(place, f"{finding.about}/") for place in finding.occurrences]
    if finding.runs:
        runs = f"{finding.runs} of {wording.counted(finding.of_runs or 0, 'run')}"
        if len(names) == 1:
            lines = _more_lines(finding.occurrences[0])
            return f"{runs}, {lines}" if lines else runs
        which = f": {', '.join(names)}" if len(names) <= _MOST_FILES else f"; first {names[0]}"
        return runs if _unnamed(finding) else f"{runs}{which}"
    if len(names) == 1:
        return _more_lines(finding.occurrences[0])
    if _unnamed(finding):
        others = wording.shortened(names[1:], _MOST_FILES)
        if finding.differs_by_place:
            return f"in {others}"
        return f"the same for {others}"
    return f"{len(names)} places: {wording.shortened(names, _MOST_FILES)}"


def _place_below(place: Occurrence, folder: str) -> str:
    path = place.path.removeprefix(folder)
    return f"{path}:{place.lines[0]}" if place.lines else path


def _unnamed(finding: Finding) -> bool:
    """Return whether the files of a finding have nothing in common that has a name."""
    return finding.subject is None or (finding.subject == "." and not finding.runs)


def _more_lines(place: Occurrence) -> str:
    """Return the lines after the first, or their number, which may be larger than what is kept."""
    others = len(place.lines) - 1
    if len(place.lines) >= MAX_LINES:
        others = place.count - 1
    if others <= 0:
        return ""
    if others > _MOST_LINES:
        return f"the same on {others} other lines"
    noun = "line" if others == 1 else "lines"
    return f"the same on {noun} {', '.join(map(str, place.lines[1:]))}"


# ---- verdicts, counts and titles --------------------------------------------------------

NOT_DESCRIBED = "SET117"
"""The code of the finding that a system description was not checked."""

_MOST_SYSTEMS = 4  # systems found by the same evidence
_TO_JUDGE_SETS = "to judge the result sets, check a folder of logs without --partial"

NO_RESULT_SET = "there is no result set, as no log names its benchmark"


def system_titles(report: Report) -> Callable[[ResultSetRow], str]:
    """Return the name of the system of a result set, with details that make it unique.

    It is the id of the set where other sets of the benchmark have the same details.
    """
    owners = {row.submitter for row in report.result_sets}

    def title(row: ResultSetRow) -> str:
        details = [row.division or "no division"]
        if row.submitter is None and row.path != ".":
            details.append(f"in {row.path}")
        if report.round is None:
            details.append(f"round {row.round}")
        system = f"{row.system or 'unnamed system'} ({', '.join(details)})"
        if row.submitter and len(owners) > 1:
            return f"{row.submitter}: {system}"
        return system

    shared = Counter((title(row), wording.benchmark(row)) for row in report.result_sets)

    def unique_title(row: ResultSetRow) -> str:
        is_shared = shared[title(row), wording.benchmark(row)] > 1
        return row.id if is_shared else title(row)

    return unique_title


def verdict_in_words(report: Report, basis: Basis) -> str:
    """Return what follows a verdict (OFFICIAL or RULES): its findings, and what was not checked.

    Such as ``12 warnings in 8 of 184 result sets``; it may be empty.
    """
    if _is_taken_back(report, basis):
        return _difference(report)
    if verdict_on(report, basis) is Verdict.NOT_CHECKED:
        return f"as {_reason(report, basis)}"
    parts = [*_amounts(report, basis), *_unchecked(report, basis)]
    if basis is Basis.RULES:
        return "; ".join(parts)
    return _official_extent(report, parts)


def verdict_parts(report: Report, basis: Basis) -> tuple[str, Verdict, str]:
    """Return a verdict as a label, the verdict, and what follows, with what separates it.

    Where the installed mlperf-logging differs from the verified one in all that was checked, the
    label names the verified one, whose verdict it is.
    """
    words = verdict_in_words(report, basis)
    if report.drift and _is_taken_back(report, basis):
        return f"{basis} by {report.drift.verified}", report.drift.official, f"; {words}"
    return str(basis), verdict_on(report, basis), separated(words, ", ")


def separated(words: str, separator: str) -> str:
    """Return what follows a verdict with what separates it, for words in brackets a space."""
    if words.startswith("("):
        return f" {words}"
    return f"{separator}{words}" if words else ""


def verdict_line(report: Report, basis: Basis) -> str:
    """Return ``official: pass (mlperf-logging 4.1.68)``."""
    label, verdict, words = verdict_parts(report, basis)
    return f"{label}: {wording.VERDICTS[verdict]}{words}"


def _is_taken_back(report: Report, basis: Basis) -> bool:
    """Return whether the official verdict is not checked because of what differs."""
    is_unknown = report.verdict.official is Verdict.NOT_CHECKED
    return basis is Basis.OFFICIAL and report.drift is not None and is_unknown


def _difference(report: Report) -> str:
    """Return ``the installed version 4.2.0 differs in ...``; empty if it does not."""
    if report.drift is None:
        return ""
    version = report.drift.installed.rpartition(" ")[2]
    return f"the installed version {version} differs in {'; '.join(report.drift.differs)}"


class _Judged(Protocol):
    """Something with verdicts: a report or one of its rows."""

    @property
    def verdict(self) -> Verdicts: ...


def verdict_on(judged: _Judged, basis: Basis) -> Verdict:
    """Return the verdict of a basis (OFFICIAL or RULES) on a report or one of its rows."""
    if basis is Basis.OFFICIAL:
        return judged.verdict.official
    return judged.verdict.rules


def _unchecked(report: Report, basis: Basis) -> Iterator[str]:
    """Yield how many result sets were not checked; how many logs if there are no sets."""
    rows = report.result_sets or report.runs
    unchecked = [row for row in rows if verdict_on(row, basis) is Verdict.NOT_CHECKED]
    if unchecked:
        noun = "result set" if report.result_sets else "log"
        yield f"{len(unchecked)} of {wording.counted(len(rows), noun)} not checked"


def _official_extent(report: Report, parts: Sequence[str]) -> str:
    """Return what the official checker says, and what its verdict is about."""
    fails = report.verdict.official is Verdict.FAIL
    details = list(parts)
    waived = [f for f in report.findings if f.waiver and f.fails(Basis.OFFICIAL)]
    if waived and fails:
        details.append(
            f"{wording.counted(len(waived), 'finding')} waived, but the official"
            " checker ignores waivers"
        )
    logs_only = {row.judged for row in report.result_sets} == {False}
    extent = f"({report.tool['reference']}{', logs only' * logs_only})"
    if details:
        extent = f"{extent}, {'; '.join(details)}"
    if any(finding.code == NOT_DESCRIBED for finding in report.findings):
        extent += "; the system description was not checked"
    if report.drift:
        extent = f"{extent}; {_difference(report)}"
    return extent


def _reason(report: Report, basis: Basis) -> str:
    """Return why nothing was checked."""
    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    if any(finding.code.startswith("PACK") for finding in errors):
        return "it is not known whether these files are the ones that were packed"
    if not (report.result_sets or report.runs):
        if report.round is None:
            return report.round_reason
        if all(verdict_on(row, basis) is not Verdict.NOT_CHECKED for row in report.systems):
            return "there is no result set"
    if basis is Basis.RULES:
        return "mlperf-pkg has no rules for the benchmark"
    if report.round is None:
        why = "has no rules for these rounds, or does not check these benchmarks"
    elif has_ruleset(report.usage, report.round):
        why = f"does not check benchmarks that are not in round {report.round}"
    else:
        why = f"has no rules for round {report.round}"
    return f"{report.tool['reference']} {why}"


def _amounts(report: Report, basis: Basis) -> Iterator[str]:
    """Yield the numbers of errors and warnings of a basis, and of the things that have them."""
    by_severity: dict[Severity, list[Finding]] = {}
    for finding in report.findings:
        if not finding.waiver and finding.basis in (Basis.BOTH, basis):
            by_severity.setdefault(finding.severity, []).append(finding)
    subjects = Subjects(report)
    for severity in (Severity.ERROR, Severity.WARNING):
        if severity in by_severity:
            yield ", ".join(subjects.in_words(by_severity[severity], severity.value))


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
    systems: dict[str, dict[str, None]] = {}
    for row in report.result_sets:
        if row.system_by:
            systems.setdefault(row.system_by, {})[row.system or ""] = None
    for evidence, names in systems.items():
        noun = "system" if len(names) == 1 else "systems"
        yield f"{noun} {wording.shortened(list(names), _MOST_SYSTEMS)}: identified by {evidence}"
    hints: dict[str, None] = {}
    for finding in report.findings:
        if finding.code == NOT_DESCRIBED:
            hints[finding.hint or ""] = None
    for hint in hints:
        yield f"the system description was not checked; {hint}"
    unjudged = [row for row in report.result_sets if not row.judged]
    if unjudged:
        number = len(report.result_sets)
        which = "" if len(unjudged) == number else f" in {len(unjudged)} of {number} result sets"
        yield f"only the logs were judged{which}; {_TO_JUDGE_SETS}"


def round_in_words(report: Report) -> str:
    """Return the round and why it was chosen."""
    if not report.round:
        return report.round_reason
    return f"round {report.round}: {report.round_reason}"
