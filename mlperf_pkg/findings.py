"""Findings as values: what was found, what was expected, where, and by which rule.

Findings of one code on one subject are folded into one, which keeps all their places.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

MAX_LINES = 10  # of one file
MAX_VALUES = 20  # different ones of one file, or of one finding
MAX_MESSAGES = 10  # different ones of one code; a hostile log might have millions
_MAX_WORDS = 6  # of them in a message
_MAX_CHARACTERS = 80  # of a value in a message
_MAX_TEXT = 10_000  # characters and members of a value; larger ones are cut
_MAX_LEVELS = 20  # nested lists and objects of a value; one more is text
_encode = json.JSONEncoder(ensure_ascii=False).encode
_SCALARS = frozenset({type(None), bool, int, float})

_PLACEHOLDER = re.compile(r"\{(found|expected)(?::(s|q|d|,|,?\.[0-9][fg]))?\}")
# Messages in which several values, found or expected, would hide which belong together.
_APART_IF_FOUND = re.compile(r"\b(?:at|epoch|seed) \{found|\{found:[sq]\}")
_APART_IF_EXPECTED = re.compile(r"\{found.*\{expected")

_OF_ONE = re.compile(
    r"(?<![\d.,])(?<!to )(?:\b(every) 1|(1)) (epoch|run|sample|second|step|time|token)s\b"
)


class Severity(StrEnum):
    """How much a finding weighs. Only errors fail a verdict and the exit status."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Basis(StrEnum):
    """The rule that a finding is based on.

    BOTH: the written rules and the official checker. OFFICIAL: the checker rejects what the
    rules allow. RULES: the rules forbid what the checker accepts. ADVICE: neither, our judgement.
    """

    BOTH = "both"
    OFFICIAL = "official"
    RULES = "rules"
    ADVICE = "advice"


NOTE: dict[str, Any] = {"basis": Basis.ADVICE, "severity": Severity.NOTE}
"""The weight of a finding of which a rule is in doubt."""


