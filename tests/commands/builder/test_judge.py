"""Which planned result sets are valid, which bypasses they need, and what is said of the rest."""

import re
from collections.abc import Sequence

from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.commands.builder.judge import judge, reasons
from mlperf_pkg.commands.builder.plan import make_plan
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run
from tests.helpers.workspaces import logs_of, system, with_one_seed, workspace

GOOD = logs_of("bow-pod16")


def reason_of(logs: Sequence[bytes], box: SystemFile) -> str:
    files = [LogFile(Source(f"logs/{n}.log", log), round="2.0") for n, log in enumerate(logs)]
    inputs = workspace(map(read_run, files), [box])
    (reason,) = reasons(judge(make_plan(inputs), inputs))
    return reason


def test_findings_of_a_kind_are_folded() -> None:
    reason = reason_of(with_one_seed(GOOD)[:4], system("box"))
    assert re.sub(r"seed \d+", "seed N", re.sub(r"log:\d+", "log:LINE", reason)).split("\n") == [
        "box/resnet is not valid:",
        "  results/box/resnet: SEED102: seed N is logged by the same source line in several runs;"
        " expected another seed (3 of 4 runs; first logs/1.log:LINE) [official checker]",
        "    --seed-checker-bypass builds it and asks for a review",
        "  results/box/resnet: SET101: the number of runs (files result_*.txt) is 4; expected 5"
        " [rules and official checker]",
    ]


def test_systems_are_judged_too() -> None:
    reason = reason_of(GOOD, system("box", cooling=None, framework=7))
    assert reason.startswith("systems/box.json is not valid:\n  systems/box.json:")
    assert "SYS102" in reason
