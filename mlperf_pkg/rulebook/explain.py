"""What a rule or a code means, an example of it, and what changes from round to round."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from itertools import chain, starmap
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.infra.text import did_you_mean, nearest
from mlperf_pkg.log.record import TOKEN, Record
from mlperf_pkg.rulebook.constraints import (
    CONSTRAINTS,
    OF_VALUE,
    Test,
    needed_in_words,
    target_test,
)
from mlperf_pkg.rulebook.documents import every_round, rounds, usages
from mlperf_pkg.rulebook.expectation import in_general
from mlperf_pkg.rulebook.formula import Formula, NoAnswerError, first_logged
from mlperf_pkg.rulebook.load import (
    FindingCode,
    benchmarks_of,
    codes,
    fixes,
    load_benchmark,
    load_round,
)
from mlperf_pkg.rulebook.model import (
    DIVISIONS,
    OWN,
    Benchmark,
    Joined,
    Round,
    Rule,
    Rules,
    Runs,
    version_of,
)
from mlperf_pkg.rulebook.rounds import where_instead

EVERY_RUN = "every run"

BASIS: Mapping[Basis, str] = {
    Basis.BOTH: "the written rules require this, and the official checker tests it",
    Basis.OFFICIAL: "the official checker rejects what the written rules allow",
    Basis.RULES: "the written rules require this, and the official checker does not test it",
    Basis.ADVICE: "neither the written rules nor the official checker requires this",
}
SEVERITY: Mapping[Severity, str] = {
    Severity.ERROR: "error: a finding with this code makes the verdict FAIL",
    Severity.WARNING: "warning: a finding with this code fails no verdict",
    Severity.NOTE: "note: a finding with this code fails no verdict",
}
_OF_OWN: Mapping[Basis, str] = {
    Basis.BOTH: "no rule of MLPerf is about this, but what could not be checked does not pass",
    Basis.RULES: "no rule of MLPerf is about this, but the verdict by the rules fails",
}


def basis_of(code: FindingCode) -> str:
    """Return the basis of a code that is not of a rule, and what it means for the code."""
    meaning = BASIS[code.basis]
    if code.source.startswith(OWN):
        meaning = _OF_OWN.get(code.basis, meaning)
    return f"{code.basis}: {meaning}"


# ---- one rule -----------------------------------------------------------------------------


def requirement(rule: Rule) -> str:
    """Return what a rule requires, in words: ``once, "adamw"``."""
    often = occurrence(rule) or "where logged"
    return ", ".join([often, *filter(None, conditions(rule))])


def with_basis(rule: Rule) -> str:
    """Return what a rule requires, with its basis in brackets where that is not ``both``."""
    words = requirement(rule)
    if rule.basis is Basis.BOTH:
        return words
    return f"{words} [{rule.basis}]"


def occurrence(rule: Rule) -> str:
    """Return how often a key must be logged, in words; empty if any number is allowed."""
    match rule.occurs:
        case {"or": other}:
            return f"at least once, or {other}"
        case {"at_most": 1, **other_limits} if not other_limits:
            return "at most once"
        case Mapping() as limits:
            return f"{needed_in_words(limits)} times"
        case str() as often:  # such as at_least_once
            return often.replace("_", " ")
    return ""


def conditions(rule: Rule) -> Iterator[str]:
    """Yield what a rule requires of the records of its key, in words."""
    is_about_target = "formula" in (rule.reaches or {})  # then ``needed`` says it in words
    if rule.needed and not is_about_target:
        yield _which_records(rule) + rule.needed
    else:
        yield from _constraints_in_words(rule)
    if rule.tensors is not None:
        yield f"naming each of {len(rule.tensors)} tensors once"
    if rule.reached:
        yield "status success only if the last evaluation reached the target"
    if rule.covers_target:
        yield "no earlier than the evaluation that reached the target"
    if rule.no_later_than:
        yield f"no later than {' and '.join(rule.no_later_than)}"
    if rule.reaches and is_about_target and rule.needed:
        yield f"in one of the records {rule.needed}"
    elif rule.reaches:
        yield f"in one of the records {needed_in_words(rule.reaches)}"


def _which_records(rule: Rule) -> str:
    """Return the beginning of what a rule requires; empty where it holds for every record."""
    if rule.first:
        return "in the first record "
    if rule.last:
        return "in the last record "
    return ""


def _constraints_in_words(rule: Rule) -> Iterator[str]:
    """Yield what is required of the value, then what of the rest of a record."""
    about_value = []
    about_rest = []
    for name, argument in rule.constraints.items():
        words = needed_in_words({name: argument})
        if name == "has":
            about_value.append(f"as its value {words}")
        elif name in OF_VALUE or name == "same_as":
            about_value.append(words)
        else:
            words = words.removeprefix("it ")
            about_rest.append(words.replace("metadata with", "in the metadata", 1))
    if rule.formula:
        about_value.append(in_general(rule.formula, rule.key))
    yield (_which_records(rule) + " and ".join(about_value)).rstrip()
    yield from about_rest


def target(benchmark: Benchmark) -> str:
    """Return the quality that training must reach, in words."""
    return needed_in_words(benchmark.target)


def targets(history: RuleHistory) -> Iterator[tuple[str, str, str]]:
    """Yield what the target of a rule is in its latest round: benchmark, round, words."""
    latest = history.spans[-1]
    if latest.rule.reaches:
        round_ = load_round(history.usage, latest.until)
        for name in history.benchmarks:
            yield name, round_.name, target(loaded(round_, name))


def own_keys(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the keys that the rules of a benchmark are about."""
    key_lists = (layer.rules for layer in benchmark_layers(benchmark))
    return tuple(dict.fromkeys(chain.from_iterable(key_lists)))


