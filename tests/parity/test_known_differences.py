"""Each row of ``docs/parity.md`` that is about logs; and the tests that it names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.compliance_checker import mlp_compliance

from mlperf_pkg.findings import Basis, Verdict
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.helpers.rule_logs import Choice, Log, passing_log, read, to_bytes
from tests.parity import incumbent

ROOT = Path(__file__).parents[2]
NONE: Choice = frozenset()


@pytest.fixture(autouse=True)
def cached() -> Iterator[None]:
    with incumbent.cached_rules():
        yield


def _official(log: Log | bytes, usage: str, name: str, folder: Path) -> incumbent.Official:
    file = folder / "result_0.txt"
    file.write_bytes(log if isinstance(log, bytes) else to_bytes(log))
    return incumbent.check(file, usage, f"{name}.0")


def _with(log: Log, key: str, **changes: Any) -> Log:
    return [{**record, **changes} if record["key"] == key else record for record in log]


def _warnings(run: Run) -> set[tuple[str, Basis]]:
    return {(f.code, f.basis) for f in run.findings if f.severity == "warning"}


def _errors(run: Run) -> set[tuple[str, Basis]]:
    return {(f.code, f.basis) for f in run.findings if f.severity == "error"}


def test_a_death_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    log = passing_log("training", "2.0", "bert", "closed", NONE)
    log = _with(log, "eval_accuracy", value=None)
    assert "TypeError" in str(_official(log, "training", "2.0", tmp_path).crash)
    run = read(to_bytes(log), "training", "2.0")
    assert run.verdicts.official is Verdict.FAIL
    assert "TypeError" in str(run.crash)


def test_a_death_does_not_spill_into_the_next_log(tmp_path: Path) -> None:
    """The checker's queue of rule files is global: what a death leaves in it judges the next."""
    good = passing_log("training", "2.0", "bert", "closed", NONE)
    bad = _with(good, "submission_division", value="nowhere")
    file = tmp_path / "result_0.txt"
    file.write_bytes(to_bytes(good))
    mlp_compliance.enqueued_configs[:] = ["training_2.0.0/closed_ssd.yaml"]
    checker = mlp_compliance.make_checker("training", "2.0.0", quiet=True, werror=False)
    assert not checker.check_file(str(file), "training_2.0.0/common.yaml")
    assert _official(good, "training", "2.0", tmp_path).passes
    assert read(to_bytes(bad), "training", "2.0").crash
    assert not read(to_bytes(good), "training", "2.0").findings


