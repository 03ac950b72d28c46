"""The rulebook against mlperf-logging: they agree today, and any change of either is named."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.rulebook.load import load_round
from tests.helpers.rulesets import WITH_RULESET, only_rounds_with_ruleset
from tests.helpers.upstream import change, copied
from tests.tools.upstream.differences import (
    LEDGER,
    Accepted,
    Difference,
    accepted,
    differences_from,
)

RULES = "compliance_checker"
NEWEST = "training_6.1.0"
OFFICIAL = official_folder()
ENTRIES = accepted(LEDGER)


@pytest.fixture(autouse=True, scope="module")
def _rounds_with_ruleset() -> Iterator[None]:
    with only_rounds_with_ruleset():
        yield


@pytest.fixture
def newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the ruleset of 6.1, with which that round alone is compared."""
    copy = copied(tmp_path)
    for folder in (copy / RULES).iterdir():
        if folder.name != NEWEST:
            shutil.rmtree(folder)
    names = {"training": ("6.1",), "hpc": ()}
    monkeypatch.setattr("tests.tools.upstream.differences.rounds", names.__getitem__)
    return copy


def remaining(folder: Path, entries: Sequence[Accepted] = ENTRIES) -> list[Difference]:
    """Return the differences that are not accepted."""
    return differences_from(folder, entries)


def short(difference: Difference) -> tuple[str, str, str, str]:
    return difference.kind, difference.round, difference.key, difference.file


# ---- today --------------------------------------------------------------------------------


def test_the_installed_mlperf_logging_has_our_rules() -> None:
    assert remaining(OFFICIAL) == []


@pytest.fixture(scope="module")
def unaccepted() -> list[Difference]:
    return remaining(OFFICIAL, [])


def test_every_accepted_difference_still_exists_and_has_a_reason(
    unaccepted: list[Difference],
) -> None:
    assert {(item.kind, item.key, item.rulebook) for item in unaccepted} == {
        ("rule", entry.key, entry.rulebook) for entry in ENTRIES
    }
    assert [entry for entry in ENTRIES if len(entry.why) < 20] == []


def test_what_was_accepted_holds_for_both_sides_of_a_key(unaccepted: list[Difference]) -> None:
    others: list[dict[str, Any]] = [{"rulebook": ("x",)}, {"upstream": ("x",)}, {"key": "x"}]
    entries = [replace(entry, **other) for other in others for entry in ENTRIES]
    assert remaining(OFFICIAL, entries) == unaccepted


# ---- a changed rule file ------------------------------------------------------------------

