"""Charts of result sets: what they show, not how it looks."""

import json
import math
from bisect import bisect_left
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.charts import drawing
from mlperf_pkg.commands.charts.benchmarks import scoreboard
from mlperf_pkg.commands.charts.chart import Chart, Rows
from mlperf_pkg.commands.charts.drawing import set_charts
from mlperf_pkg.commands.charts.sets import points_chart
from mlperf_pkg.commands.notice import shown_result, shown_results
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results.rcp import comparison_at, has_limit, prune, reference_points
from mlperf_pkg.results.report import RcpRow
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from tests.helpers.charts import charts, drawn
from tests.helpers.reports import rcp
from tests.helpers.trees import write_submission

SETS = [
    ("bert", "2.0", ["curves", "times", "rcp", "timeline"]),
    ("maskrcnn", "2.0", ["curves-1", "curves-2", "times", "rcp", "timeline"]),
    ("dlrm", "2.0", ["curves", "times", "timeline"]),
    ("stable_diffusion", "4.0", ["curves-1", "curves-2", "times", "rcp", "timeline"]),
]


@pytest.mark.parametrize(("benchmark", "round_", "names"), SETS)
def test_which_charts_there_are(benchmark: str, round_: str, names: list[str]) -> None:
    assert list(charts(drawn(benchmark, round_))) == names


def test_curves_show_every_evaluation_and_the_target_or_say_that_they_do_not() -> None:
    one = drawn("bert")
    chart = charts(one)["curves"]
    assert chart.data["target"] == [{"target": 0.72, "label": "target 0.72"}]
    assert len(chart.data["points"]) == sum(len(run.curve.evaluations) for run in one.runs)
    first, state = one.runs[0].curve.evaluations[0], one.runs[0].state
    point = {"run": "result_0.txt", "state": state, "at": first.position, "value": first.values[""]}
    assert chart.data["points"][0] == point
    thin = set_charts(one, 2, 3)[0]
    assert len(thin.data["points"]) <= 3 * len(one.runs)
    assert "A run has up to 19 evaluations; at most 2 of each run are shown" in thin.description


def test_the_chart_of_times_marks_dropped_runs() -> None:
    chart = charts(drawn("bert"))["times"]
    states = [run["state"] for run in chart.data["runs"]]
    assert (states.count("counts"), states.count("dropped")) == (8, 2)
    (box,) = chart.data["box"]
    counted = sorted(e["minutes"] for e in chart.data["runs"] if e["state"] == "counts")
    assert counted[0] == box["least"] < box["low"] < box["median"] < box["high"] < box["most"]
    assert box["most"] == counted[-1]
    assert chart.description.startswith("10 runs with a time, 8 of them count, 2 are dropped")


def test_a_run_without_time_is_in_no_strip_but_its_curve_is_marked() -> None:
    one = drawn("bert")
    first, *others = one.runs
    lost = replace(first, row=replace(first.row, dropped="did not converge", minutes=None))
    shown = charts(replace(one, runs=(lost, *others)))
    assert len(shown["times"].data["runs"]) == 9
    assert shown["curves"].data["points"][0]["state"] == "did not converge"
    untimed = [replace(run, row=replace(run.row, minutes=None)) for run in one.runs]
    assert "times" not in charts(replace(one, runs=tuple(untimed)))


def test_the_rcp_chart_shows_all_points_the_hull_and_the_limit() -> None:
    one = drawn("bert")
    data = charts(one)["rcp"].data
    points = reference_points("training", "2.0.0", "bert", runs=10, drop=1)
    hull = prune(points)
    assert [point["name"] for point in data["points"]] == [point.name for point in points]
    kept = [e["name"] for e in data["points"] if e["kind"] == "reference mean"]
    assert kept == [point.name for point in hull]
    assert len(data["runs"]) == sum(len(point.to_converge) for point in points)
    limits = {point["batch"]: point["mean"] for point in data["limit"]}
    assert limits[hull[0].batch_size] == pytest.approx(hull[0].minimum, rel=1e-5)
    (own,) = data["own"]
    assert one.row.rcp is not None
    assert (own["batch"], own["kind"]) == (one.row.rcp.batch_size, "this set: pass")


def test_a_point_without_a_limit_breaks_the_line_and_an_outlier_is_left_out() -> None:
    chart = charts(drawn("gpt3", "4.1"))["rcp"]
    limits = {point["batch"]: point["mean"] for point in chart.data["limit"]}
    assert (limits[3072], limits[4096] is None) == (None, False)
    of_points = {point["batch"]: point["limit"] for point in chart.data["points"]}
    assert of_points[3072] == "no lower limit"
    assert max(run["mean"] for run in chart.data["runs"]) < 2e9
    assert "Not shown: 1 reference run above 3 times the median" in chart.description


