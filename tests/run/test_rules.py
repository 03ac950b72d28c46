"""Records that are only counted would not have broken a rule, one by one."""

import json
import math
from collections.abc import Callable
from functools import partial
from itertools import chain, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from mlperf_pkg.infra.source import Source
from mlperf_pkg.log import reader as mllog
from mlperf_pkg.log.block import HAS_SCAN, Block, ScannedBlock
from mlperf_pkg.rulebook.formula import StepMemory
from mlperf_pkg.run import rules as rulecheck
from mlperf_pkg.run.formulas import PassingFormulas
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from mlperf_pkg.run.rules import RuleChecker
from tests.helpers.examples import examples
from tests.helpers.logs import (
    doubled,
    edited,
    good_log,
    joined,
    moved,
    records,
    run_of,
    without,
)

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


@pytest.mark.parametrize(
    ("minutes", "counted"),
    [([1] * 20, [19]), ([2] * 9 + [1] * 11, [18]), ([*range(20, 0, -1)], [])],
    ids=["at one time", "two clocks", "each earlier than those before it"],
)
def test_records_that_break_no_rule_are_not_checked_one_by_one(
    monkeypatch: pytest.MonkeyPatch, minutes: list[int], counted: list[int]
) -> None:
    metadata = {"first_epoch_num": 1, "epoch_count": 1}
    blocks: list[Line] = [("block_start", None, metadata, minute) for minute in minutes]
    file = log("2.0", "resnet", [("run_start", None, {}, 0), *blocks])
    quiet: list[int] = []
    are_quiet = RuleChecker._are_quiet

    def recorded(checker: RuleChecker, key: str, indexes: list[int], block: Block) -> bool:
        answer = are_quiet(checker, key, indexes, block)
        quiet.append(len(indexes) if answer else 0)
        return answer

    monkeypatch.setattr(RuleChecker, "_are_quiet", recorded)
    read_run(file)
    assert quiet == counted


@pytest.mark.skipif(not HAS_SCAN, reason="_scan was not compiled")
def test_a_series_of_which_not_all_is_reported_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size: Line = ("global_batch_size", 16, {}, 0)
    start: Line = ("run_start", None, {}, 0)

    def run_with(evaluations: int) -> Run:
        at = [("eval_accuracy", 4.0, {"samples_count": 7 * n}, 1) for n in range(evaluations)]
        return judged(
            log("5.1", "llama31_8b", [size, start, *at]), monkeypatch, few=4, block=1 << 20
        )

    alone = run_with(1000)
    run_with(2500)
    assert run_with(1000) == alone
    assert max(finding.count for finding in alone.findings) > 900


# ---- what logs begin with, and their series, are remembered --------------------------------

LOGS = {
    "resnet": (joined(records(good_log())), "2.0"),
    "bert": (joined(records(good_log("bert"))), "2.0"),
    "llama": (joined(records(good_log("llama31_8b", round_="5.1"))), "5.1"),
    "diffusion": (joined(records(good_log("stable_diffusion", round_="3.1"))), "3.1"),
}
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "another seed": partial(edited, key="seed", value=7),
    "a seed that is not a number": partial(edited, key="seed", value="x"),
    "a slow initialisation": partial(edited, key="init_stop", time_ms=1.9e12),
    "a start at an impossible time": partial(edited, key="run_start", time_ms=1),
    "a wrong value": partial(edited, key="global_batch_size", value=-1),
    "true for one": partial(edited, key="global_batch_size", value=True),
    "other metadata": partial(edited, key="submission_org", metadata=None),
    "a key less": partial(without, key="cache_clear"),
    "no start": partial(without, key="run_start"),
    "a key twice": partial(doubled, key="global_batch_size", value=1),
    "a header twice": partial(doubled, key="submission_benchmark"),
    "a start that is late": partial(moved, key="init_start", after="init_stop"),
    "a stop that is early": partial(moved, key="run_stop", after="init_stop"),
    "evaluations at one position": partial(
        edited, key="eval_accuracy", metadata={"epoch_num": 1, "samples_count": 1, "step_num": 1}
    ),
}


@pytest.mark.skipif(not HAS_SCAN, reason="_scan was not compiled")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize(("log", "round_"), LOGS.values(), ids=LOGS)
def test_what_other_logs_said_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
    log: bytes,
    round_: str,
    change: Callable[[bytes], bytes],
) -> None:
    changed = change(log)
    run_of(log, round_)
    remembered = [run_of(text, round_) for text in (changed, log, changed)]
    monkeypatch.setattr(ScannedBlock, "without_times", lambda *_: b"")
    monkeypatch.setattr(StepMemory, "steps", lambda *_: None)
    assert remembered == [run_of(text, round_) for text in (changed, log, changed)]


