"""The charts of a benchmark: scores and convergence."""

from typing import Any

from msgspec.structs import replace

from mlperf_pkg.commands.charts.benchmarks import OTHERS, PALETTE, Looks, convergence, scoreboard
from mlperf_pkg.commands.notice import shown_result
from mlperf_pkg.render.table import by_key
from tests.helpers.charts import drawn
from tests.helpers.reports import result_set


def test_the_scoreboard_is_by_benchmark_and_time() -> None:
    rows = [
        result_set(score_minutes=9.0, system="slow"),
        result_set(score_minutes=1.0, system="quick", division="open"),
        result_set(score_minutes=None, system="none"),
        result_set(benchmark="ssd", score_minutes=3.0, submitter=None),
    ]
    results = {row.id: shown_result(row, None, is_verified=True) for row in rows}
    boards = dict(scoreboard(rows, results))
    assert list(boards) == ["bert", "ssd"]
    bert = boards["bert"]
    shown = [(e["set"], e["minutes"], e["division"]) for e in bert.data["scores"]]
    assert shown == [("ACME: quick", 1.0, "open"), ("ACME: slow", 9.0, "closed")]
    assert bert.description == "2 scores from 1.000 minutes (ACME quick) to 9.000 minutes."


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_looks_differ_in_shape_and_can_be_seen_on_light_and_dark() -> None:
    """With a contrast of at least 3."""
    assert (
        len({one.shape for one in PALETTE}) == len({one.color for one in PALETTE}) == len(PALETTE)
    )
    light, dark = (luminance(back) + 0.05 for back in ("#ffffff", "#15181c"))
    assert [
        look for look in PALETTE if not (3 * dark <= luminance(look.color) + 0.05 <= light / 3)
    ] == []


def test_the_most_frequent_accelerators_have_looks_of_their_own() -> None:
    names = [name for number in range(10) for name in [f"A{number}"] * (10 - number)]
    looks = Looks(names)
    assert [looks.name(f"A{number}") for number in (0, 6, 7, 9)] == ["A0", "A6", OTHERS, OTHERS]
    # Neither spellings nor vendors matter.
    looks = Looks(["NVIDIA A100-SXM4-80GB", "nvidia a100 sxm4 80gb", "NVIDIA A100-SXM4-80GB"])
    assert looks.name("nvidia a100 sxm4 80gb") == "A100-SXM4-80GB"
    assert looks.spelling("NVIDIA A100 SXM4-80GB") == "A100-SXM4-80GB"
    assert Looks(["", "X1", ""]).name("") == "unknown"


def sets(*names: str) -> list[Any]:
    one = drawn("bert")
    return [(replace(one, row=replace(one.row, system=name)), "X1") for name in names]


def test_convergence_is_a_line_for_each_set() -> None:
    (chart,) = convergence("bert", sets("a", "b"), Looks(["X1"]), 5)
    lines = by_key((row["set"], row["at"]) for row in chart.data["points"])
    assert len(lines) == 2
    assert all(line == sorted(set(line)) and len(line) <= 6 for line in lines.values())
    assert chart.data["target"] == [{"target": 0.72}]
    without = [(replace(one, runs=()), name) for one, name in sets("a", "b")]
    assert [
        none
        for none in (sets("a"), without)
        if list(convergence("bert", none, Looks(["X1"]), 5)) != []
    ] == []