def runs(count: Runs) -> str:
    """Return the number of runs of a result, in words."""
    return f"{count.required} runs, the fastest {count.drop} and slowest {count.drop} dropped"


# ---- where rules hold ---------------------------------------------------------------------


class Layer(Struct, frozen=True):
    """Rules that apply together: of every run, a division, a benchmark, an optimizer.

    ``benchmark`` is empty for the rules of a round, ``division`` for those common to both;
    ``variant`` says which choice of a run adds these rules ("opt_name lars").
    """

    benchmark: str
    division: str
    variant: str
    rules: Rules

    @property
    def name(self) -> str:
        """The name in words: "Closed bert", "Closed resnet with opt_name lars"."""
        subject = f"{self.division.title()} {self.benchmark}".strip() or EVERY_RUN
        return f"{subject} with {self.variant}" if self.variant else subject


def common_layers(round_: Round, division: str | None = None) -> list[Layer]:
    """Return the rules of a round for all benchmarks, of all divisions or of one."""
    layers = [Layer("", "", "", round_.sections["common"])]
    for name in DIVISIONS:
        if not division or division == name:
            layers.append(Layer("", name, "", round_.sections[name]))
    return [layer for layer in layers if layer.rules]


def benchmark_layers(benchmark: Benchmark, division: str | None = None) -> list[Layer]:
    """Return the rules of a benchmark, of all divisions or of one."""
    layers = [Layer(benchmark.name, name, "", benchmark.sections[name]) for name in DIVISIONS]
    for key, choices in benchmark.variants.items():
        for value, rules in choices.items():
            layers.append(Layer(benchmark.name, "closed", f"{key} {value}", rules))
    return [layer for layer in layers if layer.rules and division in (None, layer.division)]


def all_layers(usage: str, round_: str, benchmark: str) -> list[Layer]:
    """Return the rules of a round and, if it has the benchmark, of the benchmark.

    Raises:
        UserError: the rulebook has no such round.
    """
    layers = common_layers(load_round(usage, round_))
    rules = load_benchmark(usage, round_, benchmark)
    if rules:
        layers += benchmark_layers(rules)
    return layers


