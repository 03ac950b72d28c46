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


@pytest.fixture(autouse=True, scope="module")
def _rounds_with_ruleset() -> Iterator[None]:
    with verify_rounds_with_ruleset():
        yield


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
        "formula": None,
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
        ("DSV107", "No example: the rule depends on other lines"),
        ("RCP101", "RCP101: convergence faster than the reference allows"),
        ("SYS101", "source    submission_rules,"),
        ("SET103", "basis     official: the official checker rejects what the written rules"),
        ("SET103", "unless    a warning if the set is not judged"),
        ("RCP102", "severity  warning: no verdict fails"),
        (
            "SEED101",
            "unless    basis official if the round is earlier than 4.1\n          a warning if",
        ),
        ("LLAMAL124", "formula   math.abs(value - 0.00008 * global_batch_size / 1152.0)"),
        (
            "LLAMAL134",
            "where logged, 8e-5 * global_batch_size / 1152, to the last\n    bit [official]",
        ),
        (
            "BERT111",
            "metadata with epoch_num, reaching at least 0.712, or\n    0.706 from a batch size of 8192 on, and below 1.0\n",
        ),
        ("RUN121", "mlperf-logging, rulesets 1.0.0, 3.0.0\n"),
        ("RUN104", "Example of round 4.0:"),
        ("SSD105", "Example of round 5.1:"),
    ],
)
def test_show_tells(code: str, part: str) -> None:
    assert part in output("show", code)


NEAREST = [
    (("show", "SEED11"), "did you mean SEED101?"),
    (("show", "bret"), "did you mean bert?"),
    (("show", "opt_weigth_decay"), "did you mean opt_weight_decay?"),
    (("show", "zzzz"), "a code looks like SET101, a key like opt_name, a benchmark like bert"),
    (
        ("list", "resnet", "--round", "5.1"),
        "round 5.1 has no benchmark 'resnet'; resnet ended in 4.0",
    ),
    (("list", "bret"), "the rulebook has no benchmark 'bret'; did you mean bert?"),
    (("list", "5.11"), "the rulebook has no round '5.11'; did you mean 5.1?"),
    (("list", "bert", "--benchmark", "ssd"), "two benchmarks, bert and --benchmark ssd: name one"),
    (("list", "zzzz", "--round", "hpc"), "the rulebook has no round 'hpc': it has 0.7, "),
]


