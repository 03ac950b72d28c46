"""Result sets with logs of an earlier round."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checks.descriptions import check_system
from mlperf_pkg.commands.review.resubmitted import resubmissions
from mlperf_pkg.commands.review.round import SideEntry
from mlperf_pkg.findings import Verdict
from tests.helpers.sides import entry, side

CASES = [
    ("nothing changed", {}, ()),
    ("another spelling of the status", {"status": "onprem"}, ()),
    ("another framework", {"framework": "F2"}, ("the description differs in framework",)),
    ("another submitter", {"submitter": "Zebra"}, ("runs of ACME",)),
    ("another benchmark", {"benchmark": "ssd"}, ("runs of bert",)),
    ("failing logs", {"official": Verdict.FAIL}, ("the logs fail the checker of 4.1",)),
]


@pytest.mark.parametrize(("changes", "problems"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_problems(changes: Any, problems: tuple[str, ...]) -> None:
    (row,) = resubmissions(side(entry("4.0", 1, 2)), side(entry("4.1", 2, 1, **changes)))
    assert (row.problems, row.identical, row.runs) == (problems, 2, 2)
    assert row.outcome == ("not allowed" if problems else "not known from the record")


def described(set_: SideEntry, stack: str) -> SideEntry:
    """With a whole description, which has the stack, unlike the record of published rounds."""
    data = json.dumps({"framework": "F1", "other_software_stack": stack}).encode()
    return replace(set_, system=check_system("ACME/systems/box.json", data, "training", "4.0"))


@pytest.mark.parametrize(
    ("stack", "outcome"),
    [
        ("CUDA 12.1", "allowed"),
        ("CUDA 12.4", "not allowed"),
        (None, "not known from the record"),
    ],
    ids=["the same", "another", "not described"],
)
def test_another_software_stack(stack: str | None, outcome: str) -> None:
    old = described(entry("4.0", 1), "CUDA 12.1")
    new = entry("4.1", 1)
    if stack:
        new = described(new, stack)
    (row,) = resubmissions(side(old), side(new))
    assert row.outcome == outcome


@pytest.mark.parametrize(
    ("status", "problems"), [("", ("runs of a Preview, which prove nothing",)), ("preview", ())]
)
def test_the_logs_of_a_preview(status: str, problems: tuple[str] | tuple[()]) -> None:
    old, new = entry("4.0", 1, status="Preview"), entry("4.1", 1, status=status)
    (row,) = resubmissions(side(old), side(new))
    assert row.problems == problems


def test_rewritten_logs() -> None:
    old, new = (
        entry(name, number, unscaled_minutes=20.5) for number, name in enumerate(("4.0", "4.1"))
    )
    (row,) = resubmissions(side(old), side(new))
    assert (row.runs, row.identical) == (10, 0)
    assert resubmissions(side(old), side(entry("4.1", 1, unscaled_minutes=20.5, runs=9))) == []


@pytest.mark.parametrize(("old", "new"), [("4.0", "4.0"), ("4.1", "4.0")])
def test_only_later_rounds(old: str, new: str) -> None:
    assert resubmissions(side(entry(old, 1)), side(entry(new, 1))) == []


def test_the_set_of_the_same_name_is_the_origin() -> None:
    other = entry("4.0", 1, 2, path="ACME/results/other/bert")
    same = entry("4.0", 1, path="ACME/results/box/bert")
    (row,) = resubmissions(side(other, same), side(entry("4.1", 1, 2)))
    assert row.old.row is same.row


def test_without_a_description() -> None:
    (row,) = resubmissions(side(entry("4.0", 1, system_name="")), side(entry("4.1", 1)))
    assert (row.description, row.problems) == ("not known", ())
