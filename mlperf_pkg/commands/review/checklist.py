"""A checklist of each submission for its reviewers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from statistics import median
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import AVAILABLE
from mlperf_pkg.checks.descriptions import PREVIEW, SystemFile, category
from mlperf_pkg.commands.review.convergence import MISSING, tests_of
from mlperf_pkg.commands.review.hyperparameters import UNPUBLISHED, Outlier, groups_of, outliers_of
from mlperf_pkg.commands.review.round import ReviewedRound, ReviewSection, column
from mlperf_pkg.commands.review.submitters import NOTED, assignments, by_folder, failing, reviewers
from mlperf_pkg.findings import Finding, Severity, word
from mlperf_pkg.infra.text import letters
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.render.table import by_key, table_of
from mlperf_pkg.results.rcp import margin_in_words
from mlperf_pkg.results.report import ResultSetRow, description_path
from mlperf_pkg.results.wording import counted, severity
from mlperf_pkg.rulebook.explain import benchmark_layers
from mlperf_pkg.rulebook.load import codes
from mlperf_pkg.rulebook.model import Rule, is_round_name, version_of
from mlperf_pkg.run.evaluations import KEYS
from mlperf_pkg.run.readers import is_hyperparameter
from mlperf_pkg.submission.submitters import is_same_submitter

MOST_ITEMS = 25  # of one submission
_LONGEST = 200  # characters of a finding
_RULES = "Rules"
_EVALUATIONS = "Evaluations"
_HYPERPARAMETERS = "Hyperparameters"
_RUNS = "Runs"
_FILES = "Files"
_NOT_CONVERGED = "RUN130"
_URGENT = {Severity.ERROR: 0, Severity.WARNING: 2, Severity.NOTE: 3}  # facts are 1
_IN_FACTS = (UNPUBLISHED, "CODE100")
_TEXT = (
    "Points to look at in each submission: the errors and warnings of the check, folded by code,"
    " and questions that a program cannot answer. The list does not cover all rules.",
)


class Item(Struct, frozen=True):
    """A point to look at, urgent if ``urgent`` is small.

    Of more than ``MOST_ITEMS``, the least urgent are left out.
    """

    topic: str
    text: str
    urgent: int


_COLUMNS = (column("Topic", "topic"), column("Look at", "text"))


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return a checklist of each submission, with the names of its reviewers."""
    assigned = assignments(reviewed)
    tables = {}
    for subject in subjects(reviewed):
        title = f"{subject.name}, reviewed by {reviewers(assigned, subject.name)}"
        rows = items(subject)
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


def items(subject: Subject) -> list[Item]:
    """Return the points to look at in a submission, by topic."""
    points = []
    for topic, (_, facts) in _TOPICS.items():
        if facts:
            points += [Item(topic, text, 1) for text in facts(subject)]
    points += _of_findings(subject)
    points.sort(key=attrgetter("urgent"))
    more = len(points[MOST_ITEMS:])
    if more:
        last = f"{more + 1} more kinds of findings; mlperf-pkg check {subject.name} shows them"
        points[MOST_ITEMS - 1 :] = [Item(_FILES, last, 3)]
    order = list(_TOPICS)
    return sorted(points, key=lambda item: (order.index(item.topic), item.urgent))


# ---- findings -----------------------------------------------------------------------------


def _of_findings(subject: Subject) -> Iterator[Item]:
    """Yield the findings of each code as one item."""
    rules = _rules(subject)
    stopped = {finding.about for finding in subject.findings if finding.code == _NOT_CONVERGED}
    by_code: dict[str, list[Finding]] = {}
    for finding in subject.findings:
        rule = rules.get(finding.code)
        is_of_stopped = rule and rule.reaches and finding.about in stopped
        is_repeated = is_of_stopped and not finding.is_error
        is_note = finding.severity is Severity.NOTE and not finding.code.startswith(NOTED)
        if not (is_repeated or is_note or finding.code in _IN_FACTS):
            by_code.setdefault(finding.code, []).append(finding)
    for code, findings in by_code.items():
        worst = min(findings, key=lambda finding: _URGENT[finding.severity])
        text = _words(worst, findings)
        yield Item(_topic(code, rules.get(code)), text, _URGENT[worst.severity])


