"""The rulebook as text for a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import TextWrapper
from typing import Any

from msgspec.structs import asdict

from mlperf_pkg.results.rcp import PointChange, ReferenceRuns
from mlperf_pkg.rulebook.explain import describe
from mlperf_pkg.rulebook.explain.describe import Layer
from mlperf_pkg.rulebook.explain.diff import Change, Comparison
from mlperf_pkg.rulebook.model import Benchmark, Round, Rule
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
        yield from (wrapped(f"    {_sign(point)} ", _point(point), 8) for point in group)


def _sign(point: PointChange) -> str:
    return "~" if point.old and point.new else "+" if point.new else "-"


def _point(point: PointChange) -> str:
    values = " -> ".join(_runs(runs) for runs in (point.old, point.new) if runs)
    return f"batch size {_number(point.batch_size)}: {values}"


def _runs(runs: ReferenceRuns) -> str:
    return f"{_number(runs.mean)} ({runs.runs} runs)"


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
            "reference_points": [asdict(point) | _of_runs(point) for point in points],
        },
    )


def _of_runs(point: PointChange) -> dict[str, Any]:
    return {
        name: asdict(runs) if runs else None
        for name, runs in (("old", point.old), ("new", point.new))
    }


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
