"""The layout of a submission: what ends the official package checker, and flags without effect."""

import errno
import gzip
import logging
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.repo_checker import repo_checker

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.tree import MAX_BYTES, check_repository, check_tree
from mlperf_pkg.infra.paths import FolderEntry, list_tree
from mlperf_pkg.submission.find import find_input
from mlperf_pkg.submission.model import Submission
from tests.helpers.logs import edited
from tests.helpers.official import package_verdict
from tests.helpers.stored import compared
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

BENCHMARKS = {"training": ["resnet"], "hpc": ["deepcam"]}
Change = Callable[[Path], object]
Found = list[tuple[str, str, str, str]]


def read(root: Path) -> Submission:
    (submission,) = find_input(str(root)).submissions
    return submission


def rows(root: Path, usage: str = "training") -> Found:
    findings = compared(list(check_tree(read(root), usage, BENCHMARKS[usage])))
    return [(f.code, f.severity.value, f.basis.value, f.path) for f in findings]


def error(code: str, path: str, basis: str = "official") -> Found:
    return [(code, "error", basis, path)]


SET = f"results/{SYSTEM}/resnet"
TRAINING: list[tuple[Change, Found, bool]] = [
    (lambda r: None, [], False),
    (lambda r: (r / "systems/x.json").mkdir(), error("TREE103", "systems/x.json"), True),
    (lambda r: (r / "systems/.x.json").mkdir(), [], False),
    (lambda r: (r / "results/.git/x").mkdir(parents=True), error("TREE106", "results/.git"), True),
    (lambda r: (r / "results/.git").mkdir(), [], False),
    (lambda r: (r / SET / "result_9.txt").mkdir(), error("TREE107", f"{SET}/result_9.txt"), True),
    (lambda r: (r / SET / "notes").mkdir(), [], False),
    (lambda r: (r / f"results/{SYSTEM}/x/result_9.txt").mkdir(parents=True), [], False),
    (
        lambda r: (r / SET / "package_checker_params").mkdir(),
        error("TREE109", f"{SET}/package_checker_params"),
        True,
    ),
    (
        lambda r: (r / SET / "package_checker_params").write_bytes(b"\xff"),
        error("TREE109", f"{SET}/package_checker_params"),
        True,
    ),
    (
        lambda r: (r / SET / "package_checker_params").write_bytes(b"rcp_bypass"),
        [("TREE110", "warning", "official", f"{SET}/package_checker_params")],
        False,
    ),
    (lambda r: (r / "package_checker_params").write_bytes(b"rcp_bypass\n"), [], False),
    (
        lambda r: (r / f"results/{SYSTEM}/weak/resnet").mkdir(parents=True),
        error("TREE105", f"results/{SYSTEM}/weak/resnet", "rules"),
        False,
    ),
    (lambda r: (r / "systems/result_0.txt").write_bytes(b"x"), [], False),
]


@pytest.mark.parametrize(("change", "expected", "crashes"), TRAINING)
def test_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: Change, expected: Found, crashes: bool
) -> None:
    root = write_submission(tmp_path / "Org")
    change(root)
    assert rows(root) == expected
    assert package_verdict(root, caplog) == ("crash" if crashes else "pass")


HPC: list[tuple[str, Found, bool]] = [
    ("strong/deepcam", [], False),
    ("weak/deepcam", [], False),
    ("mild/deepcam", error("TREE104", "results/s/mild", "both"), True),
    ("deepcam", error("TREE105", "results/s/deepcam", "rules"), False),
]


@pytest.mark.parametrize(("folder", "expected", "crashes"), HPC)
def test_hpc(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, folder: str, expected: Found, crashes: bool
) -> None:
    write_system(tmp_path / "Org/systems", "s", division="open")
    write_set(tmp_path / "Org/results/s" / folder, (b"",))
    assert rows(tmp_path / "Org", "hpc")[:1] == expected
    assert (package_verdict(tmp_path / "Org", caplog, "hpc") == "crash") is crashes


def test_what_may_not_be_read_is_not_passed(tmp_path: Path) -> None:
    submission = read(write_submission(tmp_path / "Org"))
    entries = tuple(
        FolderEntry(f"{top}/x", folder=False, readable=False) for top in ("code", "results")
    )
    bare = Submission(submission.place, "Org", (), (), entries=entries)
    (finding,) = compared(list(check_tree(bare, "training", ["resnet"])))
    assert (finding.code, finding.path) == ("TREE108", "results/x")


@pytest.mark.parametrize("folder", [SET, f"results/{SYSTEM}"])
@pytest.mark.parametrize(
    ("text", "official"),
    [
        (b"seed-checker-bypass", "pass"),
        (b"rcp-bypass\r\nseed-checker-bypass", "pass"),
        (b"seed-checker-bypass\n", "fail"),
        (b"seed-checker-bypass\nrcp-bypass", "fail"),
        (b"seed_checker_bypass", "fail"),
        (b"--seed-checker-bypass", "fail"),
        (b"\xef\xbb\xbfseed-checker-bypass", "fail"),
    ],
)
def test_only_flags_that_are_read_bypass(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, folder: str, text: bytes, official: str
) -> None:
    root = write_submission(tmp_path / "Org")
    for log in (root / SET).iterdir():
        log.write_bytes(edited(log.read_bytes(), "seed", value=5))
    (root / folder / "package_checker_params").write_bytes(text)
    report = compared(check([str(root)], Options(round="2.0"))).report
    assert report.verdict.official.value == official
    assert package_verdict(root, caplog) == official


