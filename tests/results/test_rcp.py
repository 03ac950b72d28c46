"""Reference convergence points: the written worked example, and the official checker live."""

import math
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example as also
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.rcp_checker import rcp_checker as official
from msgspec.structs import replace
from scipy import stats  # type: ignore[import-untyped]

from mlperf_pkg.results import rcp
from mlperf_pkg.results.rcp import (
    PointChange,
    RcpResult,
    ReferencePoint,
    ReferenceRuns,
    changed_points,
)
from mlperf_pkg.rulebook.explain import loaded
from mlperf_pkg.rulebook.load import load_round
from tests.helpers.examples import newest
from tests.parity.incumbent import quickened

# training_rules.adoc, the worked example: N = 5 runs
EXAMPLE = {
    128: [16, 14, 16, 17, 16, 16, 15, 16, 15, 16],
    256: [20, 21, 21, 20, 22, 22, 21, 21, 20, 20],
}

# the official checker's table of runs, completed by a benchmark that it has points but no runs of
RUNS: dict[str, dict[str, int]] = {**official.submission_runs}
RUNS["training"] = {**RUNS["training"], "dlrm": 10}

FILES = sorted(
    (*folder.name.split("_"), file.name[len("rcps_") : -len(".json")])
    for folder in (resources.files("mlperf_logging") / "rcp_checker").iterdir()
    if folder.is_dir() and folder.name.startswith(("training_", "hpc_"))
    for file in folder.iterdir()
)


def content_of(file: tuple[str, ...]) -> tuple[str, str, bytes]:
    """What a file says, and of what: rulesets share many of their files."""
    usage, ruleset, benchmark = file
    folder = resources.files("mlperf_logging") / "rcp_checker" / f"{usage}_{ruleset}"
    return usage, benchmark, (folder / f"rcps_{benchmark}.json").read_bytes()


DIFFERENT = newest(FILES, content_of)
every_file = pytest.mark.parametrize(("usage", "ruleset", "benchmark"), DIFFERENT)


@pytest.fixture(autouse=True, scope="module")
def _quickened() -> Iterator[None]:
    with quickened():
        yield


def counts(usage: str, benchmark: str) -> dict[str, int]:
    return {"runs": RUNS[usage][benchmark], "drop": 4 if benchmark == "unet3d" else 1}


def ours(usage: str, ruleset: str, benchmark: str) -> tuple[ReferencePoint, ...]:
    return rcp.reference_points(usage, ruleset, benchmark, **counts(usage, benchmark))


