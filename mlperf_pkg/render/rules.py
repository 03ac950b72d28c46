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
    """``text`` after ``first``, further lines indented below it or by ``indent``."""
    hanging = " " * (len(first) if indent is None else indent)
    layout = TextWrapper(WIDTH, hanging, hanging, break_long_words=False, break_on_hyphens=False)
    layout.initial_indent = first
    return layout.fill(text) if text else first.rstrip()


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows in columns, the last of them wrapped; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        start = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        yield wrapped(start, last)


def as_json(kind: str, content: dict[str, Any]) -> str:
    """A JSON document that names its format."""
    return json.dumps({"format": f"mlperf-pkg/rules-{kind}/1", **content}, indent=2) + "\n"


# ---- list ---------------------------------------------------------------------------------


def rounds_text(several: Sequence[Round]) -> str:
    """What the rulebook covers: each usage's rounds with their benchmarks."""
    blocks = []
    for usage, group in groupby(several, key=lambda round_: round_.usage):
        header = ("ROUND", "SUBMISSION", "RULESET", "BENCHMARKS")
        rows = [
            (each.name, f"{each.submission_date}", each.ruleset, ", ".join(each.benchmarks))
            for each in group
        ]
        blocks.append("\n".join([USAGES[usage], *table([header, *rows])]))
    return "\n\n".join(blocks) + "\n"