def _words(worst: Finding, findings: Sequence[Finding]) -> str:
    """Return ``error RCP101 in 2 result sets (a, b): a title``; the text of a single finding."""
    names = list(dict.fromkeys(short(finding.about) for finding in findings))
    if len(names) == 1:
        where = names[0]
        text = worst.text
    else:
        where = f"{len(names)} places ({listed(names)})"
        text = codes()[worst.code].title if worst.code in codes() else worst.text
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 3]}..."
    causes = sorted({(finding.cause or "").rpartition("-")[0] for finding in findings})
    if all(causes):
        text = f"{text}; follows from {' and '.join(causes)}"
    return f"{severity(worst)} {worst.code}, {where}: {text}"


def _topic(code: str, rule: Rule | None) -> str:
    if rule is not None:
        if rule.reaches:
            return _RUNS
        if rule.key in KEYS:
            return _EVALUATIONS
        if is_hyperparameter(rule.key):
            return _HYPERPARAMETERS
        return _RULES
    topics: dict[str, str] = {}
    for topic, (prefixes, _) in _TOPICS.items():
        topics |= dict.fromkeys(prefixes, topic)
    longest = max(filter(code.startswith, topics), key=len)
    return topics[longest]


def _rules(subject: Subject) -> dict[str, Rule]:
    """Return the rules of the submission's benchmarks by code."""
    benchmarks = {item.row.benchmark: item.context.rules for item in subject.sets}
    by_code = {}
    for benchmark in benchmarks.values():
        if benchmark is None:
            continue
        for layer in benchmark_layers(benchmark):
            for rule in chain.from_iterable(layer.rules.values()):
                by_code[rule.code] = rule
    return by_code


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
    outliers: Sequence[Outlier]
    previous: Sequence[PublishedSet]


