"""The rulebook in prose, examples of its rules, and what changes from round to round."""

import re
from functools import cache
from io import BytesIO
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.findings import Finding
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.rulebook import explain
from mlperf_pkg.rulebook.explain import compare, example, histories, joined, loaded, requirement
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Rule

RULE = Rule("X101", "lr", "somewhere")

WORDS: list[tuple[dict[str, Any], str]] = [
    ({"occurs": "once"}, "once"),
    ({"occurs": {"or": "epoch_start"}}, "at least once, or epoch_start"),
    ({"occurs": {"at_least": 2}}, "at least 2 times"),
    ({"constraints": {"equals": "adam"}}, 'where logged, "adam"'),
    ({"occurs": "once", "constraints": {"one_of": ["a", 1]}}, 'once, one of "a", 1'),
    (
        {"occurs": "once", "constraints": {"type": "integer", "at_least": 0}},
        "once, an integer and at least 0",
    ),
    (
        {"constraints": {"metadata": ["a", "b"], "above": 0}},
        "where logged, above 0, in the metadata a and b",
    ),
    (
        {"constraints": {"after": ["init_start"], "before": ["run_start"]}},
        "where logged, after init_start, before run_start",
    ),
    ({"constraints": {"same_as": "lr"}}, "where logged, the value of lr that is logged earlier"),
    ({"formula": "value >= 2.0 * other"}, "where logged, at least 2 * other"),
    ({"formula": "value > 1.0", "needed": "more than one"}, "where logged, more than one"),
    ({"constraints": {"equals": 1}, "formula": "a < b"}, "where logged, 1 and a is below b"),
    (
        {"first": True, "constraints": {"before": ["run_start"]}},
        "where logged, in the first record, before run_start",
    ),
    ({"occurs": "once", "tensors": ("a", "b")}, "once, naming each of 2 tensors once"),
    (
        {"occurs": "at_least_once", "reaches": {"at_least": 0.7}},
        "at least once, in one of the records at least 0.7",
    ),
]


@pytest.mark.parametrize(("fields", "words"), WORDS)
def test_what_is_asked(fields: dict[str, Any], words: str) -> None:
    assert requirement(replace(RULE, **fields)) == words


BAD = re.compile(r"^$|^where logged$|, ,|math\.|&&|\|\||==|double\(|int\(|metadata\.|previous\.")


def test_every_rule_is_told_in_words() -> None:
    texts = {
        (code, requirement(span.rule))
        for code in explain.rulebook_codes()
        for history in histories(code)
        for span in history.spans
    }
    assert len(texts) > 500
    assert [text for text in texts if BAD.search(text[1]) or text[1] != text[1].strip()] == []


# ---- where and since when -----------------------------------------------------------------

# code; usage, where, and the rounds of each span
HISTORIES: list[tuple[str, list[tuple[str, tuple[str, ...], list[str]]]]] = [
    ("BERT113", [("training", ("Closed bert",), ["from 2.1 to 5.0"])]),
    ("BERT111", [("training", ("Closed bert",), ["in 0.7", "from 1.0 to 5.0"])]),
    ("RN118", [("training", ("Closed resnet with opt_name lars",), ["from 0.7 to 4.0"])]),
    (
        "RUN101",
        [
            ("training", ("every run",), ["from 0.7 to 4.1", "in 5.0", "from 5.1 on"]),
            ("hpc", ("every run",), ["from 1.0 on"]),
        ],
    ),
    ("RUN139", [("training", ("every run",), ["from 6.1 on"])]),
    ("RUN141", [("hpc", ("every run",), ["from 1.0 to 2.0"])]),
    (
        "GNN101",
        [
            ("training", ("Closed gnn",), ["from 4.0 to 4.1"]),
            ("training", ("Closed rgat",), ["from 5.0 to 5.1"]),
        ],
    ),
]


@pytest.mark.parametrize(("code", "expected"), HISTORIES)
def test_histories(code: str, expected: list[tuple[str, tuple[str, ...], list[str]]]) -> None:
    rows = [
        (history.usage, history.where, [span.words for span in history.spans])
        for history in histories(code)
    ]
    assert rows == expected


# ---- layers -------------------------------------------------------------------------------


def test_the_layers_of_a_run() -> None:
    round_ = load_round("training", "2.0")
    resnet = loaded(round_, "resnet")
    closed = [*explain.common_layers(round_, "closed"), *explain.benchmark_layers(resnet, "closed")]
    of_resnet = [
        "Closed resnet" + choice for choice in ("", " with opt_name lars", " with opt_name sgd")
    ]
    assert [layer.name for layer in closed] == ["every run", "Closed", *of_resnet]
    opened = [*explain.common_layers(round_, "open"), *explain.benchmark_layers(resnet, "open")]
    assert [layer.name for layer in opened] == ["every run", "Open", "Open resnet"]
    rules = {layer.name: layer.rules.keys() for layer in explain.effective(closed)}
    replaced = {"eval_accuracy", "init_stop", "run_start"} - rules["every run"]
    assert replaced == {"eval_accuracy", "init_stop"}
    assert "eval_accuracy" in rules["Closed resnet"]


# ---- example lines: each is read, and passes the rule it is an example of ------------------------


@cache
def examples_of_all_rules() -> list[tuple[str, Rule, str]]:
    """The code, each wording and its example, which is empty for rules that have none."""
    return [
        (code, span.rule, example(span.rule, load_round(history.usage, span.until)) or "")
        for code in explain.rulebook_codes()
        for history in histories(code)
        for span in history.spans
    ]


