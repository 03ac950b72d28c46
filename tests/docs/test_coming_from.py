"""Every option of the official tools has a row, and the outcomes that the page calls equal are."""

import re
import shlex
import shutil
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers.broken_runs import every_log, fast
from tests.helpers.console import DOCS
from tests.helpers.official import official
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, write_submission, write_system

PAGE = (DOCS / "coming-from-mlperf-logging.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
PARSERS = {
    "package_checker": "package_checker.package_checker",
    "compliance_checker": "compliance_checker.mlp_compliance",
    "system_desc_checker": "system_desc_checker.system_desc_checker",
    "repo_checker": "repo_checker.repo_checker",
    "rcp_checker": "rcp_checker.rcp_checker",
    "result_summarizer": "result_summarizer.result_summarizer",
}
OF_SCRIPTS = {
    "rcp_viewer": "benchmark --usage --version --verbose --unpruned --no-header --custom_rcps"
    " --interpolate --jackknife",
    "verify_for_v*.sh": "$1 package_checker_params --csv",
    "pack_submission.sh": "--pack --unpack SUBMITTER=",
}
"""Those that are in the repository alone."""
ERRORS = re.compile(r"FOUND ERRORS|CHECKS FAILED|ERROR - FAILED|RCP test FAILED|checker failed for")


class Row(NamedTuple):
    """A row of a table: their option with a value, ours, and whether the outcomes are equal."""

    theirs: str
    ours: str
    equal: bool


def rows(section: str) -> Iterator[Row]:
    header, *lines = re.findall(r"^\|(.*)\|$", SECTIONS[section], re.MULTILINE)
    has_outcome = "Outcome" in header
    for line in lines[1:]:
        theirs, ours, outcome, *_ = (cell.strip() for cell in line.split("|"))
        code = re.fullmatch(r"`([^`]*)`", ours)
        yield Row(theirs.split("`")[1], code[1] if code else "", has_outcome and outcome == "=")


def names(section: str) -> list[str]:
    return [row.theirs.split()[0] for row in rows(section)]


def of_parser(parser: ArgumentParser) -> set[str]:
    longest = (max(action.option_strings or [action.dest], key=len) for action in parser._actions)
    return set(longest) - {"--help"}


@pytest.mark.parametrize("tool", PARSERS)
def test_every_option_has_a_row(tool: str) -> None:
    """And is one of ours, with the same default."""
    theirs: ArgumentParser = import_module(f"mlperf_logging.{PARSERS[tool]}").get_parser()
    ours: ArgumentParser = import_module(f"mlperf_pkg.compat.{tool}").get_parser()
    assert sorted(names(tool)) == sorted(of_parser(theirs))
    assert of_parser(ours) == {*names(tool), "--exit-status"}
    options = [action for action in theirs._actions if action.option_strings]
    assert {option.dest: ours.get_default(option.dest) for option in options} == {
        option.dest: option.default for option in options
    }


IMPORTS = re.findall(
    r"^\| `from (\S+) import (.*)` \| `from (\S+) import (.*)` \|$", PAGE, re.MULTILINE
)
IMPORTED = [
    (theirs, ours, name) for theirs, names, ours, _ in IMPORTS for name in names.split(", ")
]


def test_the_same_names_are_imported() -> None:
    assert IMPORTS
    assert [line for line in IMPORTS if line[1] != line[3]] == []


@pytest.mark.parametrize(("theirs", "ours", "name"), IMPORTED)
def test_imports(theirs: str, ours: str, name: str) -> None:
    """Their parameters have the same names."""
    old = signature(getattr(import_module(theirs), name)).parameters
    new = signature(getattr(import_module(ours), name)).parameters
    shared = [parameter for parameter in old if parameter != "kwargs"]
    assert [*new][: len(shared)] == shared


def test_every_option_of_a_script_has_a_row() -> None:
    """The module of ``compute_score`` runs when it is imported."""
    spec = find_spec("mlperf_logging.result_summarizer.compute_score")
    assert spec
    assert spec.origin
    text = Path(spec.origin).with_name("__main__.py").read_text("utf-8")
    assert {*names("compute_score")} == {*re.findall(r"add_argument\(\s*['\"]([\w-]+)", text)}
    assert [
        (script, options)
        for script, options in OF_SCRIPTS.items()
        if names(script) != options.split()
    ] == []
    # As the report of a release counts them.
    assert sum(len(names(section)) for section in (*PARSERS, *OF_SCRIPTS, "compute_score")) == 64
    assert len(EQUAL) == 16


# ---- outcomes -----------------------------------------------------------------------------


def commands(tool: str) -> tuple[list[str], list[str]]:
    block = re.search(r"```sh\n(.*)\n(.*)\n```", SECTIONS[tool])
    assert block is not None
    return shlex.split(block[1])[2:], shlex.split(block[2])[1:]


EQUAL = [
    (tool, row) for tool in PARSERS for row in rows(tool) if row.equal and row.theirs[0] == "-"
]
BASES = [(tool, Row("", "", equal=True)) for tool in PARSERS if tool != "result_summarizer"]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A valid submission, and one in which every tool finds an error."""
    good, bad = (tmp_path_factory.mktemp(name) for name in ("good", "bad"))
    write_submission(good / "ACME")
    root = every_log(fast, write_submission(bad / "ACME"))
    write_system(root / "systems", SYSTEM, cooling=...)
    (root / "a b").touch()
    log = root / "results" / SYSTEM / "resnet" / "result_0.txt"
    log.write_bytes(log.read_bytes().replace(b'"opt_name"', b'"x"'))
    return {"good": good, "bad": bad}


@pytest.mark.parametrize(
    ("quality", "tool", "row"),
    [*(("good", *row) for row in BASES), *(("bad", *row) for row in (*BASES, *EQUAL))],
    ids=lambda value: getattr(value, "theirs", value),
)
def test_outcomes_are_equal(
    quality: str,
    tool: str,
    row: Row,
    trees: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs, ours = commands(tool)
    copy = shutil.copytree(trees[quality] / "ACME", tmp_path / "theirs" / "ACME").parent
    done = official(*theirs, *row.theirs.split(), cwd=copy)
    failed = bool(done.returncode or ERRORS.search(done.stdout + done.stderr))
    assert failed is (quality == "bad"), done.stderr
    monkeypatch.chdir(shutil.copytree(trees[quality] / "ACME", tmp_path / "ours" / "ACME").parent)
    result = call(*ours, *row.ours.split())
    assert result.exit_code == int(failed), result.output
    assert all(path.stat().st_size for path in (Path("FILE"), copy / "FILE") if "FILE" in row.ours)


@pytest.mark.parametrize(("quality", "status"), [("good", 0), ("bad", 1)])
def test_the_script(
    quality: str, status: int, trees: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = re.findall(r"(?m)^mlperf-pkg (.*)", SECTIONS["verify_for_v*.sh"])
    monkeypatch.chdir(trees[quality])
    assert call(*line.split()).exit_code == status
