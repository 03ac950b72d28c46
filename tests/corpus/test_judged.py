"""Every published set that breaks a rule was judged: ``judged.csv`` says why each of them stands.

From the corpus, these are all errors and warnings by the rules; from the record of all rounds, the values that break
a rule, values that differ between the runs of a set, runs that are too few, numbers of nodes and accelerators other
than the description's, and copies. After a change of the rules,
``pytest -n 0 --store tests/corpus/test_judged.py`` writes the table anew. A set that is new in it has no
reason: look at its logs, then write the sentence that it breaks, or repair the rule.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from mlperf_pkg.checks.consistency import check_batch_size, check_configuration, check_nodes
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source
from mlperf_pkg.published.model import known_division
from mlperf_pkg.rulebook.load import finding_of, load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.corpus.test_copies import contexts, opinions, paths, rows
from tests.helpers.corpus import ROUNDS, checked, needs_corpus

pytestmark = needs_corpus

TABLE = Path(__file__).with_name("judged.csv")
BY_RULES = ("rules", "both")


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
    for name in ROUNDS:
        for finding in checked(name).report.findings:
            if finding.severity != "note" and finding.basis in BY_RULES:
                codes[f"{name}/{finding.about or finding.path}"].add(_named(finding))
    for subject, finding in _of_record():
        codes[subject].add(_named(finding))
    return [Judged(subject, ", ".join(sorted(codes[subject]))) for subject in sorted(codes)]


def _named(finding: Finding) -> str:
    return finding.code if finding.severity == "error" else f"{finding.code} {finding.severity}"


def _of_record() -> Iterator[tuple[str, Finding]]:
    """The errors and warnings by the rules that the record of a set can show, without a log."""
    with_other_logs = {paths()[row["set"]] for row in rows("logs") if "/" in row["name"]}
    for context in contexts():
        has_division = known_division(context.division) in DIVISIONS
        if context.path in with_other_logs or not has_division:  # such logs are read by no checker
            continue
        runs = _runs(context.path)
        compared = replace(context, runs=runs)
        for finding in (
            *(f for run in runs for f in run.findings if _is_of_value(f, context.path)),
            *check_configuration(compared),
            *check_batch_size(compared),
            *check_nodes(compared),
        ):
            if finding.severity != "note" and finding.basis in BY_RULES:
                yield context.path, finding
    yield from _too_few()
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


def _runs(path: str) -> tuple[Run, ...]:
    """Runs that log nothing but the settings of a set: as many as a key has different values."""
    row, settings = _identities()[path], _settings()[path]
    identity = {
        "submission_benchmark": row["benchmark"],
        "submission_division": known_division(row["division"]),
        "run_start": None,
        "run_stop": None,
    }
    number = max(map(len, settings.values()), default=0)
    logs = (
        {**identity, **{key: values[min(n, len(values) - 1)] for key, values in settings.items()}}
        for n in range(number)
    )
    return tuple(read_run(LogFile(Source("", _log(r)), row["usage"], row["round"])) for r in logs)


def _log(values: dict[str, Any]) -> bytes:
    records = (
        {"time_ms": 1.6e12 + n, "key": key, "value": value, "metadata": {}}
        for n, (key, value) in enumerate(values.items())
    )
    return b"".join(b":::MLLOG %s\n" % json.dumps(record).encode() for record in records)
