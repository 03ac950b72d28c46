"""Records that are only counted would not have broken a rule, one by one."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from mlperf_pkg.infra.source import Source
from mlperf_pkg.log import reader as mllog
from mlperf_pkg.log.block import Block
from mlperf_pkg.run import rules as rulecheck
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from mlperf_pkg.run.rules import RuleChecker
from tests.helpers.examples import examples

BENCHMARKS = [("2.0", "resnet"), ("2.0", "minigo"), ("5.1", "llama31_8b")]
KEYS = [
    *("init_start", "init_start", "init_stop", "run_start", "block_start", "block_stop"),
    *("eval_stop", "eval_accuracy", "weights_initialization", "epoch_start", "unknown"),
    *("eval_accuracy", "eval_accuracy", "run_stop"),
    *("actual_selfplay_games_per_generation", "global_batch_size"),
]
METADATA = [
    {},
    None,
    "epoch_num",
    {"epoch_num": 1, "samples_count": 1},
    {"epoch_num": 0, "samples_count": 0},
    {"epoch_num": 8.0, "status": "success"},
    {"epoch_num": 4, "first_epoch_num": 1, "epoch_count": 4, "samples_count": 2},
    {"first_epoch_num": 1, "epoch_count": 0},
    {"tensor": "conv0_weight", "status": "success"},
]
VALUES = [None, 1, 0.5, 0.8, 9000, "x", [1], True]
MINUTES = [0, 0, 0, 1, 2, 40, -1]

Line = tuple[str, Any, Any, int]
LINES = st.tuples(
    st.sampled_from(KEYS),
    st.sampled_from(VALUES),
    st.sampled_from(METADATA),
    st.sampled_from(MINUTES),
)
STRETCHES = st.lists(st.tuples(LINES, st.integers(1, 15)), min_size=12, max_size=40)


def log(round_: str, benchmark: str, lines: list[Line]) -> LogFile:
    named = [("submission_benchmark", benchmark), ("submission_division", "closed")]
    head: list[Line] = [(key, value, {}, 0) for key, value in named]
    text = "".join(
        ":::MLLOG "
        + json.dumps({"key": k, "value": v, "metadata": m, "time_ms": t * 60_000 + n})
        + "\n"
        for n, (k, v, m, t) in enumerate([*head, *lines])
    )
    return LogFile(Source("log.txt", text.encode()), round=round_)


def judged(file: LogFile, monkeypatch: pytest.MonkeyPatch, few: int, block: int) -> Run:
    monkeypatch.setattr(rulecheck, "_FEW", few)
    monkeypatch.setattr(mllog, "CHUNK_BYTES", block)
    return read_run(file)


@given(st.sampled_from(BENCHMARKS), STRETCHES, st.sampled_from([300, 3000, 1 << 20]))
@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_that_are_counted_break_no_rule(
    monkeypatch: pytest.MonkeyPatch,
    named: tuple[str, str],
    stretches: list[tuple[Line, int]],
    block: int,
) -> None:
    file = log(*named, [line for line, count in stretches for _ in range(count)])
    one_by_one = judged(file, monkeypatch, few=1 << 30, block=1 << 20)
    assert judged(file, monkeypatch, few=2, block=block) == one_by_one
    assert judged(file, monkeypatch, few=4, block=block) == one_by_one


def test_records_that_break_no_rule_are_not_checked_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metadata = {"first_epoch_num": 1, "epoch_count": 1}
    blocks: list[Line] = [("run_start", None, {}, 0), *[("block_start", None, metadata, 1)] * 20]
    file = log("2.0", "resnet", blocks)
    quiet: list[tuple[str, bool]] = []
    is_quiet = RuleChecker._is_quiet

    def recorded(checker: RuleChecker, key: str, block: Block) -> bool:
        quiet.append((key, is_quiet(checker, key, block)))
        return quiet[-1][1]

    monkeypatch.setattr(RuleChecker, "_is_quiet", recorded)
    read_run(file)
    assert quiet == [("block_start", True)]
