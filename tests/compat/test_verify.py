"""All checkers in a row, as the scripts of the official repository run them."""

from pathlib import Path

import pytest

from mlperf_pkg.compat import package_checker, repo_checker, result_summarizer, verify
from tests.helpers.trees import write_submission

PACKAGE = "package_checker"
SUMMARIZER = "result_summarizer"
REPO = "repo_checker"
TOOLS = {PACKAGE: package_checker, SUMMARIZER: result_summarizer, REPO: repo_checker}
ALL = [PACKAGE, SUMMARIZER, REPO]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What each tool is called with, in their order; each exits with 0."""
    return with_statuses(monkeypatch, {})


def with_statuses(patch: pytest.MonkeyPatch, statuses: dict[str, int]) -> dict[str, list[str]]:
    calls: dict[str, list[str]] = {}

    def of_tool(name: str, arguments: list[str]) -> int:
        calls[name] = arguments
        return statuses.get(name, 0)

    for name, module in TOOLS.items():
        patch.setattr(module, "main", lambda arguments, name=name: of_tool(name, arguments))
    return calls


@pytest.mark.parametrize(
    ("statuses", "options", "status", "run"),
    [
        pytest.param({}, [], 0, ALL, id="no errors"),
        pytest.param({PACKAGE: 1}, [], 1, [PACKAGE], id="the first raises"),
        pytest.param({SUMMARIZER: 1}, [], 1, [PACKAGE, SUMMARIZER], id="the second raises"),
        pytest.param({PACKAGE: 1}, ["--exit-status"], 1, ALL, id="errors, status asked for"),
        pytest.param({REPO: 1}, ["--exit-status"], 1, ALL, id="errors of the last"),
    ],
)
def test_the_status_is_that_of_the_first_that_fails(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    statuses: dict[str, int],
    options: list[str],
    status: int,
    run: list[str],
) -> None:
    calls = with_statuses(monkeypatch, statuses)
    assert verify.main([*options, str(tmp_path), "training", "5.1.0"]) == status
    assert list(calls) == run


@pytest.mark.parametrize(
    ("params", "flags"),
    [
        pytest.param("rcp-bypass\n", ["--rcp-bypass"], id="one"),
        pytest.param(
            "rcp-bypass\nseed-checker-bypass\n",
            ["--rcp-bypass", "--seed-checker-bypass"],
            id="two",
        ),
        pytest.param("rcp-bypass", [], id="without a line end, which the script does not read"),
        pytest.param("log_output \tx.log\n", ["--log_output", "x.log"], id="with a value"),
        pytest.param("rcp-bypass\r\n", ["--rcp-bypass\r"], id="of Windows, refused by both"),
        pytest.param(None, [], id="no file"),
    ],
)
def test_flags_at_the_top(
    calls: dict[str, list[str]], tmp_path: Path, params: str | None, flags: list[str]
) -> None:
    if params is not None:
        (tmp_path / "package_checker_params").write_bytes(params.encode())
    verify.main([str(tmp_path), "training", "5.1.0"])
    assert calls[PACKAGE] == [str(tmp_path), "training", "5.1.0", *flags]
    assert calls[SUMMARIZER] == calls[REPO] == [str(tmp_path), "training", "5.1.0"]


@pytest.mark.parametrize(("ruleset", "run"), [("1.1.0", ALL[:2]), ("2.0.0", ALL)])
def test_rounds(calls: dict[str, list[str]], tmp_path: Path, ruleset: str, run: list[str]) -> None:
    """Before 2.0, the scripts do not check the repository."""
    verify.main([str(tmp_path), "training", ruleset])
    assert list(calls) == run


@pytest.mark.parametrize(("number", "status"), [(5, 0), (4, 1)])
def test_a_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    root = write_submission(tmp_path / "Graphcore")
    for log in sorted(root.rglob("result_*.txt"))[number:]:
        log.unlink()
    assert verify.main(["--exit-status", "Graphcore", "training", "2.0.0"]) == status
