"""What a rule or a code means, an example of it, and what changes from round to round."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, time
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
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, OF_VALUE, needed_in_words, target_test
from mlperf_pkg.rulebook.documents import every_round, rounds, usages
from mlperf_pkg.rulebook.expectation import in_general
from mlperf_pkg.rulebook.formula import Formula, NoAnswerError, first_logged
from mlperf_pkg.rulebook.load import benchmarks_of, codes, load_benchmark, load_round
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
        case {"or": other}:
            return f"at least once, or {other}"
        case {"at_most": 1, **more} if not more:
            return "at most once"
        case Mapping() as limits:
            return f"{needed_in_words(limits)} times"
        case often:
            return (often or "").replace("_", " ")


def conditions(rule: Rule) -> Iterator[str]:
    """Yield what a rule requires of the records of its key, in words."""
    first = "in the first record " if rule.first else "in the last record " if rule.last else ""
    is_of_target = "formula" in (rule.reaches or {})  # then ``needed`` says it in words
    if rule.needed and not is_of_target:
        yield first + rule.needed
    else:
        needed = {n: needed_in_words({n: a}) for n, a in rule.constraints.items()}
        about_value = [needed.pop(name) for name in list(needed) if name in (*OF_VALUE, "same_as")]
        about_value += [in_general(rule.formula, rule.key)] if rule.formula else []
        yield (first + " and ".join(about_value)).rstrip()
        yield from (text.removeprefix("it ") for text in needed.values())
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


def targets(history: RuleHistory) -> Iterator[tuple[str, str, str]]:
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
        *(Layer(benchmark.name, part, "", benchmark.sections[part]) for part in DIVISIONS),
        *(
            Layer(benchmark.name, "closed", f"{key} {value}", rules)
            for key, choices in benchmark.variants.items()
            for value, rules in choices.items()
        ),
    ]
    return [layer for layer in layers if layer.rules and division in (None, layer.division)]


def all_layers(usage: str, round_: str, benchmark: str) -> list[Layer]:
    """Return the rules of a round and, if it has the benchmark, of the benchmark.

    Raises:
        UserError: the rulebook has no such round.
    """
    rules = load_benchmark(usage, round_, benchmark)
    return common_layers(load_round(usage, round_)) + (benchmark_layers(rules) if rules else [])


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
        rules = {key: rules for key, rules in layer.rules.items() if key not in above and rules}
        kept += [replace(layer, rules=rules)] if rules else []
        above |= layer.rules.keys() if not layer.variant else set()
    return kept[::-1]


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
        return f"from {self.first} " + (f"to {self.last}" if self.last else "on")


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
    by_code = _uses_by_code().items()
    of_key = {code: [use for use in uses if use.rule.key == key] for code, uses in by_code}
    return {code: _histories(uses) for code, uses in of_key.items() if uses}


def newest_first(histories: Iterable[RuleHistory]) -> list[RuleHistory]:
    """Return histories by the submission of the newest round that has the rule."""
    return sorted(
        histories,
        key=lambda history: load_round(history.usage, history.spans[-1].until).submission_date,
        reverse=True,
    )


def _histories(uses_of_a_code: Iterable[Use]) -> list[RuleHistory]:
    uses: dict[tuple[str, str], list[Use]] = {}
    for use in uses_of_a_code:
        uses.setdefault((use.usage, use.layer.name), []).append(use)
    alike: dict[tuple[Any, ...], list[tuple[Layer, tuple[RuleSpan, ...]]]] = {}
    for (usage, _), of_layer in uses.items():
        spans = _spans(of_layer)
        words = ((span.words, span.rule.basis, requirement(span.rule)) for span in spans)
        alike.setdefault((usage, *words), []).append((of_layer[-1].layer, spans))
    rows = []
    for (usage, *_), members in alike.items():
        layers = [layer for layer, _ in members]
        names = dict.fromkeys(layer.benchmark for layer in layers if layer.benchmark)
        where = tuple(layer.name for layer in layers)
        rows.append(RuleHistory(usage, where, tuple(names), members[0][1]))
    return rows


def joined(history: RuleHistory, span: RuleSpan) -> Joined | None:
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


def _spans(uses: Sequence[Use]) -> tuple[RuleSpan, ...]:
    """Join consecutive rounds in which a rule is the same."""
    order = rounds(uses[0].usage)
    spans: list[RuleSpan] = []
    for use in uses:
        last = None if use.round == order[-1] else use.round
        before = spans[-1] if spans else None
        follows = before and order.index(before.until) + 1 == order.index(use.round)
        if before and follows and same(before.rule, use.rule):
            spans[-1] = RuleSpan(before.first, use.round, last, before.rule)
        else:
            spans.append(RuleSpan(use.round, use.round, last, use.rule))
    return tuple(spans)


_COMPARED = (
    *("occurs", "constraints", "formula", "needed", "first", "last", "reaches", "reached"),
    *("tensors", "covers_target", "no_later_than", "basis", "severity"),
)


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
    names = sorted({*before.benchmarks, *after.benchmarks})
    if benchmark and benchmark not in names:
        meant = f"{', '.join(names)}{did_you_mean(benchmark, names)}"
        neither = f"neither round {before.name} nor {after.name}"
        raise UserError(f"{neither} has a benchmark {benchmark!r}: there are {meant}")
    gone = [name for name in names if name not in after.benchmarks]
    added = [name for name in names if name not in before.benchmarks]
    renamed = {o: n for o in gone for n in added if _codes(before, o) & _codes(after, n)}
    kept = {name: name for name in before.benchmarks if name in after.benchmarks} | renamed
    staying = {o: n for o, n in kept.items() if benchmark in (None, o, n)}
    new_names = [n for n in added if n not in renamed.values() and benchmark in (None, n)]
    new_benchmarks = [loaded(after, name) for name in new_names]
    pairs = [(loaded(before, o), loaded(after, n)) for o, n in staying.items()]
    changes = list(_changes(before, after, pairs, division))
    touched = {change.benchmark for change in changes}
    return RoundComparison(
        old=before,
        new=after,
        gone=[n for n in gone if n not in renamed and benchmark in (None, n)],
        added=new_benchmarks,
        renamed={o: n for o, n in renamed.items() if o in staying},
        changes=changes,
        unchanged=sorted(name for name in staying.values() if name not in touched),
        pairs=[
            *sorted(pairs, key=lambda pair: pair[1].name),
            *((None, benchmark) for benchmark in new_benchmarks),
        ],
    )


def _codes(round_: Round, benchmark: str) -> set[str]:
    """Return the codes of Open rules: benchmarks that share one are one, under a new name."""
    rules = loaded(round_, benchmark).sections["open"].values()
    return {rule.code for rule in chain.from_iterable(rules)}


def _changes(
    before: Round, after: Round, pairs: Iterable[tuple[Benchmark, Benchmark]], division: str | None
) -> Iterator[RuleChange]:
    yield from _of_layers(_without_list(before, division), _without_list(after, division))
    for renamed, new in pairs:
        old = replace(renamed, name=new.name)
        name = new.name
        if old.target != new.target:
            yield RuleChange(name, name, "target", (), (target(old),), (target(new),))
        if old.runs != new.runs:
            yield RuleChange(name, name, "runs", (), (runs(old.runs),), (runs(new.runs),))
        yield from _of_layers(benchmark_layers(old, division), benchmark_layers(new, division))


def _without_list(round_: Round, division: str | None) -> list[Layer]:
    """Return the rules of every run but those that list the round's benchmarks."""
    return [
        replace(
            layer,
            rules={
                key: tuple(r for r in rules if r.constraints.get("one_of") != round_.benchmarks)
                for key, rules in layer.rules.items()
            },
        )
        for layer in common_layers(round_, division)
    ]


