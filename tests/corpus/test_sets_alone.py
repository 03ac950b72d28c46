"""Every published result set has the same verdicts named alone as in its submission.

Three rounds are in every run, all with ``MLPERF_PKG_FULL=1``.
"""

import shutil
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.findings import Basis, Severity, Verdicts
from tests.helpers.corpus import (
    CORPUS,
    FULL,
    ROUNDS,
    checked,
    kind_of,
    needs_corpus,
    submissions_of,
)

pytestmark = needs_corpus

OUTSIDE = {
    *("SET110", "SET111", "SET115", "SET117", "SET131", "SET140", "SET141", "SET142"),
    *("CODE100", "CODE101", "CODE102", "CODE103", "CODE104", "POW205"),
    *("SET160", "SET161", "SET164", "SEED106"),
}
"""What a folder alone does not show: description, other systems, submitter, code, published round."""

OF_BOTH_DIVISIONS = ("v0.7/SIAT/results/modelarts_512_tensorflow_open/resnet",)
"""Sets whose logs name both divisions, so that their description decides."""

AT_THE_TOP = {
    "v2.0/Google/results/cloud-tpu-v4-6912-TF/bert": "rcp_bypass",
    "v2.0/Google/results/cloud-tpu-v4-8192-TF/bert": "rcp_bypass",
    "v2.1/Baidu/results/8_node_64_A100_PaddlePaddle/bert": "rcp_bert_train_samples",
}
"""Sets whose RCP test depends on a flag at the top of their submission, which logs do not show."""

OTHER_FILES = {"SET105", "SET118", "SET119", "SET120", "POW201", "POW203", "POW204"}
"""Codes about files of the folder that are not logs, which logs alone do not show."""


def judgement(result: SetResult) -> tuple[Verdicts, set[tuple[str, Severity, Basis]]]:
    findings = (*result.findings, *result.run_findings)
    codes = {(f.code, f.severity, f.basis) for f in findings if f.code not in OUTSIDE}
    return result.row.verdict, codes


@pytest.mark.parametrize("tree", ROUNDS if FULL else ["v0.7", "v2.1", "hpc_v2.0"])
def test_alone(tree: str, tmp_path: Path) -> None:
    """A folder, and the logs of a complete set without it: 262 of the 265 are complete."""
    for submission in submissions_of(tree):
        whole = checked(submission)
        for result in whole.sets:
            path = f"{submission}/{result.row.path}"
            if result.runs:
                assert judged(CORPUS / path) == judgement(result) or path in OF_BOTH_DIVISIONS
            if result.runs and is_complete(whole, result):
                logs = tmp_path / path
                logs.mkdir(parents=True)
                for run in result.runs:
                    shutil.copy(CORPUS / submission / run, logs)
                verdict, codes = judgement(result)
                in_logs = {code for code in codes if code[0] not in OTHER_FILES}
                options = Options(kind_of(tree)[0], result.row.round, jobs=1)
                assert judged(logs, options) == (verdict, in_logs) or path in AT_THE_TOP


def judged(path: Path, options: Options | None = None) -> object:
    """The judgement of the only set, whose verdict is that of the report."""
    alone = check([str(path)], options or Options(jobs=1))
    (result,) = alone.sets
    assert alone.report.verdict == result.row.verdict
    return judgement(result)


def is_complete(submission: Checked, result: SetResult) -> bool:
    """Whether the logs are as many as required, all of one benchmark, division and platform."""
    runs = [run for run in submission.runs if run.path in result.runs]
    kinds = {(run.benchmark, run.division, run.text("platform")) for run in runs}
    return len(kinds) == 1 and len(runs) == result.row.runs_required
