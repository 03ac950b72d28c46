"""The files under ``rules/``: what the metaschema and the loader ask of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.compile import compiled
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, TARGETS
from mlperf_pkg.rulebook.load import COMPILED, load_benchmark, load_round, read_yaml, rounds, usages
from mlperf_pkg.rulebook.model import Rule, Rules
from mlperf_pkg.rulebook.strictyaml import parse

RULES = data_folder("rules")
FILES = sorted(path for usage in usages() for path in (RULES / usage).rglob("*.yaml"))
SCHEMA = json.loads((RULES / "metaschema.json").read_text("utf-8"))
EVERY_ROUND = [(usage, name) for usage in usages() for name in rounds(usage)]
TRAINING = [
    "0.7",
    "1.0",
    "1.1",
    "2.0",
    "2.1",
    "3.0",
    "3.1",
    "4.0",
    "4.1",
    "5.0",
    "5.1",
    "6.0",
    "6.1",
]


def test_compiled_rules_are_those_of_the_files() -> None:
    assert (RULES / COMPILED).read_bytes() == compiled(RULES), "run: make rules"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(RULES)))
def test_what_is_compiled_is_what_is_written(path: Path) -> None:
    written = parse(path, path.read_bytes())
    if "submission_date" in written:
        written["submission_date"] = str(written["submission_date"])
    assert repr(read_yaml(path)) == repr(written)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(RULES)))
def test_file_obeys_the_metaschema(path: Path) -> None:
    document = json.loads(json.dumps(read_yaml(path), default=str))
    assert not [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(SCHEMA).iter_errors(document)
    ]


def test_metaschema_is_a_schema_that_forbids_the_unknown() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert not [place for place, part in _objects(SCHEMA, "") if not _closed(part)]


def _objects(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        if part.get("type") == "object":
            yield place, part
        for name, inner in part.items():
            yield from _objects(inner, f"{place}/{name}")
    elif isinstance(part, list):
        for inner in part:
            yield from _objects(inner, place)


def _closed(schema: dict[str, Any]) -> bool:
    """Unknown names are refused, or what stands under any name has a schema."""
    return schema.get("additionalProperties", True) is not True


def test_metaschema_knows_the_vocabulary_of_the_loader() -> None:
    words = SCHEMA["$defs"]["rule"]["properties"].keys()
    assert words >= CONSTRAINTS.keys()
    assert SCHEMA["$defs"]["constraints"]["properties"].keys() <= TARGETS.keys()


def test_rounds_are_those_of_the_official_checker() -> None:
    assert list(rounds("training")) == TRAINING
    assert list(rounds("hpc")) == ["1.0", "2.0", "3.0"]


@pytest.mark.parametrize(("usage", "name"), EVERY_ROUND)
def test_every_benchmark_of_a_round_has_rules(usage: str, name: str) -> None:
    loaded = {b: load_benchmark(usage, name, b) for b in load_round(usage, name).benchmarks}
    assert not [benchmark for benchmark, rules in loaded.items() if rules is None]


@pytest.mark.parametrize(("usage", "name"), EVERY_ROUND)
def test_ruleset_and_date_follow_the_round(usage: str, name: str) -> None:
    loaded = load_round(usage, name)
    earlier = [load_round(usage, each) for each in rounds(usage) if each != name]
    assert loaded.ruleset == f"{name}.0"
    assert loaded.submission_date not in [each.submission_date for each in earlier]


@pytest.mark.parametrize("usage", usages())
def test_submission_dates_ascend(usage: str) -> None:
    dates = [load_round(usage, name).submission_date for name in rounds(usage)]
    assert dates == sorted(dates)


def test_a_code_is_of_one_key_and_division_in_all_rounds() -> None:
    places: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for usage, part, rule in _every_rule():
        where = (part, rule.key) if not rule.code.startswith("RUN") else (rule.key,)
        places[usage, rule.code].add(where)
    assert not {code: keys for code, keys in places.items() if len(keys) > 1}


def test_a_key_keeps_its_codes_in_all_rounds() -> None:
    """Of one benchmark's key, no two rounds call the same rule by different codes."""
    codes: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for usage, name in EVERY_ROUND:
        for benchmark in load_round(usage, name).benchmarks:
            rules = load_benchmark(usage, name, benchmark)
            assert rules is not None
            for part, section in rules.sections.items():
                for key, several in section.items():
                    codes[usage, benchmark, part, key].append(tuple(r.code for r in several))
    assert not {
        where: known
        for where, known in codes.items()
        if any(first[:1] != second[:1] for first in known for second in known)
    }


def _every_rule() -> Iterator[tuple[str, str, Rule]]:
    for usage, name in EVERY_ROUND:
        round_ = load_round(usage, name)
        for part, section in round_.sections.items():
            yield from ((usage, part, rule) for rule in _flat(section))
        for benchmark in round_.benchmarks:
            rules = load_benchmark(usage, name, benchmark)
            assert rules is not None
            for part, section in rules.sections.items():
                yield from ((usage, part, rule) for rule in _flat(section))
            for choices in rules.variants.values():
                for section in choices.values():
                    yield from ((usage, "closed", rule) for rule in _flat(section))


def _flat(section: Rules) -> Iterator[Rule]:
    return (rule for several in section.values() for rule in several)