# file, what is there, what stands there instead; round, key, what only upstream and only we ask
CHANGES: dict[str, tuple[str, str, str, str, str, tuple[str, ...], tuple[str, ...]]] = {
    "a bound": (
        "training_2.0.0/open_rnnt.yaml",
        "v['value'] < 1.0",
        "v['value'] <= 1.0",
        "2.0",
        "eval_accuracy",
        ("one record: value <= 1.0",),
        ("one record: value < 1.0",),
    ),
    "a target in the state": (
        "training_6.1.0/closed_dlrmv4.yaml",
        "'target_accuracy': 0.75",
        "'target_accuracy': 0.76",
        "6.1",
        "eval_accuracy",
        ("one record: value >= 0.76",),
        ("one record: value >= 0.75",),
    ),
    "how often": (
        "hpc_3.0.0/closed_openfold.yaml",
        "NAME:  swa_enabled\n    REQ:   EXACTLY_ONE",
        "NAME:  swa_enabled\n    REQ:   AT_LEAST_ONE",
        "3.0",
        "swa_enabled",
        ("at least once",),
        ("once",),
    ),
    "an unknown requirement": (
        "hpc_3.0.0/closed_openfold.yaml",
        "NAME:  swa_decay_rate\n    REQ:   EXACTLY_ONE",
        "NAME:  swa_decay_rate\n    REQ:   AT_MOST_ONE",
        "3.0",
        "swa_decay_rate",
        ("AT_MOST_ONE",),
        ("once",),
    ),
    "an option of a list": (
        "training_0.7.0/closed_transformer.yaml",
        "['adam', 'lazy_adam']",
        "['adam', 'lazy_adam', 'sgd']",
        "0.7",
        "opt_name",
        ("value in ['adam', 'lazy_adam', 'sgd']",),
        ("value in ['adam', 'lazy_adam']",),
    ),
    "a name in the metadata": (
        "training_4.0.0/common.yaml",
        "('first_epoch_num' in v['metadata']) |",
        "('first_epoch' in v['metadata']) |",
        "4.0",
        "block_stop",
        ("'first_epoch' in metadata or 'samples_count' in metadata",),
        ("'first_epoch_num' in metadata or 'samples_count' in metadata",),
    ),
    "an order of records": (
        "training_3.0.0/common.yaml",
        "\"not s['init_stopped']\"",
        "\"not s['run_stopped']\"",
        "3.0",
        "init_start",
        ("not seen('run_stop')",),
        ("not seen('init_stop')",),
    ),
    "a limit of time": (
        "training_1.0.0/common.yaml",
        "(30*60*1e3)",
        "(25*60*1e3)",
        "1.0",
        "init_stop",
        ("ll.timestamp - earliest('init_start') < 1500000.0",),
        ("ll.timestamp - earliest('init_start') < 1800000.0",),
    ),
    "a formula": (
        "training_6.1.0/closed_gpt_oss_20b.yaml",
        "1_200_000 - s[",
        "1_300_000 - s[",
        "6.1",
        "opt_learning_rate_decay_steps",
        ("value == 1300000.0 - opt_learning_rate_warmup_steps",),
        ("value == 1200000.0 - opt_learning_rate_warmup_steps",),
    ),
    "a tensor": (
        "training_1.1.0/closed_rnnt.yaml",
        "'pre_rnn', ",
        "",
        "1.1",
        "the whole log",
        (
            (
                "sorted(collected(weights_initialization.metadata.tensor)) =="
                " sorted(['dec_rnn', 'joint_enc', 'joint_net', 'joint_pred', 'post_rnn',"
                " 'pred_embed'])"
            ),
        ),
        (
            (
                "sorted(collected(weights_initialization.metadata.tensor)) =="
                " sorted(['dec_rnn', 'joint_enc', 'joint_net', 'joint_pred', 'post_rnn',"
                " 'pre_rnn', 'pred_embed'])"
            ),
        ),
    ),
    "an optimizer's hyperparameter": (
        "training_2.1.0/closed_resnet_lars.yaml",
        "v['value'] == 0.0001",
        "v['value'] == 0.0002",
        "2.1",
        "lars_opt_end_learning_rate",
        ("value == 0.0002",),
        ("value == 0.0001",),
    ),
    "a key more": (
        "training_5.0.0/closed_rgat.yaml",
        "- KEY:\n    NAME:  opt_name",
        "- KEY:\n    NAME: fan_out\n    REQ: EXACTLY_ONE\n- KEY:\n    NAME: opt_name",
        "5.0",
        "fan_out",
        ("once",),
        (),
    ),
    "a key less": (
        "training_5.1.0/closed_flux1.yaml",
        "opt_gradient_clip_norm",
        "opt_gradient_clip_value",
        "5.1",
        "opt_gradient_clip_norm",
        (),
        ("once", "value == 1.0"),
    ),
    "code that cannot be followed": (
        "training_6.1.0/closed_qwen35_397b_grpo.yaml",
        "] += s['global_batch_size']",
        "] += 2 * s['global_batch_size']",
        "6.1",
        "eval_accuracy",
        (
            (
                "does if v['metadata']['samples_count'] == s['next_validation_samples']:\n   "
                " s['next_validation_samples'] += 2 * s['global_batch_size']"
            ),
            "metadata.samples_count == s['next_validation_samples']",
        ),
        (
            (
                "metadata.samples_count == global_batch_size * (math.ceil(2.5 + 3840.0 /"
                " global_batch_size) + nth)"
            ),
        ),
    ),
    "a state that does not begin": (
        "training_2.1.0/closed_rnnt.yaml",
        "'initialized_tensors': []",
        "",
        "2.1",
        "weights_initialization",
        ("does s['initialized_tensors'] += [v['metadata']['tensor']]",),
        (),
    ),
    "not an expression": (
        "training_6.0.0/closed_llama31_8b.yaml",
        "v['value'] == 0.9",
        "v['value'] == = 0.9",
        "6.0",
        "opt_adamw_beta_1",
        ("v['value'] == = 0.9",),
        ("value == 0.9",),
    ),
}


