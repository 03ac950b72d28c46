"""Published results over rounds: what is compared, what is not, and figures that others published."""

from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.compare.published import read_rounds
from mlperf_pkg.commands.compare.ratios import Row, all_prices, compare
from mlperf_pkg.commands.compare.reading import Filter
from mlperf_pkg.commands.page.history import (
    History,
    Series,
    Trend,
    history,
    year_of,
)
from mlperf_pkg.published.model import PublishedSet
from tests.helpers.published import published_set


def entry(round_: str, minutes: float, benchmark: str = "resnet", **fields: Any) -> PublishedSet:
    number = fields.get("accelerators", 8)
    path = f"ACME/results/{minutes}x{number}/{benchmark}"
    values = {
        "round": round_,
        "benchmark": benchmark,
        "score_minutes": minutes,
        "unscaled_minutes": minutes,
        "system": f"{minutes}x{number}",
        "path": path,
    }
    return published_set(**{**values, **fields})


def of(*sets: PublishedSet, own: tuple[PublishedSet, ...] = ()) -> History:
    return history(sets, "from here", own)


def trend_of(*sets: PublishedSet, own: tuple[PublishedSet, ...] = ()) -> Trend:
    [trend] = of(*sets, own=own).trends
    return trend


def by_round(series: Series) -> dict[str, float]:
    return {one.row.round: one.minutes for one in series.entries}


def test_the_fastest_of_each_round_overall_and_on_eight_accelerators() -> None:
    [span] = trend_of(
        entry("2.0", 20.0),
        entry("2.0", 18.0),
        entry("2.0", 3.0, accelerators=64),
        entry("3.0", 9.0),
    ).spans
    assert by_round(span.overall) == {"2.0": 3.0, "3.0": 9.0}
    assert by_round(span.on_eight) == {"2.0": 18.0, "3.0": 9.0}
    assert (span.on_eight.gain, span.overall.gain, span.overall.record_gain) == (2.0, 1 / 3, 1.0)


NOT_RANKED: list[dict[str, Any]] = [
    {"division": "open"},
    {"division": ""},
    {"score_minutes": None},
    {"score_minutes": float("inf")},
    {"path": "ACME/results/box/weak/resnet"},
]


def test_some_results_are_in_the_table_only() -> None:
    for fields in NOT_RANKED:
        result = of(entry("2.0", 20.0), entry("2.0", **{"minutes": 1.0, **fields}))
        assert len(result.entries) == 2
        assert by_round(result.trends[0].latest.overall) == {"2.0": 20.0}


def test_another_target_is_never_compared() -> None:
    trend = trend_of(entry("0.7", 50.0, "bert"), entry("1.0", 21.0, "bert"))
    assert [span.rounds for span in trend.spans] == [["0.7"], ["1.0"]]
    assert [span.target for span in trend.spans] == [
        "at least 0.712 and below 1.0",
        "at least 0.72 and below 1.0",
    ]
    assert not any(span.overall.is_line for span in trend.spans)


def test_a_benchmark_keeps_its_trend_under_another_name() -> None:
    trend = trend_of(entry("4.1", 22.5, "ssd"), entry("5.0", 21.8, "retinanet"))
    assert (trend.id, trend.title, trend.rounds) == ("ssd", "retinanet (ssd)", ["4.1", "5.0"])
    assert len(trend.spans) == 1


def test_the_same_accelerators_are_the_same_in_every_spelling() -> None:
    names = ["NVIDIA A100-SXM4-80GB (400W)", "NVIDIA A100-SXM-80GB", "A100-SXM4-80GB"]
    sets = [
        entry(round_, minutes, accelerator_model=name)
        for round_, minutes, name in zip(
            ["1.0", "1.1", "2.0"], [30.0, 25.0, 20.0], names, strict=True
        )
    ]
    [gain] = trend_of(*sets, entry("2.0", 10.0, accelerator_model="B1")).latest.gains
    assert (gain.name, gain.gain, len(gain.entries)) == ("8 \u00d7 A100-SXM4-80GB", 1.5, 3)


