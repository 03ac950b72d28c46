"""Every published set that breaks a rule was judged: ``judged.csv`` says why each of them
stands.

From the corpus, these are all errors and warnings by the rules; from the record of all rounds, the
values that break a rule, values that differ between the runs of a set, runs that are too few,
numbers of nodes and accelerators other than the description's, and copies. Warnings that are advice
or the official checker's are judged, too, if more than 2 % of the sets of their round have them: of
the corpus, or of the record. After a change of the rules, ``pytest -n 0 --store
tests/corpus/test_judged.py`` writes the table anew. A set that is new in it has no reason: look at
its logs, then write the sentence that it breaks, or repair the rule.
"""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from mlperf_pkg.checks.consistency import check_batch_size, check_configuration, check_nodes
from mlperf_pkg.checks.descriptions import check_system
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source
from mlperf_pkg.published.model import known_division
from mlperf_pkg.rulebook.load import finding_of, load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.helpers.corpus import ROUNDS, checked, needs_corpus
from tests.helpers.logs import joined
from tests.helpers.record import contexts, opinions, paths, rows

pytestmark = needs_corpus

TABLE = Path(__file__).with_name("judged.csv")
BY_RULES = ("rules", "both")
MOST = 0.02  # of the sets of a round may have a warning that nobody judged
_FIELDS = {"nodes": "number_of_nodes", "accelerator_model": "accelerator_model_name"}
Accusations = Sequence[tuple[str, Finding]]  # each with the path of its subject below the corpus


class Judged(NamedTuple):
    """A set or another part of a round, what it breaks, and why this is right."""

    subject: str
    codes: str
    reason: str = ""


def test_every_published_set_that_breaks_a_rule_was_judged(request: pytest.FixtureRequest) -> None:
    judged = {row.subject: row for row in _table()}
    accused = [row._replace(reason=_reason(row, judged)) for row in _accused()]
    if request.config.getoption("--store"):
        with TABLE.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([Judged._fields, *accused])
    assert [row for row in accused if not row.reason] == []
    assert accused == _table()


def _reason(row: Judged, judged: dict[str, Judged]) -> str:
    """The reason that is known; none if the subject breaks more than when it was judged."""
    verdict = judged.get(row.subject, row)
    return verdict.reason if {*row.codes.split(", ")} <= {*verdict.codes.split(", ")} else ""


def _table() -> list[Judged]:
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return [Judged(**row) for row in csv.DictReader(stream)]


def _accused() -> list[Judged]:
    """What breaks a rule now, by subject."""
    codes: dict[str, set[str]] = defaultdict(set)
    for sets, accusations in (_of_corpus(), ([*_identities()], [*_of_record()])):
        frequent = {kind for kind, share in _shares(sets, accusations).items() if share > MOST}
        for subject, finding in accusations:
            if finding.basis in BY_RULES or _kind(subject, finding) in frequent:
                codes[subject].add(_named(finding))
    return [Judged(subject, ", ".join(sorted(codes[subject]))) for subject in sorted(codes)]


def _named(finding: Finding) -> str:
    words = [finding.code] if finding.severity == "error" else [finding.code, finding.severity]
    return " ".join(words if finding.basis in BY_RULES else [*words, finding.basis])


def _kind(subject: str, finding: Finding) -> tuple[str, ...]:
    """The round, code, basis and severity."""
    return (subject.partition("/")[0], finding.code, finding.basis, finding.severity)


def _shares(sets: Collection[str], accusations: Accusations) -> dict[tuple[str, ...], float]:
    """The share of the sets of its round that have a warning of a kind.

    That on a description counts for all sets of its system, that on a submission for all of its.
    """
    concerned: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for subject, finding in accusations:
        if finding.severity == "warning":
            top = subject.replace("/systems/", "/results/").removesuffix(".json")
            below = {path for path in sets if f"{path}/".startswith(f"{top}/")}
            concerned[_kind(subject, finding)] |= below or {subject}
    totals = Counter(path.partition("/")[0] for path in sets)
    return {kind: len(paths) / totals[kind[0]] for kind, paths in concerned.items()}


