"""How often the keys of a log are logged."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending, Repeated, Severity
from mlperf_pkg.infra.text import letters, nearest
from mlperf_pkg.log.record import shown
from mlperf_pkg.rulebook.constraints import needed_in_words
from mlperf_pkg.rulebook.formula import LoggedKey, Seen
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.run.rule_findings import RuleFindings

# Keys that a truncated log lacks. By the rules its run did not converge, which is forgiven once.
_AT_THE_END = frozenset(
    {"block_stop", "epoch_stop", "eval_accuracy", "eval_start", "eval_stop", "run_stop"}
)
_LIKENESS = 0.75  # of the spellings of one word
_MAX_LETTERS = 80  # of a key that is not hostile


class RecordCounts:
    """Compares the number of records of each key with the rules, at the end of a log.

    ``seen`` are the records by key; ``hidden`` are the keys of records that the log holds but that
    the official parser does not read; ``unruled`` are the keys that it holds but no rule needs.
    """

    def __init__(
        self, seen: Seen, hidden: Set[str], unruled: Set[str], findings: RuleFindings
    ) -> None:
        """Take all records of a log."""
        self._seen = seen
        self._hidden = hidden
        self._unruled = unruled
        self._findings = findings

    def check(self, rule: Rule) -> None:
        """Check how often the key of a rule is logged."""
        occurs = rule.occurs
        logged = self._seen.get(rule.key)
        if not isinstance(occurs, dict):
            if logged is None:
                self._report_missing(rule, {rule.key})
            elif occurs == "once" and logged.count > 1:
                self._report_repeated(rule, logged)
        elif "or" in occurs:
            if logged is None and occurs["or"] not in self._seen:
                self._report_missing(rule, {rule.key, occurs["or"]})
        else:
            self._check_limits(rule, logged, occurs)

    def _report_missing(self, rule: Rule, keys: Set[str]) -> None:
        times = "once" if rule.occurs == "once" else "at least once"
        is_hidden = bool(keys & self._hidden)
        is_cut_off = rule.key in _AT_THE_END and "run_stop" not in self._seen
        if rule.basis is Basis.BOTH and (is_hidden or is_cut_off):
            rule = replace(rule, basis=Basis.OFFICIAL)
        subject = rule.key
        neither = [f"neither is {other}" for other in sorted(keys - {subject})]
        problem = ", and ".join(["is not logged", *neither])
        instead = None
        if is_hidden:
            subject = " or ".join(sorted(keys))
            problem = "appears only on lines that the official checker ignores"
        else:
            instead = key_instead_of(rule.key, self._unruled)
        if instead:
            problem = f"is not logged, but {instead} is"
            hint = f"if {instead} means the same, log its value under the key {rule.key}"
            rule = replace(rule, hint=rule.hint or hint)
        expected = times
        if instead:
            expected = f"{rule.key} {times}"
        elif len(keys) > 1:
            expected = f"one of them {times}"
        message = f"{subject} {problem}; expected {expected}"
        self._findings.add(rule, None, value=instead, expected=f"logged {times}", message=message)

    def _check_limits(
        self, rule: Rule, logged: LoggedKey | None, limits: Mapping[str, Any]
    ) -> None:
        """Check ``at_least`` and ``at_most`` of the number of records, equal or not."""
        count = logged.count if logged else 0
        at_most = limits.get("at_most", count)
        if limits.get("at_least", 0) <= count <= at_most:
            return
        number = None
        kind: type[Finding] = Pending
        if logged and count > at_most:
            number = logged.last_number
            kind = Repeated if logged.same else Finding
        words = needed_in_words(limits)
        self._findings.add(
            rule,
            number,
            value=count,
            expected=f"logged {words} times",
            message=f"{_times_logged(rule, count)}; expected {words} times",
            kind=kind,
        )

    def _report_repeated(self, rule: Rule, logged: LoggedKey) -> None:
        if logged.same:
            kind: type[Finding] = Pending
            rule = replace(rule, severity=Severity.NOTE, basis=Basis.ADVICE)
            values = "always with the same value"
        else:
            kind = Finding
            line = self._findings.line_of(logged.first_number)
            last_line = self._findings.line_of(logged.last_number)
            first = f"{rule.key} is {shown(logged.first)} on line {line}"
            hint = f"{first}, and {shown(logged.last)} on line {last_line}"
            rule = replace(rule, hint=rule.hint or hint)
            values = "with different values"
        self._findings.add(
            rule,
            logged.last_number,
            value=logged.count,
            expected="logged once",
            message=f"{_times_logged(rule, logged.count)}, {values}; expected once",
            kind=kind,
        )


def key_instead_of(key: str, others: Iterable[str]) -> str | None:
    """Return which of ``others`` is probably logged in place of a key; None if none is."""
    expected = _words_of(key)
    for other in sorted(others):
        is_name = other.isidentifier() and len(other) <= _MAX_LETTERS
        if is_name and (letters(other) == letters(key) or _are_alike(expected, _words_of(other))):
            return other
    return None


def _are_alike(expected: Sequence[str], logged: Sequence[str]) -> bool:
    """Return whether the words of two keys differ in spelling alone, or one key lacks some.

    As opt_epsilon lacks one of opt_lamb_epsilon. The numbers and the last words are the same.
    """
    shorter, longer = sorted((expected, logged), key=len)
    if len(shorter) == 1 or _numbers(expected) != _numbers(logged):
        return False
    if len(shorter) == len(longer):
        return all(map(_are_spelt_alike, expected, logged))
    return set(shorter) <= set(longer) and shorter[-1] == longer[-1]


def _are_spelt_alike(word: str, other: str) -> bool:
    return word == other or nearest(word, [other], _LIKENESS) is not None


def _words_of(key: str) -> list[str]:
    """Return the words of a key; ``lr`` stands for two, as in the names of the constants."""
    words: list[str] = []
    for word in key.lower().split("_"):
        words += ["learning", "rate"] if word == "lr" else [word]
    return words


def _numbers(words: Iterable[str]) -> list[str]:
    return [word for word in words if word.isdecimal()]


def _times_logged(rule: Rule, count: int) -> str:
    times = "time" if count == 1 else "times"
    return f"{rule.key} is logged {{found:,}} {times}"