def loaded(round_: Round, name: str) -> Benchmark:
    """Return a benchmark of a round.

    Raises:
        UserError: the round has no such benchmark.
    """
    benchmark = load_benchmark(round_.usage, round_.name, name)
    if benchmark is None:
        names = ", ".join(round_.benchmarks)
        where = where_instead(round_.usage, round_.name, name)
        raise UserError(
            f"round {round_.name} has no benchmark {name!r}; expected one of {names}{where}"
        )
    return benchmark


def effective(layers: Iterable[Layer]) -> list[Layer]:
    """Return the layers of one run without the rules that a layer above replaces."""
    effective_layers: list[Layer] = []
    replaced_keys: set[str] = set()
    for layer in reversed(list(layers)):
        rules = {}
        for key, key_rules in layer.rules.items():
            if key_rules and key not in replaced_keys:
                rules[key] = key_rules
        if rules:
            effective_layers.append(replace(layer, rules=rules))
        if not layer.variant:
            replaced_keys |= layer.rules.keys()
    return effective_layers[::-1]


# ---- since when ---------------------------------------------------------------------------


class RuleSpan(Struct, frozen=True):
    """A rule in the rounds from ``first`` to ``until``; ``last`` is None where it still holds."""

    first: str
    until: str
    last: str | None
    rule: Rule

    @property
    def words(self) -> str:
        """The rounds: "from 2.1 on", "in 0.7", "from 1.0 to 2.0"."""
        if self.last == self.first:
            return f"in {self.first}"
        if self.last:
            return f"from {self.first} to {self.last}"
        return f"from {self.first} on"


class RuleHistory(Struct, frozen=True):
    """How a rule changed from round to round, alike in several layers of a usage."""

    usage: str
    where: tuple[str, ...]
    benchmarks: tuple[str, ...]
    spans: tuple[RuleSpan, ...]


def rulebook_codes() -> frozenset[str]:
    """Return the codes of all rules of the rulebook."""
    return frozenset(_uses_by_code())


@per_rulebook
def _uses_by_code() -> dict[str, list[Use]]:
    by_code: dict[str, list[Use]] = {}
    for use in all_uses():
        by_code.setdefault(use.rule.code, []).append(use)
    return by_code


def histories(code: str) -> list[RuleHistory]:
    """Return where a rule holds and how it changed; empty if no rule has this code."""
    return _histories(_uses_by_code().get(code, []))


def histories_of_key(key: str) -> dict[str, list[RuleHistory]]:
    """Return the same for each code of the rules of a key, in the order of the rulebook."""
    by_code = {}
    for code, uses in _uses_by_code().items():
        key_uses = [use for use in uses if use.rule.key == key]
        if key_uses:
            by_code[code] = _histories(key_uses)
    return by_code


def in_round(
    histories: Mapping[str, Iterable[RuleHistory]], name: str
) -> dict[str, list[RuleHistory]]:
    """Return the part of histories, by code, that is about one round; possibly none."""
    version = version_of(name)
    histories_of_round: dict[str, list[RuleHistory]] = {}
    for code, histories_of_code in histories.items():
        for history in histories_of_code:
            for span in history.spans:
                if version_of(span.first) <= version <= version_of(span.until):
                    spans = (RuleSpan(name, name, name, span.rule),)
                    part = replace(history, spans=spans)
                    histories_of_round.setdefault(code, []).append(part)
    return histories_of_round


def fix(histories: Iterable[RuleHistory]) -> str:
    """Return what to do where the rules of one code are broken, in one to three sentences."""
    rules = [span.rule for history in histories for span in history.spans]
    sentences: dict[str, str] = {}
    for row in fixes():
        if any(map(row.fits, rules)):
            sentences.setdefault(row.part, row.fix)
    return " ".join(sentences.values()).replace("KEY", rules[0].key)


