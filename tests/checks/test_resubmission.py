"""Runs of an earlier round: one judgement, in the words of every command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.descriptions import different_fields
from mlperf_pkg.commands.diff.reading import compare_paths
from mlperf_pkg.commands.review.resubmitted import resubmissions
from mlperf_pkg.commands.review.round import checked_side
from tests.helpers.copies import two_rounds
from tests.helpers.logs import joined, records
from tests.helpers.published import publish

Edit = Callable[[Path], None]


def another_byte(log: Path) -> None:
    log.write_bytes(log.read_bytes() + b"\n")


def rejected(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"global_batch_size"', b'"globl_batch_size"'))


def repeated(log: Path) -> None:
    fields = records(log.read_bytes())
    for number, record in enumerate(fields):
        record["time_ms"] += 86_400_000 + 7919 * number % 997
    log.write_bytes(joined(fields))


ALLOWED = "the rules allow submitting these runs again, because the system description is the same"
NOT = ", so the rules forbid submitting these runs again"
CASES: list[tuple[str, dict[str, Any], Edit | None, str]] = [
    ("nothing", {}, None, ALLOWED),
    ("another spelling", {"status": "Available on-premise", "division": "CLOSED"}, None, ALLOWED),
    ("another field", {"cooling": "water"}, None, f"the description differs in cooling{NOT}"),
    (
        "no longer available",
        {"status": "research"},
        None,
        f"the description differs in status{NOT}",
    ),
    (
        "a byte",
        {},
        another_byte,
        f"1 of the logs has been changed since then{NOT}",
    ),
    (
        "a log that is rejected",
        {},
        rejected,
        "1 of the logs has been changed since then and the logs fail the official checker of round"
        f" 5.1{NOT}",
    ),
    ("a run that was repeated", {}, repeated, ALLOWED),
]


@pytest.mark.parametrize(
    ("changes", "edit", "judgement"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_every_command_has_the_same_judgement(
    changes: dict[str, Any], edit: Edit | None, judgement: str, tmp_path: Path
) -> None:
    old, new = two_rounds(tmp_path, **changes)
    if edit:
        edit(next(new.rglob("result_0.txt")))
    options = Options(jobs=1)
    findings = check([str(old), str(new)], options).report.findings
    (finding,) = (f for f in findings if f.code == "SET151")
    sides = (checked_side(path.name, check([str(path)], options)) for path in (old, new))
    (row,) = resubmissions(*sides)
    comparison = compare_paths(str(old), str(new), options)
    verdicts = [entry for entry in comparison.entries if entry.kind == "resubmitted"]
    assert finding.text.endswith(f"; {judgement}")
    assert row.judgement.text == judgement
    assert [verdict.text.partition(" (")[0] for verdict in verdicts] == [judgement]


def test_what_only_the_record_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the description and, without a clock, whether a run was repeated."""
    old, new = two_rounds(tmp_path)
    publish(monkeypatch, old)
    for log in new.rglob("result_*.txt"):
        repeated(log)
    findings = check([str(new)], Options(jobs=1)).report.findings
    (finding,) = (f for f in findings if f.code.startswith("SET16"))
    assert (finding.code, finding.severity) == ("SET160", "note")
    assert finding.hint == (
        "the rules allow this under certain conditions; not all could be checked, as it is not"
        " known whether 10 runs with published values are copies or repetitions; some values of the"
        " published system description are unknown"
    )


FIELDS = [
    ({"status": "onprem"}, {"status": "Available on-premise"}, []),
    ({"status": "onprem"}, {"status": "cloud"}, ["status"]),
    ({"status": "x"}, {"status": "y"}, ["status"]),
    ({"division": "closed"}, {"division": "Closed "}, []),
    ({"number_of_nodes": 8}, {"number_of_nodes": "8"}, []),
    ({"number_of_nodes": 8}, {"number_of_nodes": "8 nodes"}, ["number_of_nodes"]),
    ({"framework": "A 1.0 "}, {"framework": "A 1.0"}, []),
    ({"cooling": ""}, {}, ["cooling"]),
]


@pytest.mark.parametrize(("old", "new", "fields"), FIELDS, ids=json.dumps)
def test_different_fields(old: dict[str, Any], new: dict[str, Any], fields: list[str]) -> None:
    assert different_fields(old, new) == fields
