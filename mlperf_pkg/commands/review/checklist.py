"""A checklist of each submission for its reviewers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from statistics import median
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import AVAILABLE, PREVIEW, SystemFile, category
from mlperf_pkg.commands.review.examined import Examined
from mlperf_pkg.commands.review.round import ReviewedRound, ReviewSection, column
from mlperf_pkg.commands.review.submitters import (
    NOTED,
    assignments,
    by_folder,
    failing,
    finding_line,
    reviewers,
)
from mlperf_pkg.findings import Finding, Severity, word
from mlperf_pkg.infra.text import letters
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.render.table import by_key, table_of
from mlperf_pkg.render.text import by_code
from mlperf_pkg.results.report import ResultSetRow, description_path
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.model import is_round_name, version_of
from mlperf_pkg.submission.submitters import is_same_submitter

MOST_ITEMS = 25  # of one submission
_FINDINGS = "Findings"
_IN_FACTS = ("CODE100",)
_TEXT = (
    "These are the points to look at in each submission. Some are questions that a program cannot"
    " answer; the others are errors, warnings and notes, with one line for each code. The list"
    " does not cover all rules.",
)


class Item(Struct, frozen=True):
    """A point to look at."""

    topic: str
    text: str


_COLUMNS = (column("Topic", "topic"), column("Look at", "text"))


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return a checklist of each submission, with the names of its reviewers."""
    assigned = assignments(reviewed)
    tables = {}
    for subject in subjects(reviewed):
        title = f"{subject.name}, reviewed by {reviewers(assigned, subject.name)}"
        rows = items(subject, reviewed.examined)
        note = _note(subject)
        tables[subject.name] = table_of(_COLUMNS, rows, title=title, note=note)
    total = sum(len(table.rows) for table in tables.values())
    summary = f"{counted(total, 'item')} for {counted(len(tables), 'submission')}"
    return ReviewSection("checklist", "Checklist", _TEXT, tables, (summary,), checks=True)


def _note(subject: Subject) -> str:
    official, rules = failing(item.row for item in subject.sets)
    benchmarks = listed((item.row.benchmark for item in subject.sets), MOST_ITEMS)
    systems = f"{counted(len(subject.systems), 'system')} ({benchmarks or 'none'})"
    failures = f"{official} fail officially, {rules} by the rules"
    return f"{counted(len(subject.sets), 'result set')} of {systems}; {failures}."


def items(subject: Subject, examined: Examined) -> list[Item]:
    """Return the points to look at in a submission: findings, of many the first codes, and facts.

    Errors come first.
    """
    facts = []
    for topic, facts_of in _TOPICS.items():
        facts += [Item(topic, text) for text in facts_of(subject)]
    groups = by_code(filter(_is_looked_at, subject.findings))
    lines = [finding_line(group, examined) for group in groups]
    more = len(lines) + len(facts) - MOST_ITEMS
    if more > 0:
        command = f"'mlperf-pkg check {subject.name}' shows them"
        lines[-more - 1 :] = [f"findings with {more + 1} more codes; {command}"]
    return [Item(_FINDINGS, line) for line in lines] + facts


def _is_looked_at(finding: Finding) -> bool:
    is_note = finding.severity is Severity.NOTE and not finding.code.startswith(NOTED)
    return not is_note and finding.code not in _IN_FACTS


# ---- submissions --------------------------------------------------------------------------

_MOST_NAMES = 3


class Tested(Struct, frozen=True):
    """A result set: its row in the report, and the context in which it was checked."""

    row: ResultSetRow
    context: SetContext

    @property
    def name(self) -> str:
        """The set within its submission: ``dgx/bert``."""
        return short(self.row.path)


class Subject(Struct, frozen=True):
    """A submission with its result sets, and all findings about it.

    ``systems`` are those with results; ``previous`` are the sets of the last round before this one
    in which the submitter is published.
    """

    name: str
    sets: Sequence[Tested]
    systems: Sequence[SystemFile]
    findings: Sequence[Finding]
    previous: Sequence[PublishedSet]