def test_a_benchmark_called_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker enqueues the same rule file for ever, here nine times."""
    files = []

    def enqueue(file: str) -> None:
        files.append(file)
        if files.count(file) < 9:
            mlp_compliance.enqueued_configs.append(file)

    monkeypatch.setattr(mlp_compliance, "enqueue_config", enqueue)
    log = passing_log("training", "2.0", "bert", "closed", NONE)
    log = _with(log, "submission_benchmark", value="common")
    assert not _official(log, "training", "2.0", tmp_path).passes
    assert files.count("training_2.0.0/closed_common.yaml") == 9
    assert ("RUN119", Basis.BOTH) in _errors(read(to_bytes(log), "training", "2.0"))


def test_final_values_against_values_so_far(tmp_path: Path) -> None:
    """The checker reads in order; the rules do not ask for one."""
    log = passing_log("training", "6.1", "flux1", "closed", NONE)
    sizes = [record for record in log if record["key"] == "global_batch_size"]
    rest = [record for record in log if record["key"] != "global_batch_size"]
    late = [*rest[:-1], *sizes, rest[-1]]
    assert not _official(late, "training", "6.1", tmp_path).passes
    run = read(to_bytes(late), "training", "6.1")
    assert _errors(run) == {("FLUX102", Basis.OFFICIAL)}
    assert run.verdicts.rules is Verdict.PASS


def test_learning_rate_of_405b_to_the_last_bit(tmp_path: Path) -> None:
    log = passing_log("training", "5.0", "llama31_405b", "closed", NONE)
    log = _with(log, "opt_base_learning_rate", value=8.0000001e-05)
    assert not _official(log, "training", "5.0", tmp_path).passes
    run = read(to_bytes(log), "training", "5.0")
    assert _errors(run) == {("LLAMAL134", Basis.OFFICIAL)}
    assert run.verdicts.rules is Verdict.PASS


@pytest.mark.parametrize(
    ("name", "benchmark", "crashes"), [("3.0", "gpt3", True), ("4.0", "llama2_70b_lora", False)]
)
def test_open_runs_without_a_rule_file(
    name: str, benchmark: str, crashes: bool, tmp_path: Path
) -> None:
    log = passing_log("training", name, "bert", "open", NONE)
    log = _with(log, "submission_benchmark", value=benchmark)
    official = _official(log, "training", name, tmp_path)
    run = read(to_bytes(log), "training", name)
    assert not official.passes
    assert ((official.crash is not None), (run.crash is not None)) == (crashes, crashes)
    assert ("RUN124", Basis.OFFICIAL) in _errors(run)


def test_first_boundary_of_ssd(tmp_path: Path) -> None:
    """The rule file names CHECK twice, and YAML keeps the last."""
    log = passing_log("training", "1.0", "ssd", "closed", NONE)
    log = _with(log, "opt_learning_rate_decay_boundary_epochs", value=[41, 50])
    assert _official(log, "training", "1.0", tmp_path).passes
    assert _errors(read(to_bytes(log), "training", "1.0")) == set()
    assert _warnings(read(to_bytes(log), "training", "1.0")) == {("SSD118", Basis.RULES)}


def test_an_hour_to_initialise_gpt3(tmp_path: Path) -> None:
    log = passing_log("training", "4.0", "gpt3", "closed", NONE)
    stop = [record["key"] for record in log].index("init_stop")
    log = [{**r, "time_ms": r["time_ms"] + 2_400_000 * (n >= stop)} for n, r in enumerate(log)]
    assert not _official(log, "training", "4.0", tmp_path).passes
    run = read(to_bytes(log), "training", "4.0")
    assert _errors(run) == {("RUN121", Basis.OFFICIAL)}


@pytest.mark.parametrize(("key", "code"), [("run_start", "RUN151"), ("run_stop", "RUN152")])
def test_two_clocks_with_equal_values(key: str, code: str, tmp_path: Path) -> None:
    """Required EXACTLY_ONE, but of equal values the checker only warns."""
    log = passing_log("training", "5.1", "rgat", "closed", NONE)
    twice = [copy for r in log for copy in ([r, r] if r["key"] == key else [r])]
    assert _official(twice, "training", "5.1", tmp_path).passes
    assert _errors(read(to_bytes(twice), "training", "5.1")) == {(code, Basis.RULES)}


def test_success_that_the_last_evaluation_denies(tmp_path: Path) -> None:
    log = passing_log("training", "5.1", "rgat", "closed", NONE)
    number = [record["key"] for record in log].index("eval_accuracy")
    log.insert(number + 1, {**log[number], "value": 0.3, "metadata": {"epoch_num": 0.1}})
    assert _official(log, "training", "5.1", tmp_path).passes
    (finding,) = read(to_bytes(log), "training", "5.1").findings
    assert (finding.code, finding.severity, finding.basis) == ("RUN154", "warning", Basis.RULES)


def test_who_submits_in_round_5_0(tmp_path: Path) -> None:
    log = passing_log("training", "5.0", "rgat", "closed", NONE)
    log = [record for record in log if record["key"] != "submission_org"]
    assert _official(log, "training", "5.0", tmp_path).passes
    assert _errors(read(to_bytes(log), "training", "5.0")) == set()
    assert _warnings(read(to_bytes(log), "training", "5.0")) == {("RUN101", Basis.ADVICE)}


@pytest.mark.parametrize(
    ("name", "benchmark", "key", "code"),
    [
        ("0.7", "bert", "eval_accuracy", "BERT202"),
        ("6.0", "gpt_oss_20b", "opt_name", "OSS204"),
        ("6.1", "dlrmv4", "eval_accuracy", "DLRMV219"),
    ],
)
def test_open_runs_are_free(name: str, benchmark: str, key: str, code: str, tmp_path: Path) -> None:
    log = _with(passing_log("training", name, benchmark, "open", NONE), key, value=0.1)
    assert not _official(log, "training", name, tmp_path).passes
    run = read(to_bytes(log), "training", name)
    assert _errors(run) == {(code, Basis.OFFICIAL)}
    assert run.verdicts.rules is Verdict.PASS


@pytest.mark.parametrize(
    ("name", "benchmark", "key", "code"),
    [
        ("1.1", "bert", "weights_initialization", "BERT112"),
        ("2.1", "bert", "opt_lamb_epsilon", "BERT113"),
    ],
)
def test_rulesets_that_changed_after_their_round(
    name: str, benchmark: str, key: str, code: str, tmp_path: Path
) -> None:
    log = passing_log("training", name, benchmark, "closed", NONE)
    log = [record for record in log if record["key"] != key]
    assert not _official(log, "training", name, tmp_path).passes
    assert _errors(read(to_bytes(log), "training", name)) == {(code, Basis.OFFICIAL)}


def test_fixed_hyperparameters_that_no_rule_file_asks_for(tmp_path: Path) -> None:
    log = passing_log("training", "5.1", "llama2_70b_lora", "closed", NONE)
    log = _with(log, "lora_alpha", value=16)
    assert _official(log, "training", "5.1", tmp_path).passes
    assert _errors(read(to_bytes(log), "training", "5.1")) == set()
    assert _warnings(read(to_bytes(log), "training", "5.1")) == {("LORA113", Basis.RULES)}


def test_numbers_that_are_not_json(tmp_path: Path) -> None:
    log = passing_log("training", "1.0", "rnnt", "closed", NONE)
    log = _with(log, "opt_gradient_clip_norm", value=float("inf"))
    assert b"Infinity" in to_bytes(log)
    assert _official(log, "training", "1.0", tmp_path).passes
    run = read(to_bytes(log), "training", "1.0")
    assert [(f.code, f.severity) for f in run.findings] == [("LOG106", "note")]


def test_two_records_on_one_line(tmp_path: Path) -> None:
    """The checker reads only the last; the rules see both."""
    lines = to_bytes(passing_log("training", "2.0", "bert", "closed", NONE)).splitlines(True)
    log = lines[0].rstrip() + b"".join(lines[1:])
    assert not _official(log, "training", "2.0", tmp_path).passes
    run = read_run(LogFile(Source("result_0.txt", log), "training", "2.0"))
    assert run.verdicts.official is Verdict.FAIL
    assert run.verdicts.rules is Verdict.PASS


def test_every_test_that_the_document_names_exists() -> None:
    text = (ROOT / "docs" / "parity.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 15
    missing = [
        (file, name)
        for file, name in named
        if f"def {name}(" not in (ROOT / file).read_text("utf-8") and name
    ]
    assert not missing
