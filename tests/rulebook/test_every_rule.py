"""Every rule has a log that passes it, and one for every way to break it, without exception."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from typing import Any

import pytest

from mlperf_pkg.findings import Finding
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, OF_VALUE, needed_in_words
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import RuleTable, rule_table
from tests.helpers.rule_logs import (
    EVALUATION,
    Log,
    Place,
    cases,
    faults_of,
    passing_log,
    read,
    to_bytes,
)

_DAY_MS = 86_400_000
_TRIALS: tuple[Any, ...] = (
    *(0.7, None, "", "x", 0, -1, 1, 3, 1e9, 50.3, [], [1, 2, 3], {}, "unheard of", False),
    *({"BBOX": 0.1, "SEGM": 0.1}, [40, 51.3], float("inf")),
)
_METADATA: tuple[Any, ...] = ({}, {"epoch_count": 1}, {"epoch_count": 0, "first_epoch_num": 1})


@dataclass(frozen=True)
class Case:
    """A rule where it first appears, and what of it to break: a word of the vocabulary."""

    place: Place
    rule: Rule
    word: str

    def __str__(self) -> str:
        """The test's name."""
        return "-".join((*self.place[:4], self.rule.code, self.word))

    @property
    def needed(self) -> dict[str, str]:
        """What a finding must say was expected, by the word that is broken."""
        rule = self.rule
        words = {
            **{word: CONSTRAINTS[word].needed(a) for word, a in rule.constraints.items()},
            "reaches": needed_in_words(rule.reaches or {}),
            "tensors": f"{len(rule.tensors or ())} tensors, each once",
            "reached": self._target,
            "covers_target": "no earlier than the evaluation that reached the target",
        }
        if fields := rule.constraints.get("metadata_fields"):
            words["metadata_fields"] = OF_VALUE["fields"].needed(fields)
        return {word: rule.needed or needed for word, needed in words.items()}

    @property
    def _target(self) -> str:
        """What the evaluations of the benchmark must reach; in Open, that may be nothing."""
        rules = [compiled.rule for compiled in _table(self.place).concluded]
        targets = [r.needed or needed_in_words(r.reaches) for r in rules if r.reaches]
        return targets[-1] if targets else ""


Broken = tuple[Log, frozenset[int | None]]
"""A log that should break a rule, and the lines where the finding may be."""


def _table(place: Place) -> RuleTable:
    usage, name, benchmark, division, choice = place
    return rule_table(usage, name, division, benchmark, choice)


def _every_rule() -> Iterator[Case]:
    """Every wording of a rule, once, in the oldest round that has it."""
    wordings: set[tuple[str, str, str, str]] = set()
    for place in cases():
        usage, _, benchmark, division, _ = place
        for compiled in chain.from_iterable(of.rules for of in _table(place).keys.values()):
            rule = compiled.rule
            # Rules of the round are in every benchmark of it: one of them will do.
            scope = "" if rule.code.startswith("RUN") else benchmark
            wording = (usage, scope, division, repr(rule))
            if wording not in wordings:
                wordings.add(wording)
                for word in _words(rule):
                    yield Case(place, rule, word)


_FIELDS = ["occurs", "formula", "reaches", "tensors", "reached", "covers_target", "no_later_than"]


def _words(rule: Rule) -> list[str]:
    fields = [name for name in _FIELDS if getattr(rule, name) not in (None, False, ())]
    return [*rule.constraints, *fields]


CASES = list(_every_rule())
_passing = lru_cache(passing_log)
_read = lru_cache(read)


@pytest.mark.parametrize(("usage", "round_"), sorted({place[:2] for place in cases()}))
def test_passing_logs_have_no_finding(usage: str, round_: str) -> None:
    places = [place for place in cases() if place[:2] == (usage, round_)]
    runs = {place: read(to_bytes(passing_log(*place)), usage, round_) for place in places}
    assert {place: run.findings for place, run in runs.items() if run.findings} == {}
    assert [place for place, run in runs.items() if not run.converged] == []


@pytest.mark.parametrize(("usage", "round_"), sorted({case.place[:2] for case in CASES}))
def test_breaking_logs_have_the_finding_at_its_line(usage: str, round_: str) -> None:
    rows = [case for case in CASES if case.place[:2] == (usage, round_)]
    assert [problem for problem in map(_problem_of, rows) if problem] == []


def _problem_of(case: Case) -> str:
    """What is wrong with the findings on the logs that break a rule; empty if nothing is."""
    passing = _passing(*case.place)
    tried = []
    for log, lines in _broken(passing, case):
        run = _read(to_bytes(log), *case.place[:2])
        findings = [finding for finding in run.findings if finding.code == case.rule.code]
        if any(f.line in lines and _of_word(f, case) for f in findings):
            faults = [text for finding in findings for text in faults_of(finding)]
            whole = all(finding.message and finding.source for finding in findings)
            return "" if whole and not faults else f"{case}: {findings} {faults}"
        tried.append([finding.line for finding in findings])
    return f"{case}: no log breaks {case.word} of {case.rule}: {tried}"


def _of_word(finding: Finding, case: Case) -> bool:
    if finding.severity != case.rule.severity:
        return False
    expected = str(finding.expected)
    if case.word == "occurs":
        return expected.startswith("logged ")
    if case.word == "no_later_than":
        return expected.removeprefix("no later than ") in case.rule.no_later_than
    if case.word == "formula":  # it says the values of a run: tests/rulebook/test_expectation.py
        return expected not in case.needed.values() or expected == case.rule.needed
    return expected.endswith(case.needed[case.word])


