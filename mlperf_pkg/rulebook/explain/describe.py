"""The rulebook in words: what a rule requires, and where and since when it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.rulebook.constraints import OF_VALUE, needed_in_words
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.expectation import in_general
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark, Joined, Round, Rule, Rules, Runs
from mlperf_pkg.rulebook.rounds import where_instead

EVERY_RUN = "every run"

BASIS: Mapping[Basis, str] = {
    Basis.BOTH: "the written rules require it and the official checker tests it",
    Basis.OFFICIAL: "the official checker rejects what the written rules allow",
    Basis.RULES: "the written rules require it, the official checker does not test it",
    Basis.ADVICE: "our advice: neither the written rules nor the official checker require it",
}
SEVERITY: Mapping[Severity, str] = {
    Severity.ERROR: "error: the verdict fails",
    Severity.WARNING: "warning: no verdict fails",
    Severity.NOTE: "note: no verdict fails",
}


# ---- one rule -----------------------------------------------------------------------------


def requirement(rule: Rule) -> str:
    """Return what a rule requires, in words: ``once, "adamw"``."""
    often = occurrence(rule)
    words = [part for part in (often, *conditions(rule)) if part]
    return ", ".join(words if often else ["where logged", *words])


def with_basis(rule: Rule) -> str:
    """Return what a rule requires, with its basis in brackets where that is not ``both``."""
    return requirement(rule) + ("" if rule.basis is Basis.BOTH else f" [{rule.basis}]")


def occurrence(rule: Rule) -> str:
    """Return how often a key must be logged, in words; empty if any number is allowed."""
    match rule.occurs:
        case str():
            return rule.occurs.replace("_", " ")
        case {"or": other}:
            return f"at least once, or {other}"
        case None:
            return ""
        case limits:
            words = needed_in_words(limits)
            return "at most once" if words == "at most 1" else f"{words} times"


def conditions(rule: Rule) -> Iterator[str]:
    """Yield what a rule requires of the records of its key, in words."""
    first = "in the first record " if rule.first else "in the last record " if rule.last else ""
    is_of_target = "formula" in (rule.reaches or {})  # then ``needed`` says it in words
    if rule.needed and not is_of_target:
        yield first + rule.needed
    else:
        about_value = {n: a for n, a in rule.constraints.items() if n in OF_VALUE or n == "same_as"}
        about_record = {n: a for n, a in rule.constraints.items() if n not in about_value}
        formula = in_general(rule.formula, rule.key) if rule.formula else ""
        parts = [needed_in_words(about_value), formula]
        yield (first + " and ".join(part for part in parts if part)).rstrip()
        yield from (needed_in_words({n: a}).removeprefix("it ") for n, a in about_record.items())
    if rule.tensors is not None:
        yield f"naming each of {len(rule.tensors)} tensors once"
    if rule.reached:
        yield "status success only where the last evaluation reached the target"
    if rule.covers_target:
        yield "no earlier than the evaluation that reached the target"
    if rule.no_later_than:
        yield f"no later than {' and '.join(rule.no_later_than)}"
    if rule.reaches:
        words = rule.needed if is_of_target else None
        yield f"reaching {words or needed_in_words(rule.reaches)}"


def target(benchmark: Benchmark) -> str:
    """Return the quality that training must reach, in words."""
    return needed_in_words(benchmark.target)


def targets(history: History) -> Iterator[tuple[str, str, str]]:
    """Yield what the target of a rule is in its latest round: benchmark, round, words."""
    latest = history.spans[-1]
    if latest.rule.reaches:
        round_ = load_round(history.usage, latest.until)
        for name in history.benchmarks:
            yield name, round_.name, target(loaded(round_, name))


def own_keys(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the keys that the rules of a benchmark are about."""
    names = (key for layer in benchmark_layers(benchmark) for key in layer.rules)
    return tuple(dict.fromkeys(names))


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
        words = " ".join(part for part in (self.division.title(), self.benchmark) if part)
        return (words or EVERY_RUN) + (f" with {self.variant}" if self.variant else "")


def common_layers(round_: Round, division: str | None = None) -> list[Layer]:
    """Return the rules of a round for all benchmarks, of all divisions or of one."""
    parts = [""] + [part for part in DIVISIONS if part == division or not division]
    layers = [Layer("", part, "", round_.sections[part or "common"]) for part in parts]
    return [layer for layer in layers if layer.rules]


def benchmark_layers(benchmark: Benchmark, division: str | None = None) -> list[Layer]:
    """Return the rules of a benchmark, of all divisions or of one."""
    layers = [
        Layer(benchmark.name, part, "", benchmark.sections[part])
        for part in DIVISIONS
        if part == division or not division
    ]
    if division != "open":
        layers += [
            Layer(benchmark.name, "closed", f"{key} {value}", rules)
            for key, choices in benchmark.variants.items()
            for value, rules in choices.items()
        ]
    return [layer for layer in layers if layer.rules]


def all_layers(usage: str, round_: str, benchmark: str) -> list[Layer]:
    """Return the rules of a round and, if it has the benchmark, of the benchmark.

    Raises:
        UserError: the rulebook has no such round.
    """
    rules = load_benchmark(usage, round_, benchmark)
    of_benchmark = benchmark_layers(rules) if rules else []
    return common_layers(load_round(usage, round_)) + of_benchmark