Rows = list[tuple[str, str, str]]


def rows_for_git(name: str, entries: tuple[FolderEntry, ...], label: str = "") -> Rows:
    return [(f.code, f.basis.value, f.path) for f in check_repository(name, label, entries)]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (FolderEntry("a/b.txt", folder=False, size=1), []),
        (FolderEntry("a/.b", folder=False), [("REPO101", "official", "a/.b")]),
        (FolderEntry("a/b c", folder=False), [("REPO101", "official", "a/b c")]),
        (FolderEntry("a c", folder=True), [("REPO101", "official", "a c")]),
        (FolderEntry(".git", folder=True), [("REPO101", "official", ".git")]),
        (FolderEntry(".git/x", folder=False), []),
        (FolderEntry("a\tb", folder=False), []),
        (FolderEntry("big", folder=False, size=MAX_BYTES), []),
        (FolderEntry("big", folder=False, size=MAX_BYTES + 1), [("REPO102", "official", "big")]),
        (FolderEntry("l", folder=False, link="x"), [("REPO104", "official", "l")]),
        (FolderEntry("l", folder=False, link="/x"), []),
        (FolderEntry("l", folder=False, link="x", resolves=False), [("REPO103", "both", "l")]),
        (FolderEntry("l", folder=False, link="/x", resolves=False), [("REPO103", "both", "l")]),
        (FolderEntry(". l", folder=True, link="/x"), []),
    ],
)
def test_one_entry(entry: FolderEntry, expected: list[tuple[str, str, str]]) -> None:
    assert rows_for_git("Org", (entry,)) == expected


@pytest.mark.parametrize(
    ("name", "label", "expected"),
    [
        ("Org", "", []),
        (".org", "", ["."]),
        ("My Org", "round/My Org", ["round/My Org"]),
    ],
)
def test_the_top_folder_has_a_name_too(name: str, label: str, expected: list[str]) -> None:
    assert [path for _, _, path in rows_for_git(name, (), label)] == expected


@pytest.fixture
def official(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> Callable[[Path], bool]:
    """Its verdict by its own log: what it returns is False in any case."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    def passes(root: Path) -> bool:
        with caplog.at_level(logging.INFO):
            assert repo_checker.run_checks(str(root)) is False
        return "ALL CHECKS PASSED." in caplog.messages

    return passes


def large(root: Path, more: int) -> None:
    with (root / "large.bin").open("wb") as stream:
        stream.truncate(MAX_BYTES + more)


CHANGES: list[Change] = [
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
def test_as_the_repository_checker(tmp_path: Path, official: Any, name: str, change: int) -> None:
    root = tmp_path / name
    (root / "results").mkdir(parents=True)
    (root / "real.txt").touch()
    CHANGES[change](root)
    assert (rows_for_git(name, list_tree(root)) == []) is official(root)


@given(st.lists(st.text(st.sampled_from(". ab\t\u00a0"), min_size=1, max_size=4)))
def test_names_as_the_repository_checker(names: list[str]) -> None:
    accepted = repo_checker._check_bad_filenames(names, [])
    entries = tuple(FolderEntry(name, folder=False) for name in names)
    assert (rows_for_git("Org", entries) == []) is accepted


def test_the_verdict_of_a_submission(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Org")
    (root / "results" / SYSTEM / "resnet" / "my notes").touch()
    report = compared(check([str(root)], Options(round="2.0"))).report
    assert (report.verdict.official.value, report.verdict.rules.value) == ("fail", "pass")
    assert {row.verdict.official.value for row in report.result_sets} == {"pass"}


def test_it_takes_no_round_before_2_0(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Org")
    (root / ".hidden").touch()
    codes = {f.code for f in compared(check([str(root)], Options(round="1.1"))).report.findings}
    assert "REPO101" not in codes


LOG = simulated()[0]
READ = "mlperf_pkg.checker.reading.read_run"
TAKE = "mlperf_pkg.submission.find.Loose.take"


@pytest.mark.parametrize(
    ("name", "content", "failing", "code"),
    [
        ("notes.txt", b"no record\n", "", "TREE112"),
        ("notes.bin", b"no record\n", "", None),
        ("run.log.gz", gzip.compress(gzip.compress(LOG)), "", "TREE111"),
        ("run.log.gz", gzip.compress(LOG), "", None),
        ("run.log", LOG, READ, "LOG113"),
        ("run.log", LOG, TAKE, "TREE114"),
        ("run.log", LOG, "", None),
    ],
    ids=["text", "other", "packed twice", "packed", "read", "taken", "log"],
)
def test_a_file_that_cannot_be_read_is_named(
    name: str,
    content: bytes,
    failing: str,
    code: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "a.log").write_bytes(simulated(seed=8)[0])
    (tmp_path / name).write_bytes(content)
    if failing:
        function = resolve_name(failing)

        def fails(*arguments: object) -> object:
            if name in repr(arguments[-1]):
                raise OSError(errno.EIO, "Input/output error")
            return function(*arguments)

        monkeypatch.setattr(failing, fails)
    report = compared(check([str(tmp_path)], Options(jobs=1))).report
    codes = {"TREE111", "TREE112", "TREE114", "LOG113"}
    assert [f.code for f in report.findings if f.code in codes] == ([code] if code else [])
