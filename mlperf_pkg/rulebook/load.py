"""From the YAML files under ``rules/`` to frozen rules.

A round extends its predecessor: each of its files says only what changed. Within a section a key
replaces its rules as a whole; ``null`` removes them. A benchmark with a new name is ``like`` the
one it was. ``defaults`` are fields of every rule of a section that does not have them itself.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace

from mlperf_pkg.errors import RulebookError, UserError
from mlperf_pkg.findings import Basis, Finding, Severity, Unchecked
from mlperf_pkg.infra.resources import per_rulebook, rules_read_from
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.rulebook import documents, model
from mlperf_pkg.rulebook.constraints import CONSTRAINTS
from mlperf_pkg.rulebook.documents import ROUND, Document, inherited, rounds, usages
from mlperf_pkg.rulebook.model import Benchmark, Round, Rule, Rules, ruleset_source, version_of
from mlperf_pkg.rulebook.problems import Steps


@per_rulebook
def benchmarks_of(usage: str, name: str) -> tuple[str, ...]:
    """Return the benchmarks of one of the ``rounds``; its rules are not read."""
    return tuple(_round_document(usage, name)["benchmarks"])


def submission_date(usage: str, name: str) -> date:
    """Return the day of submission of one of the ``rounds``; its rules are not read."""
    return date.fromisoformat(_round_document(usage, name)["submission_date"])


def _round_document(usage: str, name: str) -> Document:
    document = inherited(usage, name, ROUND)
    _require(model.REQUIRED_OF_ROUNDS, document, usage, name, ROUND)
    return document


@per_rulebook
def load_round(usage: str, name: str) -> Round:
    """Return the rules of a round that hold for every benchmark.

    Raises:
        UserError: the rulebook has no such usage or round.
        RulebookError: a file of it is not valid.
    """
    if usage not in usages() or name not in rounds(usage):
        raise _no_such_round(usage, name)
    document = _round_document(usage, name)
    benchmarks = benchmarks_of(usage, name)
    reader = _RuleReader(usage, name, ROUND, document, {"benchmarks": benchmarks})
    return Round(
        usage=usage,
        name=name,
        ruleset=document["ruleset"],
        submission_date=submission_date(usage, name),
        date_source=documents.own(usage, name, ROUND).get("date_source"),
        normalised=document["normalised"],
        text_of=document.get("text_of", name),
        benchmarks=benchmarks,
        sections={part: reader.section(part) for part in model.SECTIONS},
    )


def _no_such_round(usage: str, name: str) -> UserError:
    reason = before_first(usage, name)
    if reason:
        return UserError(reason)
    wrong = name
    names = rounds(usage)
    if usage not in usages():
        wrong = usage
        names = usages()
    meant = f"{', '.join(names)}{did_you_mean(wrong, names)}"
    return UserError(f"there is no round {name!r} of {usage}; expected one of {meant}")


def before_first(usage: str, name: str) -> str | None:
    """Return why there are no rules of a round: it was before the first; None if it was not."""
    if usage not in usages() or not model.is_round_name(name):
        return None
    first = rounds(usage)[0]
    if model.version_of(name) >= model.version_of(first):
        return None
    prefix = "HPC " if usage == "hpc" else ""
    return f"this is the format of {prefix}round {name}; the rules begin with {prefix}round {first}"


@per_rulebook
def load_benchmark(usage: str, round_name: str, name: str) -> Benchmark | None:
    """Return the rules of a benchmark in a round; None where the rulebook has none.

    Raises:
        RulebookError: a file of it is not valid.
    """
    if name not in load_round(usage, round_name).benchmarks:
        return None
    document = inherited(usage, round_name, name)
    if not document:
        return None
    _require(model.REQUIRED_OF_BENCHMARKS, document, usage, round_name, name)
    target = document["target"]
    convergence = document["convergence"]
    units = {convergence["from"]: convergence["unit"]}
    reader = _RuleReader(usage, round_name, name, document, {"target": target}, units)
    return Benchmark(
        name=name,
        runs=model.Runs(**document["runs"]),
        target=target,
        unit=convergence["unit"],
        counted_by=convergence["from"],
        sections={part: reader.section(part) for part in model.DIVISIONS},
        variants=reader.variants(),
        joined=model.Joined(**document["joined"]) if document.get("joined") else None,
        epochs=model.Epochs(**convergence.get("epochs", {})),
        rcp=model.Rcp(convergence.get("rcp", model.Rcp.TESTED)),
    )


def target_of(usage: str, round_name: str, benchmark: str) -> Document | None:
    """Return the target of a benchmark; None if the round does not have it.

    The other rules of the round are not loaded.

    Raises:
        RulebookError: a file of it is not valid.
    """
    if benchmark not in benchmarks_of(usage, round_name):
        return None
    return inherited(usage, round_name, benchmark).get("target")


@per_rulebook
def newest_convergence(usage: str, benchmark: str) -> Document:
    """Return the section ``convergence`` of a benchmark in the newest round that has it.

    It is empty if no round has it. The rules of that round are not loaded.

    Raises:
        RulebookError: a file of it is not valid.
    """
    for name in reversed(rounds(usage)):
        if benchmark in benchmarks_of(usage, name):
            section: Document = inherited(usage, name, benchmark).get("convergence", {})
            return section
    return {}


@per_rulebook
def counts_samples(benchmark: str) -> bool:
    """Return whether evaluations of a benchmark count ``samples_count``, in any usage."""
    sections = (newest_convergence(usage, benchmark) for usage in usages())
    return any(section.get("from") == "samples_count" for section in sections)


def simulation_of(usage: str, round_name: str, stem: str) -> Document:
    """Return the section ``simulation`` of a benchmark or, with ``round``, of a round.

    A field given again replaces the inherited one; in ``values`` and ``always`` only the keys
    given again replace inherited ones. ``null`` removes a field or key.
    """
    section: Document = inherited(usage, round_name, stem).get("simulation", {})
    return section


def _require(
    names: Sequence[str], document: Document, usage: str, round_name: str, stem: str
) -> None:
    missing = [name for name in names if name not in document]
    if missing:
        message = f"{stem} of round {round_name} has no {' and no '.join(missing)}"
        raise documents.error_of(usage, round_name, stem, (), message)


# ---- the rules of a file ------------------------------------------------------------------


class _RuleReader(Struct, frozen=True, dict=True):
    """Makes the rules of one document; ``cited`` has what they may refer to by a name.

    ``units`` names what metadata of the benchmark count.
    """

    usage: str
    round_name: str
    stem: str
    document: Document
    cited: Mapping[str, Any]
    units: Mapping[str, str] = {}

    @cached_property
    def round_document(self) -> Document:
        """The document of the round; this one may be that of one of its benchmarks."""
        return _round_document(self.usage, self.round_name)

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """The sources by key, of which those of the file are laid over those of its round."""
        by_key: dict[str, str] = {}
        for document in (self.round_document, self.document):
            for source, keys in document.get("sources", {}).items():
                by_key.update(dict.fromkeys(keys, source))
        return by_key

    def section(self, name: str) -> Rules:
        """Return the rules of a section."""
        defaults = self.document.get("defaults", {}).get(name, {})
        return self.rules(self.document.get(name, {}), defaults, (name,))

    def variants(self) -> dict[str, dict[Any, Rules]]:
        """Return the rules that each value of a key adds, by key and value."""
        variants: dict[str, dict[Any, Rules]] = {}
        for key, choices in self.document.get("variants", {}).items():
            variants[key] = {}
            for value, section in choices.items():
                variants[key][value] = self.rules(section, {}, ("variants", key, value))
        return variants

    def rules(self, section: Document, defaults: Document, steps: Steps) -> Rules:
        """Return every key's rules, whether it has one or a list."""
        by_key: dict[str, tuple[Rule, ...]] = {}
        for key, entry in section.items():
            if isinstance(entry, dict):
                by_key[key] = (self.rule(key, defaults | entry, (*steps, key)),)
                continue
            rules = []
            for index, fields in enumerate(entry):
                rules.append(self.rule(key, defaults | fields, (*steps, key, index)))
            by_key[key] = tuple(rules)
        return by_key

    def rule(self, key: str, written: Document, steps: Steps) -> Rule:
        """Return one rule from its ``written`` fields; ``steps`` lead to it.

        Raises:
            RulebookError: the rule has no source, or cites tensors that do not exist.
        """
        constraints = {}
        for name, value in written.items():
            if name in CONSTRAINTS:
                constraints[name] = self._cited(value)
        fields = dict(written)
        if "tensors" in written:
            fields["tensors"] = self._tensors(written["tensors"], steps)
        if "formula" in written:
            fields["units"] = self.units
        if "reaches" in written:
            fields["reaches"] = self._cited(written["reaches"])
        fields["key"] = key
        fields["source"] = self._source(key, written, steps)
        fields["constraints"] = constraints
        return convert(fields, Rule)

    def _tensors(self, name: str, steps: Steps) -> tuple[str, ...]:
        names = tensors(name)
        if names is None:
            raise self._error((*steps, "tensors"), f"tensors.yaml has no tensors of {name!r}")
        return names

    def _source(self, key: str, written: Document, steps: Steps) -> str:
        """Return the source of a rule: its own, that of its key, or that of its file."""
        if "source" not in written and written.get("basis") == Basis.OFFICIAL:
            return ruleset_source(self.round_document["ruleset"])
        of_key = self.sources.get(key, self.document.get("source"))
        source: str | None = written.get("source") or of_key
        if not source:
            raise self._error(steps, f"{written['code']} has no source")
        return source

    def _cited(self, value: Any) -> Any:
        """Return what a name such as ``target`` or ``benchmarks`` refers to."""
        return self.cited.get(value, value) if isinstance(value, str) else value

    def _error(self, steps: Steps, message: str) -> RulebookError:
        return documents.error_of(self.usage, self.round_name, self.stem, steps, message)


