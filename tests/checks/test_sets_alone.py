"""A result set is judged as a set wherever one points: in its submission, alone, or as its logs."""

import gzip
import re
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.findings import Severity, Verdict, Verdicts
from tests.helpers.examples import newest
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission

FAIL, PASS = Verdict.FAIL, Verdict.PASS
SET = f"results/{SYSTEM}/resnet"
OUTSIDE = {"SET110", "SET111", "SET115", "SET117", "CODE100", "CODE101", "CODE102"}
"""What a folder alone does not show: the description, the submitter, the code."""


def checked(*paths: Path) -> Checked:
    return check([str(path) for path in paths], Options(jobs=1))


def codes(result: Checked) -> set[tuple[str, Severity]]:
    """The codes of findings on result sets and runs."""
    findings = [f for one in result.sets for f in (*one.findings, *one.run_findings)]
    return {(f.code, f.severity) for f in findings if f.code not in OUTSIDE}


Change = Callable[[Path], object]


def edit(*changes: tuple[str, str], index: int = 1) -> Change:
    """Other text in a log, where it is matched by patterns."""

    def change(root: Path) -> None:
        path = root / SET / f"result_{index}.txt"
        text = path.read_text("utf-8")
        for pattern, other in changes:
            text = re.sub(pattern, other, text)
        path.write_text(text, "utf-8")

    return change


def both(*changes: Change) -> Change:
    return lambda root: [change(root) for change in changes]


def file_with(name: str, content: bytes) -> Change:
    return lambda root: (root / SET / name).write_bytes(content)


UNCONVERGED = (
    (r'("key": "eval_accuracy", "value": )[0-9.]+', r"\g<1>0.1"),
    ('"status": "success"', '"status": "aborted"'),
)
ONE_UNCONVERGED, NO_SEEDS = edit(*UNCONVERGED), edit(('"seed"', '"sed"'))
SCALED = file_with("scaling.json", b'{"scaling_factor": 2.0}')
NOTHING: Change = bool
CHANGES: list[Change] = [
    NOTHING,
    ONE_UNCONVERGED,
    both(ONE_UNCONVERGED, edit(*UNCONVERGED, index=2)),
    edit(('"opt_name"', '"opt_nam"')),
    NO_SEEDS,
    edit(('"global_batch_size", "value": 1', '"global_batch_size", "value": 11')),
]
OF_FOLDER: list[Change] = [
    lambda root: shutil.copy(root / SET / "result_0.txt", root / SET / "result_1.txt"),
    lambda root: (root / SET / "result_4.txt").unlink(),  # too few
    lambda root: shutil.copy(root / SET / "result_0.txt", root / SET / "result_5.txt"),
    file_with("run.log", simulated()[0]),
    both(
        lambda root: (root / SET / "result_0.txt").rename(root / SET / "log_0.txt"),
        file_with("result_0.txt.gz", gzip.compress(simulated()[0])),
    ),
    SCALED,
    both(NO_SEEDS, file_with("package_checker_params", b"seed-checker-bypass")),
    lambda root: (root / SET / "power").mkdir(),
    edit(('"resnet"', '"bert"')),
    lambda root: (root / SET).rename(root / "results" / SYSTEM / "resnet50"),
]
LEVELS = newest(product((0, 1, 2), (*CHANGES, *OF_FOLDER)), lambda row: row[1])