def subjects(reviewed: ReviewedRound) -> Iterator[Subject]:
    """Yield the submissions of a round by name."""
    checked = reviewed.checked
    report = reviewed.report
    tested = map(Tested, report.result_sets, checked.contexts)
    sets = by_folder(tested, attrgetter("row.path"))
    findings = by_folder(report.findings, attrgetter("about"))
    for submission in reviewed.submissions:
        label = submission.place.label
        submitted = sets.get(label, [])
        yield Subject(
            name=submission.name,
            sets=submitted,
            systems=_described(submitted, checked.systems),
            findings=findings.get(label, ()),
            previous=_previous(submitted, _published_by(submission.name, reviewed)),
        )


def _published_by(folder: str, reviewed: ReviewedRound) -> Iterator[PublishedSet]:
    """Yield the sets of earlier rounds of the submitters of a submission."""
    submitters = [names for names in reviewed.entries if names.folder == folder]
    for entry in reviewed.earlier.entries:
        is_own = any(is_same_submitter(entry.submitter_names, names) for names in submitters)
        if is_own and is_round_name(entry.row.round):
            yield entry.row


def _described(submitted: Iterable[Tested], systems: Iterable[SystemFile]) -> list[SystemFile]:
    """Return the descriptions of the systems of these sets, in the order of the sets."""
    by_path = {system.path: system for system in systems}
    paths = dict.fromkeys(description_path(item.row) for item in submitted)
    return [by_path[path] for path in paths if path in by_path]


def _previous(
    submitted: Sequence[Tested], published: Iterable[PublishedSet]
) -> Sequence[PublishedSet]:
    """Return the sets of the last published round before that of the ``submitted`` sets."""
    if not submitted:
        return ()
    round_ = submitted[0].context.round
    by_version: dict[tuple[int, ...], list[PublishedSet]] = {}
    for row in published:
        version = version_of(row.round)
        if row.usage == round_.usage and version < round_.version:
            by_version.setdefault(version, []).append(row)
    if by_version:
        return by_version[max(by_version)]
    return ()


def short(path: str) -> str:
    """Return the path of a set, a description or a log without what all of a submission share."""
    _, kind, rest = path.partition("/results/")
    if kind:
        return rest
    _, kind, rest = path.partition("/systems/")
    if kind:
        return rest.removesuffix(".json")
    return path.rpartition("/")[2]


def listed(names: Iterable[str], most: int = _MOST_NAMES, separator: str = ", ") -> str:
    """Return at most ``most`` different names, and the number of others."""
    different = list(dict.fromkeys(names))
    shown = different[:most]
    rest = len(different) - most
    if rest > 0:
        shown.append(f"{rest} more")
    return separator.join(shown)


def grouped(pairs: Sequence[tuple[str, str]]) -> str:
    """Return values with their systems, the most frequent first: ``1.2 (2 systems), 1.1 (dgx)``.

    ``pairs`` are values and the names of their systems.
    """
    texts = []
    for value, names in sorted(by_key(pairs).items(), key=lambda item: -len(item[1])):
        systems = names[0] if len(names) == 1 else counted(len(names), "system")
        texts.append(f"{value} ({systems})")
    return listed(texts)


# ---- software -----------------------------------------------------------------------------

_VERSION = re.compile(
    r"([A-Za-z][A-Za-z _+-]{0,60}?)[ ,:_-]{0,4}v?([0-9]{1,6}(?:\.[0-9]{1,6}){1,4})"
)
_MOST_TEXT = 500  # characters of a description in which versions are looked for


def software(subject: Subject) -> Iterator[str]:
    """Yield the points to look at in the software of a submission."""
    if not subject.systems:
        return
    frameworks = [(_text(system, "framework") or "none", system.id) for system in subject.systems]
    yield f"framework: {grouped(frameworks)}"
    before = _newest(row.framework for row in subject.previous)  # published in the round before
    now = _newest(_text(system, "framework") for system in subject.systems)
    for name, (version, text) in now.items():
        if name not in before:
            continue
        old_version, old_text = before[name]
        if version < old_version:
            yield f"{text} is older than {old_text}, which round {subject.previous[0].round} had"


def _text(system: SystemFile, field: str) -> str:
    value = (system.contents or {}).get(field)
    if isinstance(value, str):
        return _plain(value)
    return ""


def _plain(value: Any) -> str:
    """Return the beginning of a value of a description in one line."""
    text = value if isinstance(value, str) else word(value)
    return " ".join(text.split())[:_MOST_TEXT]