def newest_first(histories: Iterable[RuleHistory]) -> list[RuleHistory]:
    """Return histories by the submission of the newest round that has the rule."""

    def newest_submission(history: RuleHistory) -> date:
        newest = load_round(history.usage, history.spans[-1].until)
        return newest.submission_date

    return sorted(histories, key=newest_submission, reverse=True)


def _histories(uses: Iterable[Use]) -> list[RuleHistory]:
    """Return the histories of the uses of one code; layers that changed alike share one.

    A layer is called as in its newest round.
    """
    layer_uses: dict[tuple[str, str], list[Use]] = {}
    for use in uses:
        layer_uses.setdefault((use.usage, use.layer.name), []).append(use)
    alike: dict[tuple[Any, ...], tuple[list[Layer], tuple[RuleSpan, ...]]] = {}
    for uses_of_layer in layer_uses.values():
        newest = uses_of_layer[-1]
        spans = _spans(uses_of_layer)
        course = [(span.words, span.rule.basis, requirement(span.rule)) for span in spans]
        layers, _ = alike.setdefault((newest.usage, *course), ([], spans))
        layers.append(newest.layer)
    return [_history(usage, *of_layers) for (usage, *_), of_layers in alike.items()]


def _history(usage: str, layers: Sequence[Layer], spans: tuple[RuleSpan, ...]) -> RuleHistory:
    """Return the one history of layers in which a rule changed alike."""
    benchmarks = dict.fromkeys(layer.benchmark for layer in layers if layer.benchmark)
    return RuleHistory(usage, tuple(layer.name for layer in layers), tuple(benchmarks), spans)


def joined(history: RuleHistory, span: RuleSpan) -> Joined | None:
    """Return how a rule's key is joined from records, None where runs log the key itself."""
    round_ = load_round(history.usage, span.until)
    for name in history.benchmarks:
        joined = loaded(round_, name).joined
        if joined and joined.key == span.rule.key:
            return joined
    return None


class Use(Struct, frozen=True):
    """A rule in one layer of one round."""

    usage: str
    round: str
    layer: Layer
    rule: Rule


def all_uses() -> Iterator[Use]:
    """Yield every rule of the rulebook, in every layer of every round: Training, then HPC."""
    for usage in reversed(usages()):
        for name in rounds(usage):
            round_ = load_round(usage, name)
            layers = common_layers(round_)
            for benchmark in round_.benchmarks:
                layers += benchmark_layers(loaded(round_, benchmark))
            for layer in layers:
                for rule in chain.from_iterable(layer.rules.values()):
                    yield Use(usage, name, layer, rule)


def _spans(uses: Sequence[Use]) -> tuple[RuleSpan, ...]:
    """Join consecutive rounds in which a rule is the same."""
    order = rounds(uses[0].usage)
    spans: list[RuleSpan] = []
    for use in uses:
        first = use.round
        rule = use.rule
        if spans and _continues(spans[-1], use, order):
            earlier = spans.pop()
            first = earlier.first
            rule = earlier.rule
        last = None if use.round == order[-1] else use.round
        spans.append(RuleSpan(first, use.round, last, rule))
    return tuple(spans)


def _continues(span: RuleSpan, use: Use, order: Sequence[str]) -> bool:
    """Return whether a rule is used in the round after a span, and is the same as in it."""
    is_next_round = order.index(span.until) + 1 == order.index(use.round)
    return is_next_round and same(span.rule, use.rule)


_COMPARED = [
    "occurs", "constraints", "formula", "needed", "first", "last", "reaches", "reached",
    "tensors", "covers_target", "no_later_than", "basis", "severity",
]  # fmt: skip


def same(one: Rule, other: Rule) -> bool:
    """Return whether two rules require the same with the same weight; ``0`` equals ``0.0``."""
    return all(getattr(one, name) == getattr(other, name) for name in _COMPARED)


