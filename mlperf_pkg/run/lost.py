"""What a log has lost: which of its findings are about records in text that cannot be read.

That a record is missing follows from a damaged line only if the record stands there: the damaged
text names its key, or lies where it belongs, between a record and the next of its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.record import TOKEN, Record, decode_line
from mlperf_pkg.rulebook.load import Evidence, explanations
from mlperf_pkg.rulebook.table import CompiledRule, RuleTable, related_keys

_MOST_GAPS = 1000  # of one log
_MOST_TEXT = 10_000  # bytes of a gap
# Compiled on first use, as few logs are damaged.
_LIKE_RECORD = rb"(?i)mllog|:::ml"
_OF_RECORD = b'"time_ms"'
_ABOUT_OTHERS = frozenset({"after", "before", "same_as", "within_minutes", "metadata"})
_PLAIN = str.maketrans({"\\": "", "'": '"'})  # as in a string of JSON, or in Python's repr
_KEY = r'key"\s*:\s*"'
_WHOLE = r'\w+"'
_BEFORE_VALUE = r'"(\w+)"\s*,\s*"value"'
_VALUE_FOLLOWS = r'"\s*,\s*"value"'
_SURE = 4  # characters of a key after other text on the same line

SEEDS = "SEED103"
"""The code of the finding that the official seed checker refuses a log."""

_KEYS = {"SEED101": "seed", "RUN130": "run_stop", "RUN140": "run_stop"}
"""The keys that are missing where a code is reported that is not a rule's."""


class Gap:
    """Text of a log that begins like a record on a ``line`` and cannot be read as one."""

    def __init__(self, line: int, text: bytes) -> None:
        """Begin with the ``text`` after the marker."""
        self.line = line
        self._text = text.decode("latin-1").translate(_PLAIN)
        self._is_parsed = False
        self._names: set[str] = set()
        self._torn: list[str] = []

    def add(self, text: bytes) -> None:
        """Add a line after it that is not a record."""
        if len(self._text) < _MOST_TEXT:
            self._text += text.decode("latin-1").translate(_PLAIN)

    @property
    def is_nameless(self) -> bool:
        """Whether it holds no key, not even a part of one."""
        self._parse()
        return not self._names and not self._torn

    def holds(self, key: str, keys: Iterable[str]) -> bool:
        """Return whether it names a key, or begins like this one of all ``keys`` alone."""
        self._parse()
        if key in self._names:
            return True
        for tail in self._torn:
            if _is_joined(key, tail):
                return True
            if not re.search(_VALUE_FOLLOWS, tail) and _is_likest(key, tail, keys):
                return True
        return False

    def _parse(self) -> None:
        """Find the names of keys, and what follows ``"key": "`` where it is not a whole name."""
        if self._is_parsed:
            return
        self._is_parsed = True
        self._names.update(re.findall(_BEFORE_VALUE, self._text))
        for match in re.finditer(_KEY, self._text):
            tail = self._text[match.end() :]
            whole = re.match(_WHOLE, tail)
            if whole:
                self._names.add(whole[0][:-1])
            else:
                self._torn.append(tail)


def _is_likest(key: str, tail: str, keys: Iterable[str]) -> bool:
    """Return whether the text begins like a key more than like any other one."""
    others = [_alike(other, tail) for other in keys if other != key]
    return _alike(key, tail) > max(others, default=0)


def _alike(key: str, tail: str) -> int:
    """Return how many of their first characters are the same."""
    for length, (character, other) in enumerate(zip(key, tail, strict=False)):
        if character != other:
            return length
    return min(len(key), len(tail))


def _is_joined(key: str, tail: str) -> bool:
    """Return whether the text begins with a part of a key, and has the rest before a value."""
    for length in range(len(key) - 1, 0, -1):
        if not tail.startswith(key[:length]):
            continue
        rest = re.search(re.escape(key[length:]) + _VALUE_FOLLOWS, tail[length:])
        if rest:
            before = tail[length : length + rest.start()]
            return before.endswith("\n") or len(key) - length >= _SURE
    return False


@per_rulebook
def damage_codes() -> frozenset[str]:
    """Return the codes of findings on text that cannot be read, which may hold records."""
    damages: set[str] = set()
    for explanation in explanations():
        if explanation.evidence is Evidence.LOST:
            damages.update(explanation.causes)
    return frozenset(damages)


# ---- the gaps of a log --------------------------------------------------------------------