def _of_layers(before: Iterable[Layer], after: Iterable[Layer]) -> Iterator[RuleChange]:
    old, new = ({layer.name: layer for layer in layers} for layers in (before, after))
    for where, layer in {**old, **new}.items():
        was, now = (layers[where].rules if where in layers else {} for layers in (old, new))
        for key in {**was, **now}:
            gone = _unlike(was.get(key, ()), now.get(key, ()))
            added = _unlike(now.get(key, ()), was.get(key, ()))
            if gone or added:
                codes = tuple(dict.fromkeys(rule.code for rule in (*gone, *added)))
                words = (tuple(map(with_basis, rules)) for rules in (gone, added))
                yield RuleChange(where, layer.benchmark, key, codes, *words)


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
    names = {
        "code": _all_codes(),
        "benchmark": all_benchmarks(),
        "key": keys(),
        "family": families(),
    }
    for spelling in (text, text.upper(), text.lower()):  # SEED is a family, seed a key
        for kind, of_kind in names.items():
            if spelling in of_kind:
                return kind, spelling
    kinds = ("code", "benchmark", "key") if any(map(str.isdigit, text)) else ("benchmark", "key")
    likely = [names[kind] for kind in kinds]
    near = filter(None, (nearest(text, sorted(of_kind), _LIKENESS) for of_kind in likely))
    example = "; a code looks like SET101, a key like opt_name, a benchmark like bert"
    meant = next((f"; did you mean {name}?" for name in near), example)
    raise UserError(f"no code, key or benchmark is called {text!r}{meant}")


def _all_codes() -> Set[str]:
    return codes().keys() | rulebook_codes()


def families() -> frozenset[str]:
    """Return how the codes that do not belong to a rule begin: LOG, SET, SYS ..."""
    return frozenset(code.rstrip("0123456789") for code in codes())


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
    raise UserError(f"no finding has the code {code!r}: {_near(wanted, names)}")


