"""What the guide for contributors and the architecture say of the repository is so."""

import re
from pathlib import Path

import pytest

from tests.helpers.layers import MODULES, name_of, room
from tests.test_layers import LAYERS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
MAP = ARCHITECTURE.partition("## The map")[2].partition("## Where to put what")[0]
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| `([\w/]+\.py)` \|$", MAP, re.MULTILINE)
MOST_LINES = 1000
MIRRORED = ("", "commands")
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def folders(path: Path) -> set[str]:
    return {child.parent.name for child in path.glob("*/*.py")}


def test_the_map_has_every_package_in_its_layer() -> None:
    packages = [(int(row[0]), name) for row in ROWS for name in re.findall(r"`(\w+)`", row[1])]
    expected = {(level, name) for level, layer in enumerate(LAYERS, 1) for name in layer}
    assert len(packages) == len(expected)
    assert {*packages} == expected


def test_the_map_names_a_file_of_each_package() -> None:
    files = {row[3] for row in ROWS}
    assert len(files) == len(ROWS)
    assert [file for file in files if not (ROOT / "mlperf_pkg" / file).is_file()] == []
    assert {file.partition("/")[0].removesuffix(".py") for file in files} < {
        room(name_of(path)) for path in MODULES
    }


@pytest.mark.parametrize("text", [GUIDE, ARCHITECTURE], ids=["guide", "architecture"])
def test_paths_exist(text: str) -> None:
    """In the repository, or below the package."""
    paths = re.findall(r"`((?:[\w.-]+/)+(?:[\w.-]+)?)`", text)
    assert paths
    tops = (ROOT, ROOT / "mlperf_pkg", ROOT / "mlperf_pkg" / "commands")
    written = {"build/site/", "sample/"}
    missing = {path for path in paths if not any((top / path).exists() for top in tops)}
    assert {path for path in missing - written if not path.startswith("../")} == set()


def test_targets_exist() -> None:
    """Those that the guide names are those that there are, besides those for other pages."""
    named = {*re.findall(r"\bmake ([a-z][\w-]*)", GUIDE)}
    assert named <= {*TARGETS}
    assert {*TARGETS} - named == {"help", "format", "wheel", "sdist", "clean"}


def test_tests_that_the_guide_names_exist() -> None:
    named = {*re.findall(r"\btests/[\w/.]+", GUIDE)}
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_tests_mirror_the_package() -> None:
    """Each package has a folder of tests; the other folders are those that the map names."""
    packages = folders(ROOT / "mlperf_pkg")
    tests = folders(ROOT / "tests")
    (others,) = re.findall(r"these folders have no package: (.*?)\.$", MAP, re.DOTALL | re.M)
    assert packages - tests == set()
    assert tests - packages == {*re.findall(r"`(\w+)`", others)}


def test_modules_are_short() -> None:
    assert f"more than {MOST_LINES:,} lines" in GUIDE
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: number for name, number in lines.items() if number > MOST_LINES} == {}


def test_the_number_of_names() -> None:
    """The limits that the guide explains are those of the budget."""
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    assert "with more than 12 local names" in GUIDE
    assert re.search(r"^names = 12$", pyproject, re.MULTILINE)
    assert "(10 branches)" in GUIDE
    assert re.search(r"^max-complexity = 10$", pyproject, re.MULTILINE)