# ---- what changes for a submitter between two rounds ---------------------------------------


class RuleChange(Struct, frozen=True):
    """What a key, or the ``target`` or ``runs`` of a benchmark, required and now requires.

    ``where`` is the layer ("Closed bert"), ``benchmark`` its benchmark if any. ``old`` is empty for
    a new key, ``new`` for a removed one. ``codes`` are those of the rules that changed.
    """

    where: str
    benchmark: str
    key: str
    codes: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]


class RoundComparison(Struct, frozen=True):
    """Two rounds: benchmarks removed or added, and changes in those that stay.

    ``renamed`` has the new names by the old ones; ``unchanged`` are benchmarks whose own rules did
    not change. The list of benchmarks in the rule of ``submission_benchmark`` is left out.
    ``pairs`` are the benchmarks that stay, before and after, and the new ones after None.
    """

    old: Round
    new: Round
    gone: Sequence[str]
    added: Sequence[Benchmark]
    renamed: Mapping[str, str]
    changes: Sequence[RuleChange]
    unchanged: Sequence[str]
    pairs: Sequence[tuple[Benchmark | None, Benchmark]]


def compare(
    usage: str, old: str, new: str, benchmark: str | None = None, division: str | None = None
) -> RoundComparison:
    """Compare two rounds, as a whole or in one benchmark and division.

    Raises:
        UserError: the rulebook has no such round, or neither round has the benchmark.
    """
    before = load_round(usage, old)
    after = load_round(usage, new)
    if benchmark:
        _require_in_either(benchmark, before, after)
    roster = _roster(before, after)
    if benchmark is not None:
        roster = _with_only(roster, benchmark)
    pairs = [(loaded(before, name), loaded(after, roster.kept[name])) for name in roster.kept]
    added = [loaded(after, name) for name in roster.added]
    changes = list(_changes(before, after, pairs, division))
    changed = {change.benchmark for change in changes}
    by_new_name = sorted(pairs, key=lambda pair: pair[1].name)
    return RoundComparison(
        old=before,
        new=after,
        gone=roster.gone,
        added=added,
        renamed=roster.renamed,
        changes=changes,
        unchanged=sorted(name for name in roster.kept.values() if name not in changed),
        pairs=[*by_new_name, *((None, new_benchmark) for new_benchmark in added)],
    )


def _require_in_either(benchmark: str, before: Round, after: Round) -> None:
    names = sorted({*before.benchmarks, *after.benchmarks})
    if benchmark not in names:
        meant = f"{', '.join(names)}{did_you_mean(benchmark, names)}"
        neither = f"neither round {before.name} nor {after.name}"
        raise UserError(f"{neither} has a benchmark {benchmark!r}; the benchmarks are {meant}")


class _Roster(Struct, frozen=True):
    """The benchmarks of two rounds: those of the old one alone, of the new one alone, of both.

    ``kept`` has the new names by the old ones, and ``renamed`` those of them that differ.
    """

    gone: Sequence[str]
    added: Sequence[str]
    kept: Mapping[str, str]
    renamed: Mapping[str, str]


def _roster(before: Round, after: Round) -> _Roster:
    only_old = sorted(set(before.benchmarks) - set(after.benchmarks))
    only_new = sorted(set(after.benchmarks) - set(before.benchmarks))
    renamed = {}
    for old_name in only_old:
        for new_name in only_new:
            if _open_codes(before, old_name) & _open_codes(after, new_name):
                renamed[old_name] = new_name
    in_both = {name: name for name in before.benchmarks if name in after.benchmarks}
    return _Roster(
        gone=[name for name in only_old if name not in renamed],
        added=[name for name in only_new if name not in renamed.values()],
        kept=in_both | renamed,
        renamed=renamed,
    )


def _open_codes(round_: Round, benchmark: str) -> set[str]:
    """Return the codes of Open rules: benchmarks that share one are one, under a new name."""
    rules = loaded(round_, benchmark).sections["open"].values()
    return {rule.code for rule in chain.from_iterable(rules)}


