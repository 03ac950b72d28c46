"""The outcomes of Previews, by the results of a later round."""

from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.commands.notice import LEGEND, published_result
from mlperf_pkg.commands.review.previews import (
    PreviewOutcome,
    Role,
    Succession,
    previews,
    successions,
)
from mlperf_pkg.commands.review.round import LISTING_FORMATS, SideEntry
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import markdown
from tests.helpers.sides import entry, preview, side

MET, NOT_MET, NONE = PreviewOutcome.MET, PreviewOutcome.NOT_MET, PreviewOutcome.NONE


def succession(old: SideEntry, *new: SideEntry) -> Succession:
    (row,) = successions(side(old), side(*new))
    return row


# minutes of a Preview of 20 minutes on 8, the fields of its successor
ONE = [
    ("as fast", 20.0, {}, MET),
    ("2 % slower", 20.4, {}, MET),
    ("3 % slower", 20.6, {}, NOT_MET),
    ("faster on more", 19.9, {"accelerators": 16}, MET),
    ("as fast on more", 20.0, {"accelerators": 16}, NOT_MET),
    ("twice the time on half", 40.7, {"accelerators": 4}, MET),
    ("more than twice the time on half", 41.0, {"accelerators": 4}, NOT_MET),
    ("in the cloud", 20.0, {"status": "Available cloud"}, MET),
    ("in another spelling", 20.0, {"accelerator_model": "H100 SXM 80 GB"}, MET),
    ("by an alike submitter", 20.0, {"submitter": "ACME-Inc"}, MET),
    ("a joint submission", 20.0, {"submitter": "Zebra+ACME"}, MET),
    ("a submitter with the name in its own", 20.0, {"submitter": "XACME"}, NONE),
    ("another division", 20.0, {"division": "open"}, NONE),
    ("a Preview again", 20.0, {"status": "Preview"}, NONE),
    ("without a score", None, {}, NONE),
    ("without a count", 20.0, {"accelerators": None}, NONE),
]


@pytest.mark.parametrize(
    ("minutes", "fields", "outcome"), [c[1:] for c in ONE], ids=[c[0] for c in ONE]
)
def test_one_scale(minutes: Any, fields: Any, outcome: PreviewOutcome) -> None:
    row = succession(preview(), entry("4.1", minutes=minutes or 0, **fields))
    assert (row.outcome, row.role, row.due) == (outcome, Role.ONLY, "4.1")


ENERGY: list[tuple[float, Any, PreviewOutcome]] = [
    (30.0, {"energy_joules": 900.0}, MET),
    (10.0, {"energy_joules": 1030.0}, NOT_MET),
    (25.0, {"energy_joules": 1020.0, "accelerators": 16}, MET),
    (20.1, {}, MET),
]


@pytest.mark.parametrize(("minutes", "fields", "outcome"), ENERGY)
def test_energy_if_measured_in_both(minutes: float, fields: Any, outcome: PreviewOutcome) -> None:
    row = succession(preview(energy_joules=1000.0), entry("4.1", minutes=minutes, **fields))
    assert (row.outcome, row.by) == (outcome, "energy" if fields else "time")


@pytest.mark.parametrize(
    ("previewed", "available", "outcomes"),
    [
        ((8, 32), (8, 32), (MET, MET)),
        ((8, 16, 32), (8, 32), (MET, PreviewOutcome.BETWEEN, MET)),
        ((8, 32), (4, 64), (MET, MET)),
        ((8, 32), (16, 32), (PreviewOutcome.OTHER_SCALE, MET)),
        ((8, 32), (8, 16), (MET, PreviewOutcome.OTHER_SCALE)),
    ],
)
def test_scales(
    previewed: tuple[int, int] | tuple[int, int, int],
    available: tuple[int, int],
    outcomes: tuple[PreviewOutcome, PreviewOutcome]
    | tuple[PreviewOutcome, PreviewOutcome, PreviewOutcome],
) -> None:
    """Of Previews and of results, of 160 minutes x accelerators each."""
    old = [preview(160 / number, accelerators=number) for number in previewed]
    new = [entry("4.1", minutes=160 / number, accelerators=number) for number in available]
    assert tuple(row.outcome for row in successions(side(*old), side(*new))) == outcomes


def test_nodes_without_accelerators() -> None:
    fields: Any = {"accelerator_model": "N/A", "accelerators": None, "host_processor": "Xeon"}
    old = preview(nodes=4, **fields)
    row = succession(old, entry("4.1", minutes=20.0, nodes=8, **fields))
    assert (row.outcome, str(row.scale)) == (NOT_MET, "4 nodes")


def test_a_certain_match_comes_first() -> None:
    sure = entry("4.1", minutes=30.0)
    row = succession(preview(), entry("4.1", minutes=10.0, accelerator_model="H100"), sure)
    assert (row.outcome, row.successor and row.successor.row) == (NOT_MET, sure.row)


@pytest.mark.parametrize(("logs", "fields"), [((1, 3), {}), ((3, 4), {"unscaled_minutes": 33.25})])
def test_its_own_logs_prove_nothing(logs: tuple[int, ...], fields: Any) -> None:
    """The same logs, or the same mean."""
    old = entry("4.0", 1, 2, status="Preview", unscaled_minutes=33.25)
    own = entry("4.1", *logs, **fields)
    assert succession(old, own).outcome is PreviewOutcome.OWN_LOGS
    fresh = entry("4.1", 9, accelerators=16, minutes=10.0)
    successor = succession(old, own, fresh).successor
    assert successor is not None
    assert successor.row is fresh.row


