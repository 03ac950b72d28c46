"""All that a test is given, stored as JSON beside it, so that every value is compared.

A test asserts what it is about; ``compared(value)`` compares the rest: the source of a finding,
what was found and expected, the figures of a result set. After an intended change, ``pytest -n 0
--store`` writes the values of the tests that pass; review the diff. Messages and hints are left
out: they may be reworded.
"""

import json
import re
from collections.abc import Generator, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from posixpath import commonpath
from typing import Any, TypeVar

import pytest

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.findings import Finding
from mlperf_pkg.results.report import Report, as_json
from mlperf_pkg.run.model import Run

_WORDING = ("message", "hint", "explanation", "energy_note")
_OF_PLACES = ("path", "line", "found", "expected")
_OF_REPORT = ("id", "cause")  # other findings of the report; test_causes compares them
_BY_ID = ("path", "benchmark", "division", "usage", "round")  # parts of the id of a result set
_BY_SUBMITTER = ("companies",)  # tests/submission/test_submitters.py compares them
_OF_LOG = ("path", "findings", "described", "curve", "fingerprint", "evaluated_ms")
"""Fields that are not stored of a run."""

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
    left_out = (*_OF_PLACES, *_OF_REPORT)
    rest = {name: value for name, value in fields.items() if name not in left_out}
    return "\n".join([f"{head} {_compact(rest)}", *map(_together, places.values(), places)])


def _together(paths: list[str], values: str) -> str:
    start = commonpath(paths)
    return f"  at {start}{'|'.join(path.removeprefix(start) for path in paths)} {values}"


def of_report(report: Report) -> list[str]:
    """The findings and result sets of a report, and the configuration to complete."""
    sets = (_compact(row, *_BY_ID, *_BY_SUBMITTER) for row in as_json(report.result_sets))
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


@dataclass
class Case:
    """What one test compares: the values so far, and whether they are to be stored."""

    path: Path
    name: str
    folder: Path
    is_new: bool
    values: list[list[str]] = field(default_factory=list)

    def compare(self, lines: list[str]) -> None:
        """Compare the next value with the stored one."""
        own = re.compile(f"({re.escape(str(self.folder.parent))}/)?{re.escape(self.folder.name)}")
        masked = [_ELSEWHERE.sub("...", own.sub("TMP", line)) for line in lines]
        number = len(self.values)
        self.values.append(masked)
        if self.is_new:
            return
        stored = _contents(self.path)
        assert self.name in stored, f"{self.name} is new: 'pytest -n 0 --store' stores its values"
        assert stored[self.name][number] == masked

    def store(self) -> None:
        """Replace the stored values of this test."""
        contents = _contents(self.path) | {self.name: self.values}
        self.path.write_text(json.dumps(contents, indent=1, sort_keys=True) + "\n", "utf-8")
        _contents.cache_clear()


_item: ContextVar[pytest.Item] = ContextVar("item")
_CASE = pytest.StashKey[Case]()
_Value = TypeVar("_Value")


def compared(value: _Value) -> _Value:
    """Compare a value with what is stored of this test, call by call, and return it."""
    item = _item.get()
    assert isinstance(item, pytest.Function)
    folder = item.funcargs.get("tmp_path", Path("/no/folder"))
    assert isinstance(folder, Path)
    is_new = item.config.getoption("--store")
    case = Case(item.path.with_suffix(".json"), item.name, folder, is_new)
    item.stash.setdefault(_CASE, case).compare(_lines(value))
    return value


def _lines(value: Any) -> list[str]:
    match value:
        case Checked():
            return of_report(value.report)
        case Report():
            return of_report(value)
        case Run():
            return of_run(value)
        case SystemFile():
            return of_findings(value.findings)
        case _:
            return of_findings(value)


@cache
def _contents(path: Path) -> dict[str, list[list[str]]]:
    contents: dict[str, list[list[str]]] = {}
    return json.loads(path.read_text("utf-8")) if path.exists() else contents


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember the test that runs."""
    _item.set(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store the values of a test that passed."""
    report = yield
    case = item.stash.get(_CASE, None)
    if report.when == "call" and report.passed and case and case.is_new and case.values:
        case.store()
    return report
