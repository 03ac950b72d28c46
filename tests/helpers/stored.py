"""All that the functions of a test yield, stored as JSON beside it, so that every value is compared.

A test asserts what it is about; this compares the rest: the source of a finding, what was found and
expected, the figures of a result set. After an intended change, ``pytest -n 0 --store`` writes the files
anew; review their diff. Messages and hints are left out: they may be reworded.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache, wraps
from pathlib import Path
from posixpath import commonpath
from typing import Any

import pytest

from mlperf_pkg.findings import Finding
from mlperf_pkg.results.report import Report, as_json
from mlperf_pkg.run.model import Run

_WORDING = ("message", "hint", "explanation")
_OF_PLACES = ("path", "line", "found", "expected")
_BY_ID = ("path", "benchmark", "division", "round")  # parts of the id of a result set
_OF_LOG = ("path", "findings", "described", "curve", "fingerprint")  # not stored of a run
_ELSEWHERE = re.compile(r"(?<=Error: )[^\"]*|(\.\./){3}[^\"]*")
"""What differs between versions of Python and between machines."""


def of_findings(findings: Iterable[Finding]) -> list[str]:
    """Findings: a line for each, and one for each of their places that differ."""
    return [line for text in sorted(map(_written, findings)) for line in text.split("\n")]


def _written(finding: Finding) -> str:
    assert isinstance(finding.text, str)
    assert isinstance(finding.hint, str | None)
    fields = as_json(finding)
    head = f"{fields.pop('code')} {fields.pop('severity')} {fields.pop('basis')}"
    places: dict[str, list[str]] = {}
    for place in fields.pop("places"):
        path = place.pop("path")
        places.setdefault(" ".join(map(_dumps, place.values())), []).append(path)
    rest = {name: value for name, value in fields.items() if name not in _OF_PLACES}
    return "\n".join([f"{head} {_compact(rest)}", *map(_together, places.values(), places)])


def _together(paths: list[str], values: str) -> str:
    start = commonpath(paths)
    return f"  at {start}{'|'.join(path.removeprefix(start) for path in paths)} {values}"


def of_report(report: Report) -> list[str]:
    """The findings and result sets of a report, and the configuration to complete."""
    sets = (_compact(row, *_BY_ID) for row in as_json(report.result_sets))
    return [*of_findings(report.findings), *sets, *report.configuration.splitlines()]


def of_run(run: Run) -> list[str]:
    """The findings of a run and what was read from its log."""
    values = {name: as_json(getattr(run, name)) for name in sorted(run.__struct_fields__)}
    return [*of_findings(run.findings), _compact(values, *_OF_LOG)]


def _compact(fields: dict[str, Any], *left_out: str) -> str:
    """Fields that have a value, on one line, without what is wording."""
    words = (
        f"{name}={{{_compact(value)}}}" if isinstance(value, dict) else f"{name}={_dumps(value)}"
        for name, value in fields.items()
        if value not in (None, "", [], {}) and name not in (*_WORDING, *left_out)
    )
    return " ".join(words)


def _dumps(value: Any) -> str:
    """JSON whose numbers have 13 significant digits."""
    text = json.dumps(value, sort_keys=True)
    return json.dumps(json.loads(text, parse_float=lambda digits: float(f"{float(digits):.13g}")))


FUNCTIONS: dict[str, Callable[[Any], list[str]]] = {
    "check": lambda checked: of_report(checked.report),
    "check_system": lambda system: of_findings(system.findings),
    "check_tree": of_findings,
    "read_lines": lambda parts: of_findings(parts[1]),
    "read_run": of_run,
    "run_of": of_run,
}
"""Those that are followed, under their names in a test, and what is stored of their values."""


@cache
def _contents(path: Path) -> dict[str, list[list[str]]]:
    contents: dict[str, list[list[str]]] = {}
    return json.loads(path.read_text("utf-8")) if path.exists() else contents


@pytest.fixture
def stored(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what ``FUNCTIONS`` yield in this test with what is stored, call by call."""
    path, case = request.path.with_suffix(".json"), request.node.name
    contents, is_new = _contents(path), request.config.getoption("--store")
    calls: list[list[str]] = []

    def compare(value: list[str]) -> None:
        number = len(calls)
        own = re.compile(f"({re.escape(str(tmp_path.parent))}/)?{re.escape(tmp_path.name)}")
        masked = [_ELSEWHERE.sub("...", own.sub("TMP", line)) for line in value]
        calls.append(masked)
        if is_new:
            contents[case] = calls
            path.write_text(json.dumps(contents, indent=1, sort_keys=True) + "\n", "utf-8")
        assert case in contents, f"{case} is new: 'pytest -n 0 --store' stores its values"
        assert contents[case][number] == masked

    def followed(function: Callable[..., Any], of: Callable[[Any], list[str]]) -> Any:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            value = function(*args, **options)
            value = list(value) if isinstance(value, Iterable) else value
            compare(of(value))
            return value

        return call

    for name, of in FUNCTIONS.items():
        if hasattr(request.module, name):
            monkeypatch.setattr(request.module, name, followed(getattr(request.module, name), of))
