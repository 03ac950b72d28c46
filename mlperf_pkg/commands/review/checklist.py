"""A checklist of each submission for its reviewers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from mlperf_pkg.commands.review.assignments import CHAIRS, assignments
from mlperf_pkg.commands.review.facts import FACTS
from mlperf_pkg.commands.review.hyperparameters import UNPUBLISHED
from mlperf_pkg.commands.review.model import Round, Section, Table
from mlperf_pkg.commands.review.subject import Subject, listed, short, subjects
from mlperf_pkg.findings import Finding, Severity, Verdict
from mlperf_pkg.results.wording import counted, severity
from mlperf_pkg.rulebook.load import codes
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.run.evaluations import KEYS
from mlperf_pkg.run.readers import is_hyperparameter

MOST_ITEMS = 25  # of one submission
_LONGEST = 200  # characters of a finding
_RULES, _EVALUATIONS, _HYPERPARAMETERS = "Rules", "Evaluations", "Hyperparameters"
_RUNS, _FILES = "Runs", "Files"
_NOT_CONVERGED = "RUN130"
_IN_FACTS = (UNPUBLISHED, "CODE100")
_TEXT = (
    "Points to look at in each submission: the errors and warnings of the check, folded by code,"
    " and questions that a program cannot answer. The list does not cover all rules.",
)
_TOPICS: Mapping[str, tuple[str, ...]] = {
    "Code": ("CODE",),
    "Statuses": ("SET140", "SYS103", "SYS104"),
    "Software": (),
    "Previews": ("SET152",),
    "Resubmissions": ("SET15", "SET16"),
    _HYPERPARAMETERS: ("SET122",),
    "Convergence": ("RCP", "SET118", "SET119", "SET120"),
    _RULES: ("",),
    _EVALUATIONS: ("SET12",),
    _RUNS: ("RUN13", "RUN15", "ROUND", "SET10", "SET112", "SET113", "SET121", "SET130"),
    "Seeds": ("SEED",),
    "Scores": ("SET163",),
    "Power": ("POW",),
    "Descriptions": ("SYS", "SET11"),
    _FILES: ("TREE", "REPO", "LOG", "CHECK", "SET105", "SET106"),
}
"""The topics in order, with the prefixes of their codes; the longest prefix counts."""

_NOTES = (_NOT_CONVERGED, "SET113", "SET123", "SET124", "SET140", "SET15", "SET160", "SET163")
"""Prefixes of the notes that are listed; those of SET162 are listed as outliers."""


class Item(Struct, frozen=True):
    """A point to look at, urgent if ``urgent`` is small.

    Of more than ``MOST_ITEMS``, the least urgent are left out.
    """

    topic: str
    text: str
    urgent: int


def section(reviewed: Round) -> Section:
    """Return a checklist of each submission, with the names of its reviewers."""
    lists = [_table(subject, _reviewers(reviewed, subject.name)) for subject in subjects(reviewed)]
    total = sum(len(table.rows) for table in lists)
    summary = f"{counted(total, 'item')} for {counted(len(lists), 'submission')}"
    return Section("checklist", "Checklist", _TEXT, tuple(lists), (summary,))


def _reviewers(reviewed: Round, folder: str) -> str:
    """Return the reviewers of a submission: ``A, B (by results); C (by scale)``."""
    by_rank: dict[str, list[str]] = {}
    for item in assignments(reviewed):
        if folder in item.folders:
            by_rank.setdefault(item.by, []).append(item.reviewer or CHAIRS)
    ranks = (f"{', '.join(sorted({*names}))} (by {by})" for by, names in by_rank.items())
    return "; ".join(ranks) or "nobody"


def _table(subject: Subject, reviewers: str) -> Table:
    return Table(
        subject.name,
        f"{subject.name}, reviewed by {reviewers}",
        ("Topic", "Look at"),
        tuple((item.topic, item.text) for item in items(subject)),
        note=_note(subject),
        checks=True,
    )


def _note(subject: Subject) -> str:
    verdicts = [item.row.verdict for item in subject.sets]
    official = sum(verdict.official is Verdict.FAIL for verdict in verdicts)
    rules = sum(verdict.rules is Verdict.FAIL for verdict in verdicts)
    benchmarks = listed((item.row.benchmark for item in subject.sets), MOST_ITEMS)
    return (
        f"{counted(len(subject.sets), 'result set')} of {counted(len(subject.systems), 'system')}"
        f" ({benchmarks or 'none'}); {official} fail officially, {rules} by the rules."
    )


def items(subject: Subject) -> list[Item]:
    """Return the points to look at in a submission, by topic."""
    points = [Item(topic, text, 1) for topic, facts in FACTS.items() for text in facts(subject)]
    points += _of_findings(subject)
    points.sort(key=lambda item: item.urgent)
    kept, rest = points[: MOST_ITEMS - 1], points[MOST_ITEMS - 1 :]
    if len(rest) > 1:
        last = f"{len(rest)} more kinds of findings; mlperf-pkg check {subject.name} shows them"
        rest = [Item(_FILES, last, 3)]
    order = list(_TOPICS)
    return sorted([*kept, *rest], key=lambda item: (order.index(item.topic), item.urgent))


# ---- findings -----------------------------------------------------------------------------


def _of_findings(subject: Subject) -> Iterator[Item]:
    """Yield the findings of each code as one item."""
    rules = _rules(subject)
    stopped = {f.about for f in subject.findings if f.code == _NOT_CONVERGED}
    by_code: dict[str, list[Finding]] = {}
    for finding in subject.findings:
        rule = rules.get(finding.code)
        is_repeated = rule and rule.reaches and finding.about in stopped and not finding.is_error
        is_note = finding.severity is Severity.NOTE and not finding.code.startswith(_NOTES)
        if not (is_repeated or is_note or finding.code in _IN_FACTS):
            by_code.setdefault(finding.code, []).append(finding)
    ranks = list(Severity)
    for code, findings in by_code.items():
        worst = min(findings, key=lambda finding: ranks.index(finding.severity))
        urgent = {Severity.ERROR: 0, Severity.WARNING: 2}.get(worst.severity, 3)
        yield Item(_topic(code, rules.get(code)), _words(worst, findings), urgent)


def _words(worst: Finding, findings: Sequence[Finding]) -> str:
    """Return ``error RCP101 in 2 result sets (a, b): a title``; the text of a single finding."""
    names = list(dict.fromkeys(short(finding.about) for finding in findings))
    title = codes()[worst.code].title if worst.code in codes() else worst.text
    text = worst.text if len(names) == 1 else title
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    where = names[0] if len(names) == 1 else f"{len(names)} places ({listed(names)})"
    return f"{severity(worst)} {worst.code}, {where}: {text}"


def _topic(code: str, rule: Rule | None) -> str:
    if rule is not None:
        if rule.reaches:
            return _RUNS
        if rule.key in KEYS:
            return _EVALUATIONS
        return _HYPERPARAMETERS if is_hyperparameter(rule.key) else _RULES
    beginnings = {prefix: topic for topic, prefixes in _TOPICS.items() for prefix in prefixes}
    return beginnings[max(filter(code.startswith, beginnings), key=len)]


def _rules(subject: Subject) -> dict[str, Rule]:
    """Return the rules of the submission's benchmarks by code."""
    benchmarks = {item.row.benchmark: item.context.rules for item in subject.sets}.values()
    covered = [benchmark for benchmark in benchmarks if benchmark]
    sections = [rules for benchmark in covered for rules in benchmark.sections.values()]
    variants = [choices for benchmark in covered for choices in benchmark.variants.values()]
    sections += [rules for choices in variants for rules in choices.values()]
    return {rule.code: rule for section in sections for rules in section.values() for rule in rules}
