"""Answers about the rulebook: lines for people, fields for programs."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter
from string import digits
from textwrap import TextWrapper
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import Column, Table, by_key, records, table_of
from mlperf_pkg.results.rcp import PointChange
from mlperf_pkg.results.report import as_json
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook import explain
from mlperf_pkg.rulebook.explain import (
    Layer,
    RoundComparison,
    RuleChange,
    RuleHistory,
    RuleSpan,
    example,
)
from mlperf_pkg.rulebook.load import FindingCode, codes, load_round
from mlperf_pkg.rulebook.model import (
    Benchmark,
    Round,
    Rule,
    is_setting,
    ruleset_source,
    version_of,
)

WIDTH = 80
_LARGE = 1000  # from here on, fractions of samples or epochs say nothing
USAGES = {"training": "MLPerf Training", "hpc": "MLPerf HPC"}


# ---- layout -------------------------------------------------------------------------------


def wrapped(first: str, text: str, indent: int | None = None) -> str:
    """Return ``text`` after ``first``, its further lines below it or indented by ``indent``."""
    if not text:
        return first.rstrip()
    hanging = " " * (len(first) if indent is None else indent)
    layout = TextWrapper(WIDTH, first, hanging, break_long_words=False, break_on_hyphens=False)
    return layout.fill(text)


def hanging(table: Table) -> Iterator[str]:
    """Yield a table in columns, the last column wrapped."""
    lines = [[column.heading for _, column in table.titled]]
    for row in table.rows:
        lines.append([text for text, _ in table.spans(row)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for *cells, last in lines:
        start = ""
        for cell, width in zip(cells, widths, strict=False):  # the last one is wrapped
            start += f"{cell:<{width}}  "
        yield wrapped(start, last)


class Document(Struct, frozen=True):
    """An answer: its lines as text, and its fields as JSON, of a format named by its ``kind``."""

    kind: str
    lines: Iterable[str]
    fields: Callable[[], Mapping[str, Any]]


def _text(document: Document, _: View) -> str:
    return "\n".join(document.lines) + "\n"


def _json(document: Document, _: View) -> str:
    content = {"format": f"mlperf-pkg/rules-{document.kind}/1", **document.fields()}
    return json.dumps(content, indent=2) + "\n"


FORMATS = {"text": _text, "json": _json}


# ---- list ---------------------------------------------------------------------------------


_BENCHMARKS = (
    Column("BENCHMARK", key="name", of=attrgetter("name")),
    Column("RUNS", key="runs", of=attrgetter("runs.required")),
    Column("DROP", key="dropped", of=attrgetter("runs.drop"), show=lambda n: f"{n}+{n}"),
    Column("COUNTS", key="unit", of=attrgetter("unit")),
    Column("TARGET", key="target", of=explain.target),
)
_ROUNDS = (
    Column(key="usage", of=attrgetter("usage")),
    Column("ROUND", key="round", of=attrgetter("name")),
    Column("SUBMISSION", key="submission_date", of=lambda round_: f"{round_.submission_date}"),
    Column(key="date_source", of=attrgetter("date_source")),
    Column("RULESET", key="ruleset", of=attrgetter("ruleset")),
    Column(key="normalised", of=attrgetter("normalised")),
    Column("BENCHMARKS", of=lambda round_: ", ".join(round_.benchmarks)),
    Column(key="benchmarks", of=lambda round_: records(_benchmarks(round_))),
)


def _benchmarks(round_: Round) -> Table:
    return table_of(_BENCHMARKS, (explain.loaded(round_, name) for name in round_.benchmarks))


def of_rounds(rounds: Sequence[Round], *, detailed: bool) -> Document:
    """Return rounds with their benchmarks; ``detailed`` gives these with runs and targets."""
    lines: list[str] = []
    if detailed:
        for round_ in rounds:
            lines += ["", _title(round_), "", *hanging(_benchmarks(round_))]
    else:
        for usage, of_usage in groupby(rounds, key=attrgetter("usage")):
            lines += ["", USAGES[usage], *hanging(table_of(_ROUNDS, of_usage))]
    return Document("list", lines[1:], lambda: {"rounds": records(table_of(_ROUNDS, rounds))})


def _title(round_: Round) -> str:
    return (
        f"{USAGES[round_.usage]} {round_.name}, submission {round_.submission_date},"
        f" ruleset {round_.ruleset}"
    )


def of_benchmark(round_: Round, benchmark: Benchmark, layers: Sequence[Layer]) -> Document:
    """Return a benchmark of a round with its rules, one per line."""
    rules_by_layer: list[tuple[str, list[Rule]]] = []
    width = 0
    for layer in layers:
        rules = list(chain.from_iterable(layer.rules.values()))
        rules_by_layer.append((layer.name, rules))
        for rule in rules:
            width = max(width, len(rule.code))
    lines = [_title(round_), wrapped(f"{benchmark.name}: ", explain.runs(benchmark.runs))]
    lines.append(wrapped("target: ", explain.target(benchmark)))
    for where, rules in rules_by_layer:
        lines += ["", _heading(where)]
        for rule in rules:
            text = f"{rule.key}: {explain.with_basis(rule)}"
            lines.append(wrapped(f"  {rule.code:<{width}}  ", text))

    def fields() -> Mapping[str, Any]:
        described: list[dict[str, Any]] = []
        for where, rules in rules_by_layer:
            described += [{"where": where, **rule_fields(rule)} for rule in rules]
        [about] = records(table_of(_BENCHMARKS, [benchmark]))
        return {
            "usage": round_.usage,
            "round": round_.name,
            "ruleset": round_.ruleset,
            **about,
            "rules": described,
        }

    return Document("list", lines, fields)


def _heading(where: str) -> str:
    return where.capitalize() if where == explain.EVERY_RUN else where


def rule_fields(rule: Rule) -> dict[str, Any]:
    """Return what JSON says of a rule."""
    return {
        "code": rule.code,
        "key": rule.key,
        "asked": explain.requirement(rule),
        "formula": rule.formula_text or None,
        "basis": as_json(rule.basis),
        "severity": as_json(rule.severity),
        "source": as_json(rule.source),
    }


# ---- hyperparameters: fixed, constrained, free -------------------------------------------


_HEADINGS = {
    "fixed": "Fixed in Closed",
    "constrained": "Constrained in Closed",
    "free": "Free in Closed",
    "open": "Fixed or constrained in Open",
    "freed": "Free only in Open",
}


def of_hyperparameters(
    round_: Round, benchmark: Benchmark, closed: Sequence[Layer], open_: Sequence[Layer]
) -> Document:
    """Return what Closed fixes, constrains and leaves free of a benchmark, and what Open frees."""
    groups: dict[str, dict[str, str]] = {name: {} for name in _HEADINGS}
    for _, key, rules in _limits(open_):
        if rules:
            groups["open"][key] = "; ".join(map(_limit_in_words, rules))
    for layer, key, rules in _limits(closed):
        label = f"{key} ({layer.variant})" if layer.variant else key
        kind = "free"
        if rules:
            kind = "fixed" if all(map(_is_fixed, rules)) else "constrained"
            if key not in groups["open"]:
                groups["freed"][key] = ""
        groups[kind][label] = "; ".join(map(_limit_in_words, rules))
    about = {"usage": round_.usage, "round": round_.name, "benchmark": benchmark.name}
    lines = [_title(round_), f"{benchmark.name}: hyperparameters"]
    for name, group in groups.items():
        lines += ["", _HEADINGS[name], *_group_lines(group)]
    return Document("hyperparameters", lines, lambda: {**about, **groups})


def _group_lines(group: Mapping[str, str]) -> list[str]:
    """Return the lines of hyperparameters with their limits; only their names if none has any."""
    if not any(group.values()):
        return [wrapped("  ", ", ".join(group) or "none")]
    width = max(map(len, group))
    return [wrapped(f"  {key:<{width}}  ", words) for key, words in group.items()]


def _limits(layers: Iterable[Layer]) -> Iterator[tuple[Layer, str, list[Rule]]]:
    """Yield hyperparameters, each with the rules that limit its value."""
    for layer in layers:
        for key, rules in layer.rules.items():
            if is_setting(key, rules):
                yield layer, key, [rule for rule in rules if _is_limit(rule)]


def _is_limit(rule: Rule) -> bool:
    return bool(rule.formula or rule.constraints.keys() - {"not_empty"})


def _is_fixed(rule: Rule) -> bool:
    return "equals" in {**rule.constraints, **rule.constraints.get("counts", {})}


def _limit_in_words(rule: Rule) -> str:
    """Return what a rule allows, with its basis, and its severity if that is not error."""
    words = ", ".join(filter(None, explain.conditions(rule)))
    if rule.severity is not Severity.ERROR:
        return f"{words} [{rule.basis}, {rule.severity}]"
    return words if rule.basis is Basis.BOTH else f"{words} [{rule.basis}]"


# ---- diff ---------------------------------------------------------------------------------


_ADDED = (*_BENCHMARKS, Column(key="keys", of=explain.own_keys))


def of_comparison(comparison: RoundComparison, points: Sequence[PointChange]) -> Document:
    """Return what changes from one round to another, in rules and in reference points."""
    return Document(
        "diff",
        _comparison_lines(comparison, points),
        lambda: {
            "usage": comparison.new.usage,
            "old": comparison.old.name,
            "new": comparison.new.name,
            "gone": comparison.gone,
            "added": records(table_of(_ADDED, comparison.added)),
            "changes": [asdict(change) for change in comparison.changes],
            "renamed": comparison.renamed,
            "unchanged": comparison.unchanged,
            "reference_points": list(map(msgspec.to_builtins, points)),
        },
    )


def _comparison_lines(comparison: RoundComparison, points: Sequence[PointChange]) -> Iterator[str]:
    old = comparison.old
    new = comparison.new
    dates = f"(submission date {old.submission_date} -> {new.submission_date})"
    yield f"{USAGES[new.usage]} {old.name} -> {new.name} {dates}"
    yield from _changed_benchmarks(comparison)
    if old.normalised != new.normalised:
        word = "are now" if new.normalised else "are no longer"
        yield ""
        yield f"Scores {word} normalised if a result set converges faster than the reference."
    for where, changes in groupby(comparison.changes, key=attrgetter("where")):
        yield ""
        yield _heading(where)
        yield from _changed(changes)
    yield from _points(points)
    with_changed_points = {point.benchmark for point in points}
    unchanged = [name for name in comparison.unchanged if name not in with_changed_points]
    if unchanged:
        yield ""
        yield wrapped("Unchanged: ", ", ".join(unchanged))


def _changed_benchmarks(comparison: RoundComparison) -> Iterator[str]:
    if comparison.gone or comparison.added or comparison.renamed:
        yield ""
        yield "Benchmarks"
    for name in comparison.gone:
        yield f"  - {name}"
    for former, name in comparison.renamed.items():
        yield f"  ~ {former} is now called {name}"
    for benchmark in comparison.added:
        target = explain.target(benchmark)
        runs = explain.runs(benchmark.runs)
        yield wrapped("  + ", f"{benchmark.name}: target {target}; {runs}", 6)
        yield wrapped("      keys: ", ", ".join(explain.own_keys(benchmark)), 8)


def _changed(changes: Iterable[RuleChange]) -> Iterator[str]:
    """Yield changes; those that are alike once, with all keys: "block_start, block_stop"."""
    alike = by_key(((change.old, change.new), change.key) for change in changes)
    for (old, new), names in alike.items():
        keys = ", ".join(names)
        if old and new:
            yield wrapped("  ~ ", keys, 6)
            yield wrapped("      was: ", "; ".join(old))
            yield wrapped("      now: ", "; ".join(new))
        elif new:
            yield wrapped("  + ", f"{keys}: {'; '.join(new)}", 6)
        else:
            yield wrapped("  - ", f"{keys}: {'; '.join(old)}", 6)


def _points(points: Sequence[PointChange]) -> Iterator[str]:
    """Yield the changed reference points of each benchmark, by batch size."""
    if points:
        yield ""
        yield "Reference convergence points (olympic mean of the reference runs)"
    for (benchmark, unit), group in groupby(points, key=attrgetter("benchmark", "unit")):
        yield f"  {benchmark}, in {unit}"
        yield from map(_point, group)


def _point(point: PointChange) -> str:
    values = []
    for runs in (point.old, point.new):
        if runs:
            values.append(f"{_number(runs.mean)} ({runs.runs} runs)")
    text = f"batch size {_number(point.batch_size)}: {' -> '.join(values)}"
    return wrapped(f"    {_sign(point)} ", text, 8)


def _sign(point: PointChange) -> str:
    if point.old and point.new:
        return "~"
    return "+" if point.new else "-"


def _number(number: float) -> str:
    if number >= _LARGE:
        return f"{number:,.0f}"
    return f"{number:.3f}".rstrip("0").rstrip(".")


# ---- a code, a family, a key ------------------------------------------------------------

_MORE = "'mlperf-pkg rules show CODE' explains a code: what it means, who requires it and where."
_PLACEHOLDER = r"\{(\w+)[^}]*\}"
_SEVERITIES = {Severity.ERROR: "an error", Severity.WARNING: "a warning", Severity.NOTE: "a note"}
_BASES = {
    Basis.BOTH: "both verdicts depend on the finding",
    Basis.OFFICIAL: "only the official verdict depends on the finding",
    Basis.RULES: "only the verdict by the rules depends on the finding",
    Basis.ADVICE: "the finding is advice only",
}


def of_rule(code: str, histories: Sequence[RuleHistory]) -> Document:
    """Return the explanation of the code of a rule."""
    return Document(
        "show",
        _rule(code, histories),
        lambda: {"code": code, "fix": explain.fix(histories), "rules": _history_fields(histories)},
    )


def of_code(code: FindingCode, round_: Round | None) -> Document:
    """Return the explanation of another code, and whether it is in the rules of a round."""
    lines = list(_other(code))
    if round_:
        words = "part of the written rules"
        if not code.applies_in(round_):
            words = "not yet part of the written rules; only the official checker may require this"
        lines.append(wrapped(f"in {round_.name:<7}", words))
    return Document("show", lines, lambda: as_json(code))


def code_lines(code: str) -> Iterator[str]:
    """Yield the explanation of a code."""
    if code in codes():
        return _other(codes()[code])
    return _rule(code, explain.histories(code))


# ---- codes of findings that are not rules ---------------------------------------------------


_CODES = (
    Column("CODE", of=attrgetter("code")),
    Column("REPORTED AS", of=lambda code: f"{code.severity}, {code.basis}"),
    Column("MEANING", of=attrgetter("title")),
)


def of_family(family: str, round_: Round | None) -> Document:
    """Return the titles of the codes of a family such as SET, or of those in the round's rules."""
    members = []
    for name, code in codes().items():
        if name.rstrip(digits) == family and (round_ is None or code.applies_in(round_)):
            members.append(code)
    lines = [*hanging(table_of(_CODES, members)), "", _MORE]
    return Document("show", lines, lambda: {"family": family, "codes": as_json(members)})