def _of_corpus() -> tuple[list[str], Accusations]:
    """The paths of the sets of the corpus, and the errors by the rules and all warnings."""
    reports = {name: checked(name).report for name in ROUNDS}
    sets = [f"{name}/{row.path}" for name, report in reports.items() for row in report.result_sets]
    findings = (
        (name, f) for name, report in reports.items() for f in report.findings if _counts(f)
    )
    return sets, [
        (f"{name}/{finding.about or finding.path}", finding) for name, finding in findings
    ]


def _counts(finding: Finding) -> bool:
    by_rules = finding.basis in BY_RULES
    return finding.severity == "warning" or (finding.severity == "error" and by_rules)


def _of_record() -> Iterator[tuple[str, Finding]]:
    """The errors by the rules and all warnings that the record of a set can show, without a log."""
    with_other_logs = {paths()[row["set"]] for row in rows("logs") if "/" in row["name"]}
    for context in contexts():
        has_division = known_division(context.division) in DIVISIONS
        if context.path in with_other_logs or not has_division:  # such logs are read by no checker
            continue
        runs = _runs(context.path)
        compared = replace(context, runs=runs)
        of_runs = (f for run in runs for f in run.findings if _is_of_value(f, context.path))
        rules = (check_configuration, check_batch_size, check_nodes)
        findings = (*of_runs, *(finding for rule in rules for finding in rule(compared)))
        yield from ((context.path, finding) for finding in findings if _counts(finding))
    yield from _too_few()
    yield from _of_descriptions()
    for pair, finding in opinions().items():
        if finding.severity == "error":
            yield max(pair), finding


def _too_few() -> Iterator[tuple[str, Finding]]:
    """The sets with fewer logs than the rules require, also those without any."""
    logs = Counter(paths()[row["set"]] for row in rows("logs") if "/" not in row["name"])
    for path, row in _identities().items():
        rules = load_benchmark(row["usage"], row["round"], row["benchmark"])
        if rules and logs[path] < rules.runs.required:
            yield path, finding_of("SET101", "", path)


def _is_of_value(finding: Finding, path: str) -> bool:
    """Whether it is about the value of a setting, and not about what the record lacks."""
    key, _, rest = finding.text.partition(" is ")
    return key in _settings()[path] and not rest.startswith("logged ")


@cache
def _settings() -> dict[str, dict[str, list[Any]]]:
    """The values of each key, the most frequent first, by the path of the set."""
    settings: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in rows("settings"):
        settings[paths()[row["set"]]][row["key"]].append(json.loads(row["value"]))
    return settings


@cache
def _identities() -> dict[str, dict[str, str]]:
    return {paths()[row["set"]]: row for row in rows("sets")}


def _of_descriptions() -> Iterator[tuple[str, Finding]]:
    """The warnings on system descriptions that the fields in the record show."""
    for path, row in _identities().items():
        head, _, _ = path.partition("/results/")
        subject = f"{head}/systems/{row['system']}.json"
        fields = {_FIELDS.get(name, name): value for name, value in row.items() if value}
        system = check_system(subject, json.dumps(fields).encode(), row["usage"], row["round"])
        yield from ((subject, f) for f in system.findings if f.severity == "warning")


def _runs(path: str) -> tuple[Run, ...]:
    """Runs that log nothing but the settings of a set: as many as a key has different values."""
    row, settings = _identities()[path], _settings()[path]
    names = ("submission_benchmark", "submission_division", "run_start", "run_stop")
    division = known_division(row["division"])
    identity = dict(zip(names, (row["benchmark"], division, None, None), strict=True))
    number = max(map(len, settings.values()), default=0)
    logs = (
        identity | {key: values[min(n, len(values) - 1)] for key, values in settings.items()}
        for n in range(number)
    )
    return tuple(read_run(LogFile(Source("", _log(r)), row["usage"], row["round"])) for r in logs)


def _log(values: dict[str, Any]) -> bytes:
    return joined(
        [
            {"time_ms": 1.6e12 + n, "key": key, "value": value, "metadata": {}}
            for n, (key, value) in enumerate(values.items())
        ]
    )
