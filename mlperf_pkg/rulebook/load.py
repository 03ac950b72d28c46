"""From the YAML files under ``rules/`` to frozen rules: strict, with inheritance.

A round extends its predecessor: of every file it says only what changed. Within a section a key
replaces its rules as a whole; ``null`` takes them away. A benchmark that was given a new name is
``like`` the one it was. ``defaults`` are fields of every rule of a section that does not say them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mlperf_pkg.errors import RulebookError, UserError
from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.rulebook.braces import expand_braces
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, TARGETS
from mlperf_pkg.rulebook.formula import compile_formula, names_in_all
from mlperf_pkg.rulebook.model import (
    DIVISIONS,
    Benchmark,
    Epochs,
    Joined,
    Round,
    Rule,
    Rules,
    Runs,
    version_of,
)

SECTIONS = ("common", *DIVISIONS)
_ROUND_FIELDS = {
    "round",
    "extends",
    "ruleset",
    "submission_date",
    "benchmarks",
    "normalised",
    "source",
    "defaults",
    "simulation",
}
_BENCHMARK_FIELDS = {
    "like",
    "runs",
    "target",
    "convergence",
    "source",
    "variants",
    "joined",
    "defaults",
    "simulation",
}
_PLAIN_FIELDS = {
    "code",
    "source",
    "message",
    "needed",
    "hint",
    "occurs",
    "formula",
    "nth_since",
    "first",
    "reached",
    "fatal",
}
_RULE_FIELDS = _PLAIN_FIELDS | {"basis", "severity", "reaches", "tensors"} | CONSTRAINTS.keys()

_KEYED_FIELDS = ("always", "values")  # of a section ``simulation``

COMPILED = "compiled.msgpack"  # made of all files of the rulebook by rulebook.compile
Document = dict[str, Any]


def read_yaml(path: Path) -> Document:
    """The mapping in a YAML file of the rulebook.

    It is taken from ``COMPILED`` where that has this very text, which is ten times faster.

    Raises:
        RulebookError: it is no YAML, has a repeated key, or is not a mapping.
    """
    data = path.read_bytes()
    compiled = _compiled().get(data)
    document = _parsed(path, data) if compiled is None else msgspec.msgpack.decode(compiled)
    if not isinstance(document, dict):
        raise RulebookError(f"{path}: not a mapping")
    return document


@lru_cache
def _compiled() -> Mapping[bytes, msgspec.Raw]:
    """What the files of the rulebook hold, by their texts."""
    path = data_folder("rules") / COMPILED
    kind = dict[bytes, msgspec.Raw]
    return msgspec.msgpack.decode(path.read_bytes(), type=kind) if path.is_file() else {}


def _parsed(path: Path, data: bytes) -> Any:
    from mlperf_pkg.rulebook.strictyaml import parse  # noqa: PLC0415 - slow to import

    document = parse(path, data)
    formulas = list(_formulas(document))
    names = names_in_all(formulas)
    for formula in formulas:
        try:
            compile_formula(formula, names)
        except ValueError as error:
            raise RulebookError(f"{path}: {error}") from error
    return document


def _formulas(document: Any) -> Iterator[str]:
    """Yield every formula of a rule in a document; those of ``simulation`` are no conditions."""
    if isinstance(document, dict) and isinstance(document.get("formula"), str):
        yield document["formula"]
    if isinstance(document, dict):
        document = [part for name, part in document.items() if name != "simulation"]
    if isinstance(document, list):
        for part in document:
            yield from _formulas(part)


@lru_cache
def rounds(usage: str) -> tuple[str, ...]:
    """The rounds that the rulebook has for a usage, oldest first."""
    folder = data_folder("rules") / usage
    names = [entry.name for entry in folder.iterdir() if (entry / "round.yaml").is_file()]
    return tuple(sorted(names, key=version_of))


@lru_cache
def usages() -> tuple[str, ...]:
    """The usages that the rulebook has: training, and later hpc."""
    folder = data_folder("rules")
    return tuple(sorted({path.parent.parent.name for path in folder.glob("*/*/round.yaml")}))


def benchmarks_of(usage: str, name: str) -> tuple[str, ...]:
    """The benchmarks of one of the ``rounds``; its rules are not read."""
    return tuple(_inherited(usage, name, "round")["benchmarks"])


def submission_date(usage: str, name: str) -> date:
    """The day of submission of one of the ``rounds``; its rules are not read."""
    return date.fromisoformat(str(_inherited(usage, name, "round")["submission_date"]))


@lru_cache
def load_round(usage: str, name: str) -> Round:
    """The rules of a round that hold for every benchmark.

    Raises:
        UserError: the rulebook has no such usage or round.
        RulebookError: a file of it is wrong.
    """
    if usage not in usages() or name not in rounds(usage):
        known = rounds(usage) if usage in usages() else usages()
        meant = did_you_mean(name if usage in usages() else usage, known)
        raise UserError(
            f"the rulebook has no round {name!r} for {usage!r}: it has {', '.join(known)}{meant}"
        )
    document = _inherited(usage, name, "round")
    _refuse_unknown(document, _ROUND_FIELDS | set(SECTIONS), f"{usage}/{name}/round")
    benchmarks = benchmarks_of(usage, name)
    reader = _RuleReader(document, {"benchmarks": benchmarks})
    return Round(
        usage=usage,
        name=name,
        ruleset=document["ruleset"],
        submission_date=submission_date(usage, name),
        normalised=document["normalised"],
        benchmarks=benchmarks,
        sections={part: reader.section(part) for part in SECTIONS},
    )


@lru_cache
def load_benchmark(usage: str, round_name: str, name: str) -> Benchmark | None:
    """The rules of a benchmark in a round; None where the rulebook does not cover it.

    Raises:
        RulebookError: a file of it is wrong.
    """
    if name not in load_round(usage, round_name).benchmarks:
        return None
    document = _inherited(usage, round_name, name)
    if not document:
        return None
    _refuse_unknown(document, _BENCHMARK_FIELDS | set(DIVISIONS), f"{usage}/{round_name}/{name}")
    target = document["target"]
    reader = _RuleReader(document, {"target": target})
    return Benchmark(
        name=name,
        runs=Runs(**document["runs"]),
        target=target,
        unit=document["convergence"]["unit"],
        counted_by=document["convergence"]["from"],
        sections={part: reader.section(part) for part in DIVISIONS},
        variants={
            key: {value: reader.rules(rules, {}) for value, rules in choices.items()}
            for key, choices in document.get("variants", {}).items()
        },
        joined=Joined(**document["joined"]) if document.get("joined") else None,
        epochs=Epochs(**document["convergence"].get("epochs", {})),
    )


def simulation_of(usage: str, round_name: str, stem: str) -> Document:
    """Return the section ``simulation`` of a benchmark or, with ``round``, of a round.

    A field given again replaces the inherited one; in ``values`` and ``always`` only the keys
    given again replace inherited ones. ``null`` removes a field or key.
    """
    section: Document = _inherited(usage, round_name, stem).get("simulation", {})
    return section


@lru_cache
def _inherited(usage: str, round_name: str, stem: str) -> Document:
    """One file of a round, laid over that of the round it extends."""
    parent = _own(usage, round_name, "round").get("extends")
    merged = {} if parent is None else dict(_inherited(usage, parent, stem))
    own = dict(_own(usage, round_name, stem))
    if "like" in own:
        _lay_over(merged, _inherited(usage, round_name, own.pop("like")))
    _lay_over(merged, own)
    return merged


@lru_cache
def _own(usage: str, round_name: str, stem: str) -> Document:
    """What one file of a round says itself; nothing where a benchmark has none."""
    path = data_folder("rules") / usage / round_name / f"{stem}.yaml"
    return read_yaml(path) if stem == "round" or path.is_file() else {}


def _lay_over(below: Document, above: Document) -> None:
    for name, content in above.items():
        if name in SECTIONS:
            section = {**below.get(name, {}), **content}
            below[name] = {key: rules for key, rules in section.items() if rules is not None}
        elif name == "simulation":
            below[name] = _merged(below.get(name, {}), content)
        else:
            below[name] = content


def _merged(below: Document, above: Document) -> Document:
    """Return a section ``simulation`` laid over an inherited one."""
    keyed = {
        name: {
            key: value
            for key, value in {**below.get(name, {}), **above[name]}.items()
            if value is not None
        }
        for name in _KEYED_FIELDS
        if above.get(name) is not None
    }
    merged = {**below, **above, **keyed}
    return {name: value for name, value in merged.items() if value is not None}


def _refuse_unknown(document: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(document.keys() - known):
        raise RulebookError(f"rules/{where}.yaml: unknown {', '.join(unknown)}")


@lru_cache
def tensors(name: str) -> tuple[str, ...]:
    """The tensors of a model that ``weights_initialization`` must list, sorted.

    Raises:
        RulebookError: ``rules/tensors.yaml`` has no such model.
    """
    lists = read_yaml(data_folder("rules") / "tensors.yaml")
    if name not in lists:
        raise RulebookError(f"rules/tensors.yaml: no tensors of {name!r}")
    return tuple(sorted(each for pattern in lists[name] for each in expand_braces(pattern)))


class _RuleReader(Struct, frozen=True):
    """Reads the rules of one file; ``named`` is what they may cite."""

    document: Document
    named: Mapping[str, Any]

    def section(self, name: str) -> Rules:
        """The rules of a section."""
        defaults = self.document.get("defaults", {}).get(name, {})
        return self.rules(self.document.get(name, {}), defaults)

    def rules(self, section: Document, defaults: Document) -> Rules:
        """Every key's rules, whether it has one or a list."""
        return {
            key: tuple(
                self.rule(key, {**defaults, **each})
                for each in ([given] if isinstance(given, dict) else given)
            )
            for key, given in section.items()
        }

    def rule(self, key: str, fields: Document) -> Rule:
        """One rule.

        Raises:
            RulebookError: an unknown field, or no code or source.
        """
        where = f"rule {fields.get('code', '?')} of {key}"
        if unknown := sorted(fields.keys() - _RULE_FIELDS):
            raise RulebookError(f"{where}: unknown {', '.join(unknown)}")
        plain = {name: fields[name] for name in _PLAIN_FIELDS & fields.keys()}
        plain.setdefault("source", self.document.get("source"))
        if not plain.get("code") or not plain["source"]:
            raise RulebookError(f"{where}: a rule needs a code and a source")
        reaches = self._cited(fields.get("reaches"))
        if unknown := sorted((reaches or {}).keys() - TARGETS.keys()):
            raise RulebookError(f"{where}: a target cannot ask {', '.join(unknown)}")
        return Rule(
            key=key,
            basis=Basis(fields.get("basis", Basis.BOTH)),
            severity=Severity(fields.get("severity", Severity.ERROR)),
            constraints={n: self._cited(fields[n]) for n in fields if n in CONSTRAINTS},
            reaches=reaches,
            tensors=tensors(fields["tensors"]) if "tensors" in fields else None,
            **plain,
        )

    def _cited(self, given: Any) -> Any:
        """What a name such as ``target`` or ``benchmarks`` stands for."""
        return self.named.get(given, given) if isinstance(given, str) else given