def test_changed_rules_are_named_and_nothing_else(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    for file, old, new, *_ in CHANGES.values():
        change(folder, f"{RULES}/{file}", old, new)
    changed = {(item.file, item.key): item for item in remaining(folder)}
    renamed = f"{RULES}/training_5.1.0/closed_flux1.yaml", "opt_gradient_clip_value"
    at_the_end = f"{RULES}/training_2.1.0/closed_rnnt.yaml", "the whole log"
    expected = {(f"{RULES}/{file}", key) for file, _, _, _, key, _, _ in CHANGES.values()}
    assert set(changed) == expected | {renamed, at_the_end}
    for name, (file, _, _, round_, key, theirs, ours) in CHANGES.items():
        item = changed[f"{RULES}/{file}", key]
        assert (item.kind, item.round) == ("rule", round_), name
        assert (item.upstream, item.rulebook) == (theirs, ours), name


def test_a_difference_names_the_file_and_all_runs_that_it_concerns(newest: Path) -> None:
    change(newest, f"{RULES}/{NEWEST}/common.yaml", "config_filename", "config_file")
    more, less = sorted(remaining(newest), key=lambda difference: difference.key)
    assert short(more) == ("rule", "6.1", "config_file", f"{RULES}/training_6.1.0/common.yaml")
    assert short(less) == ("rule", "6.1", "config_filename", f"{RULES}/training_6.1.0")
    assert len(more.where) == len(less.where) == 14
    assert more.where[0] == "closed deepseekv3_671b"


def test_spelling_is_not_a_difference(newest: Path) -> None:
    file = f"{RULES}/{NEWEST}/closed_llama31_8b.yaml"
    change(newest, file, "\" v['value'] == 0.95 \"", "\"(v['value']) == .950\"")
    assert remaining(newest) == []


# ---- what is around the rules -------------------------------------------------------------


def test_what_is_around_the_rules_is_named(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    meta, points = "benchmark_meta.py", "rcp_checker/training_4.0.0/rcps_gnn.json"
    shutil.copytree(copy / RULES / "training_6.1.0", copy / RULES / "training_99.0.0")
    shutil.rmtree(copy / RULES / "training_0.7.0")
    change(copy, meta, "'rnnt',\n        'unet3d',\n    ],\n    '1.1'", "],'1.1'")
    change(copy, meta, "'flux1': 10", "'flux1': 5")
    (copy / points).unlink()
    differences = {short(item): (item.upstream, item.rulebook) for item in remaining(copy)}
    for name, sides in (("99.0", [True, False]), ("0.7", [False, True])):
        place = ("ruleset", name, f"{name}.0", f"{RULES}/training_{name}.0")
        assert list(map(bool, differences.pop(place))) == sides
    runs = {short_of: sides for short_of, sides in differences.items() if short_of[0] == "runs"}
    assert runs == {
        ("runs", round_, "flux1", meta): (("5 runs",), ("10 runs",))
        for usage, round_ in WITH_RULESET
        if "flux1" in load_round(usage, round_).benchmarks
    }
    assert differences.keys() - runs.keys() == {
        ("benchmarks", "1.0", "rnnt", meta),
        ("benchmarks", "1.0", "unet3d", meta),
        ("reference", "4.0", "gnn", points),
    }


# ---- what cannot be read ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- KEY: [", ""),
        *((text, ": not a block") for text in ("- KEY: text", "- KEY:\n    REQ: X", "- KEY")),
    ],
)
def test_a_rule_file_laid_out_otherwise(newest: Path, text: str, message: str) -> None:
    path = newest / RULES / NEWEST / "common.yaml"
    path.write_text(f"{path.read_text('utf-8')}\n{text}\n", "utf-8")
    with pytest.raises(UserError, match=f"{NEWEST}/common.yaml{message}"):
        remaining(newest)


def test_tables_of_benchmarks_laid_out_otherwise(newest: Path) -> None:
    change(newest, "benchmark_meta.py", "_ALL_RESULT_FILE_COUNTS", "_COUNTS")
    with pytest.raises(UserError, match="_ALL_RESULT_FILE_COUNTS is missing"):
        remaining(newest)
