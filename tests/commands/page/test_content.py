"""What a page says: its result sets, the cards of a round, the columns of its table, its
findings.
"""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options, Rank, Standing
from mlperf_pkg.commands.page.content import Card, ResultSection, cards, choices, columns, excerpts
from mlperf_pkg.config import Price
from mlperf_pkg.findings import Finding, Verdict, Verdicts
from mlperf_pkg.infra.source import Source, raw_lines
from mlperf_pkg.render.table import Table
from mlperf_pkg.submission.submitters import SubmitterNames, companies
from tests.helpers.logs import line_of
from tests.helpers.pages import section
from tests.helpers.published import published_set
from tests.helpers.trees import simulated, write_set


def test_a_system_without_accelerators_has_the_size_of_its_nodes() -> None:
    assert OF_NODES.point
    assert (OF_NODES.point.size, OF_NODES.point.hardware("A64FX")) == (
        512,
        "512 nodes \u00d7 A64FX",
    )


def of(*sections: ResultSection, record: tuple[Any, ...] = ()) -> list[Card]:
    placed = [replace(s, id=f"s{index}") for index, s in enumerate(sections)]
    names = {item.id: SubmitterNames(item.row.submitter or "") for item in placed}
    of_entry = companies(names.values())
    return list(cards(placed, record, {id_: of_entry[entry] for id_, entry in names.items()}))


OPENED = section(1.0, 8, division="open")
CARDS = [
    (
        (section(1.0, 64), section(1.1, 64, "acme"), section(5.0, 8, "Other"), section(12.0, 2)),
        "4 results, 2 submitters, on-premise",
        {
            "Winner": ("1.000", "s0", ""),
            "Runner-up": ("5.000", "s2", "5 times as long"),
            "Per accelerator": ("24.0", "s3", ""),
        },
    ),
    (
        (OPENED,),
        "1 result, 1 submitter, open division, on-premise",
        {"Winner": ("1.000", "s0", ""), "Per accelerator": ("8.0", "s0", "")},
    ),
    (
        (
            OPENED,
            section(5.0, 8),
            section(None, 8),
            section(5.0, None),
            section(float("inf"), 8),
            section(5.0, 8, scaling="weak"),
        ),
        "1 result, 1 submitter, on-premise",
        {"Winner": ("5.000", "s1", ""), "Per accelerator": ("40.0", "s1", "")},
    ),
]


WEAK = section(20.0, 5120, scaling="weak", number_of_models=10)
OF_NODES = section(2.0, 0)
assert OF_NODES.system
OF_NODES = replace(OF_NODES, system=replace(OF_NODES.system, nodes=512))
CARDS += [
    (
        (WEAK, section(5.0, 8, "Other")),
        "2 results, 2 submitters, on-premise",
        {
            "Winner": ("5.000", "s1", ""),
            "Per accelerator": ("40.0", "s1", ""),
            "Weak scaling": ("0.5", "s0", ""),
        },
    ),
    ((OF_NODES,), "1 result, 1 submitter, on-premise", {"Winner": ("2.000", "s0", "")}),
]


@pytest.mark.parametrize(
    ("sections", "about", "best"),
    CARDS,
    ids=["several submitters", "open", "closed and open", "weak scaling", "without accelerators"],
)
def test_a_card(
    sections: tuple[ResultSection, ...], about: str, best: dict[str, tuple[str, str, str]]
) -> None:
    """Of another submitter or none; Open results count only where there are no others."""
    (card,) = of(*sections)
    assert (card.title, card.about) == ("resnet", about)
    assert {b.title: (b.figure, b.point.element, b.change) for b in card.best} == best


def test_winners_are_those_of_one_category() -> None:
    """Of all categories but the one with most results, a card has the winner alone."""
    preview = section(1.0, 8, "Other")
    assert preview.system
    preview = replace(preview, system=replace(preview.system, status="Preview"))
    (card,) = of(section(5.0, 8), preview, section(6.0, 8, "Third"), record=RECORD)
    assert [(best.title, best.figure, best.change) for best in card.best] == [
        ("Winner, on-premise", "5.000", "2 times as fast as in 1.1"),
        ("Runner-up, on-premise", "6.000", "20 % slower"),
        ("Per accelerator, on-premise", "40.0", "2 times as fast as in 1.1"),
        ("Winner, preview", "1.000", ""),
    ]


def test_a_set_without_a_score_has_no_card() -> None:
    assert of(section(None, 8)) == []


