"""The rulebook as text for a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import TextWrapper
from typing import Any

from msgspec.structs import asdict

from mlperf_pkg.rulebook.codes import Code, codes
from mlperf_pkg.rulebook.explain import describe
from mlperf_pkg.rulebook.explain.describe import History, Layer, Span
from mlperf_pkg.rulebook.explain.diff import Change, Comparison
from mlperf_pkg.rulebook.explain.example import example
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Benchmark, Round, Rule
from mlperf_pkg.rulebook.upstream.verify import Difference

WIDTH = 80
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
        {"where": layer.name, **_rule_fields(rule)} for layer in layers for rule in _rules(layer)
    ]
    about = {"usage": round_.usage, "round": round_.name, "ruleset": round_.ruleset}
    return as_json("list", {**about, **_benchmark_fields(benchmark), "rules": rules})


def _rule_fields(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "key": rule.key,
        "asked": describe.requirement(rule),
        "basis": rule.basis.value,
        "severity": rule.severity.value,
        "source": rule.source,
    }


# ---- show ---------------------------------------------------------------------------------


def code_text(code: str) -> str:
    """Return the explanation of a code."""
    lines = _other(codes()[code]) if code in codes() else _rule(code, describe.histories(code))
    return "\n".join(lines) + "\n"


def _other(code: Code) -> Iterator[str]:
    yield from (f"{code.code}: {code.title}", "", wrapped("", code.explanation), "")
    yield wrapped("source    ", code.source)


def _rule(code: str, histories: Sequence[History]) -> Iterator[str]:
    keys = dict.fromkeys(span.rule.key for history in histories for span in history.spans)
    yield f"{code}: {', '.join(keys)}"
    for history in histories:
        yield ""
        yield wrapped("", f"{USAGES[history.usage]}, {_places(history.where)}")
        for span in history.spans:
            yield wrapped("  ", f"{span.words}: {describe.with_basis(span.rule)}", 4)
    yield ""
    rules = [span.rule for history in histories for span in reversed(history.spans)]
    yield from _explained(rules)
    yield from dict.fromkeys(line for history in histories for line in _targets(history))
    if joined := describe.joined(histories[0], histories[0].spans[-1]):
        text = f"{joined.of} by {joined.name}, of all records with the same {joined.by}"
        yield wrapped("joined    ", text)
    yield from _example(histories[0])


def _places(names: Sequence[str]) -> str:
    return describe.EVERY_RUN if describe.EVERY_RUN in names else ", ".join(names)


def _explained(rules: Sequence[Rule]) -> Iterator[str]:
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
    yield wrapped("source    ", "; ".join(dict.fromkeys(rule.source for rule in rules)))


def _targets(history: History) -> Iterator[str]:
    for name, round_, words in describe.targets(history):
        yield wrapped("target    ", f"{name} in {round_}: {words}")


def _example(history: History) -> Iterator[str]:
    lines = _example_of(history, history.spans[-1])
    yield ""
    if lines:
        yield from (f"Example of round {history.spans[-1].until}:", lines)
    else:
        yield "No example: whether a line meets the rule depends on others of the run."


def _example_of(history: History, span: Span) -> str | None:
    round_ = load_round(history.usage, span.until)
    joined = describe.joined(history, span)
    return example(span.rule, round_, joined)


def code_json(code: str) -> str:
    """Return the same as ``code_text`` as JSON."""
    if code in codes():
        return as_json("show", asdict(codes()[code]))
    return as_json("show", {"code": code, "rules": list(_history_fields(describe.histories(code)))})


def _history_fields(histories: Iterable[History]) -> Iterator[dict[str, Any]]:
    for history in histories:
        for span in history.spans:
            yield {
                "usage": history.usage,
                "where": list(history.where),
                "from": span.first,
                "to": span.last,
                **_rule_fields(span.rule),
                "example": _example_of(history, span),
            }


# ---- diff ---------------------------------------------------------------------------------


def comparison_text(comparison: Comparison) -> str:
    """Return what changes from one round to another."""
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
    if old.normalised != new.normalised:
        word = "are now" if new.normalised else "are no longer"
        lines += ["", f"Scores {word} normalised where convergence beats the reference."]
    for where, group in groupby(comparison.changes, key=lambda change: change.where):
        lines += ["", _heading(where)]
        lines += [line for change in _together(group) for line in _change(*change)]
    if comparison.unchanged:
        lines += ["", wrapped("Unchanged: ", ", ".join(comparison.unchanged))]
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


def comparison_json(comparison: Comparison) -> str:
    """Return the same as ``comparison_text`` as JSON."""
    return as_json(
        "diff",
        {
            "usage": comparison.usage,
            "old": comparison.old.name,
            "new": comparison.new.name,
            "gone": list(comparison.gone),
            "added": list(map(_benchmark_fields, comparison.added)),
            "changes": [asdict(change) for change in comparison.changes],
            "renamed": dict(comparison.renamed),
            "unchanged": list(comparison.unchanged),
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


def differences_json(differences: Iterable[Difference], reference: str) -> str:
    """Return the same as ``differences_text`` as JSON."""
    content = {"reference": reference, "differences": list(map(asdict, differences))}
    return as_json("verify", content)
