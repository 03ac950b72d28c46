"""Published results over rounds: what is compared, figures that others published, and their
page.
"""

import re
from urllib.parse import unquote

import pytest

from mlperf_pkg.commands.page.history import (
    MAX_BYTES,
    ResultHistory,
    Series,
    Trend,
    history_html,
    published_history,
    small_chart,
    year_of,
)
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.published.results import published_results
from tests.helpers.histories import entry, history_of
from tests.helpers.pages import assert_policy_of_page, unpacked


@pytest.fixture(scope="module")
def record() -> ResultHistory:
    return published_history(published_results())


def trend_of(*sets: PublishedSet, own: tuple[PublishedSet, ...] = ()) -> Trend:
    [trend] = history_of(*sets, own=own).trends
    return trend


def by_round(series: Series) -> dict[str, float]:
    return {one.row.round: one.minutes for one in series.entries}


def test_the_fastest_of_each_round_overall_and_on_eight_accelerators() -> None:
    sets = (entry("2.0", 20.0), entry("2.0", 18.0), entry("3.0", 9.0))
    [span] = trend_of(*sets, entry("2.0", 3.0, accelerators=64)).spans
    assert by_round(span.overall) == {"2.0": 3.0, "3.0": 9.0}
    assert by_round(span.on_eight) == {"2.0": 18.0, "3.0": 9.0}
    assert (span.on_eight.gain, span.overall.gain, span.overall.record_gain) == (2.0, 1 / 3, 1.0)


def test_only_results_of_one_category_compete() -> None:
    sets = [entry("2.0", 20.0), entry("3.0", 9.0), entry("3.0", 8.0)]
    previews = [entry("2.0", 5.0, status="Preview"), entry("3.0", 2.0, status="Preview")]
    trend = trend_of(*sets, *previews)
    assert trend.categories == ["onprem", "preview"]
    assert by_round(trend.of("onprem").latest.overall) == {"2.0": 20.0, "3.0": 8.0}
    assert by_round(trend.of("preview").latest.overall) == {"2.0": 5.0, "3.0": 2.0}
    assert [gain.gain for gain in trend.latest.gains] == [2.5, 2.5]
    page = history_html(history_of(*sets, *previews))
    assert '<th scope="row">resnet</th><td>preview</td>' in page
    assert "<b>8.000</b> min, on-premise" in page
    assert "preview: 2.000 min, 3.0, ACME, 8 \u00d7 A1" in page
    assert "the record does not have the number of its models" in page


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("division", division) for division in ("open", "")),
        *(("score_minutes", score) for score in (None, float("inf"))),
        ("path", "ACME/results/box/weak/resnet"),
    ],
)
def test_some_results_are_in_the_table_only(name: str, value: float | str | None) -> None:
    result = history_of(entry("2.0", 20.0), entry("2.0", 1.0, "resnet", **{name: value}))
    assert len(result.entries) == 2
    assert by_round(result.trends[0].latest.overall) == {"2.0": 20.0}


def test_another_target_is_never_compared() -> None:
    trend = trend_of(entry("0.7", 50.0, "bert"), entry("1.0", 21.0, "bert"))
    assert [span.rounds for span in trend.spans] == [["0.7"], ["1.0"]]
    assert [span.version for span in trend.spans] == ["", "1.0"]
    assert not any(span.overall.is_line for span in trend.spans)
    text = history_html(history_of(entry("0.7", 50.0, "bert"), entry("1.0", 21.0, "bert")))
    assert text.count('<td class="new">') == 2  # overall and on 8 accelerators
    assert [kind for kind, _ in small_chart(trend)] == ["eight", "overall"] * 2


def test_a_benchmark_keeps_its_trend_under_another_name() -> None:
    trend = trend_of(entry("4.1", 22.5, "ssd"), entry("5.0", 21.8, "retinanet"))
    assert (trend.id, trend.title, trend.rounds) == ("ssd", "retinanet (ssd)", ["4.1", "5.0"])
    assert len(trend.spans) == 1


def test_the_same_accelerators_are_the_same_in_every_spelling() -> None:
    names = ["NVIDIA A100-SXM4-80GB (400W)", "NVIDIA A100-SXM-80GB", "A100-SXM4-80GB"]
    rounds = zip(["1.0", "1.1", "2.0"], [30.0, 25.0, 20.0], names, strict=True)
    sets = [entry(name, minutes, accelerator_model=model) for name, minutes, model in rounds]
    [gain] = trend_of(*sets, entry("2.0", 10.0, accelerator_model="B1")).latest.gains
    assert (gain.name, gain.gain, len(gain.entries)) == (
        "8 \u00d7 A100-SXM4-80GB, on-premise",
        1.5,
        3,
    )


