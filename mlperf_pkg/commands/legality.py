"""Whether hyperparameters are legal: judged as the records of a log that has nothing else."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from graphlib import TopologicalSorter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import (
    Finding,
    Severity,
    Unchecked,
    Verdict,
    Verdicts,
    verdicts_of,
)
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.text import did_you_mean, visible
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.render.rules import Document, wrapped
from mlperf_pkg.results import rcp
from mlperf_pkg.results.report import as_json
from mlperf_pkg.rulebook.explain import all_layers, as_line
from mlperf_pkg.rulebook.formula import OF_A_RECORD
from mlperf_pkg.rulebook.load import as_written, finding_of
from mlperf_pkg.rulebook.model import Benchmark, Round, Rule, is_setting
from mlperf_pkg.rulebook.table import RuleTable, related_keys, rule_table
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run
from mlperf_pkg.simulate.plan import metadata_of

_BATCH_SIZE = "global_batch_size"
_PATH = "settings"
_ANSWERS = {Verdict.PASS: "yes", Verdict.FAIL: "no", Verdict.NOT_CHECKED: "not decided"}


class Legality(Struct, frozen=True):
    """What is wrong with hyperparameters of a benchmark, and whether they are legal."""

    round: str
    benchmark: str
    division: str
    settings: Mapping[str, Any]
    verdicts: Verdicts
    findings: Sequence[Finding]

    @property
    def is_legal(self) -> bool:
        """Whether both verdicts are yes."""
        return self.verdicts == Verdicts(Verdict.PASS, Verdict.PASS)

    @property
    def document(self) -> Document:
        """The answer as lines and fields."""
        return Document("settings", self._lines(), lambda: as_json(self))

    def _lines(self) -> Iterator[str]:
        texts = [f"{key} {shown(value)}" for key, value in self.settings.items()]
        start = f"{self.division.title()} {self.benchmark} in {self.round}: "
        yield wrapped(start, ", ".join(texts), 2)
        answer = _ANSWERS[self.verdicts.rules]
        if self.verdicts.official is not self.verdicts.rules:
            official = _ANSWERS[self.verdicts.official]
            answer = f"{answer} by the written rules, {official} by the official checker"
        yield f"Legal: {answer}"
        for finding in self.findings:
            yield wrapped(f"  {finding.severity} {finding.code} ", finding.text, 4)
            if finding.hint:
                yield wrapped("    hint: ", finding.hint)


def judge(round_: Round, benchmark: Benchmark, division: str, texts: Sequence[str]) -> Legality:
    """Judge hyperparameters, written ``key=value``, by the code that judges the records of a log.

    Raises:
        UserError: one is not written so, or the benchmark has no such hyperparameter.
    """
    settings = dict(map(_setting, texts))
    chosen = frozenset([(key, str(settings.get(key, ""))) for key in benchmark.variants])
    table = rule_table(round_.usage, round_.name, division, benchmark.name, chosen)
    _refuse_unknown(round_, benchmark, division, settings.keys(), table)
    head = {"submission_benchmark": benchmark.name, "submission_division": division}
    findings = list(_findings(round_, table, head, settings))
    size = settings.get(_BATCH_SIZE)
    if division == "closed" and type(size) is int and size > 0:
        findings += _outside_of_points(round_, benchmark, size)
    findings = list(as_written(findings, round_))
    verdicts = verdicts_of(findings)
    return Legality(round_.name, benchmark.name, division, settings, verdicts, findings)


def _setting(text: str) -> tuple[str, Any]:
    """Return a key and its value; a value that is not JSON is text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set {visible(text)}: expected KEY=VALUE, such as global_batch_size=48")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


def _refuse_unknown(
    round_: Round, benchmark: Benchmark, division: str, settings: Set[str], table: RuleTable
) -> None:
    """Refuse a hyperparameter that no rule is about; those of Closed are free in Open."""
    keys = set[str]()
    for layer in all_layers(round_.usage, round_.name, benchmark.name):
        keys.update(key for key, rules in layer.rules.items() if is_setting(key, rules))
    if division == "closed":  # the optimizer that is chosen has its own
        keys &= table.keys.keys()
    for key in settings - keys:
        choices = " and ".join(benchmark.variants.keys() - settings)
        remedy = f" without --set {choices}" if choices else ""
        subject = f"{benchmark.name} in round {round_.name}{remedy}"
        suggestion = did_you_mean(key, keys)
        raise UserError(f"{subject} has no hyperparameter {visible(key)!r}{suggestion}")


def _findings(
    round_: Round, table: RuleTable, head: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[Finding]:
    """Yield what a log with these records breaks, and which rules need a value not given.

    Records come after those that their rules need: the official checker reads in order.
    """
    needed: dict[str, set[str]] = {key: set() for key in settings}
    undecided: dict[str, Finding] = {}
    for key in settings.keys() & table.keys.keys():
        for compiled in table.keys[key].rules:
            keys = {*compiled.rule.constraints.get("after", ()), *related_keys(compiled.rule)}
            keys -= {key, *OF_A_RECORD}
            needed[key] |= keys & settings.keys()
            if not keys <= settings.keys():
                undecided[compiled.rule.code] = _undecided(compiled.rule, keys - settings.keys())
    values = {**head}
    for key in TopologicalSorter(needed).static_order():
        values[key] = settings[key]
    records = [Record(key, 0, values[key], metadata_of(table.keys.get(key))) for key in values]
    source = Source(_PATH, "\n".join(map(as_line, records)).encode())
    for finding in read_run(LogFile(source, round_.usage, round_.name)).findings:
        is_of_setting = (finding.line or 0) > len(head)
        if is_of_setting and finding.code not in undecided:
            yield replace(finding, line=None, places=())
    yield from undecided.values()


def _undecided(rule: Rule, missing: Set[str]) -> Finding:
    """Return that a rule needs values that are not given; only an error leaves a verdict open."""
    options = " ".join(f"--set {key}=VALUE" for key in sorted(missing))
    message = f"{rule.key} depends on {' and '.join(sorted(missing))}: add {options}"
    kind = Unchecked if rule.severity is Severity.ERROR else Finding
    return kind(rule.code, message, _PATH, severity=Severity.NOTE, basis=rule.basis)


def _outside_of_points(round_: Round, benchmark: Benchmark, size: int) -> Iterator[Finding]:
    """Yield a finding on a batch size that is smaller, or larger, than all reference points.

    A set of a larger one fails the RCP test; one of a smaller one is compared with the smallest.
    """
    name = benchmark.name
    runs = benchmark.runs.required
    drop = benchmark.runs.drop
    points = rcp.reference_points(round_.usage, round_.ruleset, name, runs=runs, drop=drop)
    comparison = rcp.comparison_at(rcp.prune(points), size, runs=runs)
    if not points or not rcp.is_covered(round_.usage, name):
        return
    hint = f"mlperf-pkg rcp show {name} --round {round_.name} lists the points"
    if comparison.point is None:
        message = (
            f"{_BATCH_SIZE} is {{found}}, larger than in all reference points; new reference"
            " points must be submitted"
        )
        yield finding_of("RCP101", message, _PATH, found=size, hint=hint)
    elif comparison.message == rcp.SMALLER:
        message = (
            f"{_BATCH_SIZE} is {{found}}, smaller than in all reference points; the RCP test uses"
            f" the point for the smallest, {comparison.point.batch_size:,}"
        )
        note = Severity.NOTE
        yield finding_of("RCP101", message, _PATH, severity=note, found=size, hint=hint)
