"""The rulebook as text for a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, repeat
from textwrap import TextWrapper
from typing import Any

import msgspec
from msgspec.structs import asdict

from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.results.rcp import PointChange
from mlperf_pkg.rulebook.explain import describe
from mlperf_pkg.rulebook.explain.describe import History, Layer, Span
from mlperf_pkg.rulebook.explain.diff import Change, Comparison
from mlperf_pkg.rulebook.explain.example import example
from mlperf_pkg.rulebook.load import Code, codes, load_round
from mlperf_pkg.rulebook.model import Benchmark, Round, Rule, ruleset_source, version_of
from mlperf_pkg.rulebook.upstream.points import LEDGER, Kind, KnownPoint, PointProblem, PointReview
from mlperf_pkg.rulebook.upstream.verify import Difference

WIDTH = 80
_LARGE = 1000  # from here on, fractions of samples or epochs say nothing
USAGES = {"training": "MLPerf Training", "hpc": "MLPerf HPC"}


# ---- layout -------------------------------------------------------------------------------


def wrapped(first: str, text: str, indent: int | None = None) -> str:
    """Return ``text`` after ``first``, its further lines below it or indented by ``indent``."""
    hanging = " " * (len(first) if indent is None else indent)
    layout = TextWrapper(WIDTH, hanging, hanging, break_long_words=False, break_on_hyphens=False)
    layout.initial_indent = first
    return layout.fill(text) if text else first.rstrip()


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows in columns, the last column wrapped; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        start = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        yield wrapped(start, last)


def as_json(kind: str, content: dict[str, Any]) -> str:
    """Return a JSON document that names its format."""
    return json.dumps({"format": f"mlperf-pkg/rules-{kind}/1", **content}, indent=2) + "\n"


# ---- list ---------------------------------------------------------------------------------


def rounds_text(rounds: Sequence[Round]) -> str:
    """Return the rounds of each usage with their benchmarks."""
    blocks = []
    for usage, group in groupby(rounds, key=lambda round_: round_.usage):
        header = ("ROUND", "SUBMISSION", "RULESET", "BENCHMARKS")
        rows = [
            (item.name, f"{item.submission_date}", item.ruleset, ", ".join(item.benchmarks))
            for item in group
        ]
        blocks.append("\n".join([USAGES[usage], *table([header, *rows])]))
    return "\n\n".join(blocks) + "\n"


def round_text(round_: Round) -> str:
    """Return the benchmarks of a round with their runs and targets."""
    header = ("BENCHMARK", "RUNS", "DROP", "COUNTS", "TARGET")
    rows = [
        (
            benchmark.name,
            f"{benchmark.runs.required}",
            f"{benchmark.runs.drop}+{benchmark.runs.drop}",
            benchmark.unit,
            target,
        )
        for benchmark, target in _with_targets(round_)
    ]
    return "\n".join([_title(round_), "", *table([header, *rows])]) + "\n"


def _with_targets(round_: Round) -> Iterator[tuple[Benchmark, str]]:
    for name in round_.benchmarks:
        benchmark = describe.loaded(round_, name)
        yield benchmark, describe.target(benchmark)


def _title(round_: Round) -> str:
    return (
        f"{USAGES[round_.usage]} {round_.name}, submission {round_.submission_date},"
        f" ruleset {round_.ruleset}"
    )


def benchmark_text(round_: Round, benchmark: Benchmark, layers: Sequence[Layer]) -> str:
    """Return a benchmark of a round with its rules, one per line."""
    lines = [
        _title(round_),
        wrapped(f"{benchmark.name}: ", describe.runs(benchmark.runs)),
        wrapped("target: ", describe.target(benchmark)),
    ]
    width = max(len(rule.code) for layer in layers for rule in _rules(layer))
    for layer in layers:
        lines += ["", _heading(layer.name)]
        lines += [
            wrapped(f"  {rule.code:<{width}}  ", f"{rule.key}: {describe.with_basis(rule)}")
            for rule in _rules(layer)
        ]
    return "\n".join(lines) + "\n"


def _heading(where: str) -> str:
    return where.capitalize() if where == describe.EVERY_RUN else where


def _rules(layer: Layer) -> Iterator[Rule]:
    return (rule for key_rules in layer.rules.values() for rule in key_rules)


def rounds_json(rounds: Iterable[Round]) -> str:
    """Return the same as ``rounds_text`` as JSON, with runs and targets."""
    return as_json("list", {"rounds": list(map(_round_fields, rounds))})


def _round_fields(round_: Round) -> dict[str, Any]:
    return {
        "usage": round_.usage,
        "round": round_.name,
        "submission_date": f"{round_.submission_date}",
        "date_source": round_.date_source,
        "ruleset": round_.ruleset,
        "normalised": round_.normalised,
        "benchmarks": [_benchmark_fields(benchmark) for benchmark, _ in _with_targets(round_)],
    }


def _benchmark_fields(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "name": benchmark.name,
        "runs": benchmark.runs.required,
        "dropped": benchmark.runs.drop,
        "unit": benchmark.unit,
        "target": describe.target(benchmark),
    }


def benchmark_json(round_: Round, benchmark: Benchmark, layers: Iterable[Layer]) -> str:
    """Return the same as ``benchmark_text`` as JSON."""
    rules = [
        {"where": layer.name, **rule_fields(rule)} for layer in layers for rule in _rules(layer)
    ]
    about = {"usage": round_.usage, "round": round_.name, "ruleset": round_.ruleset}
    return as_json("list", {**about, **_benchmark_fields(benchmark), "rules": rules})


def rule_fields(rule: Rule) -> dict[str, Any]:
    """Return what JSON says of a rule."""
    return {
        "code": rule.code,
        "key": rule.key,
        "asked": describe.requirement(rule),
        "formula": rule.formula_text or None,
        "basis": rule.basis.value,
        "severity": rule.severity.value,
        "source": rule.source,
    }


# ---- diff ---------------------------------------------------------------------------------


def comparison_text(comparison: Comparison, points: Sequence[PointChange]) -> str:
    """Return what changes from one round to another, in rules and in reference points."""
    old, new = comparison.old, comparison.new
    lines = [
        f"{USAGES[comparison.usage]} {old.name} -> {new.name}"
        f" (submission {old.submission_date} -> {new.submission_date})"
    ]
    moved = comparison.gone or comparison.added or comparison.renamed
    lines += ["", "Benchmarks"] if moved else []
    lines += [f"  - {name}" for name in comparison.gone]
    lines += [f"  ~ {one} is now called {other}" for one, other in comparison.renamed]
    for new_one in comparison.added:
        target, runs = describe.target(new_one), describe.runs(new_one.runs)
        text = f"{new_one.name}: target {target}; {runs}"
        lines.append(wrapped("  + ", text, 6))
        lines.append(wrapped("      keys: ", ", ".join(describe.own_keys(new_one)), 8))
    if old.normalised != new.normalised:
        word = "are now" if new.normalised else "are no longer"
        lines += ["", f"Scores {word} normalised where convergence beats the reference."]
    for where, group in groupby(comparison.changes, key=lambda change: change.where):
        lines += ["", _heading(where)]
        lines += [line for change in _together(group) for line in _change(*change)]
    lines += _points(points)
    changed = {point.benchmark for point in points}
    if unchanged := [name for name in comparison.unchanged if name not in changed]:
        lines += ["", wrapped("Unchanged: ", ", ".join(unchanged))]
    return "\n".join(lines) + "\n"


def _together(changes: Iterable[Change]) -> Iterator[tuple[str, Change]]:
    """Yield changes that are alike once, with all keys: "block_start, block_stop"."""
    alike: dict[tuple[tuple[str, ...], ...], list[Change]] = {}
    for change in changes:
        alike.setdefault((change.old, change.new), []).append(change)
    for group in alike.values():
        yield ", ".join(change.key for change in group), group[0]


def _change(keys: str, change: Change) -> Iterator[str]:
    old, new = ("; ".join(part) for part in (change.old, change.new))
    if change.old and change.new:
        yield wrapped("  ~ ", keys, 6)
        yield wrapped("      was ", old)
        yield wrapped("      now ", new)
    else:
        yield wrapped("  + " if change.new else "  - ", f"{keys}: {new or old}", 6)


def _points(points: Sequence[PointChange]) -> Iterator[str]:
    """Yield the changed reference points of each benchmark, by batch size."""
    if points:
        yield from ("", "Reference convergence points (olympic mean of the reference runs)")
    for (benchmark, unit), group in groupby(
        points, key=lambda point: (point.benchmark, point.unit)
    ):
        yield f"  {benchmark}, in {unit}"
        yield from map(_point, group)


def _point(point: PointChange) -> str:
    sign = "~" if point.old and point.new else "+" if point.new else "-"
    sides = [runs for runs in (point.old, point.new) if runs]
    values = " -> ".join(f"{_number(runs.mean)} ({runs.runs} runs)" for runs in sides)
    return wrapped(f"    {sign} ", f"batch size {_number(point.batch_size)}: {values}", 8)


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= _LARGE else f"{number:.3f}".rstrip("0").rstrip(".")


def comparison_json(comparison: Comparison, points: Iterable[PointChange]) -> str:
    """Return the same as ``comparison_text`` as JSON."""
    return as_json(
        "diff",
        {
            "usage": comparison.usage,
            "old": comparison.old.name,
            "new": comparison.new.name,
            "gone": list(comparison.gone),
            "added": [
                {**_benchmark_fields(item), "keys": list(describe.own_keys(item))}
                for item in comparison.added
            ],
            "changes": [asdict(change) for change in comparison.changes],
            "renamed": dict(comparison.renamed),
            "unchanged": list(comparison.unchanged),
            "reference_points": list(map(msgspec.to_builtins, points)),
        },
    )


# ---- verify -------------------------------------------------------------------------------


def differences_text(differences: Sequence[Difference], reference: str, rounds: int) -> str:
    """Return the differences between the rulebook and the official checker."""
    if not differences:
        return f"The rulebook's {rounds} rounds agree with {reference}, key by key.\n"
    lines = [line for difference in differences for line in _difference(difference)]
    count = f"{len(differences)} difference{'s' if len(differences) > 1 else ''}"
    return "\n".join([*lines, f"{count} between the rulebook and {reference}"]) + "\n"


def _difference(item: Difference) -> Iterator[str]:
    yield f"{item.usage} {item.round}, {item.kind}: {item.key}"
    yield wrapped("  ", item.file)
    if item.where:
        yield wrapped("  in ", ", ".join(item.where))
    yield from (wrapped("  - rulebook        ", text) for text in item.rulebook)
    yield from (wrapped("  + mlperf-logging  ", text) for text in item.upstream)
    yield ""


def differences_json(
    differences: Iterable[Difference], reference: str, points: dict[str, Any]
) -> str:
    """Return the same as ``differences_text`` as JSON, with the review of reference points."""
    content = {"reference": reference, "differences": list(map(asdict, differences))}
    return as_json("verify", {**content, "reference_points": points})


# ---- a code, a family, a key ------------------------------------------------------------

_MORE = "Show one with its meaning, basis and source: mlperf-pkg rules show CODE"
_SEVERITIES = {Severity.ERROR: "an error", Severity.WARNING: "a warning", Severity.NOTE: "a note"}


def code_text(code: str) -> str:
    """Return the explanation of a code."""
    lines = _other(codes()[code]) if code in codes() else _rule(code, describe.histories(code))
    return "\n".join(lines) + "\n"


def code_json(code: str) -> str:
    """Return the same as ``code_text`` as JSON."""
    if code in codes():
        return as_json("show", _code_fields(codes()[code]))
    return as_json("show", {"code": code, "rules": list(_history_fields(describe.histories(code)))})


# ---- codes of findings that are not rules ---------------------------------------------------


def family_text(family: str) -> str:
    """Return the titles of the codes of a family such as SET."""
    rows = [(code.code, weight(code.basis, code.severity), code.title) for code in _family(family)]
    lines = [*table([("CODE", "REPORTED AS", "MEANING"), *rows]), "", _MORE]
    return "\n".join(lines) + "\n"


def family_json(family: str) -> str:
    """Return the same as ``family_text`` as JSON."""
    return as_json("show", {"family": family, "codes": list(map(_code_fields, _family(family)))})


def _family(family: str) -> list[Code]:
    return [code for name, code in codes().items() if name.rstrip("0123456789") == family]


def weight(basis: Basis, severity: Severity) -> str:
    """Return a severity and a basis in a few words: "error, rules"."""
    return f"{severity}, {basis}"


def _other(code: Code) -> Iterator[str]:
    yield from (f"{code.code}: {code.title}", "", wrapped("", code.explanation), "")
    yield wrapped("basis     ", f"{code.basis}: {describe.BASIS[code.basis]}")
    yield wrapped("severity  ", describe.SEVERITY[code.severity])
    for label, text in zip(chain(["unless"], repeat("")), exceptions(code), strict=False):
        yield wrapped(f"{label:<10}", text)
    yield wrapped("source    ", code.source)


def exceptions(code: Code) -> Iterator[str]:
    """Yield when a code has another basis or severity: "a warning if the round is 0.7"."""
    for item in code.unless:
        parts = [_SEVERITIES[item.severity]] if item.severity else []
        parts += [f"basis {item.basis}"] if item.basis else []
        yield f"{', '.join(parts)} if {item.when}"


def _code_fields(code: Code) -> dict[str, Any]:
    return {
        "code": code.code,
        "title": code.title,
        "explanation": code.explanation,
        "source": code.source,
        "basis": code.basis.value,
        "severity": code.severity.value,
        "unless": [
            {"when": item.when, "basis": item.basis, "severity": item.severity}
            for item in code.unless
        ],
    }


# ---- rules ----------------------------------------------------------------------------------


def _rule(code: str, histories: Sequence[History]) -> Iterator[str]:
    keys = dict.fromkeys(span.rule.key for history in histories for span in history.spans)
    yield f"{code}: {', '.join(keys)}"
    for history in histories:
        yield ""
        yield wrapped("", f"{USAGES[history.usage]}, {places(history)}")
        for span in history.spans:
            yield wrapped("  ", f"{span.words}: {describe.with_basis(span.rule)}", 4)
    yield ""
    newest = describe.newest_first(histories)
    yield from _explained([span.rule for history in newest for span in reversed(history.spans)])
    targets = dict.fromkeys(item for history in histories for item in describe.targets(history))
    yield from (wrapped("target    ", f"{name} in {of}: {text}") for name, of, text in targets)
    if joined := describe.joined(newest[0], newest[0].spans[-1]):
        text = f"{joined.of} by {joined.name}, of all records with the same {joined.by}"
        yield wrapped("joined    ", text)
    yield from _example(newest)


def places(history: History) -> str:
    """Return which runs a rule is about: "every run", "Closed bert, Open bert"."""
    names = history.where
    return describe.EVERY_RUN if describe.EVERY_RUN in names else ", ".join(names)


def _explained(rules: Sequence[Rule]) -> Iterator[str]:
    for text in dict.fromkeys(rule.formula_text for rule in rules if rule.formula):
        yield wrapped("formula   ", text)
    for basis in dict.fromkeys(rule.basis for rule in rules):
        yield wrapped("basis     ", f"{basis}: {describe.BASIS[basis]}")
    for severity in dict.fromkeys(rule.severity for rule in rules):
        yield wrapped("severity  ", describe.SEVERITY[severity])
    if any(rule.fatal for rule in rules):
        yield wrapped("fatal     ", "the official checker crashes where it is broken")
    for text in dict.fromkeys(rule.message for rule in rules if rule.message):
        yield wrapped("message   ", text)
    for text in dict.fromkeys(rule.hint for rule in rules if rule.hint):
        yield wrapped("hint      ", text)
    yield wrapped("source    ", "; ".join(_sources(rules)))


def _sources(rules: Iterable[Rule]) -> Iterator[str]:
    """Yield the sources of rules, all rulesets of the official checker in one."""
    prefix = ruleset_source("")
    distinct = list(dict.fromkeys(rule.source for rule in rules))
    yield from (source for source in distinct if not source.startswith(prefix))
    rulesets = (source.removeprefix(prefix) for source in distinct if source.startswith(prefix))
    if names := sorted(rulesets, key=version_of):
        yield ruleset_source(names[0]) if len(names) == 1 else f"{prefix[:-1]}s {', '.join(names)}"


def _example(newest: Sequence[History]) -> Iterator[str]:
    yield ""
    history = newest[0]
    if lines := _example_of(history, history.spans[-1]):
        yield from (f"Example of round {history.spans[-1].until}:", lines)
    else:
        yield "No example: the rule depends on other lines of the log."


def _example_of(history: History, span: Span) -> str | None:
    round_ = load_round(history.usage, span.until)
    return example(span.rule, round_, describe.joined(history, span))


def _history_fields(histories: Iterable[History]) -> Iterator[dict[str, Any]]:
    for history in histories:
        for span in history.spans:
            yield {
                "usage": history.usage,
                "where": list(history.where),
                "from": span.first,
                "to": span.last,
                **rule_fields(span.rule),
                "example": _example_of(history, span),
            }


# ---- the rules of a key ---------------------------------------------------------------------


def key_text(key: str, histories: Mapping[str, Sequence[History]]) -> str:
    """Return the rules of a key by code, over all rounds and benchmarks, a line each."""
    width = max(map(len, histories))
    lines = [f"{key}: {len(histories)} rule{'s' if len(histories) > 1 else ''}"]
    usage = ""
    for code, code_histories in histories.items():
        for history in code_histories:
            if history.usage != usage:
                usage = history.usage
                lines += ["", USAGES[usage]]
            for span in history.spans:
                text = f"{places(history)} {span.words}: {describe.with_basis(span.rule)}"
                lines.append(wrapped(f"  {code:<{width}}  ", text))
    return "\n".join([*lines, "", _MORE]) + "\n"


def key_json(key: str, histories: Mapping[str, Sequence[History]]) -> str:
    """Return the same as ``key_text`` as JSON."""
    rules = [fields for group in histories.values() for fields in _history_fields(group)]
    return as_json("show", {"key": key, "rules": rules})


# ---- reference points -------------------------------------------------------------------


def review_text(review: PointReview) -> str:
    """Return the new and the stale mistakes; where there are none, how many are known."""
    if not review.fails:
        return "\n".join(_known(review.known)) + "\n"
    lines = [line for problem in review.new for line in _new(problem)]
    lines += map(_stale, review.stale)
    lines += [""] if review.stale else []
    return "\n".join([*lines, _count(review)]) + "\n"


def review_fields(review: PointReview) -> dict[str, Any]:
    """Return the same as ``review_text`` for JSON, with all known mistakes."""
    return {
        "new": list(map(asdict, review.new)),
        "stale": list(map(_fields, review.stale)),
        "known": list(map(_fields, review.known)),
    }


def _known(entries: Sequence[KnownPoint]) -> Iterator[str]:
    count = f"{len(entries)} known mistake{'' if len(entries) == 1 else 's'}"
    yield f"Its reference points have {count} (rules/{LEDGER}){':' if entries else '.'}"
    if entries:
        rows = [("", "KIND", "POINTS", "PUBLISHED SETS"), *_rows(entries)]
        yield from (line.rstrip() for line in table(rows))


def _rows(entries: Sequence[KnownPoint]) -> Iterator[tuple[str, ...]]:
    for kind in Kind:
        of_kind = [entry for entry in entries if entry.kind == kind]
        sets = {name for entry in of_kind for name in entry.sets}
        if of_kind:
            yield "", kind, f"{len(of_kind)}", f"{len(sets)}"


def _new(problem: PointProblem) -> Iterator[str]:
    subject = f"{problem.usage} {problem.round}, {problem.kind}: {problem.point}"
    yield f"{subject} (batch size {problem.batch_size:.15g})"
    yield wrapped("  ", problem.file)
    yield wrapped("  - expected        ", problem.expected)
    yield wrapped("  + mlperf-logging  ", problem.found)
    yield ""


def _stale(entry: KnownPoint) -> str:
    place = f"{entry.usage} {entry.round} {entry.benchmark}"
    text = f"{entry.point} of {place} no longer has the mistake {entry.kind}; remove it"
    return f"{entry.problem(text)}"


def _count(review: PointReview) -> str:
    new, stale = len(review.new), len(review.stale)
    return (
        f"{new} mistake{'' if new == 1 else 's'} in its reference points"
        f" {'is' if new == 1 else 'are'} new, {stale} {'is' if stale == 1 else 'are'} gone"
    )


def _fields(entry: KnownPoint) -> dict[str, Any]:
    fields = asdict(entry)
    del fields["steps"]
    return {**fields, "file": entry.file.shown}