@cache
def theirs(usage: str, ruleset: str, benchmark: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(official.submission_runs, usage, RUNS[usage])
        checker = official.RCP_Checker(usage, ruleset, benchmark, verbose=False)
    # A long search, whose result depends on a point alone.
    checker._find_min_acceptable_mean = cache(checker._find_min_acceptable_mean)
    return checker


def example(*, trimmed: bool) -> list[ReferencePoint]:
    points = [
        ReferencePoint.from_runs(f"x_ref_{size}", size, runs, runs=5, drop=1)
        for size, runs in EXAMPLE.items()
    ]
    if not trimmed:
        return points
    # The deviation of the runs that count in the mean, as in the written example.
    return [replace(p, stdev=float(np.std(p.to_converge[1:-1]))) for p in points]


def judged(batch_size: float, runs: list[float] | None, *, trimmed: bool = True) -> RcpResult:
    return rcp.judge(example(trimmed=trimmed), batch_size, runs, runs=5, drop=1)


@pytest.mark.parametrize(
    ("batch_size", "trimmed", "figures"),
    [
        # as written
        (128, True, (15.75, 0.43, 15.21, 3.53)),
        (256, True, (20.75, 0.66, 19.93, 4.12)),
        (192, True, (18.25, 0.55, 17.60, 3.68)),
        # as the official checker computes
        (128, False, (15.75, 0.78, 14.78, 6.56)),
        (256, False, (20.75, 0.75, 19.82, 4.69)),
        (192, False, (18.25, 0.76, 17.35, 5.21)),
    ],
)
def test_worked_example(
    batch_size: int, trimmed: bool, figures: tuple[float, float, float, float]
) -> None:
    low, high = example(trimmed=trimmed)
    between = ReferencePoint.between(low, high, 192, runs=5)
    point = {128: low, 192: between, 256: high}[batch_size]
    result = judged(batch_size, [15] * 5, trimmed=trimmed)
    assert (result.reference_mean, result.minimum) == (point.mean, point.minimum)
    excess = 100 * (point.mean / point.minimum - 1)
    computed = (point.mean, point.stdev, point.minimum, excess)
    assert computed == pytest.approx(figures, abs=0.005)


def missing(batch_size: int) -> str:
    return f"Missing RCP, please submit RCP with BS = {batch_size}"


LOW, HIGH = "x_ref_128", "x_ref_256"


@pytest.mark.parametrize("trimmed", [True, False])
@pytest.mark.parametrize(
    ("batch_size", "runs", "verdict", "mean", "normalization", "points"),
    [
        (128, [15, 15, 15, 16, 16], (True, "RCP found"), 15.33, 1.0272, (LOW,)),
        (192, [17, 18, 18, 18, 20], (True, "RCP Interpolation"), 18, 1.0139, (LOW, HIGH)),
        (192, [17, 17, 17, 17, 20], (False, "RCP Interpolation"), 17, 1.0735, (LOW, HIGH)),
        (128, [16, 16, 16, 1e9, 16], (True, "RCP found"), 16, 1, (LOW,)),
        (64, [16] * 5, (True, rcp.SMALLER), 16, 1, (LOW,)),
        (64, [14] * 5, (False, missing(64)), 14, 1.125, (LOW,)),
        (512, [30] * 5, (False, missing(512)), 30, 1, ()),
        (-1, [16] * 5, (False, "Could not detect global_batch_size"), None, 1, ()),
        (128, None, (False, "Insufficient convergence"), None, 1, ()),
        (128, [0] * 5, (False, "RCP found"), 0, math.inf, (LOW,)),
        (128, [], (False, "RCP found"), math.nan, math.nan, (LOW,)),
    ],
    ids=[
        "at a point, quicker than its mean",
        "between points",
        "between points, too quick",
        "one run does not converge",
        "below all points, slow enough",
        "below all points, too quick",
        "above all points",
        "no batch size",
        "no convergence",
        "in no time",
        "no runs",
    ],
)
def test_judge(
    batch_size: int,
    runs: list[float] | None,
    verdict: tuple[bool, str],
    mean: float | None,
    normalization: float,
    points: tuple[str, ...],
    trimmed: bool,
) -> None:
    result = judged(batch_size, runs, trimmed=trimmed)
    assert (result.official_pass, result.message) == verdict
    assert result.mean == pytest.approx(mean, abs=0.005, nan_ok=True)
    assert result.normalization == pytest.approx(normalization, abs=5e-5, nan_ok=True)
    assert (result.points, result.interpolated) == (points, len(points) == 2)


def test_no_points() -> None:
    result = rcp.judge((), 8, [1.0] * 5, runs=5, drop=1)
    assert (result.official_pass, result.message) == (False, "Cannot find any RCPs")
    assert rcp.prune(()) == ()


@given(t=st.floats(-9, -0.1) | st.floats(0.1, 50), df=st.integers(1, 400))
@also(t=0.0, df=7)
@also(t=math.inf, df=9)
@also(t=1.0, df=1)
@also(t=-1.5, df=2)
def test_student_tail_is_that_of_scipy(t: float, df: int) -> None:
    assert rcp.student_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=0, abs=1e-14)


@given(values=st.lists(st.floats(1e-3, 1e7), min_size=2, max_size=700))
@also(values=[n / 10 for n in range(1, 301)])  # numpy adds more than 128 values by halves
def test_statistics_are_those_of_numpy(values: list[float]) -> None:
    point = ReferencePoint.from_runs("x", 1, values, runs=5, drop=0)
    assert point.mean == np.mean(sorted(values))
    assert point.stdev == np.std(sorted(values))


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6), st.data())
def test_interpolation_is_that_of_numpy(
    at: int, below: int, above: int, data: st.DataObject
) -> None:
    low, high = (
        ReferencePoint.from_runs("x", size, data.draw(SUBMISSION), runs=5, drop=1)
        for size in (at - below, at + above)
    )
    point = ReferencePoint.between(low, high, at, runs=5)
    sizes = [at - below, at + above]
    assert point.mean == np.interp(at, sizes, [low.mean, high.mean])
    assert point.stdev == np.interp(at, sizes, [low.stdev, high.stdev])