def known_prefix(prefix: str) -> str:
    """Return a prefix of codes in capital letters.

    Raises:
        UserError: no code begins with it. The message names the nearest.
    """
    names = _all_codes()
    wanted = prefix.upper()
    if wanted and any(code.startswith(wanted) for code in names):
        return wanted
    families = {code.rstrip("0123456789") for code in names}
    raise UserError(f"no code begins with {prefix!r}: {_near(wanted, names | families)}")


def _near(wanted: str, names: Set[str]) -> str:
    near = get_close_matches(wanted, sorted(names), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(near)}?" if near else "a code looks like SET101 or BERT111"


# ---- an example: a line of a log that meets a rule ---------------------------------------

_COUNTERS = ("epoch_num", "first_epoch_num", "epoch_count", "samples_count", "step_num")
_PLAIN = (None, 1, 0.5, 2, "name")
_STEP = 0.01
_EVENTS = {"_start": "INTERVAL_START", "_stop": "INTERVAL_END", "": "POINT_IN_TIME"}


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
        if _meets(rule, record):
            records = _parts(record, joined) if joined and joined.key == rule.key else [record]
            return "\n".join(map(_line, records))
    return None


def _parts(record: Record, joined: Joined) -> Iterator[Record]:
    """Yield the records that are joined to one; a rule may omit what they are joined by."""
    for name, value in record.value.items():
        if name != joined.by:
            metadata = {joined.name: name, joined.by: record.value.get(joined.by, 1)}
            yield Record(joined.of, record.time_ms, value, metadata)


def _line(record: Record) -> str:
    fields = {
        "namespace": "",
        "time_ms": record.time_ms,
        "event_type": next(_EVENTS[end] for end in _EVENTS if record.key.endswith(end)),
        "key": record.key,
        "value": record.value,
        "metadata": record.metadata,
    }
    return TOKEN.decode() + json.dumps(fields)


def _meets(rule: Rule, record: Record) -> bool:
    seen = {
        key: first_logged(Record(key, record.time_ms - 1, None, None))
        for key in (*rule.constraints.get("after", ()), "submission_division")
    }
    tests = [CONSTRAINTS[name].test(argument) for name, argument in rule.constraints.items()]
    tests += [target_test(rule.reaches)] if rule.reaches else []
    tests += [Formula(rule.formula).holds] if rule.formula else []
    try:
        return all(test(record, seen) for test in tests)
    except (NoAnswerError, TypeError, ValueError, ArithmeticError, LookupError):
        return False


# ---- candidates ---------------------------------------------------------------------------


def _values(rule: Rule, round_: Round) -> Iterator[Any]:
    """Yield values that may meet a rule, the likeliest first."""
    constraints = {**rule.constraints, **(rule.reaches or {})}
    yield from _candidates(constraints)
    names = constraints.get("has", ())
    if names:
        fields = constraints.get("fields", {})
        yield {name: next(_candidates(fields.get(name, {})), 1) for name in names}
    if "none_of" in constraints:
        yield from round_.benchmarks
    if rule.key.startswith(("init_", "run_", "block_", "epoch_", "eval_st")):
        yield None
    yield from reversed(_PLAIN) if rule.key.startswith("submission_") else _PLAIN[1:]
    yield None


def _candidates(constraints: Mapping[str, Any]) -> Iterator[Any]:
    for name, argument in constraints.items():
        match name:
            case (
                "equals" | "close_to" | "multiple_of" | "power_of_two_times" | "truthy" | "in_ratio"
            ):
                yield argument
            case "one_of":
                yield from argument
            case "at_least" | "at_most" | "above" | "below":
                step = 1 if isinstance(argument, int) else _STEP  # beside the bound
                yield from (argument, round(argument - step, 6), round(argument + step, 6))
            case "counts":
                yield from _candidates(argument)
            case "any":
                yield from (value for limits in argument for value in _candidates(limits))
            case "each":
                yield from ([value] for value in _fitting(argument))
            case "length" | "length_at_least":
                yield [1] * argument
            case "fields":
                yield {field: next(_fitting(limits), 1) for field, limits in argument.items()}
                yield [5.0] * (len(argument) + 1)


def _fitting(constraints: Mapping[str, Any]) -> Iterator[Any]:
    tests = [CONSTRAINTS[name].test(argument) for name, argument in constraints.items()]
    for value in _candidates(constraints):
        if all(test(Record("", 0, value, {}), {}) for test in tests):
            yield value


def _metadata(rule: Rule) -> dict[str, Any]:
    names = [*rule.constraints.get("metadata", ()), *rule.constraints.get("metadata_any", ())[-1:]]
    fields = rule.constraints.get("metadata_fields", {})
    tensor = {"tensor": rule.tensors[0]} if rule.tensors else {}
    defaults = {**dict.fromkeys(_COUNTERS, 1), **tensor}
    return {
        name: next(_fitting(fields.get(name, {})), defaults.get(name, "success")) for name in names
    }