def subjects(reviewed: ReviewedRound) -> Iterator[Subject]:
    """Yield the submissions of a round by name."""
    checked = reviewed.checked
    report = reviewed.report
    tested = map(Tested, report.result_sets, checked.contexts)
    sets = by_folder(tested, attrgetter("row.path"))
    findings = by_folder(report.findings, attrgetter("about"))
    groups = groups_of(checked.contexts, reviewed.companies)
    unlike = outliers_of(groups, report.findings)
    outliers = by_folder(unlike, attrgetter("entry.path"))
    for submission in reviewed.submissions:
        label = submission.place.label
        submitted = sets.get(label, [])
        yield Subject(
            name=submission.name,
            sets=submitted,
            systems=_described(submitted, checked.systems),
            findings=findings.get(label, ()),
            outliers=outliers.get(label, ()),
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

_MOST_KEYS = 4
_UNNAMED = ""  # the part of a stack that is a string
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
    yield from _differing_stack(subject.systems)
    before = _newest(row.framework for row in subject.previous)  # published in the round before
    now = _newest(_text(system, "framework") for system in subject.systems)
    for name, (version, text) in now.items():
        if name not in before:
            continue
        old_version, old_text = before[name]
        if version < old_version:
            yield f"older than in {subject.previous[0].round}: {text}; before {old_text}"


def _text(system: SystemFile, field: str) -> str:
    value = (system.contents or {}).get(field)
    if isinstance(value, str):
        return _plain(value)
    return ""


def _differing_stack(systems: Iterable[SystemFile]) -> Iterator[str]:
    """Yield the parts of the software stack that have several versions, in one line."""
    differing = []
    for part, pairs in _versions_by_part(systems).items():
        if len(dict(pairs)) > 1:
            differing.append(f"{part} {grouped(pairs)}".strip())
    if differing:
        yield f"differs between systems: {listed(differing, _MOST_KEYS, '; ')}"


def _versions_by_part(systems: Iterable[SystemFile]) -> dict[str, list[tuple[str, str]]]:
    """Return the versions of each part, with the names of the systems that have the part.

    Versions that all stacks of one string have are left out.
    """
    stacks = {system.id: _stack(system) for system in systems}
    common = _in_all_unnamed(stacks.values())
    by_part: dict[str, list[tuple[str, str]]] = {}
    for name, stack in stacks.items():
        for part, versions in stack.items():
            special = [version for version in versions if version not in common]
            text = ", ".join(special) or "none of these"
            by_part.setdefault(part, []).append((text, name))
    return by_part


def _in_all_unnamed(stacks: Iterable[Mapping[str, list[str]]]) -> set[str]:
    """Return the versions that are in all stacks of one string."""
    unnamed = [set(stack[_UNNAMED]) for stack in stacks if _UNNAMED in stack]
    if unnamed:
        return set.intersection(*unnamed)
    return set()


def _stack(system: SystemFile) -> Mapping[str, list[str]]:
    """Return the versions of each part; a stack in one string is one part without a name."""
    stack = (system.contents or {}).get("other_software_stack")
    versions: dict[str, list[str]] = {}
    for item in stack if isinstance(stack, list) else [stack]:
        if isinstance(item, dict):
            for name, value in item.items():
                if value:
                    versions[str(name)] = [_plain(value)]
        elif item:
            versions.setdefault(_UNNAMED, []).extend(_plain(item).split(", "))
    return versions


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

_CLOSE = 1.0  # percent of RCP margin
_FAR = 2.0  # times the median of the runs
_WHOLE = 10  # times: from here on without decimals
_FEWEST = 3  # runs with a median


def code(subject: Subject) -> Iterator[str]:
    """Yield the files of code, and the sets without a configuration."""
    contents = next((item.context.code for item in subject.sets), None)
    if contents is None:
        yield "no benchmarks/ folder: does the code in the repository match the logs?"
    elif contents:
        files = sum(len(of_benchmark.files) for of_benchmark in contents.values())
        yield f"{counted(files, 'file')} for {listed(contents, 6)}: does the code match the logs?"
        without = [item.name for item in subject.sets if not _has_configuration(item)]
        if without:
            yield f"no file is named after the system or is a configuration: {_sets(without)}"


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
        yield f"Previews, which require Available successors with new logs: {listed(previews)}"


def convergence(subject: Subject) -> Iterator[str]:
    """Yield the sets that are close to the limit of the RCP test, or lack a reference point."""
    close = []
    for item in subject.sets:
        margin = item.row.rcp.margin_percent if item.row.rcp else None
        if margin is not None and 0 <= margin < _CLOSE:
            close.append((margin, item.name))
    if close:
        close.sort(key=itemgetter(0))
        words = [f"{name} {margin_in_words(margin)}" for margin, name in close]
        yield f"RCP margin below {_CLOSE:g} %: {listed(words)}"
    tests = tests_of((item.row for item in subject.sets), subject.findings)
    missing = [short(test.row.path) for test in tests if test.state == MISSING]
    if missing:
        yield f"no reference point: {_sets(missing)}"


def hyperparameters(subject: Subject) -> Iterator[str]:
    """Yield the outliers of each set."""
    values_by_set: dict[str, list[str]] = {}
    for outlier in subject.outliers:
        values = values_by_set.setdefault(short(outlier.entry.path), [])
        values.append(f"{outlier.key} {outlier.value}")
    for name, values in values_by_set.items():
        yield f"outliers of {name}: {listed(values)}"


def seeds(subject: Subject) -> Iterator[str]:
    """Yield the sets whose runs all have the same seed."""
    same = []
    for item in subject.sets:
        seeds_of_runs = [{seed.value for seed in run.seeds} for run in item.context.runs]
        if len(seeds_of_runs) > 1 and all(seeds_of_runs) and len(set().union(*seeds_of_runs)) == 1:
            same.append(item.name)
    if same:
        yield f"the same seed in all runs: {_sets(same)}"


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
        yield f"unlike the other runs of their set: {listed(outlying)}"


def power(subject: Subject) -> Iterator[str]:
    """Yield the sets with power measurements."""
    measured = [item.name for item in subject.sets if item.row.energy_joules is not None]
    if measured:
        question = "does it cover all nodes, the interconnect and the conversion efficiency?"
        yield f"energy of {_sets(measured)}: {question}"


def _sets(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'result set')} ({listed(names)})"


_TOPICS: Mapping[str, tuple[tuple[str, ...], Callable[[Subject], Iterator[str]] | None]] = {
    "Code": (("CODE", "SET127"), code),
    "Statuses": (("SET140", "SET164", "SYS103", "SYS104"), statuses),
    "Software": ((), software),
    "Previews": (("SET152",), None),
    "Resubmissions": (("SET15", "SET16"), None),
    _HYPERPARAMETERS: (("SET122",), hyperparameters),
    "Convergence": (("RCP", "SET118", "SET119", "SET120"), convergence),
    _RULES: (("",), None),
    _EVALUATIONS: (("SET12",), None),
    _RUNS: (
        ("RUN13", "RUN140", "RUN15", "ROUND", "SET10", "SET112", "SET113", "SET121", "SET130"),
        runs,
    ),
    "Seeds": (("SEED",), seeds),
    "Scores": (("SET163",), None),
    "Power": (("POW",), power),
    "Descriptions": (("SYS", "SET11"), None),
    _FILES: (("TREE", "REPO", "LOG", "CHECK", "SET105", "SET106"), None),
}
"""The topics in order, with the prefixes of their codes, of which the longest counts, and facts."""
