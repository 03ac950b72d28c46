"""Whether hyperparameters are legal: judged as the records of a log that has nothing else."""

import json
from collections.abc import Iterator, Mapping, Sequence
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
from mlperf_pkg.rulebook.explain import as_line
from mlperf_pkg.rulebook.formula import OF_A_RECORD
from mlperf_pkg.rulebook.load import as_written, finding_of
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark, Rcp, Round, Rule, is_setting
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
        UserError: a text has not this form, or no rule of the benchmark is about such a key.
    """
    settings = dict(map(_setting, texts))
    chosen = frozenset([(key, str(settings.get(key, ""))) for key in benchmark.variants])
    keys = set[str]()
    for name in DIVISIONS:  # what Closed limits is free in Open
        table = rule_table(round_.usage, round_.name, name, benchmark.name, chosen)
        for key, key_rules in table.keys.items():
            if is_setting(key, [compiled.rule for compiled in key_rules.rules]):
                keys.add(key)
    for key in settings.keys() - keys:
        variants = " and ".join(benchmark.variants)
        remedy = f" without --set {variants}" if variants else ""
        where = f"{benchmark.name} in round {round_.name}{remedy}"
        raise UserError(f"{where} has no hyperparameter {visible(key)!r}{did_you_mean(key, keys)}")
    table = rule_table(round_.usage, round_.name, division, benchmark.name, chosen)
    log = LogFile(Source(_PATH, b""), usage=round_.usage, round=round_.name)
    head = {"submission_benchmark": benchmark.name, "submission_division": division}
    findings = list(_findings(log, table, head, settings))
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
        raise UserError(f"--set {visible(text)}: expected KEY=VALUE, as global_batch_size=48")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


# ---- the findings of a log that has only these records -------------------------------------


def _findings(
    log: LogFile, table: RuleTable, head: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[Finding]:
    """Yield what is wrong with hyperparameters, and which rules need a value that is not given.

    Those to which the rules leave one value have it, where they are not given.
    """
    fixed: dict[str, Any] = {}
    needed: dict[str, set[str]] = {key: set() for key in settings}
    rules: list[Rule] = []
    for key, key_rules in table.keys.items():
        for compiled in key_rules.rules:
            rule = compiled.rule
            if key in settings:
                rules.append(rule)
                if rule.official:
                    needed[key] |= _needed(rule) & settings.keys()
            elif "equals" in rule.constraints:
                fixed[key] = rule.constraints["equals"]
    # The official checker reads in order.
    ordered = {key: settings[key] for key in TopologicalSorter(needed).static_order()}
    values = {**head, **fixed, **ordered}
    undecided = set[str]()
    for rule in rules:
        missing = sorted(_needed(rule) - values.keys())
        if missing:
            undecided.add(rule.code)
            options = " ".join(f"--set {key}=VALUE" for key in missing)
            message = f"{rule.key} depends on {' and '.join(missing)}: add {options}"
            # Only an error leaves the verdict open.
            kind = Unchecked if rule.severity is Severity.ERROR else Finding
            yield kind(rule.code, message, _PATH, severity=Severity.NOTE, basis=rule.basis)
    records = [Record(key, 0, values[key], metadata_of(table.keys.get(key))) for key in values]
    source = replace(log.source, origin="\n".join(map(as_line, records)).encode())
    for finding in read_run(replace(log, source=source)).findings:
        is_about_settings = (finding.line or 0) > len(head) + len(fixed)
        if is_about_settings and finding.code not in undecided:
            yield replace(finding, line=None, places=())


def _needed(rule: Rule) -> set[str]:
    """Return the other keys without which a rule is not decided."""
    return {*related_keys(rule), *rule.constraints.get("after", ())} - OF_A_RECORD - {rule.key}


# ---- the reference points ------------------------------------------------------------------


def _outside_of_points(round_: Round, benchmark: Benchmark, size: int) -> Iterator[Finding]:
    """Yield a finding on a batch size that is smaller, or larger, than all reference points.

    A set of a larger one fails the RCP test; one of a smaller one is compared with the smallest.
    """
    name = benchmark.name
    runs = benchmark.runs.required
    drop = benchmark.runs.drop
    points = rcp.reference_points(round_.usage, round_.ruleset, name, runs=runs, drop=drop)
    used = rcp.prune(points)
    is_tested = benchmark.rcp is not Rcp.SKIPPED and rcp.is_covered(round_.usage, name)
    if not used or not is_tested or used[0].batch_size <= size <= used[-1].batch_size:
        return
    message = "is {found}, above all reference points; expected at most {expected}, or new points"
    limit = used[-1].batch_size
    severity = Severity.ERROR
    if rcp.comparison_at(used, size, runs=runs).message == rcp.SMALLER:
        message = "is {found}, below all reference points: compared with that of {expected}"
        limit = used[0].batch_size
        severity = Severity.NOTE
    yield finding_of(
        "RCP101",
        f"{_BATCH_SIZE} {message}",
        _PATH,
        severity=severity,
        found=size,
        expected=limit,
        hint=f"mlperf-pkg rcp show {name} --round {round_.name} lists the points",
    )