@pytest.mark.parametrize(("arguments", "message"), NEAREST)
def test_what_was_meant(arguments: tuple[str, ...], message: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


SAME = [
    (("list", "5.1"), ("list", "--round", "5.1")),
    (("list", "v2.0"), ("list", "--round", "2.0")),
    (("list", "bert"), ("list", "--benchmark", "bert")),
    (("list", "bert", "--round", "4.0"), ("list", "--benchmark", "bert", "--round", "4.0")),
    (("show", "bert"), ("list", "--benchmark", "bert")),
    (("show", "BERT"), ("list", "--benchmark", "bert")),
    (("show", "Opt_Name"), ("show", "opt_name")),
]


@pytest.mark.parametrize(("short", "long"), SAME)
@pytest.mark.parametrize("format_", ["text", "json"])
def test_shorter_ways_to_ask(short: tuple[str, ...], long: tuple[str, ...], format_: str) -> None:
    assert output(*short, "--format", format_) == output(*long, "--format", format_)


def test_show_lists_the_rules_of_a_key() -> None:
    text = output("show", "opt_weight_decay")
    assert text.startswith("opt_weight_decay: 11 rules\n\nMLPerf Training\n  SSD105 ")
    assert "\n  SSD105    Closed ssd from 2.0 to 4.1: once, 0.0\n" in text
    assert "\n  GPT137    Closed gpt3 from 3.0 to 4.1: where logged, 0.1 [rules]\n" in text
    assert "\nMLPerf HPC\n" in text


def test_show_lists_the_rules_of_a_key_as_json() -> None:
    answer = document("show", "opt_weight_decay")
    assert answer["key"] == "opt_weight_decay"
    assert {rule["key"] for rule in answer["rules"]} == {"opt_weight_decay"}


def test_show_lists_a_family_of_codes() -> None:
    lines = output("show", "SEED").splitlines()
    assert lines[0] == "CODE     REPORTED AS     MEANING"
    assert "SEED104  note, advice    a repeated seed from another source line" in lines
    assert output("show", "seed").startswith("seed: ")
    assert [code["code"] for code in document("show", "SEED")["codes"]][:2] == [
        "SEED101",
        "SEED102",
    ]


def test_show_has_the_exceptions_of_a_code_as_json() -> None:
    answer = document("show", "SET101")
    assert (answer["basis"], answer["severity"]) == ("both", "error")
    assert answer["unless"][0] == {
        "when": "the logs are named one by one or --partial expects more runs",
        "basis": None,
        "severity": "note",
    }


# ---- diff ---------------------------------------------------------------------------------


def test_diff() -> None:
    assert output("diff", "2.0", "v2.1") == (
        "MLPerf Training 2.0 -> 2.1 (submission 2022-05-20 -> 2022-10-14)\n"
        "\n"
        "Closed bert\n"
        "  - opt_epsilon: once\n"
        "  + opt_lamb_epsilon: once [official]\n"
        "\n"
        "Reference convergence points (olympic mean of the reference runs)\n"
        "  bert, in samples\n"
        "    ~ batch size 448: 2,621,696 (20 runs) -> 2,414,421 (23 runs)\n"
        "  ssd, in epochs\n"
        "    + batch size 1,280: 6.667 (20 runs)\n"
        "    + batch size 2,048: 7.889 (20 runs)\n"
        "\n"
        "Unchanged: dlrm, maskrcnn, minigo, resnet, rnnt, unet3d\n"
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
    assert "init_checkpoint_step" in answer["added"][0]["keys"]


def test_diff_names_the_keys_of_a_new_benchmark() -> None:
    text = output("diff", "5.1", "6.0", "--benchmark", "gpt_oss_20b")
    assert "\n      keys: global_batch_size, max_sequence_length, opt_name,\n" in text
    assert "\n    + batch size 16: 194,560 (20 runs)\n" in text


def test_diff_has_reference_points_as_json() -> None:
    points = document("diff", "2.0", "2.1", "--benchmark", "bert")["reference_points"]
    assert points == [
        {
            "benchmark": "bert",
            "unit": "samples",
            "batch_size": 448,
            "old": {"runs": 20, "mean": pytest.approx(2621696, abs=1)},
            "new": {"runs": 23, "mean": pytest.approx(2414421, abs=1)},
        }
    ]


def test_a_benchmark_with_other_points_is_not_unchanged() -> None:
    last = output("diff", "5.1", "6.0").splitlines()[-1]
    assert last == "Unchanged: dlrm_dcnv2"


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


def test_a_file_is_written_and_overwritten_only_with_force(tmp_path: Path) -> None:
    file = tmp_path / "rounds.json"
    assert output("list", "-o", str(file)) == ""
    assert file.read_text("utf-8") == output("list", "--format", "json")
    assert call("list", "-o", str(file)).exit_code == 2
    assert call("list", "-o", str(file), "--force").exit_code == 0


def test_a_folder_that_is_no_mlperf_logging(tmp_path: Path) -> None:
    result = call("verify", "--against", str(tmp_path))
    assert result.exit_code == 2
    assert "not an mlperf_logging: it has no folder compliance_checker/" in result.stderr


GPT3 = "rcp_checker/training_4.1.0/rcps_gpt3.json"


@pytest.fixture
def mistaken(tmp_path: Path) -> Path:
    """An mlperf_logging with one new mistake, and without one that is known."""
    folder = copied(tmp_path / "mlperf_logging")
    change(folder, GPT3, "1157627904", "11576279040")
    change(folder, GPT3, "13790871552", "1207959552")
    return folder


def verified(*arguments: str) -> tuple[int, str]:
    result = program.call("rules", "verify", *arguments)
    return result.exit_code, result.stdout or result.stderr


def test_known_mistakes_are_counted() -> None:
    status, text = verified()
    assert status == 0
    assert text.partition("\n")[2] == (
        "Its reference points have 83 known mistakes (rules/reference_points.yaml):\n"
        "  KIND        POINTS  PUBLISHED SETS\n"
        "  outlier     1       3\n"
        "  few_runs    13      37\n"
        "  equal_runs  53      443\n"
        "  misnamed    3       5\n"
        "  unused      13      0\n"
    )


def test_new_mistakes_and_stale_ones_fail(mistaken: Path) -> None:
    status, text = verified("--against", str(mistaken))
    assert status == 1
    assert text.splitlines()[1:] == [
        "training 4.1, outlier: gpt3_ref_1536 (batch size 1536)",
        "  rcp_checker/training_4.1.0/rcps_gpt3.json",
        "  - expected        all within 3 times the median",
        "  + mlperf-logging  11,576,279,040, 9.4 times the median",
        "",
        "rules/reference_points.yaml:15: gpt3_ref_3072 of training 4.1 gpt3 no longer has the"
        " mistake outlier; remove it",
        "",
        "1 mistake in its reference points is new, 1 is gone",
    ]


def test_json_has_new_stale_and_known_mistakes(mistaken: Path) -> None:
    status, text = verified("--against", str(mistaken), "--format", "json")
    points = json.loads(text)["reference_points"]
    assert status == 1
    assert [(item["kind"], item["point"], item["batch_size"]) for item in points["new"]] == [
        ("outlier", "gpt3_ref_1536", 1536)
    ]
    (stale,) = points["stale"]
    assert (stale["point"], stale["file"]) == ("gpt3_ref_3072", "rules/reference_points.yaml")
    assert stale["at"] == ["Oracle/1536xBM.GPU.H100.8", "Oracle/3072xBM.GPU.H100.8"]
    assert len(points["known"]) == 82


def test_a_difference_of_the_rules_leaves_known_mistakes_out(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    change(folder, "compliance_checker/training_6.0.0/closed_llama31_8b.yaml", "0.95", "0.96")
    status, text = verified("--against", str(folder))
    assert (status, "reference points" in text) == (1, False)


def test_a_file_that_is_not_json_is_named(mistaken: Path) -> None:
    (mistaken / GPT3).write_text("{", "utf-8")
    status, text = verified("--against", str(mistaken))
    assert status == 2
    assert text.startswith(f"mlperf-pkg: error: {mistaken / GPT3}: not reference points: ")