def _other(code: FindingCode) -> Iterator[str]:
    yield f"{code.code}: {code.title}"
    yield ""
    yield wrapped("", code.explanation)
    yield ""
    yield wrapped("fix       ", f"{code.fix.removesuffix('.')}.")
    yield wrapped("basis     ", explain.basis_of(code))
    yield wrapped("severity  ", explain.SEVERITY[code.severity])
    if code.since:
        yield wrapped("since     ", f"the written rules of Training {code.since}")
    yield from _labelled("unless", exceptions(code))
    yield wrapped("source    ", code.source)


def exceptions(code: FindingCode) -> Iterator[str]:
    """Yield when it is reported otherwise: "the round is 0.7 (then the finding is a warning)"."""
    for item in code.unless:
        parts = []
        if item.severity:
            parts.append(f"the finding is {_SEVERITIES[item.severity]}")
        if item.basis:
            parts.append(_BASES[item.basis])
        yield f"{item.when} (then {' and '.join(parts)})"


# ---- rules ----------------------------------------------------------------------------------


def _rule(code: str, histories: Sequence[RuleHistory]) -> Iterator[str]:
    keys = dict.fromkeys(span.rule.key for history in histories for span in history.spans)
    yield f"{code}: {', '.join(keys)}"
    for history in histories:
        yield ""
        yield wrapped("", f"{USAGES[history.usage]}, {places(history)}")
        for span in history.spans:
            yield wrapped("  ", f"{span.words}: {explain.with_basis(span.rule)}", 4)
    yield ""
    newest = explain.newest_first(histories)
    rules: list[Rule] = []
    for history in newest:
        rules += [span.rule for span in reversed(history.spans)]
    yield wrapped("fix       ", explain.fix(histories))
    yield from _explained(rules)
    targets = dict.fromkeys(chain.from_iterable(map(explain.targets, histories)))
    for name, where, text in targets:
        yield wrapped("target    ", f"{name} in {where}: {text}")
    yield from _newest_example(newest[0], newest[0].spans[-1])


