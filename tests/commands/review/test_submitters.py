"""The submitters of a round: results, verdicts and findings."""

from __future__ import annotations

from mlperf_pkg.findings import Severity
from tests.helpers.reports import FAIL, finding
from tests.helpers.reviews import a_round, a_set, a_system


def test_one_row_per_submitter() -> None:
    made = submitters_section(
        a_round(
            ["ACME", "Beta"],
            [a_set("ACME", verdict=FAIL), a_set("ACME", "ssd", "pod", division="open")],
            [a_system("ACME"), a_system("ACME", "pod", accelerators=64)],
            [
                finding("ACME/results/dgx/bert/result_0.txt"),
                finding("ACME/systems/pod.json", severity=Severity.WARNING),
                finding("ACMEs/systems/pod.json"),
            ],
        )
    )
    assert made.tables[0].rows == (
        ("ACME", 2, 2, 64, "closed, open", 1, 0, 1, 1),
        ("Beta", 0, 0, None, "", 0, 0, 0, 0),
    )
    assert made.summary == (
        "1 submitter, 2 systems, 2 result sets, 0 runs",
        "result sets that fail: 1 by the official verdict, 0 by the rules",
    )