def _newest(texts: Iterable[str]) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the newest version of each name in strings, with the name and version as written."""
    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for text in dict.fromkeys(texts):
        for match in _VERSION.finditer(text):
            name = letters(match[1])
            version = version_of(match[2])
            if version > newest.get(name, ((), ""))[0]:
                newest[name] = (version, match[0])
    return newest


# ---- facts, with or without a finding on them ---------------------------------------------

_FAR = 2.0  # times the median of the runs
_WHOLE = 10  # times: from here on without decimals
_FEWEST = 3  # runs with a median


def code(subject: Subject) -> Iterator[str]:
    """Yield the files of code, and the sets without a configuration."""
    contents = next((item.context.code for item in subject.sets), None)
    if contents is None:
        yield "there is no folder benchmarks/: does the code in the repository match the logs?"
    elif contents:
        files = sum(len(of_benchmark.files) for of_benchmark in contents.values())
        yield f"{counted(files, 'file')} for {listed(contents, 6)}: does the code match the logs?"
        without = [item.name for item in subject.sets if not _has_configuration(item)]
        if without:
            yield (
                "no file of the code is a configuration or is named after the system:"
                f" {_sets(without)}"
            )


def _has_configuration(item: Tested) -> bool:
    """Return whether a file of a set's code is named after its system or is a configuration.

    True if there is no code for its benchmark.
    """
    contents = (item.context.code or {}).get(item.context.files.benchmark)
    if not contents:
        return True
    system = letters(item.row.system or "")
    for path in contents.files:
        name = path.rpartition("/")[2].lower()
        if name.startswith("config") or system in letters(name):
            return True
    return False


def statuses(subject: Subject) -> Iterator[str]:
    """Yield the availabilities of the systems, and the Previews."""
    if not subject.systems:
        return
    statuses = [(system.status or "none", system.id) for system in subject.systems]
    kinds = {system.id: category(system.status or "") for system in subject.systems}
    line = grouped(statuses)
    if any(kind in AVAILABLE for kind in kinds.values()):
        line += ": can customers get the available systems now?"
    yield line
    previews = [name for name, kind in kinds.items() if kind == PREVIEW]
    if previews:
        yield f"these Previews need Available successors with new logs: {listed(previews)}"


def seeds(subject: Subject) -> Iterator[str]:
    """Yield the sets whose runs all have the same seed."""
    same = []
    for item in subject.sets:
        seeds_of_runs = [{seed.value for seed in run.seeds} for run in item.context.runs]
        if len(seeds_of_runs) > 1 and all(seeds_of_runs) and len(set().union(*seeds_of_runs)) == 1:
            same.append(item.name)
    if same:
        yield f"all runs of a set have the same seed: {_sets(same)}"


def runs(subject: Subject) -> Iterator[str]:
    """Yield the runs that take far more or less time than others of their set."""
    outlying = []
    for item in subject.sets:
        minutes_by_path = {}
        for run in item.context.runs:
            if run.converged and run.minutes:
                minutes_by_path[run.path] = run.minutes
        if len(minutes_by_path) < _FEWEST:
            continue
        usual = median(minutes_by_path.values())
        for path, minutes in minutes_by_path.items():
            ratio = minutes / usual
            if not 1 / _FAR < ratio < _FAR:
                shown = f"{ratio:.2f}" if ratio < _WHOLE else f"{ratio:,.0f}"
                outlying.append(f"{short(path)} takes {shown} times the median")
    if outlying:
        yield f"these runs are unlike the other runs of their set: {listed(outlying)}"


def power(subject: Subject) -> Iterator[str]:
    """Yield the sets with power measurements."""
    measured = [item.name for item in subject.sets if item.row.energy_joules is not None]
    if measured:
        question = (
            "does the measurement cover all nodes, the interconnect and the efficiency of power"
            " conversion?"
        )
        yield f"energy of {_sets(measured)}: {question}"


def _sets(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'result set')} ({listed(names)})"


_TOPICS: Mapping[str, Callable[[Subject], Iterator[str]]] = {
    "Code": code,
    "Statuses": statuses,
    "Software": software,
    "Seeds": seeds,
    "Runs": runs,
    "Power": power,
}
"""The facts by topic, in the order of the list."""
