"""``mlperf-pkg rules``: its exit status and what it prints."""

import json
from typing import Any

import pytest
from click.testing import Result

from tests.helpers import program


def call(*arguments: str) -> Result:
    """Call it as part of the program: called alone, it would keep a help option without -h."""
    return program.call("rules", *arguments)


def output(*arguments: str, status: int = 0) -> str:
    result = call(*arguments)
    assert result.exit_code == status
    return result.output


def document(*arguments: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(output(*arguments, "--format", "json"))
    return parsed


# ---- list ---------------------------------------------------------------------------------


def test_list_shows_all_rounds_of_all_usages() -> None:
    text = output("list")
    assert "MLPerf HPC 1.0" in output("list", "--round", "1.0")
    assert text.index("MLPerf Training") < text.index("MLPerf HPC")
    assert "\n0.7    2020-06-26  0.7.0    bert, dlrm," in text
    assert "MLPerf HPC" not in output("list", "--usage", "training")


def test_list_shows_the_benchmarks_of_a_round() -> None:
    arguments = ("list", "--round", "v2.0", "--usage", "training")
    lines = output(*arguments).splitlines()
    assert lines[0] == "MLPerf Training 2.0, submission 2022-05-20, ruleset 2.0.0"
    assert "unet3d     40    4+4   epochs   at least 0.908" in lines
    answer = document(*arguments)
    (round_,) = answer["rounds"]
    assert (answer["format"], round_["submission_date"]) == (
        "mlperf-pkg/rules-list/1",
        "2022-05-20",
    )
    bert = {"name": "bert", "runs": 10, "dropped": 1, "unit": "samples"}
    assert {**bert, "target": "at least 0.72 and below 1.0"} in round_["benchmarks"]


# ---- show ---------------------------------------------------------------------------------


def test_show_explains_a_rule() -> None:
    lines = output("show", "bert111").splitlines()
    assert lines[0] == "BERT111: eval_accuracy"
    assert "MLPerf Training, Closed bert" in lines
    assert "source    training_rules, Quality measure; mlperf-logging, ruleset 0.7.0" in lines
    assert "target    bert in 5.0: at least 0.72 and below 1.0" in lines
    assert "Example of round 5.0:" in lines
    assert lines[-1].startswith(":::MLLOG {")


NEAREST = [
    (("show", "SEED11"), "did you mean SEED101?"),
    (("show", "bret"), "did you mean bert?"),
    (
        ("list", "resnet", "--round", "5.1"),
        "5.1 has no benchmark 'resnet'; the last round of resnet was 4.0",
    ),
    (
        ("list", "bert", "--benchmark", "ssd"),
        "two benchmarks, bert and ssd: name only one",
    ),
    (("list", "5.1", "5.0"), "two rounds, 5.0 and 5.1: name only one"),
    (
        ("show", "BERT111", "--round", "5.1"),
        "no rule BERT111; the rule exists in 0.7, from 1.0 to 5.0",
    ),
    (("show", "lr_rates", "--round", "5.1"), "round 5.1 has no rule lr_rates; the rule exists"),
    (("show", "SET101", "--round", "5.2"), "there is no round '5.2'"),
    (("show", "SET101", "--set", "max_steps=1"), "need a benchmark; SET101 is not a benchmark"),
    (("list", "zzzz", "--round", "hpc"), "there is no round 'hpc'; expected one of 0.7, "),
    (("list", "--round", "v"), "there is no round 'v'; expected one of 0.7, "),
    (("list", "--round", "5.1,5.0"), "there is no round '5.1,5.0'; did you mean 5.1?"),
    (("diff", f"{'9' * 5000}.0", "5.0"), ".0' of training; expected one of 0.7, "),
]


@pytest.mark.parametrize(("arguments", "message"), NEAREST)
def test_what_was_meant(arguments: tuple[str, ...], message: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


SAME = [
    (("list", "5.1"), ("list", "--round", "5.1")),
    (("list", "bert", "--round", "4.0"), ("list", "--benchmark", "bert", "--round", "4.0")),
    (("list", "4.0", "bert"), ("list", "--benchmark", "bert", "--round", "4.0")),
    (("list", "Bert", "v4.0"), ("list", "--benchmark", "bert", "--round", "4.0")),
    (("show", "bert"), ("list", "--benchmark", "bert")),
    (("show", "bert", "--round", "4.0"), ("list", "--benchmark", "bert", "--round", "4.0")),
    (("show", "Opt_Name"), ("show", "opt_name")),
]


@pytest.mark.parametrize(("short", "long"), SAME)
def test_shorter_ways_to_ask(short: tuple[str, ...], long: tuple[str, ...]) -> None:
    assert document(*short) == document(*long)


def test_show_lists_the_rules_of_a_key() -> None:
    text = output("show", "opt_weight_decay")
    assert text.startswith("opt_weight_decay: 11 rules\n\nMLPerf Training\n  SSD105 ")
    assert "\n  GPT137    Closed gpt3 from 3.0 to 4.1: where logged, 0.1 [rules]\n" in text
    assert "\nMLPerf HPC\n" in text


IN_ONE_ROUND = [
    (
        "BERT111",
        "4.0",
        "\n  in 4.0: at least once, in the metadata epoch_num, in one of the records at",
    ),
    ("BERT111", "4.0", "\nExample of round 4.0:\n"),
    (
        "opt_weight_decay",
        "5.1",
        "\n  SSD105   Closed retinanet in 5.1: once, 0.0\n",
    ),
    ("SEED101", "5.1", "\nin 5.1    part of the written rules\n"),
    (
        "SEED101",
        "3.0",
        "\nin 3.0    not yet part of the written rules; only the official checker may",
    ),
    ("SEED", "1.0", "\nSEED104  note, advice    a repeated seed"),
]


@pytest.mark.parametrize(("name", "round_", "part"), IN_ONE_ROUND)
def test_show_in_one_round(name: str, round_: str, part: str) -> None:
    assert part in output("show", name, "--round", round_)


def test_a_rule_in_one_round_as_json() -> None:
    rules = document("show", "opt_weight_decay", "--round", "2.0")["rules"]
    assert {(rule["from"], rule["to"]) for rule in rules} == {("2.0", "2.0")}
    assert "SEED101" not in output("show", "SEED", "--round", "1.0")


def test_show_the_rules_of_open() -> None:
    assert document("show", "bert", "--division", "open") == document(
        "list", "bert", "--division", "open"
    )


GROUPS = [
    ("fixed", "max_steps", "1,200,000"),
    ("fixed", "dropout", "0.0 [rules, warning]"),
    ("constrained", "gradient_accumulation_steps", "above 0"),
    ("constrained", "opt_end_learning_rate", "0.1 * opt_base_learning_rate [rules, warning]"),
    ("free", "global_batch_size", ""),
    ("freed", "max_steps", ""),
]


@pytest.mark.parametrize(("group", "key", "words"), GROUPS)
def test_what_is_fixed_free_and_constrained(group: str, key: str, words: str) -> None:
    answer = document("show", "llama31_8b", "--round", "5.1", "--hyperparameters")
    assert answer[group][key] == words


def test_what_is_fixed_free_and_constrained_as_text() -> None:
    lines = output("show", "resnet", "--round", "4.0", "--hyperparameters").splitlines()
    assert lines[1] == "resnet: hyperparameters"
    assert [line for line in lines if line.startswith(("F", "C"))] == [
        "Fixed in Closed",
        "Constrained in Closed",
        "Free in Closed",
        "Fixed or constrained in Open",
        "Free only in Open",
    ]
    assert "  lars_epsilon (opt_name lars)                             0.0" in lines
    assert lines[lines.index("Fixed or constrained in Open") + 1] == "  none"


# ---- diff ---------------------------------------------------------------------------------


def test_diff() -> None:
    assert output("diff", "2.0", "v2.1") == (
        "MLPerf Training 2.0 -> 2.1 (submission date 2022-05-20 -> 2022-10-14)\n\nScores are now"
        " normalised if a result set converges faster than the reference.\n\nClosed bert\n  -"
        " opt_epsilon: once\n  + opt_lamb_epsilon: once [official]\n\nReference convergence points"
        " (olympic mean of the reference runs)\n  bert, in samples\n    ~ batch size 448:"
        " 2,621,696 (20 runs) -> 2,414,421 (23 runs)\n  ssd, in epochs\n    + batch size 1,280:"
        " 6.667 (20 runs)\n    + batch size 2,048: 7.889 (20 runs)\n\nUnchanged: dlrm, maskrcnn,"
        " minigo, resnet, rnnt, unet3d\n"
    )


def test_diff_as_json() -> None:
    answer = document("diff", "4.1", "5.0")
    assert answer["renamed"] == {"gnn": "rgat", "ssd": "retinanet"}
    assert [benchmark["name"] for benchmark in answer["added"]] == ["llama31_405b"]
    assert answer["changes"][0]["codes"] == ["RUN101"]
    assert "init_checkpoint_step" in answer["added"][0]["keys"]