@pytest.mark.parametrize(
    ("old", "new", "due", "outcome"),
    [
        ("4.0", ("4.1",), "4.1", MET),
        ("4.0", ("5.0",), "4.1", PreviewOutcome.LATE),
        ("4.0", ("5.0", "4.1"), "4.1", MET),
        ("4.1", ("4.0",), "5.0", PreviewOutcome.NOT_DUE),
    ],
)
def test_rounds(old: str, new: tuple[str, ...], due: str, outcome: PreviewOutcome) -> None:
    row = succession(preview(round_=old), *(entry(name) for name in new))
    assert (row.due, row.outcome) == (due, outcome)
    assert outcome is not MET or (row.successor and row.successor.row.round) == due


@pytest.mark.parametrize(
    ("old", "first", "new", "then", "outcome", "remark"),
    [
        ("gnn", "4.1", "rgat", "5.0", MET, ""),
        (
            "ssd",
            "1.1",
            "ssd",
            "2.0",
            PreviewOutcome.CHANGED,
            "the benchmark has another target in round 2.0",
        ),
        (
            "dlrm",
            "2.1",
            "dlrm_dcnv2",
            "3.0",
            PreviewOutcome.CHANGED,
            "the benchmark is not in round 3.0",
        ),
        (
            "bert",
            "0.7",
            "bert",
            "1.0",
            PreviewOutcome.CHANGED,
            "the benchmark has another target in round 1.0",
        ),
    ],
)
def test_benchmarks(
    old: str, first: str, new: str, then: str, outcome: PreviewOutcome, remark: str
) -> None:
    row = succession(preview(round_=first, benchmark=old), entry(then, benchmark=new))
    assert (row.outcome, row.remark) == (outcome, remark)


@pytest.mark.parametrize(
    ("unscaled", "remark"), [(19.0, "the change is +5.3 % without normalisation"), (21.0, "")]
)
def test_normalisation(unscaled: float, remark: str) -> None:
    """Slower by its factor alone, and anyway."""
    old = preview(unscaled_minutes=20.0)
    row = succession(old, entry("4.1", minutes=22.0, unscaled_minutes=unscaled))
    assert (row.outcome, row.remark) == (NOT_MET, remark)


WHY_NONE: list[tuple[Any, str]] = [
    ({"submitter": "Zebra"}, "ACME has no results"),
    ({"accelerator_model": "B200"}, "no results on this accelerator"),
    ({"benchmark": "ssd"}, "results on this accelerator only for ssd"),
    ({"status": "research"}, "results only with the status research"),
]


@pytest.mark.parametrize(("fields", "remark"), WHY_NONE)
def test_reasons_for_the_lack_of_a_successor(fields: Any, remark: str) -> None:
    row = succession(preview(), entry("4.1", **fields))
    assert (row.outcome, row.remark) == (NONE, remark)


@pytest.mark.parametrize("field", ["accelerators", "score_minutes"])
def test_a_preview_without_figures(field: str) -> None:
    changes: Any = {field: None}
    row = succession(preview(**changes), entry("4.1"))
    assert (row.outcome, row.successor) == (NOT_MET, None)
    assert row.remark.startswith("the Preview has no ")


LORA: dict[str, Any] = {"benchmark": "llama2_70b_lora"}
RETIRED = PreviewOutcome.RETIRED


@pytest.mark.parametrize(
    ("previewed", "shown", "outcomes"),
    [
        ([{}], [], (RETIRED,)),
        ([{}], [20.4], (MET,)),
        ([{}], [20.6], (NOT_MET,)),
        ([{}, LORA], [], (PreviewOutcome.CHANGED, NONE)),
        (
            [{"accelerators": 4}, {}, {"accelerators": 16}],
            [20.0],
            (PreviewOutcome.OTHER_SCALE, PreviewOutcome.BETWEEN, PreviewOutcome.OTHER_SCALE),
        ),
    ],
    ids=["not shown", "met", "slower", "another benchmark", "smallest and largest scale"],
)
def test_retired_benchmarks(
    previewed: list[Any], shown: list[float], outcomes: tuple[PreviewOutcome, ...]
) -> None:
    """BERT is not in 5.1: of a system without another benchmark, runs of it are shown."""
    old = [preview(round_="5.0", **fields) for fields in previewed]
    new = side(entry("5.1", submitter="Other", **LORA))
    path = "ACME/results/shown/bert"
    proofs = [entry("5.0", minutes=minutes, path=path) for minutes in shown]
    assert tuple(row.outcome for row in successions(side(*old), new, proofs)) == outcomes


def test_before_the_rule_retired_benchmarks_need_no_proof() -> None:
    row = succession(preview(round_="2.1", benchmark="dlrm"), entry("3.0", **LORA))
    assert row.outcome is PreviewOutcome.CHANGED


def test_scores_of_previews_are_unverified_unless_the_record_has_them() -> None:
    beside = replace(published_result(entry("4.1").row), is_verified=False)
    successor = replace(entry("4.1", minutes=19.0), beside=beside)
    listing = previews(side(preview()), side(successor))
    text = LISTING_FORMATS["markdown"](listing, View(80))
    assert "20.000 | 19.000 (unverified) on 8" in text
    assert "change of the performance" in text
    assert LEGEND in text
    [table] = listing.section("Previews").tables.values()
    assert "20 | " in markdown(table)
    assert "19 (unverified)" in markdown(table)