def loaded(round_: Round, name: str) -> Benchmark:
    """Return a benchmark of a round.

    Raises:
        UserError: the round has no such benchmark.
    """
    benchmark = load_benchmark(round_.usage, round_.name, name)
    if benchmark is None:
        names = ", ".join(round_.benchmarks)
        where = where_instead(round_.usage, round_.name, name)
        raise UserError(f"round {round_.name} has no benchmark {name!r}: it has {names}{where}")
    return benchmark


def effective(layers: Iterable[Layer]) -> list[Layer]:
    """Return the layers of one run without the rules that a layer above replaces."""
    kept: list[Layer] = []
    above: set[str] = set()
    for layer in reversed(list(layers)):
        rules = {key: rules for key, rules in layer.rules.items() if key not in above}
        kept.insert(0, Layer(layer.benchmark, layer.division, layer.variant, rules))
        above |= layer.rules.keys() if not layer.variant else set()
    return [layer for layer in kept if any(layer.rules.values())]


# ---- since when ---------------------------------------------------------------------------


class Span(Struct, frozen=True):
    """A rule in the rounds from ``first`` to ``until``; ``last`` is None where it still holds."""

    first: str
    until: str
    last: str | None
    rule: Rule

    @property
    def words(self) -> str:
        """The rounds: "from 2.1 on", "in 0.7", "from 1.0 to 2.0"."""
        if self.last is None:
            return f"from {self.first} on"
        if self.last == self.first:
            return f"in {self.first}"
        return f"from {self.first} to {self.last}"


class History(Struct, frozen=True):
    """How a rule changed from round to round, alike in several layers of a usage."""

    usage: str
    where: tuple[str, ...]
    benchmarks: tuple[str, ...]
    spans: tuple[Span, ...]


def rulebook_codes() -> frozenset[str]:
    """Return the codes of all rules of the rulebook."""
    return frozenset(_uses_by_code())


@per_rulebook
def _uses_by_code() -> dict[str, list[Use]]:
    return _by_code(all_uses())


def _by_code(uses: Iterable[Use]) -> dict[str, list[Use]]:
    by_code: dict[str, list[Use]] = {}
    for use in uses:
        by_code.setdefault(use.rule.code, []).append(use)
    return by_code


def histories(code: str) -> list[History]:
    """Return where a rule holds and how it changed; empty if no rule has this code."""
    return _histories(_uses_by_code().get(code, []))


def histories_of_key(key: str) -> dict[str, list[History]]:
    """Return the same for each code of the rules of a key, in the order of the rulebook."""
    uses = _by_code(use for use in all_uses() if use.rule.key == key)
    return {code: _histories(code_uses) for code, code_uses in uses.items()}


def newest_first(histories: Iterable[History]) -> list[History]:
    """Return histories by the submission of the newest round that has the rule."""
    return sorted(
        histories,
        key=lambda history: load_round(history.usage, history.spans[-1].until).submission_date,
        reverse=True,
    )


def _histories(uses_of_a_code: Iterable[Use]) -> list[History]:
    uses: dict[tuple[str, str], list[Use]] = {}
    for use in uses_of_a_code:
        uses.setdefault((use.usage, use.layer.name), []).append(use)
    alike: dict[tuple[Any, ...], list[Use]] = {}
    for layer_uses in uses.values():
        words = ((s.words, s.rule.basis, requirement(s.rule)) for s in _spans(layer_uses))
        alike.setdefault((layer_uses[0].usage, *words), []).append(layer_uses[-1])
    return [
        History(
            usage=last_uses[0].usage,
            where=tuple(use.layer.name for use in last_uses),
            benchmarks=tuple({name: None for use in last_uses if (name := use.layer.benchmark)}),
            spans=_spans(uses[last_uses[0].usage, last_uses[0].layer.name]),
        )
        for last_uses in alike.values()
    ]


def joined(history: History, span: Span) -> Joined | None:
    """Return how a rule's key is joined from records, None where runs log the key itself."""
    round_ = load_round(history.usage, span.until)
    candidates = (loaded(round_, name).joined for name in history.benchmarks)
    return next((item for item in candidates if item and item.key == span.rule.key), None)


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
            of_benchmarks = (benchmark_layers(loaded(round_, stem)) for stem in round_.benchmarks)
            for layer in chain(common_layers(round_), *of_benchmarks):
                for rule in chain.from_iterable(layer.rules.values()):
                    yield Use(usage, name, layer, rule)


def _spans(uses: Sequence[Use]) -> tuple[Span, ...]:
    """Join consecutive rounds in which a rule is the same."""
    order = rounds(uses[0].usage)
    spans: list[Span] = []
    for use in uses:
        last = None if use.round == order[-1] else use.round
        before = spans[-1] if spans else None
        follows = before and order.index(before.until) + 1 == order.index(use.round)
        if before and follows and same(before.rule, use.rule):
            spans[-1] = Span(before.first, use.round, last, before.rule)
        else:
            spans.append(Span(use.round, use.round, last, use.rule))
    return tuple(spans)


_COMPARED = (
    *("occurs", "constraints", "formula", "needed", "first", "last", "reaches", "reached"),
    *("tensors", "covers_target", "no_later_than", "basis", "severity"),
)


def same(one: Rule, other: Rule) -> bool:
    """Return whether two rules require the same with the same weight; ``0`` equals ``0.0``."""
    return all(getattr(one, name) == getattr(other, name) for name in _COMPARED)
