"""The result sets of a page; the cards of a round: the best scores, and how they changed."""

from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.commands.page.content import Card, Section, cards
from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.submission.membership import submitters
from tests.helpers.charts import drawn
from tests.helpers.published import published_set


def entry(
    minutes: float | None, accelerators: int | None, submitter: str | None = "ACME", **changes: Any
) -> Section:
    one = drawn("resnet")
    row = replace(one.row, score_minutes=minutes, submitter=submitter, **changes)
    system = SystemFile(
        path="s.json",
        id="s",
        contents={"accelerator_model_name": "X1"},
        submitter=submitter,
        division="closed",
        status="Available on-premise",
        system_name="s",
        accelerators=accelerators,
        findings=(),
    )
    return Section(replace(one, row=row), system)


def of(*entries: Section, record: tuple[Any, ...] = ()) -> tuple[Card, ...]:
    names = submitters(item.row.submitter or "" for item in entries)
    return cards([replace(item, id=f"s{i}") for i, item in enumerate(entries)], record, names)


def earlier(minutes: float | None, accelerators: int, **fields: Any) -> Any:
    defaults = {"round": "1.1", "benchmark": "resnet", "division": "closed", "usage": "training"}
    return published_set(
        **{**defaults, "score_minutes": minutes, "accelerators": accelerators, **fields}
    )


def in_words(card: Card) -> list[tuple[str, str, str, str]]:
    return [(best.title, best.figure, best.point.element, best.change) for best in card.best]


def test_the_winner_the_runner_up_and_the_fewest_accelerator_minutes() -> None:
    sets = (entry(1.0, 64), entry(1.1, 64, "acme"), entry(5.0, 8, "Other"), entry(12.0, 2))
    (card,) = of(*sets)
    assert (card.title, card.about) == ("resnet", "4 results, 2 submitters")
    assert in_words(card) == [
        ("Winner", "1.000", "s0", ""),
        ("Runner-up", "5.000", "s2", "5 times as long"),
        ("Per accelerator", "24.0", "s3", ""),
    ]


def test_without_another_submitter_there_is_no_runner_up() -> None:
    (card,) = of(entry(1.0, 64), entry(2.0, 64))
    assert [best.title for best in card.best] == ["Winner", "Per accelerator"]


def test_what_has_no_score_or_no_accelerators_is_left_out() -> None:
    for none in (
        entry(None, 8),
        entry(5.0, None),
        entry(float("inf"), 8),
        entry(5.0, 8, scaling="weak"),
    ):
        assert of(none) == ()


def test_the_change_is_since_the_latest_round_with_the_same_target() -> None:
    record = (
        earlier(10.0, 8),
        earlier(8.0, 64),
        earlier(1.0, 8, round="1.0"),
        earlier(1.0, 8, round="2.1"),
        earlier(1.0, 8, benchmark="bert"),
        earlier(1.0, 8, division="open"),
        earlier(None, 8),
    )
    (card,) = of(entry(5.0, 8), record=record)
    assert [best.change for best in card.best] == [
        "60 % faster than 1.1",
        "2 times as fast as in 1.1",
    ]


CHANGES = [
    (5.02, "unchanged since 1.1"),
    (4.0, "25 % slower than 1.1"),
    (7.5, "50 % faster than 1.1"),
    (2.5, "2 times as long as in 1.1"),
]


def test_a_change_in_words() -> None:
    for before, change in CHANGES:
        (card,) = of(entry(5.0, 8), record=(earlier(before, 8),))
        assert card.best[0].change == change


COMPARED = [
    # In round 2.0, ssd became another model with another data set.
    ({"benchmark": "ssd"}, {"benchmark": "ssd"}, ""),
    (
        {"benchmark": "rgat", "round": "5.0"},
        {"benchmark": "gnn", "round": "4.1"},
        "2 times as fast as in 4.1",
    ),
]


def test_what_is_compared_has_the_same_target_under_any_name() -> None:
    for fields, of_earlier, change in COMPARED:
        (card,) = of(entry(5.0, 8, **fields), record=(earlier(10.0, 8, **of_earlier),))
        assert card.best[0].change == change


def test_open_results_count_only_where_there_are_no_others() -> None:
    opened = entry(1.0, 8, division="open")
    (card,) = of(opened)
    assert card.about == "1 result, 1 submitter, open division"
    (card,) = of(opened, entry(5.0, 8))
    assert (card.about, card.best[0].figure) == ("1 result, 1 submitter", "5.000")


def test_a_set_that_fails_says_so() -> None:
    verdict = Verdicts(official=Verdict.FAIL, rules=Verdict.PASS)
    (card,) = of(entry(5.0, 8, verdict=verdict))
    assert card.best[0].point.fails == "official"