def _with_only(roster: _Roster, benchmark: str) -> _Roster:
    """Return a roster without all other benchmarks; a renamed one has either name."""
    return _Roster(
        gone=[name for name in roster.gone if name == benchmark],
        added=[name for name in roster.added if name == benchmark],
        kept={old: new for old, new in roster.kept.items() if benchmark in (old, new)},
        renamed={old: new for old, new in roster.renamed.items() if benchmark in (old, new)},
    )


def _changes(
    before: Round, after: Round, pairs: Iterable[tuple[Benchmark, Benchmark]], division: str | None
) -> Iterator[RuleChange]:
    yield from _changes_of_layers(_unlisted(before, division), _unlisted(after, division))
    for old, new in pairs:
        yield from _changes_of_benchmark(old, new, division)


def _changes_of_benchmark(
    before: Benchmark, after: Benchmark, division: str | None
) -> Iterator[RuleChange]:
    """Yield the changes in a benchmark, under its new name."""
    name = after.name
    if before.target != after.target:
        yield RuleChange(name, name, "target", (), (target(before),), (target(after),))
    if before.runs != after.runs:
        yield RuleChange(name, name, "runs", (), (runs(before.runs),), (runs(after.runs),))
    old_layers = benchmark_layers(replace(before, name=name), division)
    yield from _changes_of_layers(old_layers, benchmark_layers(after, division))


def _unlisted(round_: Round, division: str | None) -> list[Layer]:
    """Return the rules of every run but those that list the round's benchmarks."""
    layers = []
    for layer in common_layers(round_, division):
        rules = {}
        for key, key_rules in layer.rules.items():
            rules[key] = tuple(
                rule for rule in key_rules if rule.constraints.get("one_of") != round_.benchmarks
            )
        layers.append(replace(layer, rules=rules))
    return layers


def _changes_of_layers(before: Iterable[Layer], after: Iterable[Layer]) -> Iterator[RuleChange]:
    """Yield the changes of each layer, and in it of each key: those of old layers first."""
    old_layers = {layer.name: layer for layer in before}
    new_layers = {layer.name: layer for layer in after}
    for where, layer in {**old_layers, **new_layers}.items():
        old_rules = old_layers[where].rules if where in old_layers else {}
        new_rules = new_layers[where].rules if where in new_layers else {}
        for key in {**old_rules, **new_rules}:
            change = _change_of_key(layer, key, old_rules.get(key, ()), new_rules.get(key, ()))
            if change:
                yield change


def _change_of_key(
    layer: Layer, key: str, old_rules: Sequence[Rule], new_rules: Sequence[Rule]
) -> RuleChange | None:
    gone = _unlike(old_rules, new_rules)
    added = _unlike(new_rules, old_rules)
    if not gone and not added:
        return None
    return RuleChange(
        where=layer.name,
        benchmark=layer.benchmark,
        key=key,
        codes=tuple(dict.fromkeys(rule.code for rule in (*gone, *added))),
        old=tuple(map(with_basis, gone)),
        new=tuple(map(with_basis, added)),
    )


def _unlike(rules: Iterable[Rule], others: Sequence[Rule]) -> list[Rule]:
    """Return the rules without those that did not change."""
    return [rule for rule in rules if not any(same(rule, other) for other in others)]


# ---- names that a user may ask about -----------------------------------------------------

_LIKENESS = 0.7


