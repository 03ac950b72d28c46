"""The raw lines that findings are about."""

from __future__ import annotations

from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.page.excerpts import excerpts
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source, raw_lines
from tests.helpers.logs import line_of
from tests.helpers.trees import simulated, write_set


def test_excerpts_are_the_lines_of_findings(tmp_path: Path) -> None:
    logs = simulated()
    checked = check([str(write_set(tmp_path, logs))], Options(round="2.0"))
    line = line_of(logs[0], "run_start")
    lines = [("result_0.txt", line), ("result_0.txt", None), ("no such file", 1)]
    findings = [Finding(code="X101", message="", path=p, line=n) for p, n in lines]
    ((location, text),) = excerpts(checked, findings).items()
    assert location == ("result_0.txt", line)
    assert text.startswith(':::MLLOG {"namespace"')
    assert '"run_start"' in text


def lines_of(data: bytes, *numbers: int) -> dict[int, str]:
    return raw_lines(Source("log", data), numbers, 10)


def test_raw_lines() -> None:
    data = b"one\r\n\xff\n" + b"x" * (3 << 20) + b"\n  four \nfive"
    assert lines_of(data, 1, 2, 3, 4, 5, 6) == {
        1: "one",
        2: "\ufffd",
        3: "xxxxxxx...",
        4: "four",
        5: "five",
    }
    assert lines_of(data) == {}