# ---- tensors ------------------------------------------------------------------------------


@per_rulebook
def tensors(name: str) -> tuple[str, ...] | None:
    """Return the tensors of a model that ``weights_initialization`` must list, sorted.

    None where ``tensors.yaml`` has no such model.

    Raises:
        RulebookError: a file ``tensors.yaml`` is not valid.
    """
    for file in documents.rule_files("tensors.yaml"):
        patterns = documents.read(file).get(name)
        if patterns:
            return tuple(sorted(chain.from_iterable(map(expand_braces, patterns))))
    return None


_RANGE = r"(\d+)\.\.(\d+)"
_NOT_LITERAL = "[{},]"


def expand_braces(pattern: str) -> list[str]:
    """Return all strings that a pattern means; the rightmost brace varies fastest.

    ``{a,b,c}`` means each alternative, which may be empty or have braces of its own; ``{0..23}``
    each whole number of the range, both ends included. A comma outside braces is a comma.

    Raises:
        ValueError: a brace is not balanced, or a range ends before it starts.
    """
    words, end = _product(pattern, 0, "}")
    if end < len(pattern):
        raise ValueError(f"unbalanced braces in {pattern!r}: '}}' at {end} closes nothing")
    return words


def _product(pattern: str, at: int, stops: str) -> tuple[list[str], int]:
    """Return the words from ``at`` to an unnested character of ``stops``, and its index."""
    words = [""]
    while at < len(pattern) and pattern[at] not in stops:
        if pattern[at] == "{":
            options, at = _alternatives(pattern, at + 1)
        else:
            literal = re.split(_NOT_LITERAL, pattern[at:], maxsplit=1)[0] or pattern[at]
            options = [literal]
            at += len(literal)
        words = [word + option for word in words for option in options]
    return words, at


