"""Which planned result sets are valid, which bypasses they need, and what is said of the rest."""

import re
from collections.abc import Sequence

import pytest

from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.commands.builder.judge import JudgedSet, judge, reasons, report
from mlperf_pkg.commands.builder.plan import make_plan
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.helpers.workspaces import logs_of, system, with_one_seed, workspace

GOOD = logs_of("bow-pod16")
TWINS = with_one_seed(GOOD)
BOX = system("box")


def read(logs: Sequence[bytes]) -> list[Run]:
    return [
        read_run(LogFile(Source(f"logs/{n}.log", log), round="2.0")) for n, log in enumerate(logs)
    ]


def judged(
    logs: Sequence[bytes], bypasses: Sequence[str] = (), box: SystemFile = BOX
) -> tuple[JudgedSet, ...]:
    inputs = workspace(read(logs), [box])
    return judge(make_plan(inputs), inputs, bypasses)


def test_findings_of_a_kind_are_folded() -> None:
    (reason,) = reasons(judged(TWINS[:4]))
    assert re.sub(r"seed \d+", "seed N", re.sub(r"log:\d+", "log:LINE", reason)).split("\n") == [
        "box/resnet is not valid:",
        "  results/box/resnet: SEED102: seed N is logged by the same source line in several runs;"
        " expected another seed (3 of 4 runs; first logs/1.log:LINE) [official checker]",
        "    --seed-checker-bypass builds it and asks for a review",
        "  results/box/resnet: SET101: the number of runs (files result_*.txt) is 4; expected 5"
        " [rules and official checker]",
    ]


def test_systems_are_judged_too() -> None:
    (reason,) = reasons(judged(GOOD, box=system("box", cooling=None, framework=7)))
    assert reason.startswith("systems/box.json is not valid:\n  systems/box.json:")
    assert "SYS102" in reason


def test_report_is_of_the_tree() -> None:
    inputs = workspace(read(GOOD), [BOX])
    built = report(judge(make_plan(inputs), inputs), inputs)
    assert [row.path for row in built.systems] == ["systems/box.json"]
    (row,) = built.result_sets
    assert (row.path, row.submitter, row.runs_found) == ("results/box/resnet", "Graphcore", 5)
    assert row.score_minutes == pytest.approx(20.0, rel=0.1)
    assert (built.verdict.official, built.verdict.rules) == (Verdict.PASS, Verdict.PASS)
    assert (built.usage, built.round) == ("training", "2.0")
