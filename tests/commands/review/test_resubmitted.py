"""Result sets with logs of an earlier round."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checks.descriptions import check_system
from mlperf_pkg.checks.resubmission import Outcome
from mlperf_pkg.commands.review.resubmitted import resubmissions, resubmitted
from mlperf_pkg.commands.review.round import SideEntry
from mlperf_pkg.findings import Verdict
from tests.helpers.sides import entry, side

UNKNOWN, LATER, FORBIDDEN = Outcome.UNKNOWN, Outcome.LATER, Outcome.NOT_ALLOWED
CASES = [
    ("nothing changed", {}, (), UNKNOWN),
    ("another spelling of the status", {"status": "Available on-premise"}, (), UNKNOWN),
    ("another framework", {"framework": "F2"}, ("the description differs in framework",), LATER),
    ("another division", {"division": "open"}, ("the description differs in division",), LATER),
    (
        "another submitter",
        {"submitter": "Zebra"},
        ("the runs are of the submitter ACME",),
        FORBIDDEN,
    ),
    ("another benchmark", {"benchmark": "ssd"}, ("the runs are of the benchmark bert",), FORBIDDEN),
    (
        "failing logs",
        {"official": Verdict.FAIL},
        ("the logs fail the official checker of round 4.1",),
        LATER,
    ),
]


@pytest.mark.parametrize(
    ("changes", "problems", "outcome"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_problems(changes: Any, problems: tuple[str, ...], outcome: Outcome) -> None:
    old = entry("4.0", 1, 2, status="onprem")
    (row,) = resubmissions(side(old), side(entry("4.1", 2, 1, **{"status": "onprem", **changes})))
    assert (row.judgement.problems, row.identical, row.runs) == (problems, 2, 2)
    assert row.outcome is outcome


def test_since_the_rules_say_what_may_be() -> None:
    (row,) = resubmissions(side(entry("5.0", 1)), side(entry("5.1", 1, framework="F2")))
    assert row.outcome is FORBIDDEN


def test_a_set_is_counted_once() -> None:
    """Its runs are from two sets of two rounds, which both had them; one outcome is the worst."""
    first = entry("4.0", 1, 2, path="ACME/results/box/bert")
    second = entry("4.1", 1, 2, path="ACME/results/box/bert")
    other = entry("4.1", 3, framework="F2", path="ACME/results/other/bert")
    listing = resubmitted(side(first, second, other), side(entry("5.0", 1, 2, 3)))
    assert [(row.old.row, row.runs) for row in listing.rows] == [(first.row, 2), (other.row, 1)]
    assert listing.counts == {**dict.fromkeys(Outcome, 0), LATER: 1}
    assert listing.summary[:2] == (
        "1 of 1 result set has logs of an earlier round",
        "1 not allowed since round 5.1",
    )


def described(set_: SideEntry, stack: str) -> SideEntry:
    """With a whole description, which has the stack, unlike the record of published rounds."""
    data = json.dumps({"framework": "F1", "other_software_stack": stack}).encode()
    return replace(set_, system=check_system("ACME/systems/box.json", data, "training", "4.0"))


@pytest.mark.parametrize(
    ("stack", "outcome"),
    [
        ("CUDA 12.1", Outcome.ALLOWED),
        ("CUDA 12.4", LATER),
        (None, UNKNOWN),
    ],
    ids=["the same", "another", "not described"],
)
def test_another_software_stack(stack: str | None, outcome: Outcome) -> None:
    old = described(entry("4.0", 1), "CUDA 12.1")
    new = entry("4.1", 1, official=Verdict.PASS)
    if stack:
        new = described(new, stack)
    (row,) = resubmissions(side(old), side(new))
    assert row.outcome is outcome


@pytest.mark.parametrize(
    ("status", "problems"),
    [("cloud", ("a former Preview needs new runs",)), ("preview", ()), ("", ())],
)
def test_the_logs_of_a_preview(status: str, problems: tuple[str, ...]) -> None:
    old, new = entry("4.0", 1, status="Preview"), entry("4.1", 1, status=status)
    (row,) = resubmissions(side(old), side(new))
    assert row.judgement.problems == problems


def test_rewritten_logs() -> None:
    old, new = (
        entry(name, number, unscaled_minutes=20.5) for number, name in enumerate(("4.0", "4.1"))
    )
    (row,) = resubmissions(side(old), side(new))
    assert (row.runs, row.identical) == (10, 0)
    assert row.judgement.problems == ("10 of the logs have been changed since then",)
    assert resubmissions(side(old), side(entry("4.1", 1, unscaled_minutes=20.5, runs=9))) == []


def test_kinds_of_as_many_sets_are_in_one_order() -> None:
    old = entry("4.0", 0, unscaled_minutes=20.5)
    new = entry("4.1", 1, unscaled_minutes=20.5, framework="F2", official=Verdict.FAIL)
    kinds = [line.partition(" (")[0] for line in resubmitted(side(old), side(new)).summary[2:5]]
    assert kinds == [
        "1 with rewritten logs",
        "1 with a different system description",
        "1 with logs that fail the checker of their new round",
    ]


@pytest.mark.parametrize(("old", "new"), [("4.0", "4.0"), ("4.1", "4.0")])
def test_only_later_rounds(old: str, new: str) -> None:
    assert resubmissions(side(entry(old, 1)), side(entry(new, 1))) == []


def test_the_set_of_the_same_name_is_the_origin() -> None:
    other = entry("4.0", 1, 2, path="ACME/results/other/bert")
    same = entry("4.0", 1, path="ACME/results/box/bert")
    rows = resubmissions(side(other, same), side(entry("4.1", 1, 2)))
    assert [(row.old.row, row.runs) for row in rows] == [(same.row, 1), (other.row, 1)]


def test_without_a_description() -> None:
    (row,) = resubmissions(side(entry("4.0", 1, system_name="")), side(entry("4.1", 1)))
    assert (row.description, row.judgement.problems) == ("not known", ())
