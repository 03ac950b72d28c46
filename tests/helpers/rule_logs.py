"""The shortest logs that pass the rulebook's own rules, found from the rules themselves.

A log is a list of records, each the JSON object that stands after ``:::MLLOG``. Values are found
by trial: of a list of candidates, the first that meets every rule of its key.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from graphlib import TopologicalSorter
from itertools import product
from typing import Any

from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.documents import every_round
from mlperf_pkg.rulebook.explain import loaded
from mlperf_pkg.rulebook.formula import LoggedKey, NoAnswerError, first_logged, names_in
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.table import CompiledRule, RuleTable, rule_table
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from mlperf_pkg.simulate import RunPlan, refusal, simulate_run
from tests.helpers.logs import records

Log = list[dict[str, Any]]
Choice = frozenset[tuple[str, str]]
Place = tuple[str, str, str, str, Choice]

START_MS = 1_590_000_000_000
STEP_MS = 100
EVALUATION = ("eval_accuracy", "eval_error", "averaged_validation_loss")
_BEFORE = ("run_start", "staging_start", "staging_stop", "block_start", "epoch_start", "epoch_stop")
_PHASES = (*_BEFORE, "eval_start", *EVALUATION, "eval_stop", "block_stop", "run_stop")
_FEW = 2  # records of a key

# For what a simulated run does not log: values that reach a target, and one of every kind.
_VALUES: tuple[Any, ...] = (
    *(0, 1, 2, 0.9, 0.5, 5.5, "x", True, [1, 2]),
    *({"BBOX": 0.4, "SEGM": 0.35}, {"FID": 80.0, "CLIP": 0.2}),
)
_METADATA = {"status": ("success",), "method": ("discard",)}


def cases() -> Iterator[Place]:
    """Usage, round, benchmark, division and variants of everything the rulebook has rules for."""
    for usage, name in every_round():
        for benchmark in load_round(usage, name).benchmarks:
            rules = loaded(load_round(usage, name), benchmark)
            named = [[(key, value) for value in rules.variants[key]] for key in rules.variants]
            for choice in product(*named):
                yield usage, name, benchmark, "closed", frozenset(choice)
            if not _refused(usage, name, benchmark):
                yield usage, name, benchmark, "open", frozenset()


def _refused(usage: str, name: str, benchmark: str) -> bool:
    """Whether the official checker has no rules for Open runs of a benchmark that it has."""
    rules = load_round(usage, name).sections["open"]["submission_benchmark"]
    return any(benchmark in rule.constraints.get("none_of", ()) for rule in rules)


def passing_log(usage: str, name: str, benchmark: str, division: str, choice: Choice) -> Log:
    """A log without a finding."""
    table = rule_table(usage, name, division, benchmark, choice)
    simulated = _simulated(usage, name, benchmark, division, choice)
    batch_sizes = [record["value"] for record in simulated if record["key"] == "global_batch_size"]
    identity = {
        "submission_benchmark": benchmark,
        "submission_division": division,
        "global_batch_size": batch_sizes[0],
        **dict(choice),
    }
    builder = _Builder(table, identity, simulated)
    for key in _order(table):
        builder.add(key)
    return builder.log


@lru_cache
def _simulated(usage: str, name: str, benchmark: str, division: str, choice: Choice) -> Log:
    """The first records of each key in a simulated run, a Closed one where no other can be."""
    if refusal(usage, name, benchmark, division):
        return _simulated(usage, name, benchmark, "closed", choice)
    plan = RunPlan(
        round=name,
        benchmark=benchmark,
        division=division,
        system="system",
        organization="organization",
        optimizer=dict(choice).get("opt_name"),
        usage=usage,
    )
    kept: dict[str, Log] = defaultdict(list)
    for record in records(simulate_run(plan, seed=1)):
        kept[record["key"]] += [record] * (len(kept[record["key"]]) < _FEW)
    return [record for of_key in kept.values() for record in of_key]


def _order(table: RuleTable) -> list[str]:
    """Identity, ``init_start``, settings (those that others need first), then the clock."""
    before: dict[str, set[str]] = {}
    for key, rules in table.keys.items():
        needs = before.setdefault(key, set())
        for compiled in rules.rules:
            needs |= names_in(compiled.rule.formula or "") & table.keys.keys()
            needs |= {compiled.rule.constraints.get("same_as", key)} - {key}
            needs |= set(compiled.rule.constraints.get("after", ()))
    settings = TopologicalSorter(before).static_order()
    # A stable sort: what depends on nothing keeps the place that dependencies gave it.
    return sorted(settings, key=_rank)


def _rank(key: str) -> int:
    if key in _PHASES:
        return 10 + _PHASES.index(key)
    return {"init_start": 1, "init_stop": 3}.get(key, 0 if key.startswith("submission_") else 2)


class _Builder:
    """Adds records one by one, and knows what was logged before."""

    def __init__(self, table: RuleTable, identity: dict[str, Any], simulated: Log) -> None:
        self.log: Log = []
        self._simulated = simulated
        self._table = table
        self._identity = identity
        self._seen: dict[str, LoggedKey] = {}

    def add(self, key: str) -> None:
        joined = self._table.joined
        rules = self._table.keys[key].rules if key in self._table.keys else ()
        tensors = next((r.rule.tensors for r in rules if r.rule.tensors is not None), None)
        if joined and key == joined.key:
            return
        if joined and key == joined.of:
            for at, (name, value) in product((512_000, 1_024_000), (("FID", 80.0), ("CLIP", 0.2))):
                self._append(key, value, {joined.by: at, joined.name: name})
        elif tensors is not None:
            for tensor in tensors:
                self._append(key, None, {"tensor": tensor})
        else:
            self._append(key, *self._solve(key, rules))

    def _append(self, key: str, value: Any, metadata: dict[str, Any]) -> None:
        time_ms = START_MS + STEP_MS * len(self.log)
        self.log.append({"time_ms": time_ms, "key": key, "value": value, "metadata": metadata})
        self._seen[key] = first_logged(Record(key, time_ms, value, None))

    def _solve(self, key: str, rules: tuple[CompiledRule, ...]) -> tuple[Any, dict[str, Any]]:
        simulated = [record for record in self._simulated if record["key"] == key]
        values = [*_hinted(rules), *(record["value"] for record in simulated), *_VALUES]
        if key in self._identity:
            values = [self._identity[key]]
        names = sorted(_metadata_names(rules))
        logged = [record["metadata"] for record in simulated]
        options = [tuple(m[name] for name in names) for m in logged if m.keys() >= set(names)]
        options += product(*(_METADATA.get(name, (1,)) for name in names))
        for value, choice in product(values, options):
            metadata = dict(zip(names, choice, strict=True))
            if all(self._met(compiled, key, value, metadata) for compiled in rules):
                return value, metadata
        raise AssertionError(f"no candidate meets the rules of {key}: {rules}")

    def _met(self, compiled: CompiledRule, key: str, value: Any, metadata: Any) -> bool:
        record = Record(key, START_MS + STEP_MS * len(self.log), value, metadata)
        tests = [check.test for check in compiled.checks]
        tests += [compiled.reaches] if compiled.reaches else []
        formula = compiled.in_passing or compiled.at_the_end
        try:
            met = all(test(record, self._seen) for test in tests)
            return met and (not formula or formula.holds(record, self._seen, nth=0))
        except NoAnswerError:
            return compiled.rule.basis == "rules"
        except (TypeError, ValueError, LookupError, ArithmeticError):
            return False


def _hinted(rules: tuple[CompiledRule, ...]) -> Iterator[Any]:
    """Values that the constraints themselves name."""
    for compiled in rules:
        constraints = compiled.rule.constraints
        for part in (constraints, compiled.rule.reaches or {}, constraints.get("counts", {})):
            yield from (part[n] for n in ("equals", "close_to", "at_least", "at_most") if n in part)
            yield from part.get("one_of", ())


def _metadata_names(rules: tuple[CompiledRule, ...]) -> set[str]:
    names: set[str] = set()
    for constraints in (compiled.rule.constraints for compiled in rules):
        names |= {*constraints.get("metadata", ()), *constraints.get("metadata_any", ())[-1:]}
    return names


def to_bytes(log: Log) -> bytes:
    """A log as a file's contents."""
    return b"".join(b":::MLLOG %s\n" % json.dumps(record).encode() for record in log)


