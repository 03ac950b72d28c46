"""Options that users of the official tools expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.config import round_name
from tests.helpers.broken_runs import SET, every_log, fast, same_seed
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set, write_submission, write_system


def report(*arguments: str | Path) -> Any:
    return json.loads(call("check", *arguments, "--format", "json").stdout)


@pytest.mark.parametrize(
    ("text", "name"),
    [("5.1", "5.1"), ("v5.1", "5.1"), ("5.1.0", "5.1"), ("v4.0.0", "4.0"), ("5.1.1", "5.1.1")],
)
def test_round_names(text: str, name: str) -> None:
    assert round_name(text) == name


@pytest.mark.parametrize(
    "arguments",
    [
        ["rules", "list", "5.1.0"],
        ["rules", "list", "--round", "5.1.0"],
        ["rules", "diff", "5.0.0", "5.1.0"],
        ["rcp", "show", "bert", "--round", "4.0.0"],
        ["system", "check", "systems", "--round", "2.0.0"],
    ],
)
def test_rulesets_are_rounds(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_system(tmp_path / "systems", division="closed")
    plain = [argument.removesuffix(".0") if "." in argument else argument for argument in arguments]
    assert call(*arguments).output == call(*plain).output
    assert call(*arguments).exit_code == 0


def test_the_round_of_a_check(tmp_path: Path) -> None:
    assert report(write_submission(tmp_path / "ACME"), "--round", "2.0.0")["round"] == "2.0"


# ---- bypasses -----------------------------------------------------------------------------


def codes(document: Any) -> set[str]:
    return {item["code"] for item in document["findings"]}


def test_rcp_bypass(tmp_path: Path) -> None:
    tree = every_log(fast, write_submission(tmp_path / "ACME"))
    failed, passed = report(tree), report(tree, "--rcp-bypass")
    assert "RCP101" in codes(failed)
    assert failed["verdict"]["official"] == "fail"
    assert "RCP102" in codes(passed)
    assert passed["verdict"]["official"] == "pass"
    (tree / "package_checker_params").write_text("rcp-bypass\n")
    assert report(tree)["findings"] == passed["findings"]


def test_seed_checker_bypass(tmp_path: Path) -> None:
    tree = every_log(same_seed, write_submission(tmp_path / "ACME"))
    assert "SEED102" in codes(report(tree))
    passed = report(tree, "--seed-checker-bypass")
    assert "SEED102" not in codes(passed)
    assert passed["verdict"]["official"] == "pass"


@pytest.mark.parametrize("loose", [True, False])
def test_bypasses_of_logs_outside_a_submission(tmp_path: Path, loose: bool) -> None:
    folder = tmp_path if loose else tmp_path / SET
    for path in write_set(folder, simulated()).iterdir():
        path.write_bytes(same_seed(fast(path.read_bytes()))) if path.is_file() else None
    assert {"RCP101", "SEED102"} <= codes(report(tmp_path))
    bypassed = codes(report(tmp_path, "--seed-checker-bypass", "--rcp-bypass"))
    assert not {"RCP101", "SEED102"} & bypassed


@pytest.mark.parametrize("flag", ["--rcp-bert-train-samples"])
def test_convergence_in_samples(tmp_path: Path, flag: str) -> None:
    """Epochs are the default, and train_samples with the flag, as with package_checker_params."""
    tree = write_submission(tmp_path / "ACME", "bert")
    plain, counted = report(tree), report(tree, flag)
    (tree / "package_checker_params").write_text("rcp-bert-train-samples\n")
    assert counted["result_sets"] == report(tree)["result_sets"]
    assert counted["result_sets"] != plain["result_sets"]


def test_score_has_them_too(tmp_path: Path) -> None:
    tree = every_log(fast, write_submission(tmp_path / "ACME"))
    flags = ("--rcp-bypass", "--seed-checker-bypass", "--rcp-bert-train-samples")
    scores = json.loads(call("score", tree, *flags, "--format", "json").stdout)
    assert scores["result_sets"][0]["rcp"]["bypassed"] is True


# ---- files --------------------------------------------------------------------------------


def test_log_output(tmp_path: Path) -> None:
    tree = every_log(same_seed, write_submission(tmp_path / "ACME"))
    log = tmp_path / "check.log"
    log.write_text("of an earlier check")
    result = call("check", tree, "--log-output", log)
    assert result.exit_code == 1
    assert result.stdout == call("check", tree).stdout
    text = log.read_text("utf-8")
    assert "INFO - official verdict: FAIL" in text
    assert "\nERROR - " in text
    assert "earlier" not in text


def test_log_output_is_not_written_into_an_input(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "ACME")
    result = call("check", tree, "--log-output", tree / "check.log")
    assert result.exit_code == 2
    assert not (tree / "check.log").exists()


def test_private_ids(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "Graphcore")
    ids, tables = tmp_path / "ids.json", tmp_path / "tables"
    arguments = ("score", tree, "--tables", tables, "--private-ids", ids)
    assert call(*arguments).exit_code == 0
    (entry,) = json.loads(ids.read_text("utf-8")).values()
    (row,) = json.loads((tables / "summary.json").read_text("utf-8"))
    assert row["private_id"] == entry["private_id"] != ""
    before = ids.read_bytes()
    assert call(*arguments, "--force").exit_code == 0
    assert ids.read_bytes() == before
    assert not list(tree.rglob("privateid.json"))


def test_private_ids_need_tables(tmp_path: Path) -> None:
    result = call("score", write_submission(tmp_path / "ACME"), "--private-ids", tmp_path / "ids")
    assert result.exit_code == 2
    assert "--private-ids needs --tables FOLDER" in result.stderr


def test_usage_of_a_description(tmp_path: Path) -> None:
    path = write_system(tmp_path / "systems", division="closed")
    result = call("system", "check", path, "--usage", "hpc")
    assert "round 3.0: the newest" in result.stdout
    assert call("system", "check", path, "--usage", "hpc", "--round", "5.1").exit_code == 2