def _alternatives(pattern: str, start: int) -> tuple[list[str], int]:
    """Return the words of the brace whose content begins at ``start``, and the index after it."""
    options, at = _product(pattern, start, ",}")
    while pattern[at : at + 1] == ",":
        more, at = _product(pattern, at + 1, ",}")
        options += more
    if at == len(pattern):
        raise ValueError(f"unbalanced braces in {pattern!r}: '{{' at {start - 1} is never closed")
    bounds = re.fullmatch(_RANGE, pattern[start:at])
    if bounds:
        first, last = map(int, bounds.groups())
        if last < first:
            raise ValueError(f"the range {bounds[0]} in {pattern!r} ends before it starts")
        options = [str(number) for number in range(first, last + 1)]
    return options, at + 1


# ---- the codes of findings that are not rules of a benchmark -------------------------------


SOURCES = "sources"
"""The name of the file of headings, without ``.yaml``, and of the keys of each source in a file."""


@per_rulebook
def headings() -> Mapping[str, Mapping[str, str]]:
    """Return the headings of each document that a source may cite.

    Each has the first round of Training to which its text applied.

    Raises:
        RulebookError: a file ``sources.yaml`` is not valid.
    """
    merged: dict[str, dict[str, str]] = {}
    for file in reversed(list(documents.rule_files(f"{SOURCES}.yaml"))):
        for document, rounds_of in documents.read(file).items():
            merged.setdefault(document, {}).update(rounds_of)
    return merged


