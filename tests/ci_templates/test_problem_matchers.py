"""Problem matchers for GitHub and VS Code, over the output of a check, as both of them apply it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.ci import DOCS, KIT, run, spoil

GITHUB = json.loads((KIT / "problem-matcher.json").read_text("utf-8"))["problemMatcher"]
(TASKS,) = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)]
TASK = TASKS["tasks"][0]
PATTERNS = {
    "GitHub": [{**matcher, **pattern} for matcher in GITHUB for pattern in matcher["pattern"]],
    "VS Code": [matcher["pattern"] for matcher in TASK["problemMatcher"]],
}
GROUPS = ("file", "line", "severity", "code", "message")


def problem(patterns: list[dict[str, Any]], line: str) -> dict[str, str | None]:
    """What the first pattern that matches a line makes of it; a string is a default, not a
    group.
    """
    for pattern in patterns:
        if match := re.search(pattern["regexp"], line):
            fields = {name: pattern.get(name) for name in GROUPS}
            return {n: match[f] if isinstance(f, int) else f for n, f in fields.items()}
    raise AssertionError(line)


@pytest.mark.parametrize(("program", "note"), [("GitHub", "notice"), ("VS Code", "note")])
def test_every_finding_is_a_problem(program: str, note: str, repository: Path) -> None:
    spoil(repository)
    log = repository / "logs" / "result_2.txt"
    log.write_bytes(log.read_bytes() + b":::MLLOG {\n")
    waiver = "code: LOG101, reason: r, approved_by: J, until: 9999-12-31"
    waivers = f"[{{path: result_2.txt, {waiver}}}, {{path: unused, {waiver}}}]"
    (repository / "mlperf-pkg.yaml").write_text(f"waivers: {waivers}")
    done = run("sh", "-c", f"{TASK['command']} --show all", cwd=repository)
    report = run("mlperf-pkg", "check", "--format", "json", "logs", cwd=repository)
    findings = json.loads(report.stdout)["findings"]
    assert {bool(finding["line"]) for finding in findings} == {True, False}
    problems = [problem(PATTERNS[program], line) for line in done.stdout.splitlines()]
    shown = [(p["severity"], p["code"], int(p["line"] or 0) or None) for p in problems]
    severities = [note if finding["waiver"] else finding["severity"] for finding in findings]
    assert shown == [(s, f["code"], f["line"]) for s, f in zip(severities, findings, strict=True)]
    assert {*severities} == {"error", "warning", note}
    assert [p["file"] for p in problems if not (repository / str(p["file"])).exists()] == []
    assert all(p["message"] for p in problems)