NAMES = [
    ("NVIDIA Blackwell Ultra GPU (GB300)", "NVIDIA GB300"),
    ("NVIDIA Blackwell GPU (B200-SXM-180GB)", "NVIDIA B200-SXM-180GB"),
    ("NVIDIA A100-PCIE-40GB (250W)", "NVIDIA A100-PCIE-40GB"),
    ("H100 NVL Tensor Core GPU (PCIe)", "H100 NVL Tensor Core GPU (PCIe)"),
    ("TPU v3", "TPU v3"),
]


def test_an_accelerator_is_shown_by_its_model() -> None:
    for model, shown in NAMES:
        assert of(entry("5.0", 9.0, accelerator_model=model)).entries[0].accelerator == shown


def test_processors_are_shown_where_there_is_no_accelerator() -> None:
    sets = [entry("2.0", 90.0, accelerator_model="N/A", accelerators=None, host_processor="CPU 9")]
    assert [one.hardware for one in of(*sets).entries] == ["CPU 9"]


def test_own_results_are_marked_compete_with_nobody_and_count_once() -> None:
    published = entry("5.0", 20.0, "bert")
    mine = entry("5.0", 10.0, "bert", path="MINE/results/mine/bert")
    # Checked again, from the folder of the submission, with other reference points.
    again = entry("5.0", 20.5, "bert", unscaled_minutes=20.0, system="20.0x8", path="results/bert")
    result = of(published, own=(again, mine))
    assert [(one.own, one.is_new, one.minutes) for one in result.entries] == [
        (True, False, 20.0),
        (True, True, 10.0),
    ]
    [trend] = result.trends
    assert by_round(trend.latest.overall) == {"5.0": 20.0}
    assert [one.minutes for one in trend.latest.new] == [10.0]
    assert result.entries[1].link == "#r=own/MINE/results/mine/bert"


def test_a_permalink_is_escaped() -> None:
    [one] = of(entry("5.0", 20.0, path="A+B/results/a b&c#d/resnet")).entries
    assert one.link == "#r=training_results_v5.0/A%2BB/results/a%20b%26c%23d/resnet"


def test_moores_law_doubles_in_two_years() -> None:
    span = trend_of(entry("2.0", 20.0), entry("3.1", 10.0), entry("4.0", 9.0)).latest
    assert year_of("training", "2.0") == pytest.approx(2022.37, abs=0.02)
    assert span.overall.record_moore == pytest.approx(2, abs=0.02)


# ---- the record in this package, and what others published --------------------------------------


def test_the_fastest_resnet_of_each_round(record: History) -> None:
    [trend] = [one for one in record.trends if one.id == "resnet"]
    [span] = trend.spans
    best = {
        one.row.round: (round(one.minutes, 3), one.row.submitter) for one in span.overall.entries
    }
    assert best == {
        "0.7": (0.472, "Google"),
        "1.0": (0.229, "Google"),
        "1.1": (0.347, "NVIDIA"),
        "2.0": (0.191, "Google"),
        "2.1": (0.319, "NVIDIA"),
        "3.0": (0.183, "NVIDIA_CoreWeave"),
        "3.1": (0.183, "NVIDIA"),
        "4.0": (0.183, "NVIDIA"),
    }


def test_the_ipu_systems_of_one_kind_are_one_series(record: History) -> None:
    [trend] = [one for one in record.trends if one.id == "resnet"]
    [series] = [one for one in trend.latest.gains if one.name == "16 \u00d7 Graphcore IPU GC200"]
    assert series.gain == pytest.approx(1.310, abs=0.0006)


def per_dollar(benchmark: str) -> float:
    systems = ("ipu-pod16*", "dgxa100_ngc*")
    wanted = Filter((benchmark,), systems, ("closed",))
    rows: tuple[Row, ...] = compare(
        read_rounds(["1.0"], [], wanted, None),
        all_prices(None, {}, Path()),
        lambda result: result.system.startswith("dgx"),
    )
    [ratio] = [row.performance_per_dollar for row in rows if not row.baseline]
    assert ratio is not None
    return ratio


def test_performance_per_dollar_of_an_ipu_pod16_against_a_dgx_a100() -> None:
    assert per_dollar("resnet") == pytest.approx(1.561, abs=0.0006)
    assert per_dollar("bert") == pytest.approx(1.266, abs=0.0006)