def round_text(round_: Round) -> str:
    """A round: its benchmarks with runs and targets."""
    header = ("BENCHMARK", "RUNS", "DROP", "COUNTS", "TARGET")
    rows = [
        (
            each.name,
            f"{each.runs.required}",
            f"{each.runs.drop}+{each.runs.drop}",
            each.unit,
            target,
        )
        for each, target in _with_targets(round_)
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
    """A benchmark of a round with its rules, one a line."""
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
    return (rule for several in layer.rules.values() for rule in several)


def rounds_json(several: Iterable[Round]) -> str:
    """As ``rounds_text``, with runs and targets."""
    return as_json("list", {"rounds": [_round_fields(each) for each in several]})


def _round_fields(round_: Round) -> dict[str, Any]:
    return {
        "usage": round_.usage,
        "round": round_.name,
        "submission_date": f"{round_.submission_date}",
        "ruleset": round_.ruleset,
        "normalised": round_.normalised,
        "benchmarks": [_benchmark_fields(each) for each, _ in _with_targets(round_)],
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
    """As ``benchmark_text``."""
    rules = [{"where": each.name, **_rule_fields(rule)} for each in layers for rule in _rules(each)]
    about = {"usage": round_.usage, "round": round_.name, "ruleset": round_.ruleset}
    return as_json("list", {**about, **_benchmark_fields(benchmark), "rules": rules})


def _rule_fields(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "key": rule.key,
        "asked": describe.asked(rule),
        "basis": rule.basis.value,
        "severity": rule.severity.value,
        "source": rule.source,
    }


# ---- show ---------------------------------------------------------------------------------


def code_text(code: str) -> str:
    """A finding's code, explained."""
    lines = _other(codes()[code]) if code in codes() else _rule(code, describe.histories(code))
    return "\n".join(lines) + "\n"


def _other(code: Code) -> Iterator[str]:
    yield from (f"{code.code}: {code.title}", "", wrapped("", code.explanation), "")
    yield wrapped("source    ", code.source)


def _rule(code: str, several: Sequence[History]) -> Iterator[str]:
    keys = dict.fromkeys(span.rule.key for each in several for span in each.spans)
    yield f"{code}: {', '.join(keys)}"
    for history in several:
        yield ""
        yield wrapped("", f"{USAGES[history.usage]}, {_places(history.where)}")
        for span in history.spans:
            yield wrapped("  ", f"{span.words}: {describe.with_basis(span.rule)}", 4)
    yield ""
    rules = [span.rule for each in several for span in reversed(each.spans)]
    yield from _explained(rules)
    yield from dict.fromkeys(line for each in several for line in _targets(each))
    if joined := describe.joined(several[0], several[0].spans[-1]):
        text = f"{joined.of} by {joined.name}, of all records with the same {joined.by}"
        yield wrapped("joined    ", text)
    yield from _example(several[0])


def _places(names: Sequence[str]) -> str:
    return describe.EVERY_RUN if describe.EVERY_RUN in names else ", ".join(names)


def _explained(rules: Sequence[Rule]) -> Iterator[str]:
    for basis in dict.fromkeys(rule.basis for rule in rules):
        yield wrapped("basis     ", f"{basis}: {describe.BASIS[basis]}")
    for severity in dict.fromkeys(rule.severity for rule in rules):
        yield wrapped("severity  ", describe.SEVERITY[severity])
    if any(rule.fatal for rule in rules):
        yield wrapped("fatal     ", "the official checker dies where it is broken")
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
        yield from (f"What meets it in {history.spans[-1].until}:", lines)
    else:
        yield "No line meets it by itself: it depends on what else the run logs."


def _example_of(history: History, span: Span) -> str | None:
    round_ = load_round(history.usage, span.until)
    joined = describe.joined(history, span)
    return example(span.rule, round_, joined)


def code_json(code: str) -> str:
    """As ``code_text``."""
    if code in codes():
        return as_json("show", asdict(codes()[code]))
    return as_json("show", {"code": code, "rules": list(_history_fields(describe.histories(code)))})


def _history_fields(several: Iterable[History]) -> Iterator[dict[str, Any]]:
    for history in several:
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


def comparison_text(found: Comparison) -> str:
    """What changes from one round to another."""
    old, new = found.old, found.new
    lines = [
        f"{USAGES[found.usage]} {old.name} -> {new.name}"
        f" (submission {old.submission_date} -> {new.submission_date})"
    ]
    lines += ["", "Benchmarks"] if found.gone or found.added or found.renamed else []
    lines += [f"  - {name}" for name in found.gone]
    lines += [f"  ~ {one} is now called {other}" for one, other in found.renamed]
    for each in found.added:
        text = f"{each.name}: target {describe.target(each)}; {describe.runs(each.runs)}"
        lines.append(wrapped("  + ", text, 6))
    if old.normalised != new.normalised:
        word = "are now" if new.normalised else "are no longer"
        lines += ["", f"Scores {word} normalised where convergence beats the reference."]
    for where, group in groupby(found.changes, key=lambda change: change.where):
        lines += ["", _heading(where)]
        lines += [line for change in _together(group) for line in _change(*change)]
    if found.unchanged:
        lines += ["", wrapped("Unchanged: ", ", ".join(found.unchanged))]
    return "\n".join(lines) + "\n"


def _together(changes: Iterable[Change]) -> Iterator[tuple[str, Change]]:
    """Changes that are alike under one line: "tensor_parallelism, pipeline_parallelism"."""
    alike: dict[tuple[tuple[str, ...], ...], list[Change]] = {}
    for change in changes:
        alike.setdefault((change.old, change.new), []).append(change)
    for several in alike.values():
        yield ", ".join(each.key for each in several), several[0]


def _change(keys: str, change: Change) -> Iterator[str]:
    old, new = ("; ".join(part) for part in (change.old, change.new))
    if change.old and change.new:
        yield wrapped("  ~ ", keys, 6)
        yield wrapped("      was ", old)
        yield wrapped("      now ", new)
    else:
        yield wrapped("  + " if change.new else "  - ", f"{keys}: {new or old}", 6)


def comparison_json(found: Comparison) -> str:
    """As ``comparison_text``."""
    return as_json(
        "diff",
        {
            "usage": found.usage,
            "old": found.old.name,
            "new": found.new.name,
            "gone": list(found.gone),
            "added": [_benchmark_fields(each) for each in found.added],
            "changes": [asdict(change) for change in found.changes],
            "renamed": dict(found.renamed),
            "unchanged": list(found.unchanged),
        },
    )


# ---- verify -------------------------------------------------------------------------------


def differences_text(found: Sequence[Difference], reference: str, rounds: int) -> str:
    """What the rulebook and the official checker say differently."""
    if not found:
        return f"The rulebook's {rounds} rounds agree with {reference}, key by key.\n"
    lines = [line for each in found for line in _difference(each)]
    count = f"{len(found)} difference{'s' if len(found) > 1 else ''}"
    return "\n".join([*lines, f"{count} between the rulebook and {reference}"]) + "\n"


def _difference(each: Difference) -> Iterator[str]:
    yield f"{each.usage} {each.round}, {each.kind}: {each.key}"
    yield wrapped("  ", each.file)
    if each.where:
        yield wrapped("  in ", ", ".join(each.where))
    yield from (wrapped("  - rulebook        ", text) for text in each.rulebook)
    yield from (wrapped("  + mlperf-logging  ", text) for text in each.upstream)
    yield ""


def differences_json(found: Iterable[Difference], reference: str) -> str:
    """As ``differences_text``."""
    content = {"reference": reference, "differences": [asdict(each) for each in found]}
    return as_json("verify", content)
