"""Every published result set has the same verdicts named alone as in its submission."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.findings import Basis, Severity, Verdicts
from tests.helpers.corpus import CORPUS, ROUNDS, expected, needs_corpus

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


@pytest.fixture(scope="module", params=ROUNDS)
def submissions(request: pytest.FixtureRequest) -> dict[str, Checked]:
    """Every submission of a round by its path in the corpus."""
    tree: str = request.param
    names = sorted({path.split("/")[0] for path in expected(tree)["result_sets"]})
    return {f"{tree}/{name}": checked(CORPUS / tree / name) for name in names}


def checked(path: Path, options: Options | None = None) -> Checked:
    return check([str(path)], options or Options(jobs=1))


def sets_of(submissions: dict[str, Checked]) -> dict[str, SetResult]:
    """The result sets with a log by their paths in the corpus."""
    return {
        f"{name}/{result.row.path}": result
        for name, submission in submissions.items()
        for result in submission.sets
        if result.runs
    }


def judgement(result: SetResult) -> tuple[Verdicts, set[tuple[str, Severity, Basis]]]:
    findings = (*result.findings, *result.run_findings)
    codes = {(f.code, f.severity, f.basis) for f in findings if f.code not in OUTSIDE}
    return result.row.verdict, codes


def test_a_folder_alone_has_the_verdicts_of_its_submission(
    submissions: dict[str, Checked],
) -> None:
    for path, result in sets_of(submissions).items():
        alone = checked(CORPUS / path)
        (of_alone,) = alone.sets
        assert alone.report.verdict == of_alone.row.verdict
        assert judgement(of_alone) == judgement(result) or path in OF_BOTH_DIVISIONS


def test_all_logs_of_a_set_have_the_verdicts_of_its_submission(
    submissions: dict[str, Checked], tmp_path: Path
) -> None:
    """262 of the 265 sets are complete; without their folders all but those three agree."""
    for index, (path, result) in enumerate(sets_of(submissions).items()):
        tree, name, *_ = path.split("/")
        submission = submissions[f"{tree}/{name}"]
        if not is_complete(submission, result):
            continue
        logs = tmp_path / str(index)
        logs.mkdir()
        for run in result.runs:
            shutil.copy(CORPUS / tree / name / run, logs)
        loose = checked(logs, Options(submission.report.usage, result.row.round, jobs=1))
        (of_loose,) = loose.sets
        assert loose.report.verdict == of_loose.row.verdict
        verdict, codes = judgement(result)
        if path not in AT_THE_TOP:
            in_logs = {code for code in codes if code[0] not in OTHER_FILES}
            assert judgement(of_loose) == (verdict, in_logs)


def is_complete(submission: Checked, result: SetResult) -> bool:
    """Whether the logs are as many as required, all of one benchmark, division and platform."""
    runs = [run for run in submission.runs if run.path in result.runs]
    kinds = {(run.benchmark, run.division, run.text("platform")) for run in runs}
    return len(kinds) == 1 and len(runs) == result.row.runs_required
