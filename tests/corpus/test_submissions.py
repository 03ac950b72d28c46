"""Whole published submissions: package and repository checker, live on copies, against our verdict."""

from __future__ import annotations

import os
import shutil
from functools import lru_cache
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.descriptions import SystemFile, check_system
from mlperf_pkg.findings import Verdict, verdicts_of
from mlperf_pkg.results.report import Report
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.corpus import CORPUS, ROUNDS, expected, needs_corpus
from tests.helpers.official import official_verdict

pytestmark = needs_corpus

SMALL_BYTES = 700_000
"""What is larger is judged with ``MLPERF_PKG_FULL=1`` only."""


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def submissions() -> list[str]:
    folders = sorted(path.parent for path in CORPUS.glob("*v*/*/results"))
    full = os.environ.get("MLPERF_PKG_FULL")
    return [str(p.relative_to(CORPUS)) for p in folders if full or size(p) < SMALL_BYTES]


@pytest.mark.filterwarnings("ignore:Result file .* logs more than one seeds")
@pytest.mark.parametrize("name", submissions())
def test_verdict_of_the_upload(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    report = check([str(CORPUS / name)], Options(jobs=1)).report
    usage = "hpc" if name.startswith("hpc") else "training"
    official, message = official_verdict(
        CORPUS / name, tmp_path, caplog, usage, f"{report.round}.0"
    )
    shutil.rmtree(tmp_path / "copy")
    assert report.verdict.official.value == official, message


def check_round(name: str) -> dict[str, SystemFile]:
    """The round's system descriptions by path."""
    usage = "hpc" if name.startswith("hpc") else "training"
    files = sorted((CORPUS / name).glob("*/systems/*.json"))
    paths = {file.relative_to(CORPUS / name).as_posix(): file for file in files}
    return {
        path: check_system(path, file.read_bytes(), usage, name.rpartition("v")[2])
        for path, file in paths.items()
    }


@pytest.mark.parametrize("name", ROUNDS)
def test_official_verdict(name: str) -> None:
    official = {
        path: verdicts_of(system.findings).official for path, system in check_round(name).items()
    }
    assert official == {
        path: Verdict.of(answer != "pass") for path, answer in expected(name)["systems"].items()
    }


@pytest.mark.parametrize("name", ROUNDS)
def test_published_systems_break_no_rule_but_these(name: str) -> None:
    failed = {
        system.path.split("/")[0]
        for system in check_round(name).values()
        if verdicts_of(system.findings).rules is Verdict.FAIL
    }
    assert failed == {"v0.7": {"Alibaba", "SIAT"}, "v1.0": {"PCL"}}.get(name, set())


@pytest.mark.parametrize("name", ROUNDS)
def test_accelerators_are_counted(name: str) -> None:
    readable = [system for system in check_round(name).values() if system.contents is not None]
    assert all(system.accelerators for system in readable)


REVIEWED = ("v1.0", "v1.1", "v2.0")


@lru_cache
def report_of(round_: str) -> Report:
    return check([str(CORPUS / round_)], Options(flags=frozenset({KEEP_SCALING}))).report


@pytest.mark.parametrize(
    ("round_", "path", "minutes"),
    [
        ("v1.0", "ipu-pod64-POPART-open/bert", 9.392),
        ("v1.0", "ipu-pod64-TF1/resnet", 14.485),
        ("v1.0", "ipu-pod16-POPART-closed/bert", 34.489),
        ("v1.0", "ipu-pod16-TF1/resnet", 37.115),
        ("v2.0", "ipu-pod16-TF1-closed/resnet", 19.635),
        ("v2.0", "ipu-pod64-TF1-closed/resnet", 6.302),
        ("v2.0", "ipu-pod128-TF1-closed/resnet", 4.185),
        ("v2.0", "ipu-pod256-TF1-closed/resnet", 2.672),
        ("v2.0", "ipu-pod16-POPART-closed/bert", 20.654),
        ("v2.0", "ipu-pod64-POPART-closed/bert", 6.703),
        ("v2.0", "ipu-pod128-POPART-closed/bert", 4.415),
        ("v2.0", "ipu-pod256-POPART-closed/bert", 3.185),
        ("v2.0", "ipu-pod64-POPART-open/rnnt", 109.357),
    ],
)
def test_scores_by_name(round_: str, path: str, minutes: float) -> None:
    rows = {row.path: row for row in report_of(round_).result_sets}
    score = rows[f"Graphcore/results/{path}"].score_minutes
    assert score is not None
    assert round(score, 3) == minutes


@pytest.mark.parametrize("round_", REVIEWED)
def test_reviewed_runs_do_not_break_the_rules(round_: str) -> None:
    """Competitors reviewed these runs: those of ``FLAGGED``, a spelling, and two learning rates."""
    errors = {
        (finding.code, finding.path.split("/")[0])
        for finding in report_of(round_).findings
        if finding.severity == "error" and finding.basis in ("rules", "both")
    }
    exceptions = {
        "v1.0": {("SYS201", "PCL"), ("SSD123", "Google")},
        "v1.1": {("SET122", "Intel-HabanaLabs"), ("RUN122", "Graphcore")},
    }
    assert errors == exceptions.get(round_, set())