def first_round(source: str) -> str | None:
    """Return the first round to which the heading of a source applied; None if it has no text."""
    document, _, heading = source.partition(", ")
    return headings().get(document, {}).get(heading)


class Exceptional(Struct, frozen=True):
    """When a code is reported with another basis or severity; None is the usual one."""

    when: str
    basis: Basis | None = None
    severity: Severity | None = None


class FindingCode(Struct, frozen=True):
    """What a code means: a title, an explanation in prose, what to do, and the source of the rule.

    With ``is_hint``, the ``fix`` is also the hint of each finding that has no other. The code is
    reported with its ``basis`` and ``severity``, ``unless`` an exception says otherwise.
    ``since`` is the first round of Training to whose text the rule applied, that of the heading if
    the file names none; None for what has no text.
    """

    code: str
    title: str
    explanation: str
    fix: str
    source: str
    is_hint: bool = False
    since: str | None = None
    basis: Basis = Basis.BOTH
    severity: Severity = Severity.ERROR
    unless: tuple[Exceptional, ...] = ()

    def applies_in(self, round_: Round) -> bool:
        """Return whether its text applied to a round already."""
        return self.since is None or version_of(self.since) <= round_.text_version

    @property
    def hint(self) -> str | None:
        """What to do, as the hint of every finding; None where findings have hints of their own."""
        return self.fix[0].lower() + self.fix[1:].removesuffix(".") if self.is_hint else None


@per_rulebook
def codes() -> Mapping[str, FindingCode]:
    """Return the codes of ``findings.yaml``.

    Raises:
        RulebookError: the file is not valid.
    """
    entries: dict[str, Any] = {}
    for file in reversed(list(documents.rule_files("findings.yaml"))):
        for code, fields in documents.read(file).items():
            if code not in (CAUSES, FIXES):
                entries[code] = {"code": code, "since": first_round(fields["source"]), **fields}
    return convert(entries, dict[str, FindingCode])


CAUSES = "causes"
"""The part of ``findings.yaml`` that says which codes can explain which."""

FIXES = "fixes"
"""The part of ``findings.yaml`` that says what to do where rules about a key are broken."""

ANY_RULE = "RULES"
"""The word in ``CAUSES`` for the codes of all rules about the records of a key."""


class Evidence(StrEnum):
    """What must be seen, besides the codes, for one finding to follow from another.

    LOST: the effect is that records are missing, and they are part of text of the cause that cannot
    be read. REPAIRED: the log has no such finding without the damage. BENCHMARK, DIVISION, ROUND:
    the cause is that the run has another one than it is judged by, and by the rules of that one
    there is no such finding. BUT_FOR: without the runs of the cause, the set would stay within the
    limit of the effect. LINE: the effect names a line of the cause. RUNS: all runs of the effect
    have the cause, which follows from nothing else. SET: both are about one result set. UNIT: the
    cause is that all runs of the set count their training in steps of another size, in which the
    effect would pass. ABSENT: the causes keep as many logs out of sets as runs are missing.
    """

    LOST = "lost"
    REPAIRED = "repaired"
    BENCHMARK = "benchmark"
    DIVISION = "division"
    ROUND = "round"
    BUT_FOR = "but_for"
    LINE = "line"
    RUNS = "runs"
    SET = "set"
    UNIT = "unit"
    ABSENT = "absent"


class Explanation(Struct, frozen=True):
    """Codes of ``causes`` that explain those of ``effects`` where there is ``evidence``.

    ``ANY_RULE`` stands for all rules. What the effect ``says``, if anything, is in its text.
    """

    evidence: Evidence
    causes: tuple[str, ...]
    effects: tuple[str, ...]
    says: str = ""


