"""Answers about the rulebook: lines for people, fields for programs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, islice, repeat
from operator import attrgetter
from textwrap import TextWrapper
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from mlperf_pkg.findings import Severity
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
from mlperf_pkg.rulebook.model import Benchmark, Round, Rule, ruleset_source, version_of
from mlperf_pkg.rulebook.upstream.points import LEDGER, KnownPoint, PointKind, PointReview
from mlperf_pkg.rulebook.upstream.verify import Difference

WIDTH = 80
_LARGE = 1000  # from here on, fractions of samples or epochs say nothing
USAGES = {"training": "MLPerf Training", "hpc": "MLPerf HPC"}


# ---- layout -------------------------------------------------------------------------------


def wrapped(first: str, text: str, indent: int | None = None) -> str:
    """Return ``text`` after ``first``, its further lines below it or indented by ``indent``."""
    hanging = " " * (len(first) if indent is None else indent)
    layout = TextWrapper(WIDTH, first, hanging, break_long_words=False, break_on_hyphens=False)
    return layout.fill(text) if text else first.rstrip()


def hanging(table: Table) -> Iterator[str]:
    """Yield a table in columns, the last column wrapped."""
    rows = [[column.heading for _, column in table.titled]]
    rows += [[text for text, _ in table.spans(row)] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        start = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
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
    blocks: list[Iterable[str]]
    if detailed:
        blocks = [("", _title(round_), "", *hanging(_benchmarks(round_))) for round_ in rounds]
    else:
        by_usage = groupby(rounds, key=lambda round_: round_.usage)
        blocks = [("", USAGES[u], *hanging(table_of(_ROUNDS, group))) for u, group in by_usage]
    lines = islice(chain.from_iterable(blocks), 1, None)
    return Document("list", lines, lambda: {"rounds": records(table_of(_ROUNDS, rounds))})


def _title(round_: Round) -> str:
    return (
        f"{USAGES[round_.usage]} {round_.name}, submission {round_.submission_date},"
        f" ruleset {round_.ruleset}"
    )


def of_benchmark(round_: Round, benchmark: Benchmark, layers: Sequence[Layer]) -> Document:
    """Return a benchmark of a round with its rules, one per line."""
    rules = [(layer.name, list(chain.from_iterable(layer.rules.values()))) for layer in layers]
    width = max(len(rule.code) for _, group in rules for rule in group)
    lines = [_title(round_), wrapped(f"{benchmark.name}: ", explain.runs(benchmark.runs))]
    lines.append(wrapped("target: ", explain.target(benchmark)))
    for where, group in rules:
        lines += ["", _heading(where)]
        for rule in group:
            text = f"{rule.key}: {explain.with_basis(rule)}"
            lines.append(wrapped(f"  {rule.code:<{width}}  ", text))
    about = {"usage": round_.usage, "round": round_.name, "ruleset": round_.ruleset}
    return Document(
        "list",
        lines,
        lambda: {
            **about,
            **records(table_of(_BENCHMARKS, [benchmark]))[0],
            "rules": [{"where": w, **rule_fields(rule)} for w, group in rules for rule in group],
        },
    )


def _heading(where: str) -> str:
    return where.capitalize() if where == explain.EVERY_RUN else where


def rule_fields(rule: Rule) -> dict[str, Any]:
    """Return what JSON says of a rule."""
    requirement = explain.requirement(rule)
    formula = rule.formula_text or None
    fields = {"code": rule.code, "key": rule.key, "asked": requirement, "formula": formula}
    names = ("basis", "severity", "source")
    return {**fields, **{name: as_json(getattr(rule, name)) for name in names}}


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
    yield f"{USAGES[new.usage]} {old.name} -> {new.name}" + (
        f" (submission {old.submission_date} -> {new.submission_date})"
    )
    if comparison.gone or comparison.added or comparison.renamed:
        yield from ("", "Benchmarks")
    yield from (f"  - {name}" for name in comparison.gone)
    yield from (f"  ~ {one} is now called {other}" for one, other in comparison.renamed.items())
    for item in comparison.added:
        target = explain.target(item)
        runs = explain.runs(item.runs)
        yield wrapped("  + ", f"{item.name}: target {target}; {runs}", 6)
        yield wrapped("      keys: ", ", ".join(explain.own_keys(item)), 8)
    if old.normalised != new.normalised:
        word = "are now" if new.normalised else "are no longer"
        yield from ("", f"Scores {word} normalised where convergence beats the reference.")
    for where, group in groupby(comparison.changes, key=lambda change: change.where):
        yield from ("", _heading(where))
        yield from _changed(group)
    yield from _points(points)
    changed = {point.benchmark for point in points}
    unchanged = [name for name in comparison.unchanged if name not in changed]
    if unchanged:
        yield from ("", wrapped("Unchanged: ", ", ".join(unchanged)))


def _changed(changes: Iterable[RuleChange]) -> Iterator[str]:
    """Yield changes; those that are alike once, with all keys: "block_start, block_stop"."""
    alike = by_key(((change.old, change.new), change.key) for change in changes)
    for sides, names in alike.items():
        keys = ", ".join(names)
        old, new = map("; ".join, sides)
        if all(sides):
            yield wrapped("  ~ ", keys, 6)
            yield wrapped("      was ", old)
            yield wrapped("      now ", new)
        else:
            yield wrapped("  + " if sides[1] else "  - ", f"{keys}: {new or old}", 6)


def _points(points: Sequence[PointChange]) -> Iterator[str]:
    """Yield the changed reference points of each benchmark, by batch size."""
    if points:
        yield from ("", "Reference convergence points (olympic mean of the reference runs)")
    for (benchmark, unit), group in groupby(points, key=attrgetter("benchmark", "unit")):
        yield f"  {benchmark}, in {unit}"
        yield from map(_point, group)


def _point(point: PointChange) -> str:
    sign = "~" if point.old and point.new else "+" if point.new else "-"
    sides = [runs for runs in (point.old, point.new) if runs]
    values = " -> ".join(f"{_number(runs.mean)} ({runs.runs} runs)" for runs in sides)
    return wrapped(f"    {sign} ", f"batch size {_number(point.batch_size)}: {values}", 8)


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= _LARGE else f"{number:.3f}".rstrip("0").rstrip(".")


# ---- verify -------------------------------------------------------------------------------


def of_verification(
    differences: Sequence[Difference], review: PointReview, reference: str, rounds: int
) -> Document:
    """Return the differences between the rulebook and ``reference``, the official checker."""
    lines = list(chain.from_iterable(map(_difference, differences)))
    if differences:
        count = f"{len(differences)} difference{'s' if len(differences) > 1 else ''}"
        lines.append(f"{count} between the rulebook and {reference}")
    else:
        lines.append(f"The rulebook's {rounds} rounds agree with {reference}, key by key.")
    if review.fails:
        lines += _mistakes(review)
    elif not differences:
        lines += _known(review.known)
    return Document(
        "verify",
        lines,
        lambda: {
            "reference": reference,
            "differences": list(map(asdict, differences)),
            "reference_points": {
                "new": list(map(asdict, review.new)),
                "stale": list(map(_fields, review.stale)),
                "known": list(map(_fields, review.known)),
            },
        },
    )


def _difference(item: Difference) -> Iterator[str]:
    yield f"{item.usage} {item.round}, {item.kind}: {item.key}"
    yield wrapped("  ", item.file)
    if item.where:
        yield wrapped("  in ", ", ".join(item.where))
    yield from (wrapped("  - rulebook        ", text) for text in item.rulebook)
    yield from (wrapped("  + mlperf-logging  ", text) for text in item.upstream)
    yield ""


# ---- a code, a family, a key ------------------------------------------------------------

_MORE = "Show one with its meaning, basis and source: mlperf-pkg rules show CODE"
_SEVERITIES = {Severity.ERROR: "an error", Severity.WARNING: "a warning", Severity.NOTE: "a note"}


def of_code(code: str) -> Document:
    """Return the explanation of a code."""
    if code in codes():
        return Document("show", code_lines(code), lambda: as_json(codes()[code]))
    rules = partial(_history_fields, explain.histories(code))
    return Document("show", code_lines(code), lambda: {"code": code, "rules": rules()})


def code_lines(code: str) -> Iterator[str]:
    """Yield the explanation of a code."""
    return _other(codes()[code]) if code in codes() else _rule(code, explain.histories(code))


# ---- codes of findings that are not rules ---------------------------------------------------


_CODES = (
    Column("CODE", of=attrgetter("code")),
    Column("REPORTED AS", of=lambda code: f"{code.severity}, {code.basis}"),
    Column("MEANING", of=attrgetter("title")),
)


def of_family(family: str) -> Document:
    """Return the titles of the codes of a family such as SET."""
    members = [code for name, code in codes().items() if name.rstrip("0123456789") == family]
    lines = [*hanging(table_of(_CODES, members)), "", _MORE]
    return Document("show", lines, lambda: {"family": family, "codes": as_json(members)})


def _other(code: FindingCode) -> Iterator[str]:
    yield from (f"{code.code}: {code.title}", "", wrapped("", code.explanation), "")
    yield wrapped("basis     ", f"{code.basis}: {explain.BASIS[code.basis]}")
    yield wrapped("severity  ", explain.SEVERITY[code.severity])
    if code.since:
        yield wrapped("since     ", f"round {code.since} of Training, by its text")
    for label, text in zip(chain(["unless"], repeat("")), exceptions(code), strict=False):
        yield wrapped(f"{label:<10}", text)
    yield wrapped("source    ", code.source)


def exceptions(code: FindingCode) -> Iterator[str]:
    """Yield when a code has another basis or severity: "a warning if the round is 0.7"."""
    for item in code.unless:
        parts = [_SEVERITIES[item.severity]] if item.severity else []
        parts += [f"basis {item.basis}"] if item.basis else []
        yield f"{', '.join(parts)} if {item.when}"


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
    yield from _explained([span.rule for history in newest for span in reversed(history.spans)])
    targets = dict.fromkeys(item for history in histories for item in explain.targets(history))
    yield from (wrapped("target    ", f"{name} in {of}: {text}") for name, of, text in targets)
    history = newest[0]
    span = newest[0].spans[-1]
    joined = explain.joined(history, span)
    if joined:
        text = f"{joined.of} by {joined.name}, of all records with the same {joined.by}"
        yield wrapped("joined    ", text)
    line = _example_of(history, span)
    if line:
        yield from ("", f"Example of round {span.until}:", line)
    else:
        yield from ("", "No example: the rule depends on other lines of the log.")


def places(history: RuleHistory) -> str:
    """Return which runs a rule is about: "every run", "Closed bert, Open bert"."""
    names = history.where
    return explain.EVERY_RUN if explain.EVERY_RUN in names else ", ".join(names)


def _explained(rules: Sequence[Rule]) -> Iterator[str]:
    texts = {
        "formula": [rule.formula_text for rule in rules if rule.formula],
        "basis": [f"{rule.basis}: {explain.BASIS[rule.basis]}" for rule in rules],
        "severity": [explain.SEVERITY[rule.severity] for rule in rules],
        "fatal": ["the official checker crashes where it is broken" for r in rules if r.fatal],
        "message": [rule.message for rule in rules if rule.message],
        "hint": [rule.hint for rule in rules if rule.hint],
    }
    for label, of_label in texts.items():
        yield from (wrapped(f"{label:<10}", text) for text in dict.fromkeys(of_label))
    # All rulesets of the official checker are one source.
    prefix = ruleset_source("")
    distinct = dict.fromkeys(rule.source for rule in rules)
    sources = [source for source in distinct if not source.startswith(prefix)]
    rulesets = (source.removeprefix(prefix) for source in distinct if source.startswith(prefix))
    names = sorted(rulesets, key=version_of)
    if names:
        rulesets_text = f"{prefix[:-1]}s {', '.join(names)}"
        sources.append(ruleset_source(names[0]) if len(names) == 1 else rulesets_text)
    yield wrapped("source    ", "; ".join(sources))


def _example_of(history: RuleHistory, span: RuleSpan) -> str | None:
    round_ = load_round(history.usage, span.until)
    return example(span.rule, round_, explain.joined(history, span))


def _history_fields(histories: Iterable[RuleHistory]) -> list[dict[str, Any]]:
    return [
        {
            "usage": history.usage,
            "where": list(history.where),
            "from": span.first,
            "to": span.last,
            **rule_fields(span.rule),
            "example": _example_of(history, span),
        }
        for history in histories
        for span in history.spans
    ]


# ---- the rules of a key ---------------------------------------------------------------------


def of_key(key: str, histories: Mapping[str, Sequence[RuleHistory]]) -> Document:
    """Return the rules of a key by code, over all rounds and benchmarks, a line each."""
    rules = partial(_history_fields, chain.from_iterable(histories.values()))
    lines = _key_lines(key, histories)
    return Document("show", lines, lambda: {"key": key, "rules": rules()})


def _key_lines(key: str, histories: Mapping[str, Sequence[RuleHistory]]) -> Iterator[str]:
    width = max(map(len, histories))
    yield f"{key}: {counted(len(histories), 'rule')}"
    rows = [(code, history) for code, of_code in histories.items() for history in of_code]
    for usage, of_usage in groupby(rows, key=lambda row: row[1].usage):
        yield from ("", USAGES[usage])
        for code, history in of_usage:
            for span in history.spans:
                text = f"{places(history)} {span.words}: {explain.with_basis(span.rule)}"
                yield wrapped(f"  {code:<{width}}  ", text)
    yield from ("", _MORE)


# ---- reference points -------------------------------------------------------------------


def _known(entries: Sequence[KnownPoint]) -> Iterator[str]:
    """Yield how many mistakes are known, by kind."""
    count = counted(len(entries), "known mistake")
    yield f"Its reference points have {count} (rules/{LEDGER}){':' if entries else '.'}"
    if entries:
        by_kind = by_key((entry.kind, entry.sets) for entry in entries)
        kinds = ((kind, by_kind[kind]) for kind in PointKind if kind in by_kind)
        rows = [("", kind, len(sets), len({*chain.from_iterable(sets)})) for kind, sets in kinds]
        columns = [Column(title) for title in ("", "KIND", "POINTS", "PUBLISHED SETS")]
        yield from (line.rstrip() for line in hanging(table_of(columns, rows)))


def _mistakes(review: PointReview) -> Iterator[str]:
    """Yield the new mistakes, and those that are known but gone."""
    for problem in review.new:
        subject = f"{problem.usage} {problem.round}, {problem.kind}: {problem.point}"
        yield f"{subject} (batch size {problem.batch_size:.15g})"
        yield wrapped("  ", problem.file)
        yield wrapped("  - expected        ", problem.expected)
        yield from (wrapped("  + mlperf-logging  ", problem.found), "")
    for entry in review.stale:
        place = f"{entry.usage} {entry.round} {entry.benchmark}"
        text = f"{entry.point} of {place} no longer has the mistake {entry.kind}; remove it"
        yield f"{entry.problem(text)}"
    yield from [""] if review.stale else []
    new = len(review.new)
    stale = len(review.stale)
    is_new, is_stale = ("is" if number == 1 else "are" for number in (new, stale))
    mistakes = f"{new} mistake{'' if new == 1 else 's'}"
    yield f"{mistakes} in its reference points {is_new} new, {stale} {is_stale} gone"


def _fields(entry: KnownPoint) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(entry).items() if name != "steps"}
    return fields | {"file": entry.file.shown}
