"""How many findings are in how many of what."""

import pytest

from mlperf_pkg.findings import Finding, folded
from mlperf_pkg.results.amounts import Subjects
from tests.helpers.reports import SET, finding, report, result_set, run, system

SETS = (result_set(), result_set(benchmark="resnet", runs_found=0))
LOOSE = run(path="logs/loose.log", set=None)
A_REPORT = report(result_sets=SETS, systems=(system(),), runs=(run(), LOOSE))
OF_SET = finding("results/dgx/bert", set=SET)
OF_RUN = finding("results/dgx/bert/result_0.txt", 3, set=SET)
WITHOUT_RUNS = finding("results/dgx/resnet", set="ACME/dgx/resnet/closed")
OF_SYSTEM = finding("systems/dgx.json", 3)
OF_LOG = finding("logs/loose.log", 3)
(OF_SUBMISSION,) = folded([finding(".")], ".")
OF_FILE = finding("logs.gz")


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        pytest.param([], [], id="none"),
        pytest.param([OF_SET], ["1 error in 1 of 2 result sets"], id="a set"),
        pytest.param([OF_SET, OF_RUN], ["2 errors in 1 of 2 result sets"], id="a set and its run"),
        pytest.param([WITHOUT_RUNS], ["1 error in 1 of 2 result sets"], id="a set without runs"),
        pytest.param([OF_SYSTEM] * 2, ["2 errors in 1 system description"], id="a description"),
        pytest.param([OF_LOG], ["1 error in 1 log outside result sets"], id="a log of no set"),
        pytest.param([OF_SUBMISSION], ["1 error in 1 submission"], id="a submission"),
        pytest.param([OF_FILE], ["1 error in 1 file"], id="a file"),
        pytest.param(
            [OF_FILE, OF_SUBMISSION, OF_LOG, OF_SYSTEM, WITHOUT_RUNS, OF_SET],
            [
                "2 errors in 2 of 2 result sets",
                "1 error in 1 system description",
                "1 error in 1 log outside result sets",
                "1 error in 1 submission",
                "1 error in 1 file",
            ],
            id="each kind of thing",
        ),
    ],
)
def test_amounts(findings: list[Finding], words: list[str]) -> None:
    assert list(Subjects(A_REPORT).in_words(findings, "error")) == words


def test_logs_without_any_set() -> None:
    subjects = Subjects(report(runs=(LOOSE,)))
    assert list(subjects.in_words([OF_LOG], "error")) == ["1 error in 1 log"]
