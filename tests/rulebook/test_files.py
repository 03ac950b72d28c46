"""The files under ``rules/``: what the metaschema and the loader ask of them."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from mlperf_pkg.infra.resources import data_folder, official_folder
from mlperf_pkg.rulebook import documents
from mlperf_pkg.rulebook.compile import compiled
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, OF_VALUE, TARGETS
from mlperf_pkg.rulebook.documents import file_in, read, rounds, usages
from mlperf_pkg.rulebook.explain import all_uses
from mlperf_pkg.rulebook.load import load_round, submission_date
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.validate import constraint_names, parts_of, validated
from tests.tools.upstream.differences import NOT_COVERED
from tests.tools.upstream.official import rulesets as official_rulesets

RULES = data_folder("rules")
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


@pytest.fixture(scope="module")
def compiled_files() -> dict[bytes, msgspec.Raw]:
    """What each file says, by its text."""
    return msgspec.msgpack.decode(compiled(RULES), type=dict[bytes, msgspec.Raw])


@pytest.mark.parametrize("path", sorted(RULES.rglob("*.yaml")))
def test_every_file_is_valid_and_compiled_to_what_it_says(
    compiled_files: dict[bytes, msgspec.Raw], path: Any
) -> None:
    file = file_in(RULES, path.relative_to(RULES).as_posix())
    document = validated(file, path.read_bytes())
    assert repr(msgspec.msgpack.decode(compiled_files[path.read_bytes()])) == repr(document)
    assert repr(read(file)) == repr(document), path


def test_metaschema_is_a_schema_that_forbids_the_unknown() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    objects = {
        steps: part
        for steps, part in parts_of(SCHEMA)
        if isinstance(part, dict) and part.get("type") == "object" and "if" not in steps
    }
    assert len(objects) > 10
    # Unknown names are refused, or what stands under any name has a schema.
    assert not [s for s, part in objects.items() if part.get("additionalProperties", True) is True]


def test_metaschema_has_the_constraints_that_are_implemented() -> None:
    names = {
        n: part["properties"].keys() for n, part in SCHEMA["$defs"].items() if "properties" in part
    }
    assert constraint_names() == CONSTRAINTS.keys()
    assert names["value_constraints"] == OF_VALUE.keys()
    assert names["constraints"] <= TARGETS.keys()
    assert names["rule"] - CONSTRAINTS.keys() <= {*Rule.__struct_fields__}


def test_rounds_are_those_of_the_official_checker() -> None:
    assert list(rounds("training"))[: len(TRAINING)] == TRAINING
    assert rounds("hpc")[:3] == ("1.0", "2.0", "3.0")
    rulesets = {(usage, load_round(usage, name).ruleset) for usage, name in EVERY_ROUND}
    assert rulesets >= set(official_rulesets(official_folder())) - NOT_COVERED.keys()


@pytest.mark.parametrize("usage", usages())
def test_rounds_are_submitted_in_order(usage: str) -> None:
    dates = [submission_date(usage, name) for name in rounds(usage)]
    assert dates == sorted(set(dates))


def test_a_key_keeps_its_codes_in_all_rounds() -> None:
    """Of one benchmark's key, no two rounds call the same rule by different codes."""
    codes: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for use in all_uses():
        if use.layer.benchmark and not use.layer.variant:
            codes[use.usage, use.layer.name, use.rule.key].setdefault(use.round, use.rule.code)
    assert len(codes) > 500
    assert {where: firsts for where, firsts in codes.items() if len({*firsts.values()}) > 1} == {}


@pytest.mark.parametrize("size", [0, 5, 60], ids=str)
def test_of_a_damaged_compiled_rulebook_nothing_is_read(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an installation onto a disk that was full; the YAML files say the same."""
    whole = msgspec.msgpack.encode({b"round: 1": {"round": 1}, b"round: 2" * 9: {"round": 2}})
    (tmp_path / documents.COMPILED).write_bytes(whole[:size])
    monkeypatch.setattr(documents, "data_folder", lambda _: tmp_path)
    assert documents._compiled.__wrapped__() == {}