@per_rulebook
def explanations() -> tuple[Explanation, ...]:
    """Return which codes can explain which, those of the user's own rules first.

    Raises:
        RulebookError: a file ``findings.yaml`` is not valid.
    """
    return convert(_rows(CAUSES), tuple[Explanation, ...])


def _rows(part: str) -> list[Any]:
    rows: list[Any] = []
    for file in documents.rule_files("findings.yaml"):
        rows += documents.read(file).get(part, ())
    return rows


class Fix(Struct, frozen=True):
    """What to do where a rule is broken that has one of the ``limits``, on a key like ``keys``.

    ``limits`` are fields of rules, ``keys`` is a regular expression. Of a ``part`` of what rules
    require, the first row that fits counts.
    """

    part: str
    limits: tuple[str, ...]
    fix: str
    keys: str = ".*"

    def fits(self, rule: Rule) -> bool:
        """Return whether it says what to do about a rule."""
        if not re.fullmatch(self.keys, rule.key):
            return False
        return any(name in rule.constraints or getattr(rule, name, None) for name in self.limits)


@per_rulebook
def fixes() -> tuple[Fix, ...]:
    """Return what to do where rules about keys are broken, the rows of the user's rules first.

    Raises:
        RulebookError: a file ``findings.yaml`` is not valid.
    """
    return convert(_rows(FIXES), tuple[Fix, ...])


@per_rulebook
def _package_codes() -> Mapping[str, FindingCode]:
    """Return the codes as the package has them to which rules of the user give another weight."""
    own = codes()
    with rules_read_from():
        package = codes()
    reweighed_codes: dict[str, FindingCode] = {}
    for code, entry in package.items():
        if (own[code].basis, own[code].severity) != (entry.basis, entry.severity):
            reweighed_codes[code] = entry
    return reweighed_codes


def reweighed(finding: Finding) -> Finding:
    """Return a finding with the weight that rules of the user give its code.

    A finding with another weight than the package gives its code is an exception and keeps that.
    The official verdict is that of the official checker, whatever the rules of the user say.
    """
    usual = _package_codes().get(finding.code)
    if usual is None or (finding.basis, finding.severity) != (usual.basis, usual.severity):
        return finding
    own = codes()[finding.code]
    is_error = own.severity is Severity.ERROR
    is_error_by_rules = is_error and own.basis in (Basis.BOTH, Basis.RULES)
    if finding.fails(Basis.OFFICIAL):
        return replace(finding, basis=Basis.BOTH if is_error_by_rules else Basis.OFFICIAL)
    basis = own.basis
    if is_error:
        basis = Basis.RULES if is_error_by_rules else Basis.ADVICE
    return replace(finding, basis=basis, severity=own.severity)


def finding_of(
    code: str, message: str, path: str, *, kind: type[Finding] = Finding, **fields: Any
) -> Finding:
    """Return a finding with the basis, the severity, the source and the hint of its code.

    ``fields`` are the others of ``Finding``, and those in which this finding is an exception.
    """
    entry = codes()[code]
    usual = _package_codes().get(code, entry)
    fields = {
        "basis": usual.basis,
        "severity": usual.severity,
        "source": entry.source,
        "hint": entry.hint,
        **fields,
    }
    finding = kind(code=code, message=message, path=path, **fields)
    return finding if usual is entry else reweighed(finding)


def unchecked_of(code: str, message: str, path: str, **fields: Any) -> Unchecked:
    """Return a finding that something was not checked, with the source of its code."""
    entry = codes()[code]
    fields = {"source": entry.source, "hint": entry.hint, **fields}
    return Unchecked(code=code, message=message, path=path, **fields)


def as_written(findings: Iterable[Finding], round_: Round) -> Iterator[Finding]:
    """Yield what the written rules of a round say: nothing that was written later.

    What the official checker asks for, too, is its error alone until then.
    """
    for finding in findings:
        code = codes().get(finding.code)
        if code is None or code.applies_in(round_):
            yield finding
        elif finding.basis is Basis.BOTH:
            yield replace(finding, basis=Basis.OFFICIAL, source=model.PACKAGE_CHECKER)
        elif finding.basis is not Basis.RULES:
            yield finding