class _Scan:
    """The gaps of a log, and the lines on which the ``followed`` keys are logged."""

    def __init__(self, source: Source, followed: frozenset[str]) -> None:
        """Read a log again, line by line."""
        self.gaps: list[Gap] = []
        self.lines: dict[str, list[int]] = {}
        self._followed = followed
        is_open = False
        with source.open() as stream:
            for number, line in enumerate(stream, 1):
                if TOKEN in line:
                    is_open = self._take_record(line, number)
                elif re.search(_LIKE_RECORD, line) or (_OF_RECORD in line and not is_open):
                    is_open = self._begin(line, number)
                elif is_open:
                    self.gaps[-1].add(line)

    def _take_record(self, line: bytes, number: int) -> bool:
        """Read a line with a marker, and return whether a gap is open after it."""
        _, *shadowed, raw = line.split(TOKEN)
        content = decode_line(raw)
        is_open = False
        if shadowed:
            is_open = self._begin(b"".join(shadowed), number)
        if not isinstance(content, Record):
            is_open = self._begin(raw, number)
        elif isinstance(content.key, str) and content.key in self._followed:
            self.lines.setdefault(content.key, []).append(number)
        return is_open

    def _begin(self, text: bytes, number: int) -> bool:
        is_kept = len(self.gaps) < _MOST_GAPS
        if is_kept:
            self.gaps.append(Gap(number, text))
        return is_kept


# ---- what they hold -----------------------------------------------------------------------


class _Want(Struct):
    """What a finding lacks: a record of one of the ``keys``, before its ``lines``.

    Without lines, it may be anywhere. Of the key ``between``, it is after the record before.
    """

    code: str
    keys: frozenset[str]
    lines: tuple[int, ...] = ()
    between: str = ""


def lost_records(
    source: Source, findings: Sequence[Finding], table: RuleTable, *, unread_seeds: bool
) -> dict[str, tuple[int, ...]]:
    """Return the lines of damaged text that hold what findings lack, by their codes.

    ``unread_seeds`` says that the official seed checker refuses the log for these lines alone.
    """
    if not any(finding.code in damage_codes() for finding in findings):
        return {}
    wants = list(_wants(findings, table))
    followed = [want.keys for want in wants]
    scan = _Scan(source, table.followed.union(*followed))
    lost: dict[str, tuple[int, ...]] = {}
    if unread_seeds:
        lost[SEEDS] = tuple([gap.line for gap in scan.gaps])
    for want in wants:
        lines = _lines_with(want, scan, table.followed)
        if lines:
            lost[want.code] = lines
    return lost


def _wants(findings: Iterable[Finding], table: RuleTable) -> Iterator[_Want]:
    """Yield what the findings lack that may be due to a missing record."""
    for code, key in _KEYS.items():
        yield _Want(code, frozenset([key]))
    rules: dict[str, CompiledRule] = {}
    for key_rules in table.keys.values():
        rules.update((compiled.rule.code, compiled) for compiled in key_rules.rules)
    for finding in findings:
        compiled = rules.get(finding.code)
        if compiled is None:
            continue
        place = finding.occurrences[0]
        if not place.lines:
            yield _Want(finding.code, _counted_keys(compiled))
        elif place.count == len(place.lines):
            yield from _wants_at(compiled, place.lines)


def _counted_keys(compiled: CompiledRule) -> frozenset[str]:
    rule = compiled.rule
    keys = {rule.key}
    if isinstance(rule.occurs, Mapping) and "or" in rule.occurs:
        keys.add(rule.occurs["or"])
    return frozenset(keys)


def _wants_at(compiled: CompiledRule, lines: tuple[int, ...]) -> Iterator[_Want]:
    """Yield what a rule lacks that is broken on these lines; nothing if a value breaks it."""
    rule = compiled.rule
    if compiled.reaches:
        yield _Want(rule.code, frozenset([rule.key]))
        return
    if not rule.constraints.keys() <= _ABOUT_OTHERS:
        return
    keys = {*related_keys(rule), *rule.constraints.get("after", ())} - {rule.key}
    formula = compiled.in_passing or compiled.at_the_end
    between = ""
    if rule.nth_since or (formula and formula.previous):
        between = rule.key
        keys.add(between)
    if keys:
        yield _Want(rule.code, frozenset(keys), lines, between)


def _lines_with(want: _Want, scan: _Scan, keys: Iterable[str]) -> tuple[int, ...]:
    """Return the lines of the gaps that hold what is wanted; nothing if one line lacks it yet."""
    if not want.lines:
        return tuple([gap.line for gap in scan.gaps if _holds_any(gap, want.keys, keys)])
    lines: dict[int, None] = {}
    for line in want.lines:
        before = [gap for gap in scan.gaps if gap.line < line]
        found_lines = [gap.line for gap in before if _fills(gap, want, line, scan, keys)]
        if not found_lines:
            return ()
        lines.update(dict.fromkeys(found_lines))
    return tuple(lines)


def _fills(gap: Gap, want: _Want, line: int, scan: _Scan, keys: Iterable[str]) -> bool:
    """Return whether a gap before a line holds what is wanted there."""
    if _holds_any(gap, want.keys - {want.between}, keys):
        return True
    earlier = [other for other in scan.lines.get(want.between, ()) if other < line]
    if earlier and gap.line < earlier[-1]:
        return False
    return gap.holds(want.between, keys) or (bool(earlier) and gap.is_nameless)


def _holds_any(gap: Gap, wanted: Iterable[str], keys: Iterable[str]) -> bool:
    return any(gap.holds(key, keys) for key in wanted)
