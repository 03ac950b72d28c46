"""Evaluations: their position, unit and values; curves of runs, from their logs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.infra import streams
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.streams import Keeper
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.run.evaluations import (
    Curve,
    CurveReader,
    Evaluation,
    PackedCurve,
    Phase,
    PhaseSpan,
    evaluation_of,
    goal,
    goals,
    position_of,
)
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run
from tests.helpers.logs import good_log, line, records, run_of


def curve_of(*lines: bytes, usage: str = "training", round_: str = "2.0", name: str = "") -> Curve:
    """The curve of a log with these lines, by the rules of a benchmark."""
    with Source("log", b"".join(lines)).open() as stream:
        log = LogReader(stream, "log", lambda _: None)
        reader = CurveReader(load_benchmark(usage, round_, name), log.line_of)
        for block in log.blocks():
            reader.take_block(block)
    return reader.curve()


def points(curve: Curve) -> list[tuple[Any, ...]]:
    return [
        (metric, evaluation.position, value)
        for evaluation in curve.evaluations
        for metric, value in evaluation.values.items()
    ]


START = line("run_start", 10)

EVALUATIONS = [
    ("bert", "2.0", line("eval_accuracy", 12, 0.7, epoch_num=500), [("", 500, 0.7)]),
    (
        "maskrcnn",
        "2.0",
        line("eval_accuracy", 12, {"BBOX": 0.3, "SEGM": 0.2}, epoch_num=4),
        [("BBOX", 4, 0.3), ("SEGM", 4, 0.2)],
    ),
    (
        "stable_diffusion",
        "4.0",
        line("eval_accuracy", 12, 0.15, samples_count=512, step_num=1, metric="CLIP"),
        [("CLIP", 512, 0.15)],
    ),
    (
        "llama31_8b",
        "5.1",
        line("eval_accuracy", 12, 3.3, epoch_num=7, samples_count=1024),
        [("", 1024, 3.3)],
    ),
    (
        "flux1",
        "5.1",
        line("averaged_validation_loss", 12, 0.6, samples_count=1024),
        [("", 1024, 0.6)],
    ),
    ("", "2.0", line("eval_error", 12, 0.1, epoch_num=3), [("", 3, 0.1)]),
    ("bert", "2.0", line("eval_accuracy", 12, "0.7", epoch_num=500), []),
    ("bert", "2.0", line("eval_accuracy", 12, float("nan"), epoch_num=500), []),
    ("bert", "2.0", line("eval_accuracy", 12, True, epoch_num=500), []),
    ("bert", "2.0", line("eval_accuracy", 12, 0.7, epoch_num=500, metric="top1"), [("", 500, 0.7)]),
    (
        "",
        "2.0",
        line("eval_accuracy", 12, {"BBOX": 0.3, "SEGM": "0.2", "rest": None}, epoch_num=4),
        [("BBOX", 4, 0.3)],
    ),
    ("bert", "2.0", line("eval_accuracy", 12, 0.7, epoch_num=[]), []),
    ("bert", "2.0", line("eval_accuracy", 12, 0.7), []),
]


@pytest.mark.parametrize(("name", "round_", "evaluation", "expected"), EVALUATIONS)
def test_evaluations(
    name: str, round_: str, evaluation: bytes, expected: list[tuple[str, int, float]]
) -> None:
    assert points(curve_of(START, evaluation, round_=round_, name=name)) == expected


def spans(*lines: bytes) -> list[tuple[Any, ...]]:
    return [(span.phase, span.start, span.stop) for span in curve_of(*lines).spans]


def test_phases_in_minutes_from_the_start() -> None:
    assert spans(
        line("init_start", 4),
        line("init_stop", 9),
        START,
        line("epoch_start", 10),
        line("epoch_stop", 11),
        line("eval_start", 11),
        line("eval_stop", 11.5),
    ) == [(Phase.INIT, -6, -1), (Phase.EPOCH, 0, 1), (Phase.EVALUATION, 1, 1.5)]


def test_blocks_only_where_there_are_no_epochs() -> None:
    block = line("block_start", 10), line("block_stop", 12)
    epoch = line("epoch_start", 10), line("epoch_stop", 11)
    assert spans(START, *block) == [(Phase.BLOCK, 0, 2)]
    assert spans(START, *epoch, *block) == [(Phase.EPOCH, 0, 1)]


@pytest.mark.parametrize(
    ("end", "minutes"),
    [
        ("epoch_stop", 12),
        ("eval_stop", float("inf")),
        ("eval_stop", float("nan")),
    ],
)
def test_a_phase_without_an_end_or_a_finite_time_is_ignored(end: str, minutes: int | float) -> None:
    assert spans(START, line("eval_start", 11), line(end, minutes)) == []


def test_without_run_start_there_is_no_curve() -> None:
    assert curve_of(line("eval_accuracy", 12, 0.7, epoch_num=5)) == Curve()


def test_a_simulated_run_has_all_its_evaluations() -> None:
    log = good_log("bert")
    curve = curve_of(log, name="bert")
    run = read_run(LogFile(Source("log", log), "training", "2.0", curve=True))
    assert run.curve == PackedCurve.of(curve)
    logged = [record for record in records(log) if record["key"] == "eval_accuracy"]
    assert [value for _, _, value in points(curve)] == [record["value"] for record in logged]
    assert curve.evaluations[-1].position == run_of(log).convergence.to_converge


GOALS = [
    ("training", "2.0", "bert", {"": 0.72}),
    ("training", "2.0", "maskrcnn", {"BBOX": 0.377, "SEGM": 0.339}),
    ("training", "3.1", "stable_diffusion", {"FID": 90.0, "CLIP": 0.15}),
    ("training", "6.1", "qwen35_397b_grpo", {"": 0.69}),
    ("hpc", "2.0", "cosmoflow", {"": 0.124}),
    ("training", "2.0", "unknown", {}),
]


@pytest.mark.parametrize(("usage", "round_", "name", "bounds"), GOALS)
def test_goals(usage: str, round_: str, name: str, bounds: dict[str, float]) -> None:
    assert goals(load_benchmark(usage, round_, name)) == bounds


def test_a_bound_at_the_end_of_a_metric_is_no_goal() -> None:
    assert goal({"above": 0, "below": 1}) is None
    assert (goal({"at_most": 1, "above": 0.5}), goal({"above": 2.0})) == (0.5, 2.0)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_error(data: bytes) -> None:
    assert curve_of(START, b":::MLLOG ", data).spans == ()


# ---- one evaluation --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "round_", "metadata", "position", "unit"),
    [
        # What convergence is counted by comes first, whatever else is logged.
        ("resnet", "2.0", {"samples_count": 9, "epoch_num": 2}, 2, "epochs"),
        ("bert", "2.0", {"samples_count": 9, "epoch_num": 2}, 2, "samples"),
        ("deepcam", "3.0", {"step_num": 900, "epoch_num": 2}, 2, "epochs"),
        ("stable_diffusion", "3.1", {"epoch_num": 1, "step_num": 500}, 500, "steps"),
        ("stable_diffusion", "4.0", {"samples_count": 512, "step_num": 1}, 512, "samples"),
        # Without it, and without rules, samples come before epochs, and epochs before steps.
        ("resnet", "2.0", {"step_num": 3, "samples_count": 9}, 9, "samples"),
        ("", "2.0", {"step_num": 3, "epoch_num": 2, "samples_count": 9}, 9, "samples"),
        ("", "2.0", {"step_num": 3}, 3, "steps"),
        # What is not a finite number does not count.
        ("resnet", "2.0", {"epoch_num": "2", "samples_count": 9}, 9, "samples"),
        ("", "2.0", {"samples_count": True, "epoch_num": 2.5}, 2.5, "epochs"),
    ],
)
def test_the_position(name: str, round_: str, metadata: Any, position: float, unit: str) -> None:
    record = Record("eval_accuracy", 1, 0.7, metadata)
    rules = load_benchmark("hpc" if name == "deepcam" else "training", round_, name)
    assert position_of(record, rules) == (position, unit)


def test_a_record_without_a_position_is_not_an_evaluation() -> None:
    infinite = {"samples_count": float("nan"), "epoch_num": 1e300}
    rows: list[Any] = [{}, None, [], infinite, {"samples_count": 10**400}]
    assert [
        metadata
        for metadata in rows
        if evaluation_of(Record("eval_accuracy", 1, 0.7, metadata), None, 1) is not None
    ] == []


def test_an_evaluation() -> None:
    record = Record("eval_error", 1000, 0.2, {"epoch_num": 3})
    assert evaluation_of(record, None, 7) == Evaluation(
        "eval_error", 1000.0, 7, 3.0, "epochs", {"": 0.2}
    )


@pytest.mark.parametrize(
    ("position", "metric"),
    [(1, "accuracy"), (1.5, ""), (2**64, ""), (1, "\ud800")],
    ids=["whole", "decimal", "of 65 bits", "a part of a character"],
)
def test_a_packed_curve_has_what_the_curve_has(
    position: float, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MOST_IN_MEMORY", 0)
    evaluation = Evaluation("eval_accuracy", 1e12, 3, position, "samples", {metric: 0.5})
    curve = Curve((evaluation,), (PhaseSpan(Phase.EPOCH, 0.5, 2.0),))
    packed = PackedCurve.of(curve)
    in_file = replace(run_of(good_log("bert")), curve=packed).kept_by(Keeper()).curve
    assert in_file
    assert (in_file.evaluations, in_file.spans) == (curve.evaluations, curve.spans)
    assert (packed.evaluations, packed.spans) == (curve.evaluations, curve.spans)
    assert type(packed.evaluations[0].position) is type(position)
