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
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.findings import Severity
from mlperf_pkg.infra.resources import data_folder, official_folder
from mlperf_pkg.rulebook.constraints import needed_in_words
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.explain import loaded
from mlperf_pkg.rulebook.load import load_benchmark, load_round
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
            differences += _benchmarks(root, round_, names.get(round_.usage, {}))
            differences += _round(root, round_, needed.get(round_.usage, {}))
    remaining = (_beyond(item, entries) if item.kind == "rule" else item for item in differences)
    return [item for item in remaining if item.upstream or item.rulebook]


def _beyond(difference: Difference, entries: Iterable[Accepted]) -> Difference:
    """Return a difference without the part that is accepted."""
    theirs = {digest(condition): condition for condition in difference.upstream}
    ours = set(difference.rulebook)
    for entry in sorted(entries, key=lambda entry: -len(entry.upstream)):
        there, here = set(entry.upstream), set(entry.rulebook)
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
        only = ("a folder of rules",)
        new = (usage, ruleset) in theirs
        yield Difference(
            kind="ruleset",
            usage=usage,
            round=ruleset.rpartition(".")[0],
            key=ruleset,
            file=f"compliance_checker/{usage}_{ruleset}",
            where=(),
            upstream=only if new else (),
            rulebook=() if new else ("a round",),
        )


def _round(root: Path, round_: Round, needed: Mapping[str, int]) -> Iterator[Difference]:
    merged: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for name in round_.benchmarks:
        benchmark = loaded(round_, name)
        yield from _counts(round_, benchmark, needed.get(benchmark.name))
        for division in DIVISIONS:
            for key, theirs, ours, file in _compared(root, round_, division, benchmark):
                places = merged.setdefault((key, theirs, ours), [])
                places.append((f"{division} {name}", file))
    for (key, theirs, ours), places in merged.items():
        files = {file for _, file in places}
        yield Difference(
            kind="rule",
            usage=round_.usage,
            round=round_.name,
            key=key,
            file=f"compliance_checker/{files.pop() if len(files) == 1 else _folder(round_)}",
            where=tuple(dict.fromkeys(where for where, _ in places)),
            upstream=theirs,
            rulebook=ours,
        )


def _benchmarks(
    root: Path, round_: Round, of_rounds: Mapping[str, list[str]]
) -> Iterator[Difference]:
    about = partial(Difference, usage=round_.usage, round=round_.name, where=())
    names = set(of_rounds.get(round_.name, ()))
    for name in sorted(names ^ set(round_.benchmarks)):
        yield about(
            kind="benchmarks",
            key=name,
            file="benchmark_meta.py",
            upstream=(name,) if name in names else (),
            rulebook=() if name in names else (name,),
        )
    if round_.version < _FIRST_WITH_REFERENCE:
        return
    files = points_folder(root, round_).glob("rcps_*.json")
    for name in sorted(set(round_.benchmarks) - {path.stem[len("rcps_") :] for path in files}):
        benchmark = load_benchmark(round_.usage, round_.name, name)
        if benchmark and benchmark.rcp is Rcp.SKIPPED:
            continue
        yield about(
            kind="reference",
            key=name,
            file=f"rcp_checker/{round_.usage}_{round_.ruleset}/rcps_{name}.json",
            upstream=(),
            rulebook=("reference convergence points",),
        )


def _counts(round_: Round, benchmark: Benchmark, needed: int | None) -> Iterator[Difference]:
    if needed != benchmark.runs.required:
        yield Difference(
            kind="runs",
            usage=round_.usage,
            round=round_.name,
            key=benchmark.name,
            file="benchmark_meta.py",
            where=(),
            upstream=() if needed is None else (f"{needed} runs",),
            rulebook=(f"{benchmark.runs.required} runs",),
        )


_Compared: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], str]
"""A key, the conditions on it that only the official side or only ours has, and its file."""


def _compared(
    root: Path, round_: Round, division: str, benchmark: Benchmark
) -> Iterable[_Compared]:
    """Return the keys with other conditions on either side, for all variants of a run."""
    variants = _choices(root, round_, division, benchmark)
    runs = (_compared_run(root, round_, division, benchmark.name, chosen) for chosen in variants)
    return dict.fromkeys(chain.from_iterable(runs))


def _choices(
    root: Path, round_: Round, division: str, benchmark: Benchmark
) -> Iterator[Mapping[str, str]]:
    """Yield no choice, and then each value of each key that chooses a variant on either side."""
    yield {}
    layers = upstream.layers(root, _folder(round_), _logged(division, benchmark.name, {}))
    ours = {key: set(map(str, choices)) for key, choices in benchmark.variants.items()}
    for key in sorted(ours.keys() | layers.follows.keys()):
        if not key.startswith("submission_"):
            values = ours.get(key, set()) | layers.follows.get(key, frozenset())
            yield from ({key: value} for value in sorted(values))


def _compared_run(
    root: Path, round_: Round, division: str, name: str, chosen: Mapping[str, str]
) -> Iterator[_Compared]:
    layers = upstream.layers(root, _folder(round_), _logged(division, name, chosen))
    ours = official_rules(round_.usage, round_.name, division, name, frozenset(chosen.items()))
    fallback = f"{_folder(round_)}/{division}_{name}.yaml"
    for key in sorted(layers.conditions.keys() | ours.keys()):
        theirs, mine = layers.conditions.get(key, frozenset()), ours.get(key, frozenset())
        if theirs != mine:
            only_theirs, only_ours = tuple(sorted(theirs - mine)), tuple(sorted(mine - theirs))
            yield key, only_theirs, only_ours, layers.files.get(key, fallback)


def _folder(round_: Round) -> str:
    return f"{round_.usage}_{round_.ruleset}"


def _logged(division: str, benchmark: str, chosen: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    identity = {"submission_division": division, "submission_benchmark": benchmark}
    return frozenset({**identity, **chosen}.items())


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
    rules = {
        key: [
            compiled.rule
            for compiled in key_rules.rules
            if compiled.rule.official and compiled.rule.severity is Severity.ERROR
        ]
        for key, key_rules in table.keys.items()
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