def test_examples_are_records_of_the_key() -> None:
    findings: list[Finding] = []
    keys = []
    for code, rule, line in examples_of_all_rules():
        if line:
            (record,) = LogReader(BytesIO(line.encode()), code, findings.append)
            keys.append((code, record and record.key, rule.key))
    assert [row for row in keys if row[1] != row[2]] == []
    assert findings == []


def test_only_rules_about_several_records_have_no_example() -> None:
    rules = [(code, rule) for code, rule, line in examples_of_all_rules() if not line]
    assert [
        code
        for code, rule in rules
        if not rule.formula
        and "formula" not in (rule.reaches or {})
        and "same_as" not in rule.constraints
    ] == []


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("RUN103", '"value": "closed"'),
        ("RUN109", '"metadata": {"status": "success"}'),
        ("MRCNN110", '"value": {"BBOX": 0.377, "SEGM": 0.339}'),
        ("RNNT101", '"metadata": {"tensor": "dec_rnn"}'),
        ("CAM107", '"value": [1, 1]'),
        ("RUN124", '"value": "bert"'),
        ("LLAMAL135", '"value": 1152'),
        ("RUN106", '"event_type": "INTERVAL_START", "key": "init_start", "value": null'),
        ("RUN107", '"event_type": "INTERVAL_END", "key": "init_stop", "value": null'),
    ],
)
def test_examples(code: str, part: str) -> None:
    history = histories(code)[0]
    line = example(history.spans[-1].rule, load_round(history.usage, history.spans[-1].until))
    assert line
    assert line.startswith(":::MLLOG {")
    assert part in line


@pytest.mark.parametrize("code", ["SD109", "SD202"])
def test_an_example_of_what_is_joined_is_the_records_that_runs_log(code: str) -> None:
    """Whether or not the rule names what they are joined by."""
    (history,) = histories(code)
    span = history.spans[-1]
    lines = example(span.rule, load_round("training", span.until), joined(history, span))
    assert lines
    logged = [line.partition('"key": ')[2] for line in lines.splitlines()]
    assert [
        (record, metric)
        for record, metric in zip(logged, ("FID", "CLIP"), strict=True)
        if not record.startswith('"eval_accuracy", "value": ')
    ] == []
    assert [
        (record, metric)
        for record, metric in zip(logged, ("FID", "CLIP"), strict=True)
        if not record.endswith(f'"metadata": {{"metric": "{metric}", "samples_count": 1}}}}')
    ] == []


# ---- what changes from one round to another ------------------------------------------------------


def changes(*arguments: Any, **more: Any) -> dict[tuple[str, str], explain.RuleChange]:
    return {(item.where, item.key): item for item in compare(*arguments, **more).changes}


# rounds, where, key: what was asked, what is
CHANGES: list[tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]] = [
    ("0.7", "1.0", "Closed", "gradient_accumulation_steps", (), ("once, above 0",)),
    ("2.0", "2.1", "Closed bert", "opt_epsilon", ("once",), ()),
    ("2.0", "2.1", "Closed bert", "opt_lamb_epsilon", (), ("once [official]",)),
    (
        "1.1",
        "2.0",
        "ssd",
        "target",
        ("at least 0.23 and below 1.0",),
        ("at least 0.34 and below 1.0",),
    ),
    ("1.1", "2.0", "Closed ssd", "opt_weight_decay", ("once",), ("once, 0.0",)),
    (
        "6.0",
        "6.1",
        "every run",
        "micro_batch_size",
        ("where logged, a whole number [official]",),
        ("once, a whole number and at least 1 [official]",),
    ),
    (
        "6.0",
        "6.1",
        "Closed flux1",
        "evaluation_frequency",
        (
            "once, 262,144 [official]",
            (
                "where logged, 262,144 or 262,144 rounded up to a multiple of"
                " global_batch_size [rules]"
            ),
        ),
        ("once, 262,144 rounded up to a multiple of global_batch_size",),
    ),
]


@pytest.mark.parametrize("row", CHANGES)
def test_changes(row: tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]) -> None:
    old, new, where, key, was, now = row
    forth = changes("training", old, new)[where, key]
    assert (forth.old, forth.new) == (was, now)
    back = changes("training", new, old)[where, key]
    assert (back.old, back.new) == (now, was)
    assert set(back.codes) == set(forth.codes)


def test_one_number_is_spelled_in_two_ways() -> None:
    change = changes("training", "1.1", "2.0")["Closed ssd", "opt_learning_rate_warmup_factor"]
    assert (change.codes, change.new) == (("SSD128",), ())


def test_another_list_of_benchmarks_is_not_a_change() -> None:
    assert ("Closed", "submission_benchmark") not in changes("training", "5.1", "6.0")
    assert ("Open", "submission_benchmark") in changes("training", "2.1", "3.0")


def test_benchmarks_gone_new_and_renamed_and_one_benchmark_and_division() -> None:
    comparison = compare("training", "4.1", "5.0")
    assert comparison.gone == ["gpt3"]
    assert comparison.renamed == {"gnn": "rgat", "ssd": "retinanet"}
    assert "rgat" in comparison.unchanged
    comparison = compare("training", "1.1", "2.0", "ssd", "open")
    assert comparison.unchanged == []
    assert {item.where for item in comparison.changes} == {"Open", "ssd"}
    assert compare("training", "4.1", "5.0", "rgat").renamed == {"gnn": "rgat"}
    assert compare("training", "4.1", "5.0", "gpt3").gone == ["gpt3"]
