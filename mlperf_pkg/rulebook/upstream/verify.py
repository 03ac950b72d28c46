"""Compare our rulebook with an mlperf-logging, key by key.

Some rules mean the same although no program can see it (a formula and a state machine).
Maintainers compare these: ``rules/upstream.json`` keeps what they accepted, with a digest of the
official text, so that any change on either side is reported.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.findings import Severity
from mlperf_pkg.infra.resources import data_folder, official_folder
from mlperf_pkg.rulebook.constraints import needed_in_words
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.explain import loaded
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark, Joined, Rcp, Round, Rule
from mlperf_pkg.rulebook.table import rule_table
from mlperf_pkg.rulebook.upstream import theirs as upstream
from mlperf_pkg.rulebook.upstream.points import points_folder
from mlperf_pkg.rulebook.upstream.theirs import WHOLE_LOG, conditions, either, joined

NOT_COVERED = {("training", "0.6.0"): "before the format that logs have had since 0.7"}
"""Rulesets of mlperf-logging that the rulebook leaves out, with the reason."""

_FIRST_WITH_REFERENCE = (1, 0)


class Difference(Struct, frozen=True):
    """One difference between the rulebook and mlperf-logging.

    ``kind`` is ``ruleset``, ``benchmarks``, ``runs``, ``reference`` or ``rule``; ``key`` is the key
    or benchmark, ``file`` the file of mlperf-logging, ``where`` the divisions and benchmarks
    concerned. ``upstream`` and ``rulebook`` are the conditions that only one of the two has.
    """

    kind: str
    usage: str
    round: str
    key: str
    file: str
    where: tuple[str, ...]
    upstream: tuple[str, ...]
    rulebook: tuple[str, ...]


class Accepted(Struct, frozen=True):
    """Conditions accepted as the same: digests of the official ones, our own, and the reason."""

    key: str
    upstream: tuple[str, ...]
    rulebook: tuple[str, ...]
    why: str


def digest(condition: str) -> str:
    """Return the digest of an official condition, as ``rules/upstream.json`` has it."""
    return hashlib.sha256(condition.encode()).hexdigest()[:16]


def ledger_path() -> Path:
    """Return the file of accepted differences."""
    return data_folder("rules") / "upstream.json"


def accepted() -> tuple[Accepted, ...]:
    """Return the differences that maintainers have accepted.

    Raises:
        UserError: the file is missing or not valid.
    """
    try:
        return msgspec.json.decode(ledger_path().read_bytes(), type=tuple[Accepted, ...])
    except (OSError, ValueError) as error:  # of msgspec
        raise UserError(f"{ledger_path()}: {reason_of(error)}") from error


def accept(differences: Iterable[Difference], why: str) -> None:
    """Keep differences between rules as accepted, because both sides mean the same."""
    kept = set(accepted()) | {
        Accepted(item.key, tuple(map(digest, item.upstream)), item.rulebook, why)
        for item in differences
        if item.kind == "rule"
    }
    ordered = sorted(kept, key=lambda entry: (entry.key, entry.rulebook, entry.upstream))
    ledger_path().write_text(json.dumps(msgspec.to_builtins(ordered), indent=1) + "\n", "utf-8")


def verify(
    folder: Path | None = None, ledger: Sequence[Accepted] | None = None
) -> list[Difference]:
    """Return all differences between the rulebook and an mlperf-logging, by default the installed.

    Raises:
        UserError: mlperf-logging is not installed or cannot be read.
    """
    root = folder or official_folder()
    entries = accepted() if ledger is None else ledger
    all_rounds = [load_round(usage, name) for usage in usages() for name in rounds(usage)]
    differences = [*_rulesets(root, all_rounds)]
    names, needed = upstream.benchmarks_and_runs(root)
    for round_ in all_rounds:
        if (round_.usage, round_.ruleset) in upstream.rulesets(root):
            allowed = names.get(round_.usage, {}).get(round_.name, ())
            differences += _around(root, round_, allowed, needed.get(round_.usage, {}))
            differences += _rules(root, round_)
    remaining = (_beyond(item, entries) if item.kind == "rule" else item for item in differences)
    return [item for item in remaining if item.upstream or item.rulebook]


def _beyond(difference: Difference, entries: Iterable[Accepted]) -> Difference:
    """Return a difference without the part that is accepted."""
    theirs = {digest(condition): condition for condition in difference.upstream}
    ours = set(difference.rulebook)
    for entry in sorted(entries, key=lambda entry: -len(entry.upstream)):
        there = set(entry.upstream)
        here = set(entry.rulebook)
        if entry.key == difference.key and there <= theirs.keys() and here <= ours:
            theirs = {name: theirs[name] for name in theirs.keys() - there}
            ours -= here
    return replace(
        difference, upstream=tuple(sorted(theirs.values())), rulebook=tuple(sorted(ours))
    )


def _rulesets(root: Path, all_rounds: Iterable[Round]) -> Iterator[Difference]:
    ours = {(round_.usage, round_.ruleset) for round_ in all_rounds}
    theirs = set(upstream.rulesets(root)) - NOT_COVERED.keys()
    for usage, ruleset in sorted(ours ^ theirs):
        name = ruleset.rpartition(".")[0]
        file = f"compliance_checker/{usage}_{ruleset}"
        sides = ((), ("a round",)) if (usage, ruleset) in ours else (("a folder of rules",), ())
        yield Difference("ruleset", usage, name, ruleset, file, (), *sides)


def _around(
    root: Path, round_: Round, allowed: Iterable[str], needed: Mapping[str, int]
) -> Iterator[Difference]:
    """Yield the differences in the benchmarks of a round, their reference points and runs."""
    place = (round_.usage, round_.name)
    meta = "benchmark_meta.py"
    for name in sorted(set(allowed) ^ set(round_.benchmarks)):
        sides = ((), (name,)) if name in round_.benchmarks else ((name,), ())
        yield Difference("benchmarks", *place, name, meta, (), *sides)
    for name in sorted(round_.benchmarks) if round_.version >= _FIRST_WITH_REFERENCE else ():
        path = points_folder(root, round_) / f"rcps_{name}.json"
        if loaded(round_, name).rcp is not Rcp.SKIPPED and not path.is_file():
            file = path.relative_to(root).as_posix()
            ours = ("reference convergence points",)
            yield Difference("reference", *place, name, file, (), (), ours)
    for name in round_.benchmarks:
        count = needed.get(name)
        required = loaded(round_, name).runs.required
        if count != required:
            theirs = () if count is None else (f"{count} runs",)
            yield Difference("runs", *place, name, meta, (), theirs, (f"{required} runs",))


def _rules(root: Path, round_: Round) -> Iterator[Difference]:
    merged: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for name, division in product(round_.benchmarks, DIVISIONS):
        for *sides, file in dict.fromkeys(_of_runs(root, round_, division, loaded(round_, name))):
            merged.setdefault(tuple(sides), []).append((f"{division} {name}", file))
    for (key, theirs, ours), places in merged.items():
        where, files = (tuple(dict.fromkeys(names)) for names in zip(*places, strict=True))
        file = f"compliance_checker/{files[0] if len(files) == 1 else _folder(round_)}"
        yield Difference("rule", round_.usage, round_.name, key, file, where, theirs, ours)


def _of_runs(
    root: Path, round_: Round, division: str, benchmark: Benchmark
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...], str]]:
    """Yield, for all variants of a run, each key on which only one side has some conditions.

    With it, the conditions of the official side alone, those of ours alone, and the official file.
    """
    identity = {"submission_division": division, "submission_benchmark": benchmark.name}
    layers_of = partial(upstream.layers, root, _folder(round_))
    fallback = f"{_folder(round_)}/{division}_{benchmark.name}.yaml"
    for chosen in _choices(benchmark, layers_of(frozenset(identity.items())).follows):
        layers = layers_of(frozenset({*identity.items(), *chosen}))
        ours = official_rules(round_.usage, round_.name, division, benchmark.name, chosen)
        for key in sorted(layers.conditions.keys() | ours.keys()):
            theirs = layers.conditions.get(key, frozenset())
            mine = ours.get(key, frozenset())
            if theirs != mine:
                sides = tuple(sorted(theirs - mine)), tuple(sorted(mine - theirs))
                yield key, *sides, layers.files.get(key, fallback)


def _choices(
    benchmark: Benchmark, follows: Mapping[str, frozenset[str]]
) -> Iterator[frozenset[tuple[str, str]]]:
    """Yield no choice, and then each value of each key that chooses a variant on either side."""
    yield frozenset()
    ours = {key: frozenset(map(str, choices)) for key, choices in benchmark.variants.items()}
    for key in sorted(ours.keys() | follows.keys()):
        if not key.startswith("submission_"):
            for value in sorted(ours.get(key, frozenset()) | follows.get(key, frozenset())):
                yield frozenset({(key, value)})


def _folder(round_: Round) -> str:
    return f"{round_.usage}_{round_.ruleset}"


_NAME = re.compile(r"'(\w+)'")
_TYPES = {"integer": "int", "number": "(int, float)", "text": "str"}


def official_rules(
    usage: str, round_name: str, division: str, benchmark: str, chosen: frozenset[tuple[str, str]]
) -> dict[str, frozenset[str]]:
    """Return the conditions that our rules with an official basis set on each key of a run.

    Raises:
        UserError: the rulebook has no such round.
    """
    table = rule_table(usage, round_name, division, benchmark, chosen)
    whole = {key: [compiled.rule for compiled in of.rules] for key, of in table.keys.items()}
    rules = {
        key: [rule for rule in of_key if rule.official and rule.severity is Severity.ERROR]
        for key, of_key in whole.items()
    }
    of_keys = {
        key: joined(_merged_lists(part for rule in key_rules for part in _conditions(rule)))
        for key, key_rules in rules.items()
    }
    for key, parts in _of_whole_log(rules, table.joined).items():
        of_keys[key] = of_keys.get(key, frozenset()) | parts
    return of_keys


def _conditions(rule: Rule) -> Iterator[str]:
    """Yield the conditions of one rule."""
    match rule.occurs:
        case str():
            yield rule.occurs.replace("_", " ")
        case {"or": _} | None:
            pass
        case limits:
            yield f"{needed_in_words(limits)} times"
    prefix = "first: " if rule.first else ""
    for text in python_of(rule.constraints, rule.formula):
        yield from (prefix + part for part in conditions(text))
    for text in python_of(rule.reaches or {}, None):
        yield from (f"one record: {part}" for part in conditions(text))


def _merged_lists(parts: Iterable[str]) -> Iterator[str]:
    """Write ``in`` a list and ``not in`` another as one list."""
    whole = list(parts)
    refused = [part for part in whole if part.startswith("value not in ")]
    names = {name for part in refused for name in _NAME.findall(part)}
    for part in whole:
        if refused and part.startswith("value in "):
            yield f"value in {[name for name in _NAME.findall(part) if name not in names]}"
        elif part not in refused:
            yield part


def _of_whole_log(rules: Mapping[str, Iterable[Rule]], join: Joined | None) -> dict[str, set[str]]:
    """Return the conditions that no single key is about, by the key to report."""
    conditions_by_key: dict[str, set[str]] = {WHOLE_LOG: set()}
    if join:
        text = f"{join.of} by {join.by} and {join.name}, together as {join.key}"
        conditions_by_key[WHOLE_LOG].add(text)
    for rule in (rule for key_rules in rules.values() for rule in key_rules):
        if isinstance(rule.occurs, Mapping) and "or" in rule.occurs:
            key, text = either(rule.key, rule.occurs["or"])
            conditions_by_key.setdefault(key, set()).add(text)
        if rule.tensors is not None:
            names = ", ".join(map(repr, rule.tensors))
            text = f"sorted(collected({rule.key}.metadata.tensor)) == sorted([{names}])"
            conditions_by_key[WHOLE_LOG] |= conditions(text)
    return conditions_by_key


# ---- constraints as expressions -----------------------------------------------------------


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return "float('inf')" if isinstance(value, float) and math.isinf(value) else repr(value)


def _compares(sign: str) -> Callable[[str, Any], list[str]]:
    return lambda subject, argument: [f"{subject} {sign} {_literal(argument)}"]


def _fields(subject: str, fields: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    return [
        text
        for name, constraints in fields.items()
        for constraint, argument in constraints.items()
        for text in _EXPRESSIONS[constraint](f"{subject}[{name!r}]", argument)
    ]


def _where_present(_subject: str, fields: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        f"{text} if {name!r} in metadata else True"
        for name, constraints in fields.items()
        for text in _fields("metadata", {name: constraints})
    ]


def _within(_subject: str, argument: Mapping[str, Any]) -> list[str]:
    text = f"ll.timestamp - earliest({argument['of']!r}) < {argument['minutes'] * 60_000.0}"
    until = argument.get("until")
    return [f"{text} if not seen({until!r}) else True" if until else text]


_EXPRESSIONS: Mapping[str, Callable[[str, Any], list[str]]] = {
    "equals": _compares("=="),
    "one_of": _compares("in"),
    "none_of": _compares("not in"),
    "at_least": _compares(">="),
    "at_most": _compares("<="),
    "counts": lambda s, a: python_of(a, None),
    "above": _compares(">"),
    "below": _compares("<"),
    "close_to": lambda s, a: [f"math.isclose({s}, {a!r})"],
    "not_empty": lambda s, a: [f"{s} != ''"],
    "truthy": lambda s, a: [s if a else f"not {s}"],
    "type": lambda s, a: [f"isinstance({s}, {_TYPES[a]})"],
    "reads_as": lambda s, a: [f"int({s})"],
    "whole": lambda s, a: [f"is_integer({s})"],
    "multiple_of": lambda s, a: [f"is_integer({s} / {a!r})"],
    "power_of_two_times": lambda s, a: [f"is_integer(math.log2({s} / {a!r}))"],
    "length": lambda s, a: [f"len({s}) == {a}"],
    "length_at_least": lambda s, a: [f"len({s}) >= {a}"],
    "in_ratio": lambda s, a: [f"in_ratio({s}, {a})"],
    "any": lambda s, a: [" or ".join(f"({' and '.join(python_of(c, None))})" for c in a)],
    "each": lambda s, a: [f"all({' and '.join(python_of(a, None))} for value in each({s}))"],
    "has": lambda s, names: [f"{name!r} in {s}" for name in names],
    "fields": _fields,
    "metadata": lambda s, names: [f"{name!r} in metadata" for name in names],
    "metadata_any": lambda s, names: [" or ".join(f"{name!r} in metadata" for name in names)],
    "metadata_pairs": lambda s, pairs: [
        f"{other!r} in metadata if {name!r} in metadata else True" for name, other in pairs.items()
    ],
    "metadata_fields": _where_present,
    "same_as": lambda s, key: [f"{s} == {key}"],
    "after": lambda s, keys: [f"seen({key!r})" for key in keys],
    "before": lambda s, keys: [f"not seen({key!r})" for key in keys],
    "within_minutes": _within,
    # It differs from Python only in ``and`` and ``or``.
    "formula": lambda s, text: [text.replace("&&", " and ").replace("||", " or ")],
}
"""The Python expressions that mean the same as a constraint, by its name."""


def python_of(constraints: Mapping[str, Any], formula: str | None) -> list[str]:
    """Return constraints and a formula as Python expressions about a record."""
    arguments = {**constraints, **({"formula": formula} if formula else {})}
    return [
        text
        for name, argument in arguments.items()
        for text in _EXPRESSIONS[name]("value", argument)
    ]
