"""The rulebook in prose."""

import re
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.rulebook import explain
from mlperf_pkg.rulebook.explain import (
    benchmark_layers,
    common_layers,
    effective,
    histories,
    loaded,
    requirement,
    rulebook_codes,
)
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Rule

RULE = Rule("X101", "lr", "somewhere")

WORDS: list[tuple[dict[str, Any], str]] = [
    ({"occurs": "once"}, "once"),
    ({"occurs": {"or": "epoch_start"}}, "at least once, or epoch_start"),
    ({"occurs": {"at_least": 2}}, "at least 2 times"),
    ({"constraints": {"equals": "adam"}}, 'where logged, "adam"'),
    ({"occurs": "once", "constraints": {"one_of": ["a", 1]}}, 'once, one of "a", 1'),
    ({"occurs": "once", "constraints": {"type": "integer", "at_least": 0}}, "once, an integer and at least 0"),
    ({"constraints": {"metadata": ["a", "b"], "above": 0}}, "where logged, above 0, metadata with a and b"),
    ({"constraints": {"after": ["init_start"], "before": ["run_start"]}}, "where logged, after init_start, before run_start"),
    ({"constraints": {"same_as": "lr"}}, "where logged, the value of lr, logged before it"),
    ({"formula": "value >= 2.0 * other"}, "where logged, at least 2 * other"),
    ({"formula": "value > 1.0", "needed": "more than one"}, "where logged, more than one"),
    ({"constraints": {"equals": 1}, "formula": "a < b"}, "where logged, 1 and a is below b"),
    ({"first": True, "constraints": {"before": ["run_start"]}}, "where logged, in the first record, before run_start"),
    ({"occurs": "once", "tensors": ("a", "b")}, "once, naming each of 2 tensors once"),
    ({"occurs": "at_least_once", "reaches": {"at_least": 0.7}}, "at least once, reaching at least 0.7"),
]  # fmt: skip


def test_what_is_asked() -> None:
    for fields, words in WORDS:
        assert requirement(replace(RULE, **fields)) == words


BAD = re.compile(r"^$|^where logged$|, ,|math\.|&&|\|\||==|double\(|int\(|metadata\.|previous\.")


def test_every_rule_is_told_in_words() -> None:
    texts = {
        (code, requirement(span.rule))
        for code in rulebook_codes()
        for history in histories(code)
        for span in history.spans
    }
    assert len(texts) > 500
    assert [text for text in texts if BAD.search(text[1]) or text[1] != text[1].strip()] == []


def test_targets_and_runs_in_words() -> None:
    unet3d = loaded(load_round("training", "2.0"), "unet3d")
    assert explain.target(unet3d) == "at least 0.908"
    assert explain.runs(unet3d.runs) == "40 runs, the fastest 4 and slowest 4 dropped"


# ---- where and since when -----------------------------------------------------------------

# code; usage, where, and the rounds of each span
HISTORIES: list[tuple[str, list[tuple[str, tuple[str, ...], list[str]]]]] = [
    ("BERT113", [("training", ("Closed bert",), ["from 2.1 to 5.0"])]),
    ("BERT111", [("training", ("Closed bert",), ["in 0.7", "from 1.0 to 5.0"])]),
    ("RN118", [("training", ("Closed resnet with opt_name lars",), ["from 0.7 to 4.0"])]),
    ("RUN101", [("training", ("every run",), ["from 0.7 to 4.1", "in 5.0", "from 5.1 on"]), ("hpc", ("every run",), ["from 1.0 on"])]),
    ("RUN139", [("training", ("every run",), ["from 6.1 on"])]),
    ("RUN141", [("hpc", ("every run",), ["from 1.0 to 2.0"])]),
    ("GNN101", [("training", ("Closed gnn",), ["from 4.0 to 4.1"]), ("training", ("Closed rgat",), ["from 5.0 to 5.1"])]),
]  # fmt: skip


def test_histories() -> None:
    for code, expected in HISTORIES:
        rows = [
            (history.usage, history.where, [span.words for span in history.spans])
            for history in histories(code)
        ]
        assert rows == expected


# ---- layers -------------------------------------------------------------------------------


def test_the_layers_of_a_run() -> None:
    round_ = load_round("training", "2.0")
    resnet = loaded(round_, "resnet")
    closed = [*common_layers(round_, "closed"), *benchmark_layers(resnet, "closed")]
    of_resnet = [
        "Closed resnet" + choice for choice in ("", " with opt_name lars", " with opt_name sgd")
    ]
    assert [layer.name for layer in closed] == ["every run", "Closed", *of_resnet]
    opened = [*common_layers(round_, "open"), *benchmark_layers(resnet, "open")]
    assert [layer.name for layer in opened] == ["every run", "Open", "Open resnet"]
    rules = {layer.name: layer.rules.keys() for layer in effective(closed)}
    replaced = {"eval_accuracy", "init_stop", "run_start"} - rules["every run"]
    assert (replaced, "eval_accuracy" in rules["Closed resnet"]) == (
        {"eval_accuracy", "init_stop"},
        True,
    )
