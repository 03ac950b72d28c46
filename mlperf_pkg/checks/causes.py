"""Which finding of a report follows from which: by the codes in ``findings.yaml``, and by evidence.

A finding has a cause only where each of its places is explained. Verdicts and severities stay.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import TypeAlias

from msgspec.structs import replace

from mlperf_pkg.checks import meant
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.runs import failed_runs, unconverged_runs
from mlperf_pkg.findings import Basis, Finding, Occurrence, Severity
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.rulebook.load import ANY_RULE, Evidence, Explanation, codes, explanations
from mlperf_pkg.rulebook.model import EVALUATION_KEYS, POSITION_UNITS
from mlperf_pkg.run.model import Run

_Test: TypeAlias = Callable[[Finding, "_Row"], Finding | None]
"""Returns which finding of a row is the cause of another one, None if none of them is."""

_CRASH = r"line (\d+):"
_NUMBER = r"\d[\d,]*(\.\d+)?"
_LEAST_FACTOR = 2  # between two units
_FAILED_LOGS = "SET103"
_CRASHES = "SET104"
_NOT_CONVERGED = frozenset({"RUN130", "RUN140", "LOG110", "LOG112", "LOG113"})
_POWER = "POW"


def with_causes(
    findings: Sequence[Finding], runs: Iterable[Run], contexts: Iterable[SetContext]
) -> tuple[Finding, ...]:
    """Return the findings of a report, which have ids, with their causes.

    What follows from a cause has no remedy of its own: its hint names the cause.
    """
    causes = _Causes(findings, runs, contexts)
    for explanation in explanations():
        causes.explain(explanation)
    return tuple([causes.explained(finding) for finding in findings])


class _Row:
    """The findings that a row of ``findings.yaml`` names as causes, by their sets and logs."""

    def __init__(self, causes: Iterable[Finding]) -> None:
        """Sort the causes; what is waived, or no more than a note, explains nothing."""
        self._by_set: dict[str | None, list[Finding]] = {}
        self._by_path: dict[str, list[tuple[Finding, Occurrence]]] = {}
        for cause in causes:
            if cause.waiver is None and cause.severity is not Severity.NOTE:
                self._by_set.setdefault(cause.set, []).append(cause)
                for place in cause.occurrences:
                    self._by_path.setdefault(place.path, []).append((cause, place))

    @property
    def is_empty(self) -> bool:
        """Whether the report has none of the causes."""
        return not self._by_set

    @property
    def outside(self) -> list[Finding]:
        """The causes that are not about a result set."""
        return self._by_set.get(None, [])

    def in_set(self, effect: Finding) -> list[Finding]:
        """Return the causes in the result set of an effect."""
        return [] if effect.set is None else self._by_set.get(effect.set, [])

    def at(self, path: str) -> list[tuple[Finding, Occurrence]]:
        """Return the causes in a log, each with what was found there."""
        return self._by_path.get(path, [])


class _Causes:
    """The causes of the findings of a report, by the ids of what follows from them."""

    def __init__(
        self, findings: Sequence[Finding], runs: Iterable[Run], contexts: Iterable[SetContext]
    ) -> None:
        """Start without a cause."""
        self._by_code: dict[str, list[Finding]] = {}
        self._by_set: dict[str | None, list[Finding]] = {}
        for finding in findings:
            self._by_code.setdefault(_code_in_rows(finding), []).append(finding)
            self._by_set.setdefault(finding.set, []).append(finding)
        self._runs = {run.path: run for run in runs}
        self._contexts = {context.id: context for context in contexts}
        self._causes: dict[str, Finding] = {}
        self._tests: Mapping[Evidence, _Test] = {
            Evidence.LOST: self._on_lines,
            Evidence.REPAIRED: self._repaired,
            Evidence.BENCHMARK: self._kept_otherwise,
            Evidence.DIVISION: self._kept_otherwise,
            Evidence.ROUND: self._kept_otherwise,
            Evidence.BUT_FOR: self._but_for,
            Evidence.LINE: self._on_lines,
            Evidence.RUNS: self._in_runs,
            Evidence.SET: self._in_set,
            Evidence.UNIT: self._in_unit,
            Evidence.ABSENT: self._absent,
        }

    def explain(self, explanation: Explanation) -> None:
        """Find the causes of the effects of an explanation that have none yet."""
        row = _Row(self._of(explanation.causes))
        if row.is_empty:
            return
        test = self._tests[explanation.evidence]
        for effect in self._of(explanation.effects):
            if effect.id in self._causes:
                continue
            cause = test(effect, row)
            # The text comes last, as it takes long to make.
            if cause is None or (explanation.says and explanation.says not in effect.text):
                continue
            if self._root(cause).id != effect.id:
                self._causes[effect.id] = cause

    def explained(self, finding: Finding) -> Finding:
        """Return a finding with its cause, if it has one."""
        cause = self._causes.get(finding.id)
        if cause is None:
            return finding
        place = cause.about if cause.line is None else f"{cause.path}:{cause.line}"
        hint = f"this follows from {cause.code} in {place}; fix {cause.code} first"
        return replace(finding, cause=cause.id, hint=hint)

    def _of(self, codes_in_row: Iterable[str]) -> Iterator[Finding]:
        for code in codes_in_row:
            yield from self._by_code.get(code, ())

    def _root(self, finding: Finding) -> Finding:
        """Return what a finding follows from in the end, which may be itself."""
        while finding.id in self._causes:
            finding = self._causes[finding.id]
        return finding

    # ---- the same set, the same runs, the same lines ---------------------------------------

    def _in_set(self, effect: Finding, row: _Row) -> Finding | None:
        return next(iter(row.in_set(effect)), None)

    def _in_runs(self, effect: Finding, row: _Row) -> Finding | None:
        paths = _paths(effect)
        for cause, _ in row.at(effect.occurrences[0].path):
            if cause.id not in self._causes and paths <= _paths(cause):
                return cause
        return None

    def _in_unit(self, effect: Finding, row: _Row) -> Finding | None:
        """Return the rule that all runs break by a factor with which the RCP test would pass."""
        context = self._contexts.get(effect.set or "")
        if context is None or not context.runs or effect.found is None or not effect.expected:
            return None
        for cause in row.in_set(effect):
            factor = _factor(cause) if cause.runs == cause.of_runs else None
            would_pass = factor is not None and effect.found * factor >= effect.expected
            # The codes come last, as the rules may have to be compiled.
            if would_pass and cause.code in _codes_of_positions(context.runs[0]):
                return cause
        return None

    def _absent(self, effect: Finding, row: _Row) -> Finding | None:
        """Return the first of the causes if they keep as many logs out of sets as runs are missing.

        If runs are missing in several sets, the logs suffice for all.
        """
        if effect.found >= effect.expected:
            return None
        missing = 0
        for finding in self._by_code[effect.code]:
            missing += max(0, finding.expected - finding.found)
        paths: set[str] = set()
        for cause in row.outside:
            paths |= _paths(cause)
        return row.outside[0] if len(paths) >= missing else None

    def _repaired(self, effect: Finding, row: _Row) -> Finding | None:
        """Return the damage without which no run of an effect has it."""
        runs = [self._runs.get(place.path) for place in effect.occurrences]
        if all(run and effect.code in run.by_damage for run in runs):
            return self._in_runs(effect, row)
        return None

    def _on_lines(self, effect: Finding, row: _Row) -> Finding | None:
        """Return the first of the causes, at its line, if each log has one where the effect arose.

        That is on damaged text that holds what is missing, or where the official checker crashes.
        """
        first: Finding | None = None
        for place in effect.occurrences:
            run = self._runs.get(place.path)
            lines = _lines_of(effect.code, run) if run else ()
            causes = [cause for cause, where in row.at(place.path) if _is_on(where, lines)]
            if not causes:
                return None
            if first is None:
                first = replace(causes[0], path=place.path, line=lines[0])
        return first

    # ---- without the runs of the cause, the set would stay within the limit ----------------

    def _but_for(self, effect: Finding, row: _Row) -> Finding | None:
        """Return the cause but for which a set would have no more bad runs than it may have.

        The causes of one row count together, but rules only with those of the same code.
        """
        context = self._contexts.get(effect.set or "")
        if context is None:
            return None
        groups: dict[str, dict[str, Finding]] = {}
        for cause in row.in_set(effect):
            root = self._root(cause)
            group = cause.code if _code_in_rows(cause) == ANY_RULE else ""
            groups.setdefault(group, {})[root.id] = root
        blamed = self._blamed(effect, context) if groups else []
        for members in groups.values():
            explained = [roots for roots in blamed if roots and roots <= members.keys()]
            if explained and effect.found - len(explained) <= effect.expected:
                numbers = Counter(chain.from_iterable(explained))
                return members[max(members, key=lambda root: numbers[root])]
        return None

    def _blamed(self, effect: Finding, context: SetContext) -> list[set[str]]:
        """Return, for each bad run of a set, the ids of the first causes that make it one."""
        by_path: dict[str, list[Finding]] = {}
        for finding in self._by_set[effect.set]:
            for place in finding.occurrences:
                by_path.setdefault(place.path, []).append(finding)
        is_about_logs = effect.code == _FAILED_LOGS
        bad_runs = failed_runs(context) if is_about_logs else unconverged_runs(context)
        blamed: list[set[str]] = []
        for run in bad_runs:
            bad_codes = _rejecting(run) if is_about_logs else _unconverging(run)
            roots: set[str] = set()
            for finding in by_path.get(run.path, ()):
                is_of_power = is_about_logs and finding.code.startswith(_POWER)
                if finding.code in bad_codes or is_of_power:
                    roots.add(self._root(finding).id)
            blamed.append(roots)
        return blamed

    # ---- the run keeps the rules of the benchmark, round or division that it really has -----

    def _kept_otherwise(self, effect: Finding, row: _Row) -> Finding | None:
        """Return the cause by which the runs are not what they are judged as."""
        causes = row.in_set(effect)
        if not causes:
            context = self._contexts.get(effect.set or "")
            first = context.runs[0].path if context and context.runs else ""
            causes = [cause for cause, _ in row.at(first)]
        return next((cause for cause in causes if self._is_kept(effect, cause)), None)

    def _is_kept(self, effect: Finding, cause: Finding) -> bool:
        context = self._contexts.get(effect.set or cause.set or "")
        if context is None or cause.set not in (None, context.id):
            return False
        paths = _paths(cause)
        if cause.code == meant.DIVISION:
            paths = {run.path for run in context.runs}
        if _code_in_rows(effect) != ANY_RULE:
            has_all_runs = paths >= {run.path for run in context.runs}
            return has_all_runs and meant.is_kept_by_set(effect, cause, context)
        for place in effect.occurrences:
            run = self._runs.get(place.path)
            if run is None or place.path not in paths:
                return False
            if not meant.is_kept_by_run(run, effect.code, place, cause, context):
                return False
        return True


def _code_in_rows(finding: Finding) -> str:
    """Return how the rows of ``causes`` name the code of a finding."""
    return finding.code if finding.code in codes() else ANY_RULE


def _paths(finding: Finding) -> Set[str]:
    return {place.path for place in finding.occurrences}


def _lines_of(code: str, run: Run) -> tuple[int, ...]:
    """Return the lines of a log from which a finding may follow."""
    crash = re.match(_CRASH, run.crash or "")
    if code == _CRASHES and crash:
        return (int(crash[1]),)
    return run.lost.get(code, ())


def _is_on(place: Occurrence, lines: Sequence[int]) -> bool:
    """Return whether a finding is on one of the lines of a log; it keeps only its first lines."""
    if not lines:
        return False
    return place.count > len(place.lines) or not {*place.lines}.isdisjoint(lines)


def _codes_of_positions(run: Run) -> set[str]:
    """Return the codes of the rules of a run on how far training has come at evaluations."""
    table = meant.judging_rules(run)
    counting: set[str] = set()
    for key in EVALUATION_KEYS & table.keys.keys():
        for compiled in table.keys[key].rules:
            formula = compiled.in_passing or compiled.at_the_end
            if formula and not POSITION_UNITS.keys().isdisjoint(formula.members):
                counting.add(compiled.rule.code)
    return counting


def _factor(finding: Finding) -> float | None:
    """Return by what all values of a finding are too small; None unless it is one factor."""
    values = set(chain.from_iterable([place.found for place in finding.occurrences]))
    number = re.match(_NUMBER, str(finding.expected))
    if len(values) != 1 or not number:
        return None
    value = to_finite(values.pop())
    if value is None or value <= 0:
        return None
    factor = float(number[0].replace(",", "")) / value
    return factor if factor >= _LEAST_FACTOR else None


# ---- runs that count as failed ------------------------------------------------------------


def _rejecting(run: Run) -> set[str]:
    """Return the codes for which the official checker rejects the log of a run."""
    return {finding.code for finding in run.findings if finding.fails(Basis.OFFICIAL)}


def _unconverging(run: Run) -> set[str]:
    """Return the codes that say that a run did not converge: how it ended, or a missed target."""
    codes_of_run = {finding.code for finding in run.findings} & _NOT_CONVERGED
    if codes_of_run:
        return codes_of_run
    concluded = meant.judging_rules(run).concluded
    return {compiled.rule.code for compiled in concluded if compiled.reaches}
