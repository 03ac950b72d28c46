"""What runs are meant to be: of another benchmark, division or round than they are judged by.

A wrong name of one of these breaks rules that the runs keep by the rules that belong to them.
"""

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain

import msgspec

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.findings import Finding, Occurrence
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.rulebook.rounds import round_of_run
from mlperf_pkg.rulebook.table import CompiledRule, KeyRules, RuleTable, rule_table
from mlperf_pkg.run.model import Run

BENCHMARK = "SET107"
DIVISION = "SET111"
_NOT_OF_ROUND = "SET106"
_NUMBER_OF_RUNS = "SET101"
_INCOMPARABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def judging_rules(run: Run) -> RuleTable:
    """Return the rules by which a run is judged: those of what it names."""
    return _rules(run, run.round, run.benchmark, run.division)


def is_kept_by_run(
    run: Run, code: str, place: Occurrence, cause: Finding, context: SetContext
) -> bool:
    """Return whether a run keeps the rule of a code as what it is meant to be.

    ``place`` is where it breaks the rule; ``cause`` says of what it has a wrong name.
    """
    judged_by = judging_rules(run)
    if cause.code == BENCHMARK:
        meant = _rules(run, run.round, context.files.benchmark, run.division)
        if not _is_of(run, meant, judged_by):
            return False
    elif cause.code == DIVISION:
        meant = _rules(run, run.round, run.benchmark, context.division_by_rules or "")
    else:
        meant = _rules(run, _round_by_time(run), run.benchmark, run.division)
    for compiled in chain(judged_by.concluded, *[rules.rules for rules in judged_by.keys.values()]):
        if compiled.rule.code == code:
            key_rules = meant.keys.get(compiled.rule.key)
            is_of_benchmark = cause.code == BENCHMARK and _relates(compiled)
            return key_rules is None or is_of_benchmark or _is_kept(key_rules, place)
    return False


def is_kept_by_set(effect: Finding, cause: Finding, context: SetContext) -> bool:
    """Return whether there is no such finding on a set as what its runs are meant to be."""
    runs = context.runs
    if cause.code == DIVISION:
        return {run.division for run in runs} == {"open"}
    usage = context.round.usage
    name = context.files.benchmark
    if cause.code == BENCHMARK and effect.code != _NUMBER_OF_RUNS:
        return all(_is_of_benchmark(run, name) for run in runs)
    if cause.code == BENCHMARK:
        names = {run.benchmark for run in runs}
        benchmarks = [load_benchmark(usage, context.round.name, other) for other in names]
    else:
        rounds = {_round_by_time(run) for run in runs}
        benchmarks = [load_benchmark(usage, round_name, name) for round_name in rounds]
    if effect.code == _NOT_OF_ROUND:
        return None not in benchmarks
    if effect.code == _NUMBER_OF_RUNS:
        required = {rules.runs.required for rules in benchmarks if rules}
        return required == {effect.found}
    return False


def _rules(run: Run, round_name: str, benchmark: str, division: str) -> RuleTable:
    """Return the rules of a run if it had this round, benchmark and division."""
    rules = load_benchmark(run.usage, round_name, benchmark)
    chosen: dict[str, str] = {}
    for key in rules.variants if rules else ():
        # A long value is cut, and no JSON then.
        with suppress(msgspec.DecodeError):
            value = msgspec.json.decode(run.hyperparameters.get(key, "null"))
            if isinstance(value, str):
                chosen[key] = value
    known_division = division if division in DIVISIONS else ""
    return rule_table(run.usage, round_name, known_division, benchmark, frozenset(chosen.items()))


def _round_by_time(run: Run) -> str:
    return round_of_run(run.usage, run.start_ms or run.stop_ms or 0.0, run.benchmark).name


def _is_of_benchmark(run: Run, benchmark: str) -> bool:
    return _is_of(run, _rules(run, run.round, benchmark, run.division), judging_rules(run))


def _is_of(run: Run, meant: RuleTable, judged_by: RuleTable) -> bool:
    """Return whether a run logs hyperparameters that only the rules meant have."""
    own_keys = meant.keys.keys() - judged_by.keys.keys()
    return not own_keys.isdisjoint(run.hyperparameters)


def _relates(compiled: CompiledRule) -> bool:
    """Return whether a rule is about more than a value, in a way that only its benchmark has."""
    has_formula = compiled.in_passing or compiled.at_the_end
    return bool(has_formula or compiled.reaches or compiled.tensors)


def _is_kept(key_rules: KeyRules, place: Occurrence) -> bool:
    """Return whether what was found of a key is certain to keep all rules of that key."""
    if not place.lines:
        return not any(compiled.rule.occurs for compiled in key_rules.rules)
    if key_rules.related or key_rules.ordered or not place.found:
        return False
    if any(map(_relates, key_rules.rules)):
        return False
    return _passes(key_rules.rules, place.found)


def _passes(rules: Iterable[CompiledRule], values: Iterable[object]) -> bool:
    """Return whether all values pass the checks of all rules."""
    records = [Record("", 0, value, {}) for value in values]
    checks = list(chain.from_iterable([compiled.checks for compiled in rules]))
    try:
        return all(check.test(record, {}) for check in checks for record in records)
    except _INCOMPARABLE:
        return False
