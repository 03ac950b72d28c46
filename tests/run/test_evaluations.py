"""Evaluations: their position, unit and values."""

from typing import Any

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.evaluations import Evaluation, evaluation_of, position_of


def rules(name: str, round_: str, usage: str = "training") -> Benchmark:
    benchmark = load_benchmark(usage, round_, name)
    assert benchmark is not None
    return benchmark


BERT = rules("bert", "2.0")
RESNET = rules("resnet", "2.0")
DEEPCAM = rules("deepcam", "3.0", "hpc")
DIFFUSION_BY_STEPS = rules("stable_diffusion", "3.1")
DIFFUSION = rules("stable_diffusion", "4.0")


def test_the_position() -> None:
    for benchmark, metadata, position, unit in [
        # What convergence is counted by comes first, whatever else is logged.
        (RESNET, {"samples_count": 9, "epoch_num": 2}, 2, "epochs"),
        (BERT, {"samples_count": 9, "epoch_num": 2}, 2, "samples"),
        (DEEPCAM, {"step_num": 900, "epoch_num": 2}, 2, "epochs"),
        (DIFFUSION_BY_STEPS, {"epoch_num": 1, "step_num": 500}, 500, "steps"),
        (DIFFUSION, {"samples_count": 512, "step_num": 1}, 512, "samples"),
        # Without it, and without rules, samples come before epochs, and epochs before steps.
        (RESNET, {"step_num": 3, "samples_count": 9}, 9, "samples"),
        (None, {"step_num": 3, "epoch_num": 2, "samples_count": 9}, 9, "samples"),
        (None, {"step_num": 3}, 3, "steps"),
        # What is not a finite number does not count.
        (RESNET, {"epoch_num": "2", "samples_count": 9}, 9, "samples"),
        (None, {"samples_count": True, "epoch_num": 2.5}, 2.5, "epochs"),
    ]:
        record = Record("eval_accuracy", 1, 0.7, metadata)
        assert position_of(record, benchmark) == (position, unit)


def test_a_record_without_a_position_is_not_an_evaluation() -> None:
    infinite = {"samples_count": float("nan"), "epoch_num": 1e300}
    rows: list[Any] = [{}, None, [], infinite, {"samples_count": 10**400}]
    for metadata in rows:
        assert evaluation_of(Record("eval_accuracy", 1, 0.7, metadata), RESNET, 1) is None


def test_the_values() -> None:
    for benchmark, value, metadata, values in [
        (RESNET, 0.7, {}, {"": 0.7}),
        (RESNET, 0.7, {"metric": "top1"}, {"": 0.7}),
        (DIFFUSION, 90, {"metric": "FID"}, {"FID": 90.0}),
        (None, {"BBOX": 0.3, "SEGM": 0.2}, {}, {"BBOX": 0.3, "SEGM": 0.2}),
        (None, {"BBOX": 0.3, "SEGM": "0.2", "rest": None}, {}, {"BBOX": 0.3}),
        (RESNET, True, {}, {}),
        (RESNET, "0.7", {}, {}),
        (RESNET, float("inf"), {}, {}),
    ]:
        record = Record("eval_accuracy", 1, value, {"epoch_num": 1, **metadata})
        evaluation = evaluation_of(record, benchmark, 1)
        assert evaluation is not None
        assert evaluation.values == values


def test_an_evaluation() -> None:
    record = Record("eval_error", 1000, 0.2, {"epoch_num": 3})
    assert evaluation_of(record, None, 7) == Evaluation(
        "eval_error", 1000.0, 7, 3.0, "epochs", {"": 0.2}
    )