@pytest.mark.parametrize(("level", "change"), [*LEVELS, (0, NOTHING), (1, NOTHING), (0, SCALED)])
def test_a_folder_alone_is_judged_as_in_its_submission(
    tmp_path: Path, level: int, change: Change
) -> None:
    root = write_submission(tmp_path / "v2.0" / "Graphcore")
    change(root)
    whole = checked(root)
    (row,) = whole.report.result_sets
    alone = checked([root / row.path, (root / row.path).parent, root / "results"][level])
    (of_alone,) = alone.report.result_sets
    assert (alone.report.verdict, of_alone.verdict) == (row.verdict, row.verdict)
    assert codes(alone) == codes(whole)
    if change is ONE_UNCONVERGED:
        assert row.verdict == Verdicts(PASS, PASS)
    assert [
        name
        for name in ("system", "benchmark", "division", "score_minutes", "official_minutes", "rcp")
        if getattr(of_alone, name) != getattr(row, name)
    ] == []
    runs = [[(run.verdict, run.dropped) for run in one.report.runs] for one in (alone, whole)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("has_systems", [False, True])
def test_a_folder_of_logs_is_judged_as_a_set(
    tmp_path: Path, change: Change, has_systems: bool
) -> None:
    root = write_submission(tmp_path / "v2.0" / "Graphcore")
    change(root)
    whole = checked(root)
    logs = tmp_path / "v2.0" / "ws" / "logs"
    shutil.copytree(root / SET, logs)
    if has_systems:
        shutil.copytree(root / "systems", logs.parent / "systems")
    raw = checked(logs)
    (row,), (of_raw,) = whole.report.result_sets, raw.report.result_sets
    assert (raw.report.verdict, of_raw.verdict) == (row.verdict, row.verdict)
    assert (codes(raw), of_raw.id) == (codes(whole), row.id)


@pytest.mark.parametrize("change", CHANGES)
def test_of_logs_that_are_named_one_by_one_only_the_logs_are_judged(
    tmp_path: Path, change: Change
) -> None:
    root = write_submission(tmp_path / "Graphcore")
    change(root)
    shutil.copytree(root / SET, tmp_path / "logs")
    report = checked(*sorted((tmp_path / "logs").iterdir())).report
    (row,) = report.result_sets
    assert not row.judged
    assert report.verdict == Verdicts.worst(run.verdict for run in report.runs)
    assert PASS not in (row.verdict.official, row.verdict.rules)
    assert not [f.code for f in report.findings if f.is_error and f.code.startswith("SET")]


@pytest.mark.parametrize(
    ("partial", "severity", "verdict"),
    [(False, Severity.ERROR, Verdicts(FAIL, FAIL)), (True, Severity.NOTE, Verdicts(PASS, PASS))],
)
def test_too_few_runs(tmp_path: Path, partial: bool, severity: Severity, verdict: Verdicts) -> None:
    logs = write_set(tmp_path, simulated()[:4])
    report = check([str(logs)], Options(partial=partial)).report
    assert [f.severity for f in report.findings if f.code == "SET101"] == [severity]
    assert (report.verdict, report.result_sets[0].judged) == (verdict, not partial)
    more = write_set(tmp_path, simulated(runs=6))  # which is complete
    assert check([str(more)], Options(partial=partial)).report.verdict == Verdicts(FAIL, PASS)


def test_runs_of_several_folders_are_one_set(tmp_path: Path) -> None:
    """A finding names the folders if they do not look like one set."""
    logs = simulated()
    write_set(tmp_path / "a", logs[:3])
    write_set(tmp_path / "b", logs[3:])
    assert checked(tmp_path).report.verdict == Verdicts(PASS, PASS)
    assert not [f for f in checked(tmp_path).report.findings if f.code == "SET126"]
    write_set(tmp_path / "other", simulated(seed=8)[:2])
    report = checked(tmp_path).report
    assert [(row.runs_found, row.path) for row in report.result_sets] == [(7, ".")]
    (folders,) = [f.text for f in report.findings if f.code == "SET126"]
    assert folders == (
        "the folders a (3 runs), b (2 runs), other (2 runs) together have 7 runs;"
        " expected 5 runs in a result set"
    )
    other = tmp_path / "other/result_0.txt"
    other.write_bytes(other.read_bytes().replace(SYSTEM.encode(), b"another"))
    assert sorted(row.runs_found for row in checked(tmp_path).report.result_sets) == [1, 6]


def test_the_report_says_of_each_set_what_was_not_checked(tmp_path: Path) -> None:
    """Sets in folders, and the logs of one, of several arguments."""
    root = write_submission(tmp_path / "Graphcore", "resnet", "bert")
    logs = write_set(tmp_path / "logs", simulated())
    report = checked(root / "results", logs).report
    notes = {f.set: f.severity for f in report.findings if f.code == "SET117"}
    assert notes == {row.id: Severity.NOTE for row in report.result_sets}
    assert len(notes) == 3
    assert not [f for f in report.findings if f.code in ("SET110", "SET111", "CODE100")]
    assert report.verdict == Verdicts(PASS, PASS)


@pytest.mark.parametrize("folder", ["logs", SET])
@pytest.mark.parametrize("as_files", [False, True])
def test_the_same_logs_twice(tmp_path: Path, folder: str, as_files: bool) -> None:
    logs = write_set(tmp_path / folder, simulated())
    paths = sorted(logs.iterdir()) if as_files else [logs]
    report = checked(*paths, *paths).report
    assert len(report.result_sets) == 1
    assert report.verdict == Verdicts(PASS, PASS)