class Verdict(StrEnum):
    """The outcome of a check. What was not checked never passes."""

    PASS = "pass"  # noqa: S105 - a verdict, not a secret
    FAIL = "fail"
    NOT_CHECKED = "not_checked"

    @classmethod
    def of(cls, failed: bool) -> Verdict:
        """Return FAIL if ``failed``, else PASS."""
        return cls.FAIL if failed else cls.PASS

    @property
    def failure(self) -> Verdict:
        """This verdict if it is FAIL, else NOT_CHECKED: of a part that alone does not pass."""
        return Verdict.FAIL if self is Verdict.FAIL else Verdict.NOT_CHECKED

    @classmethod
    def worst(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """Return FAIL if any failed, else PASS if any was checked, else NOT_CHECKED."""
        distinct = set(verdicts)
        if cls.FAIL in distinct:
            return cls.FAIL
        if cls.PASS in distinct:
            return cls.PASS
        return cls.NOT_CHECKED


class Verdicts(Struct, frozen=True):
    """The two verdicts on one thing, always kept apart."""

    official: Verdict
    rules: Verdict

    @classmethod
    def worst(cls, pairs: Iterable[Verdicts]) -> Verdicts:
        """Return the worst official verdict, and the worst by the rules."""
        verdicts = list(pairs)
        official = Verdict.worst(pair.official for pair in verdicts)
        rules = Verdict.worst(pair.rules for pair in verdicts)
        return cls(official, rules)

    @property
    def failures(self) -> Verdicts:
        """What failed: of a part that alone is not enough to pass. The rest is not checked."""
        return Verdicts(self.official.failure, self.rules.failure)


class Waiver(Struct, frozen=True):
    """An approval of a finding, until the end of a day (ISO 8601, UTC)."""

    reason: str
    approved_by: str
    until: str


class Occurrence(Struct, frozen=True):
    """A file in which a finding was made: on which lines, how often, and with which values.

    ``lines`` are the first ``MAX_LINES`` different ones; none if the finding is about all of the
    file. ``found`` and ``expected`` are the different values, at most ``MAX_VALUES``; of numbers
    the least and the greatest.
    """

    path: str
    lines: tuple[int, ...] = ()
    count: int = 1
    found: tuple[Any, ...] = ()
    expected: tuple[Any, ...] = ()


class Finding(Struct, frozen=True):
    """One observation about a submission.

    ``path`` is relative to the argument that was checked, with ``/``; ``line`` is the 1-based line
    of that file, or None if the finding is about all of it. ``found`` and ``expected`` are JSON
    values; ``source`` names the document and section of the rule. A finding with a ``waiver`` is
    reported but fails the official verdict alone, as the official checker ignores waivers.

    ``message`` may have ``{found}`` and ``{expected}``, which ``text`` replaces by the values in
    words: ``{found:d}`` without commas between thousands, ``{found:.1f}`` with one decimal,
    ``{found:s}`` without quotation marks and brackets, ``{found:q}`` without brackets. If a list of
    values would hide what belongs together, they are those of the first place, and ``text`` counts
    the others.

    A folded finding has several ``places``; ``path``, ``line``, ``found`` and ``expected`` are
    then those of the first. Its ``subject`` is the path of a system description, a submission or a
    result set, or the id of a set of raw logs, whose folder may hold several sets; None means the
    file ``path``. ``set`` is the id of the result set that it is about. It is about ``runs`` of the
    ``of_runs`` runs of the set; both are None if it is not about single runs.

    A finding of a report has an ``id``, which ``in_report`` gives it. ``cause`` is the id of the
    finding from which it follows, None if none is known.
    """

    code: str
    message: str
    path: str
    line: int | None = None
    severity: Severity = Severity.ERROR
    basis: Basis = Basis.BOTH
    found: Any = None
    expected: Any = None
    hint: str | None = None
    source: str | None = None
    waiver: Waiver | None = None
    subject: str | None = None
    runs: int | None = None
    of_runs: int | None = None
    places: tuple[Occurrence, ...] = ()
    set: str | None = None
    id: str = ""
    cause: str | None = None

    @property
    def about(self) -> str:
        """The path of what the finding is about or, for a set of raw logs, its id."""
        return self.path if self.subject is None else self.subject

    @property
    def text(self) -> str:
        """The message with the values found and expected at all places."""
        if self.differs_by_place:
            return self.text_with(self.count - 1)
        return self._filled

    def text_with(self, others: int) -> str:
        """Return the text, and how many ``others`` are like this one."""
        shown = replace(self, places=()) if self.differs_by_place else self
        text = shown._filled
        return f"{text}; {others} more like this" if others else text

    @property
    def _filled(self) -> str:
        """The message with the values at all places."""
        text = self.message
        if "{" in text:
            text = _PLACEHOLDER.sub(lambda match: self._words(match[1], match[2]), text)
            if "1 " in text:  # a slow search is left out where it finds nothing
                text = _OF_ONE.sub(r"\1\2 \3", text)
        return text

    @property
    def differs_by_place(self) -> bool:
        """Whether values of several places in one list would hide which belong together."""
        if self.found is None or "{found" not in self.message:
            return False
        values = self._values("found")
        if len(values) > 1:
            has_text = any(isinstance(value, str) for value in values)
            if has_text or _APART_IF_FOUND.search(self.message):
                return True
        is_apart = _APART_IF_EXPECTED.search(self.message)
        return is_apart is not None and len(self._values("expected")) > 1

    @property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """The places, also of a finding that was not folded."""
        if self.places:
            return self.places
        lines = () if self.line is None else (self.line,)
        return (Occurrence(self.path, lines, 1, values_of(self.found), values_of(self.expected)),)

    @property
    def count(self) -> int:
        """How often the finding was made."""
        return sum(place.count for place in self.places) or 1

    @property
    def is_error(self) -> bool:
        """Whether this is an error that is not waived."""
        return self.severity is Severity.ERROR and self.waiver is None

    @property
    def sort_key(self) -> tuple[str, int, str, str]:
        """The order of findings: by file, then line, then code."""
        return (self.path, self.line or 0, self.code, self.message)

    def at(self, place: Occurrence) -> Finding:
        """Return the part of a folded finding that is about one of its places.

        Of a later place with several values, it is not known which was found where which was
        expected.
        """
        pair = (self.found, self.expected)
        if place != self.occurrences[0]:
            value = None if len(place.expected) > 1 else next(iter(place.found), None)
            pair = (value, next(iter(place.expected), None))
        return replace(
            self,
            path=place.path,
            line=next(iter(place.lines), None),
            found=pair[0],
            expected=pair[1],
            places=(place,),
            subject=None,
            runs=None,
            of_runs=None,
        )

    def fails(self, basis: Basis) -> bool:
        """Return whether this finding fails the verdict of ``basis`` (OFFICIAL or RULES)."""
        if self.basis not in (Basis.BOTH, basis):
            return False
        if basis is Basis.RULES:
            return self.is_error
        return self.severity is Severity.ERROR

    def _values(self, name: str) -> Sequence[Any]:
        """Return the different values that are found or expected at all places."""
        parts = [getattr(place, name) for place in self.occurrences]
        return parts[0] if len(parts) == 1 else distinct(parts)

    def _words(self, name: str, form: str | None) -> str:
        values = self._values(name)
        if name == "expected" and form is None:
            return in_words(_flat(values), "s", " or " if len(values) > 1 else ", ")
        return in_words(values, form, ", " if form in _FLAT_FORMS else " or ")


class Pending(Finding, frozen=True):
    """A finding that later records of a growing log may resolve: something is missing so far."""


class Unordered(Finding, frozen=True):
    """A finding on an evaluation and the one before it, which may be logged later."""


class Repeated(Unordered, frozen=True):
    """A finding on equal records, of which later ones may show that several processes log them."""


class Unchecked(Finding, frozen=True):
    """A finding that something was not checked: its verdicts never pass, and do not fail for it."""

    def fails(self, basis: Basis) -> bool:
        """Return False: what was not checked has no verdict."""
        del basis
        return False


def verdicts_of(findings: Iterable[Finding]) -> Verdicts:
    """Return the verdicts that follow from findings alone."""
    all_findings = list(findings)
    errors = [finding for finding in all_findings if finding.severity is Severity.ERROR]
    fails_officially = any(finding.fails(Basis.OFFICIAL) for finding in errors)
    fails_by_rules = any(finding.fails(Basis.RULES) for finding in errors)
    verdicts = Verdicts(Verdict.of(fails_officially), Verdict.of(fails_by_rules))
    return without_pass(verdicts, all_findings)


def without_pass(verdicts: Verdicts, findings: Iterable[Finding]) -> Verdicts:
    """Return verdicts in which nothing passes if something was not checked (``Unchecked``)."""
    if Unchecked in map(type, findings):
        return verdicts.failures
    return verdicts


def without_official(finding: Finding, hint: str) -> Finding:
    """Return the finding for something that the official checker accepts; ``hint`` says why."""
    if not finding.fails(Basis.OFFICIAL):
        return finding
    if finding.basis is Basis.BOTH:
        return replace(finding, basis=Basis.RULES)
    return replace(finding, severity=Severity.WARNING, hint=finding.hint or hint)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by path, line and code."""
    return tuple(sorted(findings, key=lambda finding: finding.sort_key))


def in_files(finding: Finding, files: Mapping[str, tuple[str, int]]) -> Finding:
    """Return a finding at places in files, where it may be at runs that are parts of files.

    ``files`` maps the path of such a run to its file and to its first line, which stands for all
    of it.
    """
    if files.keys().isdisjoint([finding.path, *(place.path for place in finding.places)]):
        return finding
    places: list[Occurrence] = []
    for place in finding.occurrences:
        path, first = files.get(place.path, (place.path, None))
        lines = place.lines
        if first and not lines:
            lines = (first,)
        places.append(replace(place, path=path, lines=lines))
    line = next(iter(places[0].lines), None)
    return replace(finding, path=places[0].path, line=line, places=tuple(places))


def in_report(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in order, each with an id: its code and its number among those of the code.

    The first ``LOG101`` of a report is ``LOG101-1``. Findings with an id keep it.
    """
    numbers: Counter[str] = Counter()
    identified: list[Finding] = []
    for finding in in_order(findings):
        numbers[finding.code] += 1
        if finding.id:
            identified.append(finding)
        else:
            identified.append(replace(finding, id=f"{finding.code}-{numbers[finding.code]}"))
    return tuple(identified)


# ---- folding ------------------------------------------------------------------------------


_Kind: TypeAlias = "tuple[Finding, dict[str, Occurrence | _InFile]]"
"""Findings to fold: the first one, and the places of all by path, in the order of lines."""


class Folding:
    """Folds findings on one subject: those alike in all but place and values become one.

    More than ``MAX_MESSAGES`` different messages of one code count as the first of them.
    """

    def __init__(self) -> None:
        """Start without a finding."""
        self._kinds: dict[tuple[Any, ...], dict[str, _Kind]] = {}

    def add(self, finding: Finding) -> None:
        """Add a finding; those of one file are added in the order of their lines."""
        value = bounded(finding.found)
        if value is not finding.found:
            finding = replace(finding, found=value)
        key = (type(finding), finding.code, finding.severity, finding.basis, finding.waiver)
        by_message = self._kinds.setdefault(key, {})
        message = finding.message
        if message not in by_message and len(by_message) == MAX_MESSAGES:
            message = next(iter(by_message))
        places = by_message.setdefault(message, (finding, {}))[1]
        for place in finding.occurrences:
            of_file = places.get(place.path)
            if isinstance(of_file, _InFile):
                of_file.add(place)
            else:
                places[place.path] = _InFile(of_file, place) if of_file else place

    def folded(
        self, subject: str | None = None, runs: Collection[str] = (), set_id: str | None = None
    ) -> list[Finding]:
        """Return a finding of each kind, in the order in which their codes were added.

        ``subject`` is what they are about; ``runs`` are the paths of the runs of a result set, and
        ``set_id`` is its id.
        """
        findings = []
        for first, places in self._all():
            finding = replace(
                first, places=_merged(places), subject=subject, set=set_id or first.set
            )
            affected = len(places.keys() & runs)
            if affected:
                finding = replace(finding, runs=affected, of_runs=len(runs))
            findings.append(finding)
        return findings

    @property
    def verdicts(self) -> Verdicts:
        """The verdicts that follow from the findings."""
        return verdicts_of(first for first, _ in self._all())

    def _all(self) -> Iterator[_Kind]:
        return (kind for by_message in self._kinds.values() for kind in by_message.values())


def _merged(places: dict[str, Occurrence | _InFile]) -> tuple[Occurrence, ...]:
    """Return what was found in each file."""
    return tuple(
        [place.merged if isinstance(place, _InFile) else place for place in places.values()]
    )


class _InFile:
    """Several occurrences in one file, merged in the order of their lines."""

    def __init__(self, *places: Occurrence) -> None:
        """Merge the first occurrences."""
        self._path = places[0].path
        self._count = 0
        self._lines = dict[int, None]()
        self._found = _Distinct()
        self._expected = _Distinct()
        for place in places:
            self.add(place)

    def add(self, place: Occurrence) -> None:
        """Merge the next one."""
        if len(self._lines) < MAX_LINES:
            self._lines.update(dict.fromkeys(place.lines))
        self._count += place.count
        self._found.add(place.found)
        self._expected.add(place.expected)

    @property
    def merged(self) -> Occurrence:
        """All of them as one."""
        return Occurrence(
            path=self._path,
            lines=tuple(self._lines)[:MAX_LINES],
            count=self._count,
            found=self._found.values,
            expected=self._expected.values,
        )


_NO_VALUE = object()


class _Distinct:
    """The different values among those added; of numbers, the least and the greatest."""

    def __init__(self) -> None:
        """Start without a value."""
        self._by_word: dict[str, Any] = {}
        self._is_numeric = True
        self._last: Any = _NO_VALUE

    def add(self, values: Iterable[Any]) -> None:
        """Add values; more than ``MAX_VALUES`` different ones are left out."""
        for value in values:
            if len(self._by_word) == MAX_VALUES:
                return
            if value is self._last or self._is_between(value):
                continue
            self._last = value
            self._by_word.setdefault(word(value), value)
            self._is_numeric = self._is_numeric and _is_number(value)
            if self._is_numeric and len(self._by_word) > 1:
                extremes = (min(self._by_word.values()), max(self._by_word.values()))
                self._by_word = {word(extreme): extreme for extreme in extremes}

    def _is_between(self, value: Any) -> bool:
        """Return whether a number is neither below the least nor above the greatest."""
        if self._is_numeric and len(self._by_word) > 1 and _is_number(value):
            least, greatest = self._by_word.values()
            return bool(least <= value <= greatest)
        return False

    @property
    def values(self) -> tuple[Any, ...]:
        """These values."""
        return tuple(self._by_word.values())


def folded(
    findings: Iterable[Finding],
    subject: str | None = None,
    runs: Collection[str] = (),
    set_id: str | None = None,
) -> list[Finding]:
    """Fold findings about a subject; see ``Folding.folded``."""
    folding = Folding()
    for finding in findings:
        folding.add(finding)
    return folding.folded(subject, runs, set_id)


# ---- values in words ----------------------------------------------------------------------

_FLAT_FORMS = ("s", "q")  # without the brackets of lists
_NUMBER_FORMS = {"s": ",", "q": ",", "d": ""}  # that mean something else in Python


def in_words(values: Sequence[Any], form: str | None = None, joint: str = ", ") -> str:
    """Return values in words: one, a range of numbers, or a list with a ``joint`` before its last.

    ``form`` is as in the messages of ``Finding``: "s", "q", "d", "," or ".1f".
    """
    is_cut = len(values) >= MAX_VALUES  # as many as are kept
    is_range = _is_range(values)  # unlike two numbers of one list
    if form in _FLAT_FORMS:
        values = _flat(values)
    if not values:
        return "null"
    words = [word(value, form or ",") for value in values[:_MAX_WORDS]]
    if is_range:
        return " to ".join(words)
    text = ", ".join(words)
    rest = len(values) - len(words)
    if not rest:
        return joint.join(filter(None, [", ".join(words[:-1]), words[-1]]))
    if is_cut:
        return f"{text} and at least {rest} more"
    return f"{text} and {rest} more"


def _is_range(values: Sequence[Any]) -> bool:
    """Return whether values are the least and the greatest of some numbers."""
    return len(values) == 2 and all(map(_is_number, values))  # noqa: PLR2004


def _flat(values: Iterable[Any]) -> list[Any]:
    """Return the elements of lists among the values, each once."""
    by_word: dict[str, Any] = {}
    for value in values:
        items = value if isinstance(value, list | tuple) else [value]
        by_word.update((item if isinstance(item, str) else word(item), item) for item in items)
    return list(by_word.values())


def bounded(value: Any) -> Any:
    """Return a JSON value of a log, as text if it is large or deeply nested.

    Such values cost much memory, and cannot be sent to another process.
    """
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else f"{value[:_MAX_TEXT]}..."
    if type(value) in _SCALARS or _is_small(value):
        return value
    return word(value)


def _is_small(value: Any) -> bool:
    level: list[Any] = [value]
    size = 0
    for _ in range(_MAX_LEVELS):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += (*item, *item.values())
            elif isinstance(item, list | tuple):
                inner += item
            elif isinstance(item, str):
                size += len(item)
            elif isinstance(item, int):
                size += item.bit_length() // 64 * 20  # digits of a large one
        size += len(inner)
        if size > _MAX_TEXT:
            return False
        level = inner
    return not level


def word(value: Any, form: str = "d") -> str:
    """Return a value as JSON, or in a ``form`` that fits it, cut to 80 characters."""
    if isinstance(value, str) and form == "s":
        return value
    try:
        number_form = _NUMBER_FORMS.get(form, form)
        text = format(value, number_form) if _is_number(value) else _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = f"a {type(value).__name__}"
    if len(text) > _MAX_CHARACTERS:
        return f"{text[: _MAX_CHARACTERS - 3]}..."
    return text


def values_of(value: Any) -> tuple[Any, ...]:
    """Return a value as the values of an ``Occurrence``: empty for None."""
    return () if value is None else (value,)


def distinct(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the different values of all parts, up to a limit; of numbers, the extremes."""
    kept = _Distinct()
    kept.add(chain.from_iterable(parts))
    return kept.values


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))
