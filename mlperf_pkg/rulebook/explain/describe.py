"""The rulebook in prose: what a rule asks, where and since when it holds, a line that meets it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.infra.rules_folders import per_rulebook
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.rulebook.constraints import OF_VALUE, needed_in_words
from mlperf_pkg.rulebook.load import load_benchmark, load_round, rounds, usages
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark, Joined, Round, Rule, Rules, Runs

EVERY_RUN = "every run"

BASIS: Mapping[Basis, str] = {
    Basis.BOTH: "the written rules ask it and the official checker tests it",
    Basis.OFFICIAL: "the official checker rejects what the written rules allow",
    Basis.RULES: "the written rules ask it, the official checker does not test it",
    Basis.ADVICE: "our advice: neither the written rules nor the official checker ask it",
}
SEVERITY: Mapping[Severity, str] = {
    Severity.ERROR: "an error: it fails the verdict",
    Severity.WARNING: "a warning: it fails nothing",
    Severity.NOTE: "a note: it fails nothing",
}


# ---- one rule -----------------------------------------------------------------------------


def asked(rule: Rule) -> str:
    """What a rule asks, in words: ``once, "adamw"``."""
    often = occurrence(rule)
    words = [part for part in (often, *_conditions(rule)) if part]
    return ", ".join(words if often else ["where logged", *words])


def with_basis(rule: Rule) -> str:
    """What a rule asks; in brackets whose rule it is, where it is not everybody's."""
    return asked(rule) + ("" if rule.basis is Basis.BOTH else f" [{rule.basis}]")


def occurrence(rule: Rule) -> str:
    """How often a key is to be logged, in words; empty where that is free."""
    match rule.occurs:
        case str():
            return rule.occurs.replace("_", " ")
        case {"or": other}:
            return f"at least once, or {other}"
        case None:
            return ""
        case limits:
            return f"{needed_in_words(limits)} times"


def _conditions(rule: Rule) -> Iterator[str]:
    first = "in the first record " if rule.first else ""
    if rule.needed:
        yield first + rule.needed
    else:
        about_value = {n: a for n, a in rule.constraints.items() if n in OF_VALUE or n == "same_as"}
        about_record = {n: a for n, a in rule.constraints.items() if n not in about_value}
        asks = [needed_in_words(about_value), rule.formula_text]
        yield first + " and ".join(part for part in asks if part)
        yield from (needed_in_words({n: a}).removeprefix("it ") for n, a in about_record.items())
    if rule.tensors is not None:
        yield f"naming each of {len(rule.tensors)} tensors once"
    if rule.reached:
        yield "status success only where the last evaluation reached the target"
    if rule.reaches:
        yield f"reaching {needed_in_words(rule.reaches)}"


def target(benchmark: Benchmark) -> str:
    """The quality that training must reach, in words."""
    return needed_in_words(benchmark.target)


def targets(history: History) -> Iterator[tuple[str, str, str]]:
    """What a rule that asks for the target last meant by it: benchmark, round, in words."""
    latest = history.spans[-1]
    if latest.rule.reaches:
        round_ = load_round(history.usage, latest.until)
        for name in history.benchmarks:
            yield name, round_.name, target(loaded(round_, name))


def runs(needed: Runs) -> str:
    """How many runs make a result, in words."""
    return f"{needed.required} runs, the fastest {needed.drop} and slowest {needed.drop} dropped"


# ---- where rules hold ---------------------------------------------------------------------


class Layer(Struct, frozen=True):
    """Rules that hold together: of every run, a division, a benchmark, an optimizer.

    ``benchmark`` is empty for the rules of a round, ``division`` for those common to both;
    ``variant`` says which choice of a run adds these rules ("opt_name lars").
    """

    benchmark: str
    division: str
    variant: str
    rules: Rules

    @property
    def name(self) -> str:
        """In words: "Closed bert", "Closed resnet with opt_name lars"."""
        words = " ".join(part for part in (self.division.title(), self.benchmark) if part)
        return (words or EVERY_RUN) + (f" with {self.variant}" if self.variant else "")


def common_layers(round_: Round, division: str | None = None) -> list[Layer]:
    """What a round asks whatever the benchmark; for one division if given."""
    parts = [""] + [part for part in DIVISIONS if part == division or not division]
    found = [Layer("", part, "", round_.sections[part or "common"]) for part in parts]
    return [layer for layer in found if layer.rules]


def benchmark_layers(benchmark: Benchmark, division: str | None = None) -> list[Layer]:
    """What a benchmark asks; in one division if given."""
    found = [
        Layer(benchmark.name, part, "", benchmark.sections[part])
        for part in DIVISIONS
        if part == division or not division
    ]
    if division != "open":
        found += [
            Layer(benchmark.name, "closed", f"{key} {value}", rules)
            for key, choices in benchmark.variants.items()
            for value, rules in choices.items()
        ]
    return [layer for layer in found if layer.rules]


