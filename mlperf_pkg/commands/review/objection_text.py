"""The text of an objection: Markdown for an issue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.commands.review.objections import Examined, Objection
from mlperf_pkg.findings import Basis, Finding, Occurrence, in_words
from mlperf_pkg.infra.source import Source, raw_lines
from mlperf_pkg.infra.text import escape_markdown, visible
from mlperf_pkg.results.rcp import reference_hyperparameters
from mlperf_pkg.results.report import ResultSetRow, name
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.rulebook.explain.describe import benchmark_layers, common_layers, requirement
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Rule

_SUBJECTS = 20
_FILES, _LINES = 3, 3  # of one finding
_NAMED = 20  # files without an excerpt
_POINTS = 12
_CHARACTERS = 300
_BASES = {
    Basis.BOTH: "the written rules and the official checker",
    Basis.OFFICIAL: "the official checker",
    Basis.RULES: "the written rules; the official checker does not test it",
    Basis.ADVICE: "neither a written rule nor the official checker",
}


def objection_text(objection: Objection, examined: Examined, by: str | None) -> str:
    """Return the text of an objection ``by`` an organisation; None writes a placeholder."""
    first = objection.findings[0]
    parts = [
        f"# {escape_markdown(f'{objection.against}: {objection.title}')}",
        f"Labels: `by {_code(by or '<org>')}`, `against {_code(objection.against)}`",
        *_rule(first),
        *_subjects(objection, examined),
        *_reference(objection, examined),
        f"Found by mlperf-pkg, code {objection.code}"
        f" (`mlperf-pkg rules show {objection.code}` explains it).",
    ]
    return "\n\n".join(parts) + "\n"


def _code(text: str) -> str:
    """Return text for use inside backticks, without backticks of its own."""
    return visible(text).replace("`", "'")


def _rule(finding: Finding) -> Iterator[str]:
    lines = [f"**Rule:** {escape_markdown(finding.source or 'none')}"]
    if code := codes().get(finding.code):
        lines.append(f"**Requirement:** {escape_markdown(' '.join(code.explanation.split()))}")
    lines.append(f"**Basis:** {_BASES[finding.basis]}")
    yield "\n".join(f"- {line}" for line in lines)


# ---- lines --------------------------------------------------------------------------------


def _subjects(objection: Objection, examined: Examined) -> Iterator[str]:
    sources = examined.sources
    for finding in objection.findings[:_SUBJECTS]:
        yield f"## {escape_markdown(finding.about)}"
        yield "\n".join(f"- {line}" for line in _facts(finding))
        for place in finding.occurrences[:_FILES]:
            yield from _excerpt(place, sources)
        if more := finding.occurrences[_FILES:]:
            names = ", ".join(map(_short, more[:_NAMED]))
            rest = f" and {len(more) - _NAMED} more" if len(more) > _NAMED else ""
            yield f"The same in {counted(len(more), 'more file')}: {names}{rest}."
    if others := objection.findings[_SUBJECTS:]:
        names = escape_markdown(", ".join(finding.about for finding in others))
        yield f"And {counted(len(others), 'more finding')} like these, in {names}."


def _short(place: Occurrence) -> str:
    line = f":{place.lines[0]}" if place.lines else ""
    return f"`{_code(name(place.path))}{line}`"


def _facts(finding: Finding) -> Iterator[str]:
    runs = f" ({finding.runs} of {counted(finding.of_runs or 0, 'run')})" if finding.runs else ""
    yield escape_markdown(finding.text + runs)
    for label in ("found", "expected"):
        value = getattr(finding, label)
        if value is not None:
            form = ":,.9g" if isinstance(value, float | int) else ""
            yield f"{label}: {escape_markdown(replace(finding, message=f'{{{label}{form}}}').text)}"


def _excerpt(place: Occurrence, sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield a file with its lines, and their text if it can be read."""
    numbers = place.lines[:_LINES]
    if not numbers:
        yield f"`{_code(place.path)}`"
        return
    texts: dict[int, str] = {}
    if place.path in sources:
        with suppress(OSError):
            texts = raw_lines(sources[place.path], numbers, _CHARACTERS)
    for number in numbers:
        yield f"`{_code(place.path)}:{number}`"
        if number in texts:
            yield f"    {visible(texts[number])}"


# ---- the reference ------------------------------------------------------------------------


def _reference(objection: Objection, examined: Examined) -> Iterator[str]:
    """Yield the rules and the reference points for the key of the code, if it has one."""
    row = next((examined.rows[path] for path in objection.about if path in examined.rows), None)
    if row is None:
        return
    usage = examined.checked.report.usage
    lines = [*_rules(objection.code, usage, row), *_points(objection.code, usage, row)]
    if lines:
        yield "## Reference"
        yield "\n".join(f"- {line}" for line in lines)


def _rules(code: str, usage: str, row: ResultSetRow) -> Iterator[str]:
    for rule in _rules_of(code, usage, row):
        yield f"`{rule.key}`, {row.round}: {escape_markdown(requirement(rule))}"


def _rules_of(code: str, usage: str, row: ResultSetRow) -> list[Rule]:
    benchmark = load_benchmark(usage, row.round, row.benchmark)
    layers = [
        *common_layers(load_round(usage, row.round)),
        *(benchmark_layers(benchmark) if benchmark else ()),
    ]
    rules = chain.from_iterable(of_key for layer in layers for of_key in layer.rules.values())
    return [rule for rule in rules if rule.code == code]


def _points(code: str, usage: str, row: ResultSetRow) -> Iterator[str]:
    """Yield the reference points: the one nearest to a tested set, or those with a rule's key."""
    ruleset = load_round(usage, row.round).ruleset
    points = reference_hyperparameters(usage, ruleset, row.benchmark) if ruleset else {}
    file = f"rcp_checker/{usage}_{ruleset}/rcps_{row.benchmark}.json of mlperf-logging"
    if code.startswith("RCP") and points and row.rcp:
        batch_size = row.rcp.batch_size
        sizes = ", ".join(f"{size:g}" for size in sorted(points))
        yield escape_markdown(f"{file} has batch sizes {sizes}")
        nearest = min(points, key=lambda size: abs(size - batch_size))
        yield escape_markdown(f"batch size {nearest:g}: {_values(points[nearest])}")
    keys = [rule.key for rule in _rules_of(code, usage, row)]
    for size, values in sorted(points.items())[:_POINTS]:
        of_keys = {
            name: value
            for name, value in values.items()
            if any(key == name or key.endswith(f"_{name}") for key in keys)
        }
        if of_keys:
            yield escape_markdown(f"{file}, batch size {size:g}: {_values(of_keys)}")


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {in_words([value])}" for name, value in values.items())
