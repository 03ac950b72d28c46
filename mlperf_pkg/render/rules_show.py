"""The explanation of a code, and the rules of a key, as text for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.render.rules import USAGES, as_json, rule_fields, table, wrapped
from mlperf_pkg.rulebook.codes import Code, codes
from mlperf_pkg.rulebook.explain import describe
from mlperf_pkg.rulebook.explain.describe import History, Span
from mlperf_pkg.rulebook.explain.example import example
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Rule, ruleset_source, version_of

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
    yield from dict.fromkeys(line for history in histories for line in _targets(history))
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


def _targets(history: History) -> Iterator[str]:
    for name, round_, words in describe.targets(history):
        yield wrapped("target    ", f"{name} in {round_}: {words}")


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
