"""Previews of an earlier round, and their Available results in a later one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.findings import Finding
from tests.helpers.logs import joined, records
from tests.helpers.trees import SYSTEM, simulated, write_set, write_system


def slower(log: bytes, factor: float) -> bytes:
    """The log of a run with another duration."""
    fields = records(log)
    start: float = fields[0]["time_ms"]
    return joined([{**r, "time_ms": start + factor * (r["time_ms"] - start)} for r in fields])


def submission(root: Path, round_: str, factor: float, seed: int, **system: Any) -> Path:
    tree = root / f"training_results_v{round_}"
    write_system(tree / "Graphcore/systems", **system)
    logs = tuple(slower(log, factor) for log in simulated(seed=seed))
    write_set(tree / f"Graphcore/results/{SYSTEM}/resnet", logs)
    return tree


def rounds(root: Path, factor: float = 1.0, seed: int = 8, **changes: Any) -> list[Finding]:
    """The findings on a Preview in 2.0 that is checked with a submission to 2.1."""
    old = submission(root, "2.0", 1.0, 8, status="preview", number_of_nodes="4")
    new = submission(root, "2.1", factor, seed, **{"number_of_nodes": "4", **changes})
    findings = check([str(new), str(old)], Options(jobs=1)).report.findings
    return [finding for finding in findings if finding.code == "SET152"]


CASES = [
    ("as fast", 1.01, {}, True),
    ("slower by more than 2 %", 1.03, {}, False),
    ("faster on more", 0.99, {"number_of_nodes": "8"}, True),
    ("slower on more", 1.01, {"number_of_nodes": "8"}, False),
    ("twice the time on half", 2.03, {"number_of_nodes": "2"}, True),
    ("more than twice the time on half", 2.05, {"number_of_nodes": "2"}, False),
    ("in the cloud", 1.01, {"status": "cloud"}, True),
]


@pytest.mark.parametrize(("factor", "changes", "is_met"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])  # fmt: skip
def test_performance(factor: float, changes: Any, is_met: bool, tmp_path: Path) -> None:
    (finding,) = rounds(tmp_path, factor, **changes)
    assert finding.about.endswith(f"training_results_v2.0/Graphcore/results/{SYSTEM}/resnet")
    assert f"training_results_v2.1/Graphcore/results/{SYSTEM}/resnet): " in finding.text
    assert finding.text.endswith(
        "the performance is matched" if is_met else "the performance is not matched"
    )
    assert (finding.severity, finding.basis) == (("note", "advice") if is_met else ("warning", "rules"))  # fmt: skip


NO_PROOF = [
    ("the logs of the Preview", 1.0, {}),
    ("another accelerator", 1.01, {"accelerator_model_name": "x"}),
    ("a Preview again", 1.01, {"status": "preview"}),
    ("research", 1.01, {"status": "research"}),
    ("without accelerators", 1.01, {"number_of_nodes": "0"}),
]


@pytest.mark.parametrize(("factor", "changes"), [c[1:] for c in NO_PROOF], ids=[c[0] for c in NO_PROOF])  # fmt: skip
def test_results_that_do_not_prove_a_preview(factor: float, changes: Any, tmp_path: Path) -> None:
    assert rounds(tmp_path, factor, **changes) == []


def test_the_preview_of_a_later_round(tmp_path: Path) -> None:
    old = submission(tmp_path, "2.0", 1.0, 8)
    new = submission(tmp_path, "2.1", 1.01, 8, status="preview")
    report = check([str(old), str(new)], Options(jobs=1)).report
    assert "SET152" not in {finding.code for finding in report.findings}