def _broken(log: Log, case: Case) -> Iterator[Broken]:
    """Logs that differ from a passing one in the records of the rule's key."""
    rule = case.rule
    numbers = [n for n, record in enumerate(log) if record["key"] == rule.key]
    if case.word == "occurs":
        yield from _left_out(log, rule)
    elif case.word == "tensors":
        yield ([r for n, r in enumerate(log) if n != numbers[0]], _line(numbers[-1] - 1))
    elif case.word in ("covers_target", "no_later_than"):
        keys = EVALUATION if case.word == "covers_target" else (rule.key,)
        for late_keys in (keys, (*keys, "block_start", "epoch_start")):
            late = [{**r, "time_ms": r["time_ms"] + _DAY_MS * (r["key"] in late_keys)} for r in log]
            yield (late, _line(numbers[0]))
    elif case.word == "reached":
        yield from _missed(log, numbers[0])
    elif not numbers:
        yield from _joint(log)
    else:
        # What is likely to break it comes first, as each log is read.
        kinds = [_changed(log, numbers, case), _placed(log, numbers[-1], rule)]
        yield from chain(*(kinds if case.word in OF_VALUE else reversed(kinds)))


def _left_out(log: Log, rule: Rule) -> Iterator[Broken]:
    if isinstance(rule.occurs, dict) and "at_most" in rule.occurs:
        once = next(record for record in log if record["key"] == rule.key)
        yield ([*log, once], _line(len(log)))
    gone = {rule.key}
    if isinstance(rule.occurs, dict) and "or" in rule.occurs:
        gone.add(rule.occurs["or"])
    if rule.key not in [record["key"] for record in log]:
        gone.add("eval_accuracy")  # which is joined to make the rule's key
    yield ([record for record in log if record["key"] not in gone], frozenset([None]))


def _missed(log: Log, stop: int) -> Iterator[Broken]:
    """The last evaluation before ``run_stop`` is worse than the one before it."""
    (number,) = (n for n, record in enumerate(log) if record["key"] in EVALUATION)
    for trial in (0.1, 99.0, {"BBOX": 0.1, "SEGM": 0.1}):
        missed = {**log[number], "value": trial}
        yield ([*log[: number + 1], missed, *log[number + 1 :]], _line(stop + 1))


def _joint(log: Log) -> Iterator[Broken]:
    """Metrics that are judged together: one of them is missing, or bad."""
    metrics = [n for n, record in enumerate(log) if "metric" in record["metadata"]]
    yield ([r for n, r in enumerate(log) if n != metrics[0]], frozenset([metrics[0] + 1]))
    bad = [{**r, "value": -9.0 if r["metadata"].get("metric") == "FID" else 9.0} for r in log]
    yield ([bad[n] if n in metrics else r for n, r in enumerate(log)], _line(metrics[-1]))
    unnamed = [{**r, "metadata": {**r["metadata"], "metric": "else"}} for r in log]
    mixed = [unnamed[n] if n in metrics[:1] else r for n, r in enumerate(log)]
    yield (mixed, _line(metrics[1]))


def _placed(log: Log, number: int, rule: Rule) -> Iterator[Broken]:
    yield from _moved(log, number)
    yield from _late(log, rule)
    yield ([*log[: number + 1], *log[number:]], _line(number + 1))
    yield from _sparse(log, number)


def _moved(log: Log, number: int) -> Iterator[Broken]:
    rest = [record for n, record in enumerate(log) if n != number]
    yield ([log[number], *rest], frozenset([1]))
    yield ([*rest, log[number]], _line(len(rest)))
    # The official checker counts minutes by the records' own time.
    late = [{**r, "time_ms": r["time_ms"] + _DAY_MS * (n >= number)} for n, r in enumerate(log)]
    yield (late, _line(number))


def _sparse(log: Log, number: int) -> Iterator[Broken]:
    """Two more records, at positions that no schedule has."""
    metadata = log[number]["metadata"]
    names = metadata.keys() & {"epoch_num", "samples_count"}
    for name, positions in product(names, ((10, 11), (60, 70), (10**7, 10**12))):
        more = [{**log[number], "metadata": {**metadata, name: at}} for at in positions]
        yield ([*log[: number + 1], *more, *log[number + 1 :]], _line(number + 1, number + 2))


def _late(log: Log, rule: Rule) -> Iterator[Broken]:
    """What frees from a rule is logged only after it."""
    until = rule.constraints.get("within_minutes", {}).get("until")
    if until:
        late = [r for r in log if r["key"] != until] + [r for r in log if r["key"] == until]
        yield (late, _line([r["key"] for r in late].index(rule.key)))


def _changed(log: Log, numbers: list[int], case: Case) -> Iterator[Broken]:
    """Other values and other metadata in all records of the key, first what the word is about."""
    values = (*_TRIALS, *case.rule.constraints.get("none_of", ()))
    trials_by_name = {"value": values, "metadata": _METADATA}
    for name in sorted(trials_by_name, reverse=not case.word.startswith("metadata")):
        for trial in trials_by_name[name]:
            edited = [{**r, name: trial} if n in numbers else r for n, r in enumerate(log)]
            yield (edited, _line(*numbers))
    for number, trial in product(numbers, (-1, 7, "x", 10**12)):
        metadata = log[number]["metadata"]
        for name in metadata:
            changed = {**log[number], "metadata": {**metadata, name: trial}}
            yield [*log[:number], changed, *log[number + 1 :]], _line(number)


def _line(*numbers: int) -> frozenset[int | None]:
    return frozenset(number + 1 for number in numbers)


def test_the_whole_rulebook_is_enumerated() -> None:
    """As many rules as the rulebook has, so that an empty enumeration cannot pass."""
    codes = {(case.place[0], case.rule.code) for case in CASES}
    assert len(codes) > 500
