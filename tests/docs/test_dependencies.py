"""Every dependency is explained, none is pinned, and the exact versions are made by a command."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.tools.constraints import FILE, HEAD, OLDEST, text_of

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `([\w.-]+)` \| (.*) \|$", PAGE, re.MULTILINE))
ALWAYS = [Requirement(line) for line in PROJECT["dependencies"]]
OPTIONAL = {
    Requirement(line).name: extra
    for extra, lines in EXTRAS.items()
    if extra not in ("test", "test-cluster")
    for line in lines
}
FOR_TESTS = {Requirement(line).name for name in ("test", "test-cluster") for line in EXTRAS[name]}


def test_each_is_explained() -> None:
    always = {requirement.name for requirement in ALWAYS}
    assert {*ROWS} == always | {*OPTIONAL} | FOR_TESTS
    assert {Requirement(line).name for line in PYPROJECT["build-system"]["requires"]} <= {*ROWS}


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_its_extra_is_named(name: str) -> None:
    assert f"`{OPTIONAL[name]}`" in ROWS[name].partition("|")[0]


def test_none_is_pinned() -> None:
    exact = [r.name for r in ALWAYS if any(part.operator == "==" for part in r.specifier)]
    assert exact == []
    assert [r.name for r in ALWAYS if len(r.specifier) < 2] == []  # from, and below


def test_constraints_are_written_from_a_report_of_pip() -> None:
    report = [
        {"metadata": {"name": name, "version": "1.0"}} for name in ("rich", "PyYAML", "attrs")
    ]
    assert text_of(report) == f"{HEAD}attrs==1.0\nPyYAML==1.0\nrich==1.0\n"
    assert FILE.read_text("utf-8").startswith(HEAD)
    assert OLDEST == "3.11"
