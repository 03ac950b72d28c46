"""``mlperf-pkg rules``: its exit status and what it prints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from mlperf_pkg.rulebook.upstream import verify
from tests.helpers import program
from tests.helpers.rulesets import verify_rounds_with_ruleset
from tests.helpers.upstream import change, copied


@pytest.fixture(autouse=True)
def _rounds_with_ruleset() -> Iterator[None]:
    with verify_rounds_with_ruleset():
        yield


COMMANDS = ("list", "show", "diff", "verify")


def call(*arguments: str) -> Result:
    """Call it as part of the program: called alone, it would keep a help option without -h."""
    return program.call("rules", *arguments)


def output(*arguments: str) -> str:
    result = call(*arguments)
    assert (result.exception, result.exit_code) == (None, 0)
    return result.output


def document(*arguments: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(output(*arguments, "--format", "json"))
    return parsed


# ---- all ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_fits_a_terminal(name: str) -> None:
    result = call(name, "--help")
    assert result.exit_code == 0
    assert f"mlperf-pkg rules {name}" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


WIDE = (":::MLLOG", "  compliance_checker/")


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("list", "--round", "3.1"),
        ("list", "--benchmark", "dlrmv4"),
        ("show", "RUN119"),
        ("show", "QWEN121"),
        ("show", "TREE102"),
        ("diff", "5.1", "6.0"),
        ("diff", "0.7", "1.0"),
        ("verify",),
    ],
    ids=" ".join,
)
def test_output_fits_a_terminal(arguments: tuple[str, ...]) -> None:
    lines = output(*arguments).splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith(WIDE)] == []
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--round", "9.9"),
        ("list", "--benchmark", "gpt2"),
        ("list", "--benchmark", "gpt3", "--round", "2.0"),
        ("list", "--usage", "hpc", "--benchmark", "bert"),
        ("show", "BERT1"),
        ("diff", "2.0", "9.9"),
        ("diff", "2.0", "2.1", "--usage", "hpc"),
        ("diff", "2.0", "2.1", "--benchmark", "gpt2"),
    ],
    ids=" ".join,
)
def test_what_there_is_not_is_a_user_error(arguments: tuple[str, ...]) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("mlperf-pkg: error: ")
    assert "bug in mlperf-pkg" not in result.stderr


# ---- list ---------------------------------------------------------------------------------


def test_list_shows_all_rounds_of_all_usages() -> None:
    text = output("list")
    assert text.index("MLPerf Training") < text.index("MLPerf HPC")
    assert "\n0.7    2020-06-26  0.7.0    bert, dlrm," in text
    assert "MLPerf HPC" not in output("list", "--usage", "training")


def test_list_shows_the_benchmarks_of_a_round() -> None:
    lines = output("list", "--round", "v2.0", "--usage", "training").splitlines()
    assert lines[0] == "MLPerf Training 2.0, submission 2022-05-20, ruleset 2.0.0"
    assert "unet3d     40    4+4   epochs   at least 0.908" in lines


def test_list_shows_a_round_of_both_usages() -> None:
    text = output("list", "--round", "1.0")
    assert "MLPerf Training 1.0" in text
    assert "MLPerf HPC 1.0" in text


def test_list_shows_the_rules_of_a_benchmark_one_a_line() -> None:
    lines = output("list", "--benchmark", "resnet", "--round", "2.0").splitlines()
    assert "target: at least 0.759 and below 1.0" in lines
    assert "Closed resnet with opt_name lars" in lines
    assert "  RN112   lars_opt_end_learning_rate: once, 0.0001" in lines


def test_list_takes_the_newest_round_of_a_benchmark() -> None:
    assert output("list", "--benchmark", "bert").startswith("MLPerf Training 5.0,")
    assert output("list", "--benchmark", "oc20").startswith("MLPerf HPC 3.0,")


def test_list_shows_a_division() -> None:
    text = output("list", "--benchmark", "bert", "--division", "open")
    assert "BERT201" in text
    assert "BERT101" not in text


def test_list_as_json() -> None:
    answer = document("list", "--round", "2.0", "--usage", "training")
    (round_,) = answer["rounds"]
    assert answer["format"] == "mlperf-pkg/rules-list/1"
    assert round_["submission_date"] == "2022-05-20"
    assert {
        "name": "bert",
        "runs": 10,
        "dropped": 1,
        "unit": "samples",
        "target": "at least 0.72 and below 1.0",
    } in round_["benchmarks"]


def test_list_of_rules_as_json() -> None:
    answer = document("list", "--benchmark", "bert", "--round", "2.0")
    assert (answer["round"], answer["name"], answer["runs"]) == ("2.0", "bert", 10)
    assert {
        "where": "Closed bert",
        "code": "BERT101",
        "key": "global_batch_size",
        "asked": "once",
        "basis": "both",
        "severity": "error",
        "source": "training_rules, Hyperparameters",
    } in answer["rules"]


# ---- show ---------------------------------------------------------------------------------


def test_show_explains_a_rule() -> None:
    lines = output("show", "bert111").splitlines()
    assert lines[0] == "BERT111: eval_accuracy"
    assert "MLPerf Training, Closed bert" in lines
    assert "source    training_rules, Quality measure" in lines
    assert "target    bert in 5.0: at least 0.72 and below 1.0" in lines
    assert "Example of round 5.0:" in lines
    assert lines[-1].startswith(":::MLLOG {")


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("RUN101", "from 5.1 on: once, a value"),
        ("RUN122", "basis     rules: the written rules require it"),
        ("RUN124", "fatal     the official checker crashes"),
        ("RUN124", "message   the official checker has no rule file for Open runs of gpt3"),
        ("DSV107", "No example: whether a line meets the rule"),
        ("RCP101", "RCP101: convergence faster than the reference allows"),
        ("SYS101", "source    submission_rules,"),
    ],
)
def test_show_tells(code: str, part: str) -> None:
    assert part in output("show", code)


def test_show_names_the_nearest_code() -> None:
    assert "SEED101" in call("show", "SEED11").stderr


def test_show_as_json() -> None:
    rule = document("show", "BERT113")["rules"][0]
    assert (rule["from"], rule["to"], rule["where"]) == ("2.1", "5.0", ["Closed bert"])
    assert rule["example"].startswith(":::MLLOG ")
    assert document("show", "SET101")["title"] == "wrong number of runs"


# ---- diff ---------------------------------------------------------------------------------


def test_diff() -> None:
    assert output("diff", "2.0", "v2.1") == (
        "MLPerf Training 2.0 -> 2.1 (submission 2022-05-20 -> 2022-10-14)\n"
        "\n"
        "Closed bert\n"
        "  - opt_epsilon: once\n"
        "  + opt_lamb_epsilon: once [official]\n"
        "\n"
        "Unchanged: dlrm, maskrcnn, minigo, resnet, rnnt, ssd, unet3d\n"
    )


def test_diff_tells_what_keys_have_in_common_once() -> None:
    text = output("diff", "5.1", "6.0")
    assert "  - retinanet\n  - rgat\n" in text
    assert "  + tensor_parallelism, pipeline_parallelism, context_parallelism,\n" in text


def test_diff_tells_old_and_new_words() -> None:
    text = output("diff", "1.1", "2.0", "--benchmark", "ssd", "--division", "closed")
    assert "\nssd\n  ~ target\n      was at least 0.23" in text
    assert "  ~ opt_weight_decay\n      was once\n      now once, 0.0\n" in text
    assert "Open" not in text


def test_diff_as_json() -> None:
    answer = document("diff", "4.1", "5.0")
    assert answer["renamed"] == {"gnn": "rgat", "ssd": "retinanet"}
    assert [benchmark["name"] for benchmark in answer["added"]] == ["llama31_405b"]
    assert answer["changes"][0]["codes"] == ["RUN101"]


# ---- verify -------------------------------------------------------------------------------


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """An mlperf_logging that asks something else of one key."""
    folder = copied(tmp_path / "mlperf_logging")
    change(folder, "compliance_checker/training_6.0.0/closed_llama31_8b.yaml", "0.95", "0.96")
    return folder


def test_verify_finds_no_difference() -> None:
    text = output("verify")
    assert text.startswith("The rulebook's ")
    assert "agree with mlperf-logging " in text
    assert document("verify")["differences"] == []


def test_verify_fails_and_names_each_difference(other: Path) -> None:
    result = call("verify", "--against", str(other))
    assert result.exit_code == 1
    assert result.output == (
        "training 6.0, rule: opt_adamw_beta_2\n"
        "  compliance_checker/training_6.0.0/closed_llama31_8b.yaml\n"
        "  in closed llama31_8b\n"
        "  - rulebook        value == 0.95\n"
        "  + mlperf-logging  value == 0.96\n"
        "\n"
        f"1 difference between the rulebook and {other}\n"
    )


def test_verify_as_json(other: Path) -> None:
    result = call("verify", "--against", str(other), "--format", "json")
    (difference,) = json.loads(result.output)["differences"]
    assert result.exit_code == 1
    assert (difference["key"], difference["upstream"]) == ("opt_adamw_beta_2", ["value == 0.96"])


def test_what_people_accept_is_no_difference_any_more(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "upstream.json"
    shutil.copy(verify.ledger_path(), ledger)
    monkeypatch.setattr(verify, "ledger_path", lambda: ledger)
    against = ("verify", "--against", str(other))
    assert call(*against, "--accept", "Both are too small to matter.").exit_code == 0
    assert call(*against).exit_code == 0
    assert "value == 0.96" not in ledger.read_text("utf-8")


def test_a_broken_ledger_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "upstream.json"
    ledger.write_text('[{"key": "x"}]', "utf-8")
    monkeypatch.setattr(verify, "ledger_path", lambda: ledger)
    result = call("verify")
    assert result.exit_code == 2
    assert result.stderr.startswith("mlperf-pkg: error: ")
    assert "upstream.json" in result.stderr


# ---- exit statuses ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("list", "--round", "2.0"), 0),
        (("verify",), 0),
        (("show", "BERT1"), 2),
        (("diff", "2.0"), 2),
        (("diff", "2.0", "9.9"), 2),
        (("list", "--division", "half"), 2),
    ],
    ids=str,
)
def test_exit_status(arguments: tuple[str, ...], status: int) -> None:
    assert call(*arguments).exit_code == status


def test_a_folder_that_is_no_mlperf_logging(tmp_path: Path) -> None:
    result = call("verify", "--against", str(tmp_path))
    assert result.exit_code == 2
    assert "not an mlperf_logging: it has no folder compliance_checker/" in result.stderr


def test_exit_status_of_a_difference(other: Path) -> None:
    assert call("verify", "--against", str(other)).exit_code == 1