SUBMISSION = st.lists(st.integers(1, 10**6), min_size=3, max_size=20)


def test_covered_benchmarks_are_those_of_the_official_checker() -> None:
    benchmarks = {*(benchmark for _, _, benchmark in FILES), "minigo", "gnmt", "transformer", ""}
    assert [
        (usage, runs)
        for usage, runs in official.submission_runs.items()
        if {b for b in benchmarks | {*runs} if rcp.is_covered(usage, b)} != {*runs}
    ] == []
    assert not rcp.is_covered("inference", "bert")


def test_there_are_no_points_without_a_file() -> None:
    assert rcp.reference_points("training", "0.7.0", "bert", runs=10, drop=1) == ()
    assert rcp.reference_points("training", "2.0.0", "../rcps_bert", runs=10, drop=1) == ()


def test_numpy_and_scipy_stay_unloaded() -> None:
    code = (
        "import sys; from mlperf_pkg.results import rcp;"
        "assert rcp.reference_points('training', '2.0.0', 'bert', runs=10, drop=1);"
        "sys.exit(' '.join({'numpy', 'scipy', 'pandas'} & {*sys.modules}) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@every_file
def test_points_are_the_official_ones(usage: str, ruleset: str, benchmark: str) -> None:
    points, checker = ours(usage, ruleset, benchmark), theirs(usage, ruleset, benchmark)
    assert [
        (p.name, p.batch_size, list(p.to_converge), p.mean, p.stdev, p.minimum) for p in points
    ] == [
        (name, r["BS"], r["Epochs to converge"], r["RCP Mean"], r["RCP Stdev"], r["Min Epochs"])
        for name, r in checker.rcp_data.items()
    ]
    assert [point.name for point in rcp.prune(points)] == [*checker.pruned_rcp_data]


PRUNED = st.lists(st.integers(1, 60), min_size=1, max_size=9)


@given(means=PRUNED)
def test_any_points_are_pruned_as_officially(means: list[int]) -> None:
    checker = object.__new__(official.RCP_Checker)
    vars(checker).update(
        benchmark="x", verbose=False, submission_runs=5, alpha=0.05, tolerance=1e-4
    )
    checker.rcp_data = {
        f"x_{at}": {"Benchmark": "x", "BS": 2**at, "RCP Mean": float(mean), "RCP Stdev": 0.0}
        for at, mean in enumerate(means)
    }
    checker._prune_rcps()
    points = [ReferencePoint(f"x_{n}", 2**n, (), float(m), 0.0, 8, 5) for n, m in enumerate(means)]
    assert [point.name for point in rcp.prune(points)] == [*checker.pruned_rcp_data]


def batch_sizes(points: tuple[ReferencePoint, ...]) -> Iterator[float]:
    """Below all, on each, between each two, and above all."""
    sizes = [int(point.batch_size) for point in points]
    yield from sizes
    yield from ((a + b) // 2 for a, b in pairwise(sizes))
    yield from (0, sizes[0] // 2, sizes[0] - 1, sizes[0] + 0.5, sizes[-1] + 1, sizes[-1] * 2, -1)


def submissions(near: RcpResult, runs: int) -> Iterator[list[float] | None]:
    """Runs around the reference mean, and on the very verge of what is acceptable."""
    noise = random.Random(f"{near.points} {near.batch_size}")
    mean, minimum = near.reference_mean or 10.0, near.minimum or 9.0
    for ratio in (0.5, 0.95, 0.98, 1.0, 1.02):
        near_mean = [mean * ratio * noise.uniform(0.9, 1.1) for _ in range(runs)]
        yield near_mean if noise.random() < 0.5 else [round(value) for value in near_mean]
    for verge in (minimum, mean):
        for edge in (math.nextafter(verge, 0), verge, math.nextafter(verge, math.inf)):
            yield [edge] * runs
    yield [*[mean] * (runs - 1), 1e9]
    yield from ([0.0] * runs, [mean], [], None)


class TestCheckDirectory:
    """The official flow after the logs are read, which are replaced by their contents."""

    @pytest.fixture(autouse=True)
    def _harmless_and_quick(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(official.RCP_Checker, "_reset_results_scaling", lambda *_: None)
        with quickened():
            yield

    @every_file
    @pytest.mark.filterwarnings("ignore:Mean of empty slice")
    def test_verdicts(
        self, usage: str, ruleset: str, benchmark: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checker = theirs(usage, ruleset, benchmark)
        logged: dict[str, tuple[float, list[float] | None, str]] = {}
        monkeypatch.setattr(official, "get_submission_epochs", lambda *_: logged["runs"])
        monkeypatch.setattr(official, "RCP_Checker", lambda *_: checker)
        points = rcp.prune(ours(usage, ruleset, benchmark))
        sizing = counts(usage, benchmark)

        def judge(size: float, runs: list[float] | None) -> RcpResult:
            allowance = rcp.allowance(usage, benchmark)
            return rcp.judge(points, size, runs, allowance=allowance, **sizing)

        unlike = []
        for size in batch_sizes(points):
            for runs in submissions(judge(size, [1.0] * sizing["runs"]), sizing["runs"]):
                result = judge(size, runs)
                for bypass, judgement in ((False, result), (True, rcp.bypassed(result))):
                    logged["runs"] = (size, None if runs is None else [*runs], benchmark)
                    with np.errstate(all="ignore"):
                        passed, message, factor = official.check_directory(
                            "nowhere",
                            usage,
                            ruleset,
                            False,
                            False,
                            rcp_pass="pruned_rcps",
                            rcp_bypass=bypass,
                        )
                    same_verdict = (passed, message) == (
                        judgement.official_pass,
                        judgement.message,
                    )
                    normalization = judgement.normalization
                    same_factor = factor == normalization or factor == pytest.approx(
                        normalization, rel=1e-12, nan_ok=True
                    )
                    if not same_verdict or not same_factor:
                        unlike.append((size, runs, bypass, (passed, message, factor), judgement))
        assert unlike == []


@pytest.mark.parametrize(
    ("batch_size", "runs", "margin"),
    [
        (128, [14] * 5, -7.97),
        (192, [18] * 5, 2.25),
        (64, [14] * 5, -7.97),
        (2048, [20] * 5, None),
        (128, [0.1] * 5, None),  # of another unit
        (128, None, None),
        (128, [], None),
    ],
)
def test_margin(batch_size: int, runs: list[float] | None, margin: float | None) -> None:
    result = judged(batch_size, runs)
    expected = None if margin is None else pytest.approx(margin, abs=0.005)
    assert rcp.margin_percent(result) == expected
    assert margin is None or (margin >= 0) is result.official_pass
    assert rcp.no_limit_reason(result, example(trimmed=True)) is None


@pytest.mark.parametrize(
    ("margin", "words"),
    [(3.21, "+3.2 %"), (-0.31, "-0.3 %"), (174.6, "+175 %"), (-99.99, "-100.0 %")],
)
def test_in_words(margin: float, words: str) -> None:
    assert rcp.margin_in_words(margin) == words


NOT_POSSIBLE = "no RCP test was possible"
PRINTED = "the official checker counts this as failed, although it prints only"


@pytest.mark.parametrize(
    ("batch_size", "runs", "text"),
    [
        (
            128,
            [15, 15, 15, 16, 16],
            "The test passes: the runs converge after 15.3 epochs on average, no earlier than the"
            " limit of 15.2 at batch size 128 (RCP margin +0.8 %; reference mean 15.8, from"
            " x_ref_128). The test gives the scaling factor 1.0272.",
        ),
        (
            192,
            [17] * 5,
            "The runs converge after 17 epochs on average, below the limit of 17.6 at batch size"
            " 192 (RCP margin -3.4 %; reference mean 18.2, interpolated between x_ref_128 and"
            " x_ref_256).",
        ),
        (
            64,
            [20] * 5,
            "The test passes: the runs converge after 20 epochs on average, no earlier than the"
            " limit of 15.2 at batch size 64 (RCP margin +31.5 %; reference mean 15.8, from"
            " x_ref_128).",
        ),
        (
            2048,
            [20] * 5,
            "There is no reference point for batch size 2,048, so nothing was compared.",
        ),
        (
            128,
            None,
            f"Too few runs converged to compute a mean, so {NOT_POSSIBLE}; {PRINTED}"
            ' "Insufficient convergence".',
        ),
        (
            128,
            [],
            f'There are too few runs to compute a mean, so {NOT_POSSIBLE}; {PRINTED} "RCP found".',
        ),
    ],
)
def test_explain(batch_size: int, runs: list[float] | None, text: str) -> None:
    assert rcp.explain(judged(batch_size, runs), example(trimmed=True), "epochs") == text


# ---- points that limit nothing ------------------------------------------------------------

POWERLESS = {("training_4.1.0", "gpt3", 3072)}


@every_file
def test_points_without_a_limit(usage: str, ruleset: str, benchmark: str) -> None:
    """The criterion is far from every other point: none is between a thousandth and 0.8."""
    points = ours(usage, ruleset, benchmark)
    powerless = {
        point.name
        for point in points
        if (f"{usage}_{ruleset}", benchmark, point.batch_size) in POWERLESS
    }
    assert {point.name for point in points if not rcp.has_limit(point)} == powerless
    shares = {point.name: point.minimum / point.mean for point in points}
    assert {name for name, share in shares.items() if share < 1e-3} == powerless
    assert {name for name, share in shares.items() if share <= 0.8} == powerless


def gpt3(batch_size: int, mean: float) -> tuple[RcpResult, tuple[ReferencePoint, ...]]:
    points = rcp.prune(ours("training", "4.1.0", "gpt3"))
    return rcp.judge(points, batch_size, [mean] * 3, runs=3, drop=1), points


REASON = "the reference point at batch size 3,072 has a value of 11 times its median"


@pytest.mark.parametrize("batch_size", [2560, 3072, 3584])
def test_no_limit_at_or_beside_a_powerless_point(batch_size: int) -> None:
    result, points = gpt3(batch_size, 1.2e9)
    assert result.official_pass
    assert rcp.margin_percent(result) is None
    assert rcp.no_limit_reason(result, points) == REASON


@pytest.mark.parametrize("batch_size", [2048, 4096])
def test_a_limit_at_the_points_next_to_a_powerless_point(batch_size: int) -> None:
    result, points = gpt3(batch_size, 1.2e9)
    assert rcp.margin_percent(result) is not None
    assert rcp.no_limit_reason(result, points) is None


def test_explain_without_a_limit() -> None:
    assert rcp.explain(*gpt3(3072, 1.2e9), "tokens") == (
        "The test passes: the runs converge after 1,200,000,000 tokens on average, with no lower"
        f" limit at batch size 3,072, as {REASON} (reference mean 1,218,025,882, from"
        " gpt3_ref_3072). The test gives the scaling factor 1.0150."
    )


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([2, 10, 10, 11, 100], "has a value of 10 times its median"),
        ([2, 8, 10, 16, 19.5], "has values from 2 to 19.5"),
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


CHANGES = [  # rounds and benchmark, batch sizes of points that were added, removed, changed
    ("2.0", "2.1", "ssd", [1280, 2048], [], []),
    ("2.0", "2.1", "bert", [], [], [448]),
    ("2.0", "2.1", "resnet", [], [], []),
    ("2.1", "2.0", "ssd", [], [1280, 2048], []),
    ("0.7", "1.0", "bert", [], [], []),  # no points in 0.7: nothing to compare with
    ("5.1", "6.0", "gpt_oss_20b", [16, 32, 64], [], []),  # a new benchmark
]


def points_between(old: str, new: str, benchmark: str) -> list[PointChange]:
    before, after = load_round("training", old), load_round("training", new)
    was = loaded(before, benchmark) if benchmark in before.benchmarks else None
    return list(changed_points(before, was, after, loaded(after, benchmark)))


@pytest.mark.parametrize(("old", "new", "benchmark", "added", "removed", "changed"), CHANGES)
def test_points_between_rounds(
    old: str, new: str, benchmark: str, added: list[int], removed: list[int], changed: list[int]
) -> None:
    points = points_between(old, new, benchmark)
    assert [point.batch_size for point in points if not point.old] == added
    assert [point.batch_size for point in points if not point.new] == removed
    assert [point.batch_size for point in points if point.old and point.new] == changed


def test_the_runs_of_an_added_point() -> None:
    points = points_between("5.1", "6.0", "gpt_oss_20b")
    assert points[0].new == ReferenceRuns(20, 194560)