Positions = list[dict[str, Any]]
EVALUATIONS = [  # benchmarks whose rules remember steps from log to log
    ("bert", "1.0"),
    ("unet3d", "1.0"),
    ("llama31_8b", "5.1"),
    ("maskrcnn", "2.0"),
]
STEPS: dict[str, Callable[[Positions], Positions]] = {
    "as they are": list,
    "one less at the end": lambda at: at[:-1],
    "one less at the start": lambda at: at[1:],
    "only each second": lambda at: at[::2],
    "one twice": lambda at: [*at[:2], *at[1:]],
    "two in the other order": lambda at: [at[1], at[0], *at[2:]],
    "all in the other order": lambda at: at[::-1],
    "no position of the first": lambda at: [{}, *at[1:]],
    "no position of the second": lambda at: [at[0], {}, *at[2:]],
    "metadata that are a list": lambda at: [at[0], [], *at[2:]],  # type: ignore[list-item]
}


def first_at(position: Any, positions: Positions) -> Positions:
    """The positions, of which the first is another."""
    return [dict.fromkeys(positions[0], position), *positions[1:]]


for value in (0, 0.0, -0.0, True, "4", math.nan, math.inf, 10**400):
    STEPS[f"{value!r} of the first"] = partial(first_at, value)


def at_positions(log: bytes, change: Callable[[Positions], Positions]) -> bytes:
    """The log with evaluations at other positions."""
    logged = records(log)
    places = [place for place, record in enumerate(logged) if record["key"] == "eval_accuracy"]
    positions = change([logged[place]["metadata"] for place in places])
    evaluations = [{**logged[places[0]], "metadata": metadata} for metadata in positions]
    others = [record for record in logged if record["key"] != "eval_accuracy"]
    return joined(others[: places[0]] + evaluations + others[places[0] :])


@pytest.mark.parametrize(("benchmark", "round_"), EVALUATIONS)
def test_steps_of_other_logs_change_nothing(
    benchmark: str, round_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = good_log(benchmark, round_=round_)
    logs = [at_positions(log, change) for change in STEPS.values()]
    # As text, in which NaN is equal to itself.
    remembered = [repr(run_of(text, round_)) for text in chain(*product(logs, logs))]
    monkeypatch.setattr(StepMemory, "steps", lambda *_: None)
    alone = [repr(run_of(text, round_)) for text in logs]
    assert remembered == list(chain(*product(alone, alone)))


@pytest.mark.parametrize(
    ("first", "second", "is_evaluated"),
    [
        ("as they are", "as they are", False),
        ("as they are", "one less at the end", False),
        ("as they are", "only each second", True),
        ("two in the other order", "two in the other order", True),
    ],
)
def test_the_same_steps_are_not_evaluated_again(
    first: str, second: str, is_evaluated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = good_log("llama31_8b", round_="5.1")
    run_of(at_positions(log, STEPS[first]), "5.1")
    evaluated: list[object] = []
    monkeypatch.setattr(
        PassingFormulas, "_evaluate_by_position", lambda *values: evaluated.append(values)
    )
    run_of(at_positions(log, STEPS[second]), "5.1")
    assert bool(evaluated) is is_evaluated


@pytest.mark.skipif(not HAS_SCAN, reason="_scan was not compiled")
def test_what_a_log_begins_with_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log, round_ = LOGS["resnet"]
    run_of(log, round_)
    checked: list[int] = []
    check_all = RuleChecker._check_all

    def counted(checker: RuleChecker, block: Block, indexes: list[int]) -> None:
        checked.extend(indexes)
        check_all(checker, block, indexes)

    monkeypatch.setattr(RuleChecker, "_check_all", counted)
    run_of(edited(log, "seed", value=7), round_)
    keys = {record["key"] for record in records(log)[: min(checked) + 1]}
    assert {"submission_benchmark", "global_batch_size"} < keys


@pytest.mark.skipif(not HAS_SCAN, reason="_scan was not compiled")
def test_few_heads_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    log, round_ = LOGS["resnet"]
    counts: list[int] = []
    take = RuleChecker.take

    def counted(checker: RuleChecker, block: Block) -> None:
        take(checker, block)
        counts.append(len(checker.table.heads))

    monkeypatch.setattr(RuleChecker, "take", counted)
    for name in "abcdefgh":
        run_of(edited(log, "submission_org", value=name), round_)
    assert max(counts) == 4


@pytest.mark.parametrize(
    ("benchmark", "key", "metadata", "message"),
    [
        pytest.param(
            "bert",
            "eval_accuracy",
            {},
            "eval_accuracy has empty metadata; expected metadata with epoch_num",
            id="none, of a rule with a target",
        ),
        pytest.param(
            "transformer",
            "max_sequence_length",
            {"method": -1},
            "method in the metadata of max_sequence_length is -1; expected one of"
            ' "truncate", "discard"',
            id="a wrong part",
        ),
    ],
)
def test_messages_on_metadata_expect_metadata(
    benchmark: str, key: str, metadata: dict[str, Any], message: str
) -> None:
    log = edited(good_log(benchmark, round_="0.7"), key, metadata=metadata)
    assert message in {finding.text for finding in run_of(log, "0.7").findings}
