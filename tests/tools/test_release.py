"""What contradicts the version of the checkout is found, and nothing here does."""

import re
from pathlib import Path

import pytest

from mlperf_pkg import __version__
from tests.tools.release import (
    LINES,
    ROOT,
    problems_of_change_log,
    problems_of_distributions,
    problems_of_documents,
    problems_of_version,
)

CHANGE_LOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- This.\n"
RELEASED = f"{CHANGE_LOG}\n## [0.1.0] - 2026-12-01\n\n### Added\n\n- That.\n"


@pytest.mark.parametrize(
    ("text", "tags", "expected"),
    [
        pytest.param(CHANGE_LOG, [], [], id="nothing is released"),
        pytest.param(RELEASED, ["v0.1.0"], [], id="released"),
        pytest.param(RELEASED, [], ["no tag v0.1.0"], id="no tag"),
        pytest.param("# Changelog\n", [], ["not [Unreleased]"], id="no heading"),
        pytest.param(f"{CHANGE_LOG}\n### Added\n", [], ["'### Added' more than once"], id="twice"),
        pytest.param(CHANGE_LOG + "- x\n" * LINES, [], ["lines; expected at most"], id="long"),
        pytest.param(f"{CHANGE_LOG}{'x' * 121}", [], ["more than 120"], id="wide"),
    ],
)
def test_the_change_log(text: str, tags: list[str], expected: list[str]) -> None:
    problems = list(problems_of_change_log(text, tags))
    assert len(problems) == len(expected)
    assert all(part in problem for part, problem in zip(expected, problems, strict=True))


@pytest.mark.parametrize(
    ("version", "tag", "expected"),
    [
        pytest.param("0.1.0.dev0", "", 0, id="in development"),
        pytest.param("0.1.0", "v0.1.0", 0, id="tagged"),
        pytest.param("0.1.0", "", 1, id="without a tag"),
        pytest.param("0.1.0.dev0", "v0.1.0", 2, id="tagged in development"),
        pytest.param("0.2.0", "v0.2.0", 1, id="without a heading"),
    ],
)
def test_the_version(version: str, tag: str, expected: int) -> None:
    assert len(list(problems_of_version(version, tag, RELEASED))) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mlperf-pkg==0.0.9", "0.0.9"),
        ("-t mlperf-pkg:0.0.9 .", "0.0.9"),
        ("uses: x/mlperf-pkg@v0.0.9", "0.0.9"),
        ("'mlperf-pkg[report]==0.0.9'", "0.0.9"),
        (f"mlperf-pkg {__version__}", None),
        ("mlperf-logging 4.1.68", None),
    ],
)
def test_documents(tmp_path: Path, text: str, names: str | None) -> None:
    (tmp_path / "README.md").write_text(text)
    expected = [f"README.md: names version {names}, not {__version__}"] if names else []
    assert list(problems_of_documents(tmp_path, __version__)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["mlperf_pkg-0.1.0-cp311-abi3-linux_x86_64.whl", "mlperf_pkg-0.1.0.tar.gz"], 0),
        (["mlperf_pkg-0.1.0-py3-none-any.whl", "mlperf_pkg-0.1.0.dev0.tar.gz"], 1),
        ([], 1),
    ],
)
def test_distributions(tmp_path: Path, names: list[str], expected: int) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert len(list(problems_of_distributions(tmp_path, "0.1.0"))) == expected


def test_this_checkout() -> None:
    """Without its tags, which a copy may lack, and its distributions: ``make release-check``."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    tags = [f"v{version}" for version in re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)]
    assert list(problems_of_change_log(text, tags)) == []
    assert list(problems_of_documents(ROOT, __version__)) == []