NAMES = [
    ("NVIDIA Blackwell GPU (B200-SXM-180GB)", "NVIDIA B200-SXM-180GB"),
    ("NVIDIA A100-PCIE-40GB (250W)", "NVIDIA A100-PCIE-40GB"),
    ("H100 NVL Tensor Core GPU (PCIe)", "H100 NVL Tensor Core GPU (PCIe)"),
    ("TPU v3", "TPU v3"),
]


def test_an_accelerator_is_shown_by_its_model_and_processors_where_there_is_none() -> None:
    assert [
        history_of(entry("5.0", 9.0, accelerator_model=model)).entries[0].accelerator
        for model, shown in NAMES
    ] == [shown for model, shown in NAMES]
    none = {"accelerator_model": "N/A", "accelerators": None, "host_processor": "CPU 9"}
    assert history_of(entry("2.0", 90.0, "resnet", **none)).entries[0].hardware == "CPU 9"


def test_own_results_are_marked_compete_with_nobody_and_count_once() -> None:
    published = entry("5.0", 20.0, "bert")
    mine = entry("5.0", 10.0, "bert", path="MINE/results/mine/bert")
    # Checked again, from the folder of the submission, with other reference points.
    again = entry("5.0", 20.5, "bert", unscaled_minutes=20.0, system="20.0x8", path="results/bert")
    result = history_of(published, own=(again, mine))
    entries = [(one.own, one.is_new, one.minutes) for one in result.entries]
    assert entries == [(True, False, 20.0), (True, True, 10.0)]
    [trend] = result.trends
    assert by_round(trend.latest.overall) == {"5.0": 20.0}
    assert [one.minutes for one in trend.latest.new] == [10.0]
    assert result.entries[1].link == "#r=own/MINE/results/mine/bert"


@pytest.mark.parametrize(
    ("path", "escaped"),
    [
        ("A+B/results/a b&c#d/resnet", "A%2BB/results/a%20b%26c%23d/resnet"),
        pytest.param("A\udcff/results/a/resnet", "A%5Cudcff/results/a/resnet", id="not UTF-8"),
    ],
)
def test_a_permalink_is_the_escaped_path_of_the_table(path: str, escaped: str) -> None:
    result = history_of(entry("5.0", 20.0, path=path))
    [one] = result.entries
    assert one.link == f"#r=training_results_v5.0/{escaped}"
    paths = unpacked(history_html(result), "data")["rows"]["path"]
    assert paths == ["v", unquote(escaped), 1]


def test_moores_law_doubles_in_two_years() -> None:
    span = trend_of(entry("2.0", 20.0), entry("3.1", 10.0), entry("4.0", 9.0)).latest
    assert year_of("training", "2.0") == pytest.approx(2022.37, abs=0.02)
    assert span.overall.record_moore == pytest.approx(2, abs=0.02)


# ---- the record in this package, and what others published --------------------------------------


def test_the_fastest_resnet_of_each_round(record: ResultHistory) -> None:
    [trend] = [one for one in record.trends if one.id == "resnet"]
    [span] = trend.spans
    best = [
        f"{one.row.round} {one.minutes:.3f} {one.row.submitter}" for one in span.overall.entries
    ]
    assert ", ".join(best) == (
        "0.7 0.472 Google, 1.0 0.229 Google, 1.1 0.347 NVIDIA, 2.0 0.191 Google, 2.1 0.319 NVIDIA,"
        " 3.0 0.183 NVIDIA_CoreWeave, 3.1 0.183 NVIDIA, 4.0 0.183 NVIDIA"
    )
    # The IPU systems of one kind are one series.
    [series] = [
        one for one in trend.latest.gains if one.name == "16 \u00d7 Graphcore IPU GC200, on-premise"
    ]
    assert series.gain == pytest.approx(1.310, abs=0.0006)


# ---- the page: its policy, its size, and that every value in it is escaped ----------------------


HOSTILE = "</script><img src=x onerror=alert(1)>\u202e{{ 7 * 7 }}"


def test_the_page_of_the_record(record: ResultHistory) -> None:
    """Within its budget, allowing its scripts alone, with links to the rows of its table."""
    page = history_html(record)
    assert len(page.encode()) < MAX_BYTES
    assert_policy_of_page(page)
    links = set(re.findall('href="(#r=[^"]*)"', page))
    assert len(links) > 200
    assert links <= {one.link for one in record.entries}


def test_no_text_of_a_result_is_markup() -> None:
    fields = ("submitter", "system", "system_name", "accelerator_model", "framework", "status")
    hostile = entry("5.0", 9.0, path=f"{HOSTILE}/resnet", **dict.fromkeys(fields, HOSTILE))
    text = history_html(history_of(entry("4.1", 20.0), hostile))
    assert "<img" not in text
    assert text.count("<script") == 2
    assert "\u202e" not in text
