"""The RCP margin, points that limit nothing, and both in words."""

from __future__ import annotations

import pytest

from mlperf_pkg.results import rcp
from mlperf_pkg.results.rcp import RcpResult, ReferencePoint
from tests.results.test_rcp import every_file, example, judged, ours


@pytest.mark.parametrize(
    ("batch_size", "runs", "margin"),
    [
        (128, [15, 15, 15, 16, 16], 0.79),
        (128, [14] * 5, -7.97),
        (192, [18] * 5, 2.25),
        (64, [20] * 5, 31.47),
        (64, [14] * 5, -7.97),
        (2048, [20] * 5, None),
        (128, None, None),
        (128, [], None),
    ],
)
def test_margin(batch_size: int, runs: list[float] | None, margin: float | None) -> None:
    result = judged(batch_size, runs)
    expected = None if margin is None else pytest.approx(margin, abs=0.005)
    assert rcp.margin_percent(result) == expected
    assert rcp.no_limit_reason(result, example(trimmed=True)) is None


@pytest.mark.parametrize("runs", [[14.0] * 5, [15.0, 15, 15, 16, 16], [16.0] * 5, [20.0] * 5])
@pytest.mark.parametrize("batch_size", [64, 128, 192, 256])
def test_sign_of_the_margin_is_the_verdict(batch_size: int, runs: list[float]) -> None:
    result = judged(batch_size, runs)
    margin = rcp.margin_percent(result)
    assert margin is not None
    assert (margin >= 0) is result.official_pass


@pytest.mark.parametrize(
    ("margin", "words"),
    [(3.21, "+3.2 %"), (-0.31, "-0.3 %"), (0.0, "+0.0 %"), (174.6, "+175 %"), (-99.99, "-100.0 %")],
)
def test_in_words(margin: float, words: str) -> None:
    assert rcp.margin_in_words(margin) == words


@pytest.mark.parametrize(
    ("batch_size", "runs", "text"),
    [
        (
            128,
            [15, 15, 15, 16, 16],
            "The mean to converge is 15.3333, at least 15.2126 at"
            " batch size 128: RCP margin +0.8 % (reference mean 15.75, from x_ref_128)."
            " Normalisation multiplies the score by 1.0272.",
        ),
        (
            192,
            [17] * 5,
            "The mean to converge is 17; expected at least 17.6031 at batch"
            " size 192: RCP margin -3.4 % (reference mean 18.25, interpolated between x_ref_128 and"
            " x_ref_256).",
        ),
        (
            64,
            [20] * 5,
            "The mean to converge is 20, at least 15.2126 at batch"
            " size 64: RCP margin +31.5 % (reference mean 15.75, from x_ref_128).",
        ),
        (
            2048,
            [20] * 5,
            "Missing RCP, please submit RCP with BS = 2048: convergence was not compared with the"
            " reference.",
        ),
        (128, None, "Insufficient convergence: convergence was not compared with the reference."),
        (128, [], "RCP found: convergence was not compared with the reference."),
    ],
)
def test_explain(batch_size: int, runs: list[float] | None, text: str) -> None:
    assert rcp.explain(judged(batch_size, runs), example(trimmed=True)) == text


# ---- points that limit nothing ------------------------------------------------------------

POWERLESS = {("training_4.1.0", "gpt3", 3072)}


@every_file
def test_points_without_a_limit(usage: str, ruleset: str, benchmark: str) -> None:
    """The criterion is far from every other point: none is between a thousandth and 0.8."""
    for point in ours(usage, ruleset, benchmark):
        powerless = (f"{usage}_{ruleset}", benchmark, point.batch_size) in POWERLESS
        assert rcp.has_limit(point) is not powerless
        share = point.minimum / point.mean
        assert share < 1e-3 if powerless else share > 0.8


def test_powerless_points_exist() -> None:
    for folder, benchmark, batch_size in POWERLESS:
        usage, _, ruleset = folder.partition("_")
        points = ours(usage, ruleset, benchmark)
        assert batch_size in [point.batch_size for point in points]


def gpt3(batch_size: int, mean: float) -> tuple[RcpResult, tuple[ReferencePoint, ...]]:
    points = rcp.prune(ours("training", "4.1.0", "gpt3"))
    return rcp.judge(points, batch_size, [mean] * 3, runs=3, drop=1), points


@pytest.mark.parametrize("batch_size", [2560, 3072, 3584])
def test_no_limit_at_or_beside_a_powerless_point(batch_size: int) -> None:
    result, points = gpt3(batch_size, 1.2e9)
    assert result.official_pass
    assert rcp.margin_percent(result) is None
    assert rcp.no_limit_reason(result, points) == (
        "the reference point at batch size 3072 holds a value 11 times its median"
    )


@pytest.mark.parametrize("batch_size", [2048, 4096, 8192])
def test_other_points_of_the_benchmark_have_a_limit(batch_size: int) -> None:
    result, points = gpt3(batch_size, 1.2e9)
    assert rcp.margin_percent(result) is not None
    assert rcp.no_limit_reason(result, points) is None


def test_no_limit_explained() -> None:
    assert rcp.explain(*gpt3(3072, 1.2e9)) == (
        "The mean to converge is 1,200,000,000, with no lower limit at batch size 3072: the reference"
        " point at batch size 3072 holds a value 11 times its median (reference mean"
        " 1,218,025,881.6, from gpt3_ref_3072). Normalisation multiplies the score by 1.0150."
    )


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([2, 10, 10, 11, 100], "holds a value 10 times its median"),
        ([2, 8, 10, 16, 19.5], "holds values from 2 to 19.5"),
    ],
)
def test_reason(runs: list[float], reason: str) -> None:
    points = [ReferencePoint.from_runs("x", 8, runs, runs=3, drop=1)]
    result = rcp.judge(points, 8, [10.0] * 3, runs=3, drop=1)
    expected = f"the reference point at batch size 8 {reason}"
    assert rcp.no_limit_reason(result, points) == expected


def test_a_point_at_zero_has_a_limit_but_no_margin() -> None:
    points = [ReferencePoint.from_runs("x", 8, [0.0] * 6, runs=3, drop=1)]
    result = rcp.judge(points, 8, [10.0] * 3, runs=3, drop=1)
    assert rcp.margin_percent(result) is None
    assert rcp.no_limit_reason(result, points) is None