def subject_of(text: str) -> tuple[str, str]:
    """Return what a name means, ignoring case, and the name as the rulebook spells it.

    It is a ``code``, a ``family`` of codes, a ``key`` or a ``benchmark``.

    Raises:
        UserError: it means nothing. The message names the nearest.
    """
    names_by_kind = {
        "code": _all_codes(),
        "benchmark": all_benchmarks(),
        "key": keys(),
        "family": families(),
    }
    for spelling in (text, text.upper(), text.lower()):  # SEED is a family, seed a key
        for kind, names in names_by_kind.items():
            if spelling in names:
                return kind, spelling
    has_digit = any(map(str.isdigit, text))
    likely_kinds = ("code", "benchmark", "key") if has_digit else ("benchmark", "key")
    meant = "; a code looks like SET101, a key like opt_name, a benchmark like bert"
    for kind in likely_kinds:
        near = nearest(text, sorted(names_by_kind[kind]), _LIKENESS)
        if near:
            meant = f"; did you mean {near}?"
            break
    raise UserError(f"no code, key or benchmark is called {text!r}{meant}")


def _all_codes() -> Set[str]:
    return codes().keys() | rulebook_codes()


def families() -> frozenset[str]:
    """Return how the codes that do not belong to a rule begin: LOG, SET, SYS ..."""
    return frozenset(map(_family, codes()))


def _family(code: str) -> str:
    return code.rstrip("0123456789")


@per_rulebook
def all_benchmarks() -> frozenset[str]:
    """Return the benchmarks of all rounds."""
    return frozenset(chain.from_iterable(starmap(benchmarks_of, every_round())))


@per_rulebook
def keys() -> frozenset[str]:
    """Return the keys that any rule is about."""
    return frozenset(use.rule.key for use in all_uses())


# ---- codes as users type them -------------------------------------------------------------


def known_code(code: str) -> str:
    """Return a code of a finding in capital letters.

    Raises:
        UserError: there is no such code. The message names the nearest.
    """
    names = _all_codes()
    wanted = code.upper()
    if wanted in names:
        return wanted
    raise UserError(f"no finding has the code {code!r}; {_near(wanted, names)}")


def known_prefix(prefix: str) -> str:
    """Return a prefix of codes in capital letters.

    Raises:
        UserError: no code begins with it. The message names the nearest.
    """
    names = _all_codes()
    wanted = prefix.upper()
    if wanted and any(code.startswith(wanted) for code in names):
        return wanted
    prefixes = {*names, *map(_family, names)}
    raise UserError(f"no code begins with {prefix!r}; {_near(wanted, prefixes)}")


def _near(wanted: str, names: Set[str]) -> str:
    near = get_close_matches(wanted, sorted(names), n=3, cutoff=0.7)
    if not near:
        return "a code looks like SET101 or BERT111"
    *first, last = near
    meant = f"{', '.join(first)} or {last}" if first else last
    return f"did you mean {meant}?"


# ---- an example: a line of a log that meets a rule ---------------------------------------

_COUNTERS = ("epoch_num", "first_epoch_num", "epoch_count", "samples_count", "step_num")
_SIMPLEST = (1, 0.5, 2, "name")
_STEP = 0.01


def example(rule: Rule, round_: Round, joined: Joined | None = None) -> str | None:
    """Return a record that meets a rule by itself, as a line; None where other records decide.

    For a key that is ``joined`` from several records, return these, one per line. Their time is
    noon of the round's submission date.
    """
    if "same_as" in rule.constraints:
        return None
    noon = datetime.combine(round_.submission_date, time(12), UTC)
    time_ms = int(noon.timestamp() * 1000)
    metadata = _metadata(rule)
    for value in _values(rule, round_):
        record = Record(rule.key, time_ms, value, metadata)
        if not _meets(rule, record):
            continue
        if joined and joined.key == rule.key:
            return "\n".join(map(as_line, _parts(record, joined)))
        return as_line(record)
    return None


def _parts(record: Record, joined: Joined) -> Iterator[Record]:
    """Yield the records that are joined to one; a rule may omit what they are joined by."""
    for name, value in record.value.items():
        if name != joined.by:
            position = record.value.get(joined.by, 1)
            metadata = {joined.name: name, joined.by: position}
            yield Record(joined.of, record.time_ms, value, metadata)