def _newest_example(history: RuleHistory, span: RuleSpan) -> Iterator[str]:
    """Yield how the newest rule joins records, and a line of a log that it accepts."""
    joined = explain.joined(history, span)
    if joined:
        text = f"{joined.of} by {joined.name}, of all records with the same {joined.by}"
        yield wrapped("joined    ", text)
    line = _example_of(history, span)
    yield ""
    if line:
        yield f"Example of round {span.until}:"
        yield line
    else:
        yield "No example: the rule depends on other lines of the log."


def places(history: RuleHistory) -> str:
    """Return which runs a rule is about: "every run", "Closed bert, Open bert"."""
    names = history.where
    return explain.EVERY_RUN if explain.EVERY_RUN in names else ", ".join(names)


def _explained(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield the different formulas, bases and so on of rules, each with its label."""
    yield from _labelled("formula", (rule.formula_text for rule in rules if rule.formula))
    yield from _labelled("basis", (f"{rule.basis}: {explain.BASIS[rule.basis]}" for rule in rules))
    yield from _labelled("severity", (explain.SEVERITY[rule.severity] for rule in rules))
    if any(rule.fatal for rule in rules):
        yield from _labelled(
            "fatal", ["the official checker crashes on a log that breaks this rule"]
        )
    messages = [rule.message for rule in rules if rule.message]
    yield from _labelled("message", (re.sub(_PLACEHOLDER, r"<\1>", text) for text in messages))
    yield from _labelled("hint", (rule.hint for rule in rules if rule.hint))
    yield from _labelled("source", ["; ".join(_sources(rules))])


def _labelled(label: str, texts: Iterable[str]) -> Iterator[str]:
    for text in dict.fromkeys(texts):
        yield wrapped(f"{label:<10}", text)


def _sources(rules: Sequence[Rule]) -> list[str]:
    """Return the sources of rules; all rulesets of the official checker are one source."""
    prefix = ruleset_source("")
    sources = []
    rulesets = []
    for source in dict.fromkeys(rule.source for rule in rules):
        if source.startswith(prefix):
            rulesets.append(source.removeprefix(prefix))
        else:
            sources.append(source)
    if len(rulesets) == 1:
        sources.append(ruleset_source(rulesets[0]))
    elif rulesets:
        names = sorted(rulesets, key=version_of)
        sources.append(f"{prefix[:-1]}s {', '.join(names)}")
    return sources


def _example_of(history: RuleHistory, span: RuleSpan) -> str | None:
    round_ = load_round(history.usage, span.until)
    return example(span.rule, round_, explain.joined(history, span))


def _history_fields(histories: Iterable[RuleHistory]) -> list[dict[str, Any]]:
    described = []
    for history in histories:
        for span in history.spans:
            described.append(
                {
                    "usage": history.usage,
                    "where": list(history.where),
                    "from": span.first,
                    "to": span.last,
                    **rule_fields(span.rule),
                    "example": _example_of(history, span),
                }
            )
    return described


# ---- the rules of a key ---------------------------------------------------------------------


def of_key(key: str, histories: Mapping[str, Sequence[RuleHistory]]) -> Document:
    """Return the rules of a key by code, over all rounds and benchmarks, a line each."""
    all_histories = list(chain.from_iterable(histories.values()))
    return Document(
        "show",
        _key_lines(key, histories),
        lambda: {"key": key, "rules": _history_fields(all_histories)},
    )


def _key_lines(key: str, histories: Mapping[str, Sequence[RuleHistory]]) -> Iterator[str]:
    yield f"{key}: {counted(len(histories), 'rule')}"
    width = max(map(len, histories))
    usage = None
    for code, history in _with_codes(histories):
        if history.usage != usage:
            usage = history.usage
            yield ""
            yield USAGES[usage]
        for span in history.spans:
            text = f"{places(history)} {span.words}: {explain.with_basis(span.rule)}"
            yield wrapped(f"  {code:<{width}}  ", text)
    yield ""
    yield _MORE


def _with_codes(
    histories: Mapping[str, Sequence[RuleHistory]],
) -> Iterator[tuple[str, RuleHistory]]:
    for code, histories_of_code in histories.items():
        for history in histories_of_code:
            yield code, history