def earlier(minutes: float | None, accelerators: int = 8, **fields: Any) -> Any:
    defaults = {"round": "1.1", "benchmark": "resnet", "division": "closed", "usage": "training"}
    return published_set(
        **{**defaults, "score_minutes": minutes, "accelerators": accelerators, **fields}
    )


RECORD = (
    earlier(10.0),
    earlier(8.0, 64),
    *(
        earlier(1.0, 8, **{name: other})
        for name, other in [
            ("round", "1.0"),
            ("round", "2.1"),
            ("benchmark", "bert"),
            ("division", "open"),
        ]
    ),
    earlier(None),
)
CHANGES: list[tuple[dict[str, Any], tuple[Any, ...], str]] = [
    ({}, RECORD, "2 times as fast as in 1.1"),
    ({}, (earlier(8.0, 64),), ""),
    ({}, (earlier(5.02),), "unchanged since 1.1"),
    ({}, (earlier(4.0),), "25 % slower than 1.1"),
    ({}, (earlier(2.5),), "2 times as long as in 1.1"),
    # In round 2.0, ssd became another model with another data set.
    ({"benchmark": "ssd"}, (earlier(10.0, benchmark="ssd"),), ""),
    (
        {"benchmark": "rgat", "round": "5.0"},
        (earlier(10.0, benchmark="gnn", round="4.1"),),
        "2 times as fast as in 4.1",
    ),
]


@pytest.mark.parametrize(("fields", "record", "change"), CHANGES)
def test_the_change_is_since_the_latest_round_with_the_same_target(
    fields: dict[str, Any], record: tuple[Any, ...], change: str
) -> None:
    (card,) = of(section(5.0, 8, **fields), record=record)
    assert card.best[0].change == change


def test_a_set_that_fails_says_so() -> None:
    verdict = Verdicts(official=Verdict.FAIL, rules=Verdict.PASS)
    (card,) = of(section(5.0, 8, verdict=verdict))
    assert card.best[0].point.fails == "official"


def test_columns() -> None:
    """One without values is left out."""
    titles = [column.heading for column in columns([section(5.0, 8)])]
    rare = {"Round", "Nodes", "Batch size", "Energy (kJ)", "Price (USD)", "Published rank"}
    assert not rare & set(titles)
    assert titles[:3] == ["Benchmark", "Accelerators", "Minutes"]
    standing = Standing("2.0", 8, Rank(3, 12), "X1", Rank(1, 2))
    full = section(5.0, 8, energy_joules=1_234_567.0, submitter=None)
    full = replace(full, price=Price(149000, "a list"), standing=standing)
    full = replace(full, settings={"global_batch_size": "3072"})
    shown = columns([full, section(6.0, 16)])
    cells = zip(shown, Table(shown).spans(full), strict=True)
    row = {column.heading: text for column, (text, _) in cells}
    expected = {
        "Energy (kJ)": "1,235",
        "Price (USD)": "149,000",
        "Published rank": "3 of 12",
        "Batch size": "3072",
        "Availability": "onprem",
        "Minutes": "5.000 (unverified)",
        "Submitter": "-",
    }
    assert row.items() >= expected.items()
    facts = dict(full.facts)
    assert facts["Published"] == "3 of 12 in 2.0 on 8 accelerators, 1 of 2 with X1"
    assert facts["Price"] == "149,000 US dollars (a list)"


def test_numbers_to_filter_by_are_in_their_order() -> None:
    sections = [section(5.0, size) for size in (1024, 8, 16)]
    assert choices(columns(sections), sections) == {"Accelerators": ["8", "16", "1,024"]}


def test_excerpts_are_the_lines_of_findings(tmp_path: Path) -> None:
    logs = simulated()
    checked = check([str(write_set(tmp_path, logs))], Options(round="2.0"))
    line = line_of(logs[0], "run_start")
    lines = [("result_0.txt", line), ("result_0.txt", None), ("no such file", 1)]
    findings = [Finding(code="X101", message="", path=p, line=n) for p, n in lines]
    ((location, text),) = excerpts(checked, findings).items()
    assert location == ("result_0.txt", line)
    assert text.startswith(':::MLLOG {"namespace"')
    assert '"run_start"' in text


@pytest.mark.parametrize(
    ("numbers", "lines"),
    [
        (range(1, 7), {1: "one", 2: "\ufffd", 3: "xxxxxxx...", 4: "four", 5: "five"}),
        ((), {}),
    ],
)
def test_raw_lines(numbers: Any, lines: dict[int, str]) -> None:
    data = b"one\r\n\xff\n" + b"x" * (3 << 20) + b"\n  four \nfive"
    assert raw_lines(Source("log", data), numbers, 10) == lines