def as_line(record: Record) -> str:
    """Return a record as a line of a log."""
    event_type = "POINT_IN_TIME"
    if record.key.endswith("_start"):
        event_type = "INTERVAL_START"
    elif record.key.endswith("_stop"):
        event_type = "INTERVAL_END"
    fields = {
        "namespace": "",
        "time_ms": record.time_ms,
        "event_type": event_type,
        "key": record.key,
        "value": record.value,
        "metadata": record.metadata,
    }
    return TOKEN.decode() + json.dumps(fields)


def _meets(rule: Rule, record: Record) -> bool:
    earlier_keys = (*rule.constraints.get("after", ()), "submission_division")
    earlier_ms = record.time_ms - 1
    seen = {key: first_logged(Record(key, earlier_ms, None, None)) for key in earlier_keys}
    tests = _tests(rule.constraints)
    if rule.reaches:
        tests.append(target_test(rule.reaches))
    if rule.formula:
        tests.append(Formula(rule.formula).holds)
    try:
        return all(test(record, seen) for test in tests)
    except (NoAnswerError, TypeError, ValueError, ArithmeticError, LookupError):
        return False


def _tests(constraints: Mapping[str, Any]) -> list[Test]:
    return [CONSTRAINTS[name].test(argument) for name, argument in constraints.items()]


# ---- candidates ---------------------------------------------------------------------------


def _values(rule: Rule, round_: Round) -> Iterator[Any]:
    """Yield values that may meet a rule, the likeliest first."""
    constraints = {**rule.constraints, **(rule.reaches or {})}
    yield from candidates(constraints)
    names = constraints.get("has", ())
    if names:
        fields = constraints.get("fields", {})
        yield {name: next(candidates(fields.get(name, {})), 1) for name in names}
    if "none_of" in constraints:
        yield from round_.benchmarks
    if rule.key.startswith(("init_", "run_", "block_", "epoch_", "eval_st")):
        yield None
    if rule.key.startswith("submission_"):
        yield from reversed(_SIMPLEST)
    else:
        yield from _SIMPLEST
    yield None


def candidates(constraints: Mapping[str, Any]) -> Iterator[Any]:
    """Yield values that meet one or the other of some constraints on a value."""
    for name, argument in constraints.items():
        match name:
            case (
                "equals" | "close_to" | "multiple_of" | "power_of_two_times" | "truthy" | "in_ratio"
            ):
                yield argument
            case "one_of":
                yield from argument
            case "at_least" | "at_most" | "above" | "below":
                step = 1 if isinstance(argument, int) else _STEP
                yield argument
                yield round(argument - step, 6)
                yield round(argument + step, 6)
            case "counts":
                yield from candidates(argument)
            case "any":
                yield from chain.from_iterable(map(candidates, argument))
            case "each":
                yield from ([value] for value in fitting(argument))
            case "length" | "length_at_least":
                yield [1] * argument
            case "fields":
                yield {field: next(fitting(limits), 1) for field, limits in argument.items()}
                yield [5.0] * (len(argument) + 1)


def fitting(constraints: Mapping[str, Any]) -> Iterator[Any]:
    """Yield values that meet all of some constraints on a value."""
    tests = _tests(constraints)
    for value in candidates(constraints):
        record = Record("", 0, value, {})
        if all(test(record, {}) for test in tests):
            yield value


def _metadata(rule: Rule) -> dict[str, Any]:
    names = [*rule.constraints.get("metadata", ()), *rule.constraints.get("metadata_any", ())[-1:]]
    fields = rule.constraints.get("metadata_fields", {})
    defaults: dict[str, Any] = dict.fromkeys(_COUNTERS, 1)
    if rule.tensors:
        defaults["tensor"] = rule.tensors[0]
    metadata = {}
    for name in names:
        default = defaults.get(name, "success")
        metadata[name] = next(fitting(fields.get(name, {})), default)
    return metadata
