"""The whole tree of a submission: names, sizes and links, against the repository checker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.repo_checker import repo_checker

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.repository import MAX_BYTES, check_repository
from mlperf_pkg.infra.paths import Entry, list_tree
from tests.helpers.trees import SYSTEM, write_submission

Rows = list[tuple[str, str, str]]


def rows(name: str, entries: tuple[Entry, ...], label: str = "") -> Rows:
    return [(f.code, f.basis.value, f.path) for f in check_repository(name, label, entries)]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (Entry("a/b.txt", folder=False, size=1), []),
        (Entry("a/.b", folder=False), [("REPO101", "official", "a/.b")]),
        (Entry("a/b c", folder=False), [("REPO101", "official", "a/b c")]),
        (Entry("a c", folder=True), [("REPO101", "official", "a c")]),
        (Entry(".git", folder=True), [("REPO101", "official", ".git")]),
        (Entry(".git/x", folder=False), []),
        (Entry("a\tb", folder=False), []),
        (Entry("big", folder=False, size=MAX_BYTES), []),
        (Entry("big", folder=False, size=MAX_BYTES + 1), [("REPO102", "official", "big")]),
        (Entry("l", folder=False, link="x"), [("REPO104", "official", "l")]),
        (Entry("l", folder=False, link="/x"), []),
        (Entry("l", folder=False, link="x", resolves=False), [("REPO103", "both", "l")]),
        (Entry("l", folder=False, link="/x", resolves=False), [("REPO103", "both", "l")]),
        (Entry(". l", folder=True, link="/x"), []),
    ],
)
def test_one_entry(entry: Entry, expected: Rows) -> None:
    assert rows("Org", (entry,)) == expected


@pytest.mark.parametrize(
    ("name", "label", "expected"),
    [("Org", "", []), (".org", "", ["."]), ("My Org", "round/My Org", ["round/My Org"])],
)
def test_the_top_folder_has_a_name_too(name: str, label: str, expected: list[str]) -> None:
    assert [path for _, _, path in rows(name, (), label)] == expected


def official(root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> bool:
    """Its verdict by its own log: what it returns is False in any case."""
    empty = root.parent / "elsewhere"
    empty.mkdir(exist_ok=True)
    monkeypatch.chdir(empty)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert repo_checker.run_checks(str(root)) is False
    return "ALL CHECKS PASSED." in caplog.messages


def large(root: Path, more: int) -> None:
    with (root / "large.bin").open("wb") as stream:
        stream.truncate(MAX_BYTES + more)


CHANGES: list[Callable[[Path], object]] = [
    lambda root: None,
    lambda root: (root / ".hidden").touch(),
    lambda root: (root / "a b").mkdir(),
    lambda root: (root / "results" / "a b.txt").touch(),
    lambda root: large(root, 0),
    lambda root: large(root, 1),
    lambda root: (root / "link").symlink_to("real.txt"),
    lambda root: (root / "link").symlink_to(root / "real.txt"),
    lambda root: (root / "link").symlink_to(root / "none.txt"),
    lambda root: (root / "link").symlink_to("link"),
    lambda root: (root / "a link").symlink_to("results"),
    lambda root: (root / ".link").symlink_to(root / "real.txt"),
    lambda root: (root / "large").symlink_to(root / "real.txt"),
]


@pytest.mark.parametrize("change", range(len(CHANGES)))
@pytest.mark.parametrize("name", ["Org", "My Org", ".org"])
def test_as_the_repository_checker(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    change: int,
) -> None:
    root = tmp_path / name
    (root / "results").mkdir(parents=True)
    (root / "real.txt").touch()
    CHANGES[change](root)
    assert (rows(name, list_tree(root)) == []) is official(root, monkeypatch, caplog)


@given(st.lists(st.text(st.sampled_from(". ab\t\u00a0"), min_size=1, max_size=4)))
def test_names_as_the_repository_checker(names: list[str]) -> None:
    accepted = repo_checker._check_bad_filenames(names, [])
    entries = tuple(Entry(name, folder=False) for name in names)
    assert (rows("Org", entries) == []) is accepted


def test_the_verdict_of_a_submission(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Org")
    (root / "results" / SYSTEM / "resnet" / "my notes").touch()
    report = check([str(root)], Options(round="2.0")).report
    assert (report.verdict.official.value, report.verdict.rules.value) == ("fail", "pass")
    assert {row.verdict.official.value for row in report.result_sets} == {"pass"}


def test_it_takes_no_round_before_2_0(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Org")
    (root / ".hidden").touch()
    codes = {f.code for f in check([str(root)], Options(round="1.1")).report.findings}
    assert "REPO101" not in codes