def drawn_limit(batch: float, line: Rows) -> float | None:
    """The limit at a batch size as it is drawn: on straight lines over a logarithmic axis."""
    at = bisect_left(line, batch, key=itemgetter("batch"))
    high = line[at]
    if high["batch"] == batch or high["mean"] is None:
        return cast("float | None", high["mean"])
    low = line[at - 1]
    if low["mean"] is None:
        return None
    share = math.log(batch / low["batch"]) / math.log(high["batch"] / low["batch"])
    return cast("float", low["mean"] + share * (high["mean"] - low["mean"]))


EVERY_SIZE = [
    ("maskrcnn", "2.0"),
    ("bert", "2.0"),
    ("unet3d", "2.0"),
    ("gpt3", "4.1"),
    ("llama31_405b", "5.0"),
]


@pytest.mark.parametrize(("benchmark", "round_"), EVERY_SIZE)
def test_the_limit_is_exact_at_every_batch_size(benchmark: str, round_: str) -> None:
    rules = load_benchmark("training", round_, benchmark)
    assert rules
    runs = rules.runs.required
    ruleset = load_round("training", round_).ruleset
    points = reference_points("training", ruleset, benchmark, runs=runs, drop=rules.runs.drop)
    hull = prune(points)
    line = points_chart(points, runs, rules.unit, "").data["limit"]
    expected = {}
    for size in range(round(points[0].batch_size), round(hull[-1].batch_size) + 1):
        point = comparison_at(hull, size, runs=runs).point
        assert point
        expected[size] = pytest.approx(point.minimum, rel=1e-4) if has_limit(point) else None
    assert {size: drawn_limit(size, line) for size in expected} == expected


def test_the_limit_begins_at_a_smaller_set_and_has_the_allowance_of_the_official_checker() -> None:
    one = drawn("llama31_405b", "5.0")
    small = replace(one, row=replace(one.row, rcp=rcp(batch_size=576)))
    (first, second, *_) = charts(small)["rcp"].data["limit"]
    points = reference_points("training", "5.0.0", "llama31_405b", runs=3, drop=0)
    limit = pytest.approx(prune(points)[0].minimum - 46080, rel=1e-5)
    assert (first["batch"], first["mean"], second["mean"]) == (576, limit, limit)


NO_LIMIT = {"kind": "this set: pass", "margin": "no lower limit", "limit": "no lower limit"}
RCP: list[tuple[RcpRow, list[dict[str, Any]]]] = [
    (rcp(margin_percent=None, no_limit_reason="why"), [NO_LIMIT]),
    (rcp(official_pass=False, mean=90.0), [{"kind": "this set: fail", "margin": "+10.0 %"}]),
    (rcp(mean=None), []),
    (rcp(mean=float("nan")), []),
    (rcp(batch_size=-1), []),
]


@pytest.mark.parametrize(("test", "expected"), RCP)
def test_the_own_point_of_the_rcp_chart(test: RcpRow, expected: list[dict[str, Any]]) -> None:
    one = drawn("bert")
    own = charts(replace(one, row=replace(one.row, rcp=test)))["rcp"].data["own"]
    pairs = zip(own, expected, strict=True)
    assert all(point.items() >= fields.items() for point, fields in pairs)


def test_the_timeline_begins_with_initialisation() -> None:
    one = drawn("bert")
    chart = charts(one)["timeline"]
    spans = by_key((s["phase"], s) for s in chart.data["spans"] if s["run"] == "result_0.txt")
    assert spans.keys() == {"initialisation", "training", "evaluation"}
    assert spans["training"][0]["stop"] == pytest.approx(one.runs[0].row.minutes, rel=1e-3)
    assert spans["initialisation"][0]["start"] < 0


def test_text_of_strangers_is_in_the_data_alone() -> None:
    odd = "datum['x'] </script>"
    one = drawn("bert")
    row = replace(one.row, system=odd, submitter=odd)
    runs = tuple(replace(r, row=replace(r.row, path=f"a/{odd}{i}")) for i, r in enumerate(one.runs))
    shown: list[Chart] = set_charts(replace(one, row=row, runs=runs))
    shown += dict(scoreboard([row], {row.id: shown_result(row, None, is_verified=False)})).values()
    assert all("datum" not in json.dumps(chart.spec) for chart in shown)
    assert any("datum" in json.dumps(list(chart.data.values())) for chart in shown)


def test_a_set_has_its_runs_with_their_curves_which_are_read_if_asked_for(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "ACME", "bert", "resnet")
    checked, with_curves = (check([str(tree)], Options(curves=curves)) for curves in (False, True))
    assert not any(run.curve for run in checked.runs)
    assert with_curves.report == checked.report
    sets = list(drawing.drawn_sets(with_curves, shown_results(with_curves)))
    about = [(drawn.row.benchmark, len(drawn.runs), drawn.usage) for drawn in sets]
    assert about == [("bert", 10, "training"), ("resnet", 5, "training")]
    assert all(run.curve.evaluations and run.curve.spans for drawn in sets for run in drawn.runs)