def read(data: bytes, usage: str, name: str) -> Run:
    """The run of a log in memory."""
    return read_run(LogFile(Source("result_0.txt", data), usage, name))


_FORMULA = re.compile(
    r"math\.|&&|\|\||==|<=|>=|previous\.|metadata\.| \? |\bvalue [-+*/<>]|[-+*/] value\b|\bdouble\("
)
_PYTHON = re.compile(r"\bTrue\b|\bFalse\b|\bNone\b|\['|\{'|\bdict\b|NoneType|Error:")
_UNFILLED = re.compile(r"\{(found|expected)|\bnull\b")
_EXPECTED = re.compile(r"; expected \S")


def faults_of(finding: Finding) -> Iterator[str]:
    """Yield what is wrong with the message of a broken rule."""
    text = finding.text
    for name, pattern in (("formula", _FORMULA), ("Python", _PYTHON)):
        if match := pattern.search(text):
            yield f"{finding.code}: {name} text {match[0]!r} in {text!r}"
    if not _EXPECTED.search(text) or finding.expected in (None, ""):
        yield f"{finding.code}: nothing expected in {text!r}"
    if "{found" in finding.message and finding.found is None and "null" not in text:
        yield f"{finding.code}: nothing found in {text!r}"
    if "{" in finding.message and _UNFILLED.search(text.replace('"null"', "")) and finding.found:
        yield f"{finding.code}: a placeholder is left in {text!r}"
