"""The mistakes of a first submission: what each command says of raw logs, flat or scattered."""

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from tests.helpers.logs import edited, without
from tests.helpers.program import call
from tests.helpers.workspaces import described, lay, logs_of

RED, GREEN = logs_of("bow-pod16"), logs_of("bow-pod64-x")
SYSTEMS = {
    f"systems/{name}.json": described("bow-pod16", system_name=name)
    for name in ("bow-pod16", "bow-pod64-x")
}
OF_RED, OF_GREEN = (f"Graphcore/{name}/resnet/closed" for name in ("bow-pod16", "bow-pod64-x"))
OPENED, STRAY = "Graphcore/bow-pod16/resnet/open", "Graphcore/unknown/resnet/closed"

Logs = tuple[bytes, ...]


def each(key: str, value: Any) -> Callable[[Logs], Logs]:
    return lambda logs: tuple(edited(log, key, value=value) for log in logs)


def first(change: Callable[..., bytes], **value: str) -> Callable[[Logs], Logs]:
    return lambda logs: (change(logs[0], "submission_platform", **value), *logs[1:])


def flat(root: Path, logs: dict[str, bytes]) -> Path:
    return lay(root, SYSTEMS, {f"logs/{name}.log": log for name, log in logs.items()})


def scattered(root: Path, logs: dict[str, bytes]) -> Path:
    files = {f"logs/job{n % 3}/{name}/out.log": log for n, (name, log) in enumerate(logs.items())}
    return lay(root, SYSTEMS, files)


MISTAKES: dict[str, tuple[Callable[[Logs], Logs], dict[str, set[str]], int, int]] = {
    # what is done to the logs of one system; the errors of each set; the status of select and build
    "nothing": (lambda logs: logs, {}, 0, 0),
    "wrong submitter": (each("submission_org", "ACME"), {OF_RED: {"SET115"}}, 0, 1),
    "wrong division": (each("submission_division", "open"), {OPENED: {"SET111"}}, 0, 1),
    "mixed systems": (
        first(edited, value="bow-pod64-x"),
        {OF_RED: {"SET101"}, OF_GREEN: {"SET101"}},
        1,
        1,
    ),
    "missing field": (
        first(without),
        {OF_RED: {"SET101"}, STRAY: {"SET125", "SET101", "RUN102", "RCP101"}},
        1,
        1,
    ),
}


@pytest.mark.parametrize("layout", [flat, scattered])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(
    mistake: str, layout: Callable[[Path, dict[str, bytes]], Path], tmp_path: Path
) -> None:
    change, errors, of_select, of_build = MISTAKES[mistake]
    logs = {f"r{n}": log for n, log in enumerate(change(RED))}
    root = layout(tmp_path, logs | {f"g{n}": log for n, log in enumerate(GREEN)})

    report = json.loads(call("check", root / "logs", "--format", "json").stdout)
    ids = [row["id"] for row in report["result_sets"]]
    assert set(ids) >= {OF_GREEN, *errors}
    codes: dict[str, set[str]] = {}
    for finding in report["findings"]:
        if finding["severity"] == "error":
            codes.setdefault(finding["set"], set()).add(finding["code"])
    assert codes == errors
    runs = Counter(run["set"] for run in report["runs"])
    assert [row["runs_found"] for row in report["result_sets"]] == [runs[id_] for id_ in ids]

    built = call("build", root)
    assert built.exit_code == of_build, built.stderr
    if of_build:
        of_sets = {code for of_set in errors.values() for code in of_set if code.startswith("SET")}
        assert [code for code in of_sets if f"{code}: " not in built.stderr] == []
    assert call("select", root / "logs").exit_code == of_select
    if layout is scattered or len(errors) < 2:
        return  # The other commands show the sets of the report.

    suites = JUnitXml.fromstring(call("check", root / "logs", "--format", "junit").stdout)
    assert {suite.name for suite in suites if suite.failures} == errors.keys()

    text = call("check", root / "logs")
    assert text.exit_code == 1
    assert f"in {len(errors)} of {len(ids)} result sets" in " ".join(text.stdout.split())
    assert call("export", root / "logs", "-o", tmp_path / "x.csv").exit_code == 0
    with (tmp_path / "x.csv/runs.csv").open() as stream:
        assert Counter(row["set"] for row in csv.DictReader(stream)) == runs