def loaded(round_: Round, name: str) -> Benchmark:
    """A benchmark of a round.

    Raises:
        UserError: the round has no such benchmark.
    """
    found = load_benchmark(round_.usage, round_.name, name)
    if found is None:
        known = ", ".join(round_.benchmarks)
        meant = did_you_mean(name, round_.benchmarks)
        raise UserError(f"round {round_.name} has no benchmark {name!r}: it has {known}{meant}")
    return found


def effective(several: Iterable[Layer]) -> list[Layer]:
    """The layers of one run without the rules that a layer above replaces."""
    kept: list[Layer] = []
    above: set[str] = set()
    for layer in reversed(list(several)):
        rules = {key: rules for key, rules in layer.rules.items() if key not in above}
        kept.insert(0, Layer(layer.benchmark, layer.division, layer.variant, rules))
        above |= layer.rules.keys() if not layer.variant else set()
    return [layer for layer in kept if any(layer.rules.values())]


# ---- since when ---------------------------------------------------------------------------


class Span(Struct, frozen=True):
    """A rule as it stands in the rounds from ``first`` to ``until``; ``last`` None: to this day."""

    first: str
    until: str
    last: str | None
    rule: Rule

    @property
    def words(self) -> str:
        """The rounds: "from 2.1 on", "in 0.7", "from 1.0 to 2.0"."""
        if self.last is None:
            return f"from {self.first} on"
        return (
            f"in {self.first}" if self.last == self.first else f"from {self.first} to {self.last}"
        )


class History(Struct, frozen=True):
    """How a rule went from round to round in some layers of a usage, which all had it alike."""

    usage: str
    where: tuple[str, ...]
    benchmarks: tuple[str, ...]
    spans: tuple[Span, ...]


@per_rulebook
def rulebook_codes() -> frozenset[str]:
    """Every code that a rule of the rulebook has."""
    return frozenset(rule.code for _, _, _, rule in _everywhere())


def histories(code: str) -> list[History]:
    """Where a rule holds and how it changed; empty where no rule has this code."""
    found: dict[tuple[str, str], list[tuple[str, Rule]]] = {}
    named: dict[tuple[str, str], str] = {}
    for usage, round_name, layer, rule in _everywhere():
        if rule.code == code:
            found.setdefault((usage, layer.name), []).append((round_name, rule))
            named[usage, layer.name] = layer.benchmark
    spans = {place: _spans(place[0], steps) for place, steps in found.items()}
    alike: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for place in found:
        told = ((span.words, span.rule.basis, asked(span.rule)) for span in spans[place])
        alike.setdefault((place[0], *told), []).append(place)
    return [
        History(
            usage=places[0][0],
            where=tuple(name for _, name in places),
            benchmarks=tuple(dict.fromkeys(filter(None, (named[each] for each in places)))),
            spans=spans[places[0]],
        )
        for places in alike.values()
    ]


def joined(history: History, span: Span) -> Joined | None:
    """From which records a rule's key is made, where it is not a key that runs log."""
    round_ = load_round(history.usage, span.until)
    found = (loaded(round_, name).joined for name in history.benchmarks)
    return next((each for each in found if each and each.key == span.rule.key), None)


def _everywhere() -> Iterator[tuple[str, str, Layer, Rule]]:
    for usage in reversed(usages()):
        for name in rounds(usage):
            round_ = load_round(usage, name)
            found = [benchmark_layers(loaded(round_, each)) for each in round_.benchmarks]
            for layer in (*common_layers(round_), *(each for part in found for each in part)):
                for rule in (each for several in layer.rules.values() for each in several):
                    yield usage, name, layer, rule


def _spans(usage: str, steps: Iterable[tuple[str, Rule]]) -> tuple[Span, ...]:
    """Rounds in a row in which a rule is the same, put together."""
    order = rounds(usage)
    spans: list[Span] = []
    for name, rule in steps:
        last = None if name == order[-1] else name
        before = spans[-1] if spans else None
        follows = before and order.index(before.until) + 1 == order.index(name)
        if before and follows and same(before.rule, rule):
            spans[-1] = Span(before.first, name, last, before.rule)
        else:
            spans.append(Span(name, name, last, rule))
    return tuple(spans)


_ASKED = ("occurs", "constraints", "formula", "needed", "first", "reaches", "reached", "tensors")


def same(one: Rule, other: Rule) -> bool:
    """Whether two rules ask the same with the same weight, be it ``0`` for the one, ``0.0`` for
    the other.
    """
    fields = (*_ASKED, "basis", "severity")
    return all(getattr(one, name) == getattr(other, name) for name in fields)
