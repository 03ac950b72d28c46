"""Published result sets outside of their trees, alone or as raw logs, are judged as in them.

Three rounds are in every run, all with ``MLPERF_PKG_FULL=1``."""

import random
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import Basis, Severity, Verdicts
from mlperf_pkg.results.report import Report, ResultSetRow
from tests.helpers.corpus import (
    CORPUS,
    FULL,
    ROUNDS,
    SOME_ROUNDS,
    checked,
    kind_of,
    needs_corpus,
    submissions_of,
)

pytestmark = needs_corpus

OUTSIDE = {
    *("SET110", "SET111", "SET115", "SET117", "SET131", "SET140", "SET141", "SET142"),
    *("CODE100", "CODE101", "CODE102", "CODE103", "CODE104", "POW205"),
    *("SET160", "SET161", "SET164", "SEED106"),
}
"""What a folder alone does not show: description, other systems, submitter, code, published round.
"""

OF_BOTH_DIVISIONS = ("v0.7/SIAT/results/modelarts_512_tensorflow_open/resnet",)
"""Sets whose logs name both divisions, so that their description decides."""

AT_THE_TOP = {
    "v2.0/Google/results/cloud-tpu-v4-6912-TF/bert": "rcp_bypass",
    "v2.0/Google/results/cloud-tpu-v4-8192-TF/bert": "rcp_bypass",
    "v2.1/Baidu/results/8_node_64_A100_PaddlePaddle/bert": "rcp_bert_train_samples",
}
"""Sets whose RCP test depends on a flag at the top of their submission, which logs do not show."""

OTHER_FILES = {"SET105", "SET118", "SET119", "SET120", "POW201", "POW203", "POW204"}
"""Codes about files of the folder that are not logs, which logs alone do not show."""


def judgement(result: SetResult) -> tuple[Verdicts, set[tuple[str, Severity, Basis]]]:
    findings = (*result.findings, *result.run_findings)
    codes = {(f.code, f.severity, f.basis) for f in findings if f.code not in OUTSIDE}
    return result.row.verdict, codes


JUDGED_ROUNDS = ROUNDS if FULL else ["v0.7", "v2.1", "hpc_v2.0"]


@pytest.mark.parametrize("tree", JUDGED_ROUNDS)
def test_a_folder_alone(tree: str) -> None:
    sets = {}
    for submission in submissions_of(tree):
        for result in checked(submission).sets:
            if result.runs:
                sets[f"{submission}/{result.row.path}"] = result
    judgements = {path: judged(CORPUS / path) for path in sets}
    assert {path: j for path, j in judgements.items() if path not in OF_BOTH_DIVISIONS} == {
        path: judgement(result) for path, result in sets.items() if path not in OF_BOTH_DIVISIONS
    }


@pytest.mark.parametrize("tree", JUDGED_ROUNDS)
def test_logs_alone(tree: str, tmp_path: Path) -> None:
    """Those of a complete set: 262 of the 265 are complete."""
    judgements = {}
    in_trees = {}
    for submission in submissions_of(tree):
        whole = checked(submission)
        for result in whole.sets:
            path = f"{submission}/{result.row.path}"
            if result.runs and is_complete(whole, result):
                judgements[path] = judged_logs(submission, result, tmp_path / path)
                verdict, codes = judgement(result)
                in_trees[path] = verdict, {code for code in codes if code[0] not in OTHER_FILES}
    assert {path: j for path, j in judgements.items() if path not in AT_THE_TOP} == {
        path: j for path, j in in_trees.items() if path not in AT_THE_TOP
    }


def judged_logs(submission: str, result: SetResult, folder: Path) -> object:
    """The judgement of the logs of a set that are copied into a folder of their own."""
    folder.mkdir(parents=True)
    for run in result.runs:
        shutil.copy(CORPUS / submission / run, folder)
    return judged(folder, Options(kind_of(submission)[0], result.row.round, jobs=1))


def judged(path: Path, options: Options | None = None) -> object:
    """The judgement of the only set, whose verdict is that of the report."""
    alone = check([str(path)], options or Options(jobs=1))
    (result,) = alone.sets
    assert alone.report.verdict == result.row.verdict
    return judgement(result)


def is_complete(submission: Checked, result: SetResult) -> bool:
    """Whether the logs are as many as required, all of one benchmark, division and platform."""
    runs = [run for run in submission.runs if run.path in result.runs]
    kinds = {(run.benchmark, run.division, run.text("platform")) for run in runs}
    return len(kinds) == 1 and len(runs) == result.row.runs_required


OPEN = {"SET110", "SET111", "SET125"}
"""Codes of what the evidence leaves open."""

OF_TREES = {"RCP101"}
"""Codes that depend on flags at the top of a submission."""

OTHERS = {"SET115"}
"""Codes of raw logs alone: in a tree, logs of another organisation are only noted."""

TWICE = {"results/SYS-420GH-TNGR/bert", "results/SYS-420GH-TNGR/resnet/bert"}
"""Runs that were published in two folders of one set (v1.0, Habana)."""

KNOWN = {
    "v0.7": (26, 41),
    "v1.0": (13, 33),
    "v1.1": (8, 24),
    "v2.0": (15, 43),
    "v2.1": (3, 6),
    "v3.0": (3, 15),
    "v3.1": (2, 10),
    "v4.0": (3, 9),
    "v4.1": (5, 17),
    "v5.0": (18, 28),
    "v5.1": (7, 19),
    "hpc_v1.0": (5, 8),
    "hpc_v2.0": (3, 3),
    "hpc_v3.0": (7, 9),
}
"""The sets of a round whose systems are known from the logs, of all."""


def lay(submission: Path, root: Path, *, flat: bool) -> dict[str, str]:
    """Lay out the logs of a submission beside its descriptions; return the set of each."""
    root.mkdir(parents=True)
    (root / CONFIG_NAME).write_text(f"submitter: {submission.name}\n", "utf-8")
    if (submission / "systems").is_dir():
        shutil.copytree(submission / "systems", root / "systems")
    logs = sorted(submission.glob("results/**/result_*.txt"))
    random.Random(7).shuffle(logs)
    sets = {}
    for number, log in enumerate(path for path in logs if "power" not in path.parts):
        weak = "weak/" * ("weak" in log.parts)
        folder = f"logs/{weak}" if flat else f"logs/{weak}job{number % 7}/{number}/"
        (root / folder).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, root / folder / f"{number}.log")
        sets[str(number)] = log.parent.relative_to(submission).as_posix()
    return sets


def identity(row: ResultSetRow) -> tuple[str, int, float | None]:
    """What a set is: its id, number of runs and mean."""
    return row.id, row.runs_found, row.unscaled_minutes


def raw_report(name: str, root: Path, *, flat: bool) -> tuple[Report, dict[str, str]]:
    """The report on the raw logs of a submission, and the set of each."""
    round_ = checked(name).report.round
    assert round_
    sets = lay(CORPUS / name, root, flat=flat)
    return check([str(root / "logs")], Options(round=round_, jobs=1)).report, sets


def judged_sets(report: Report) -> set[object]:
    return {(*identity(row), row.verdict) for row in report.result_sets}


def known_sets(
    report: Report, sets: dict[str, str]
) -> Iterator[tuple[ResultSetRow, str, set[str]]]:
    """The sets whose system is known: with the path of the set that the runs are from, and the
    codes of errors.
    """
    by_id: dict[str | None, set[str]] = defaultdict(set)  # the sets that the runs are from
    for run in report.runs:
        by_id[run.set].add(sets[Path(run.path).stem])
    errors = {(f.set, f.code) for f in report.findings if f.is_error or f.code == "RAW102"}
    for row in report.result_sets:
        codes = {code for id_, code in errors if id_ == row.id}
        if not codes & OPEN and by_id[row.id] != TWICE:
            (origin,) = by_id[row.id]
            yield row, origin, codes


@pytest.fixture(scope="module", params=SOME_ROUNDS)
def round_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def nested(
    round_name: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Report, dict[str, str]]]:
    """The reports on the logs of each submission of a round, laid out in folders of jobs."""
    root = tmp_path_factory.mktemp("nested")
    return {name: raw_report(name, root / name, flat=False) for name in submissions_of(round_name)}


def test_layouts_of_raw_logs(
    nested: dict[str, tuple[Report, dict[str, str]]], tmp_path: Path
) -> None:
    flat = {name: raw_report(name, tmp_path / name, flat=True)[0] for name in nested}
    assert {name: judged_sets(report) for name, report in flat.items()} == {
        name: judged_sets(report) for name, (report, _) in nested.items()
    }


def test_raw_logs(round_name: str, nested: dict[str, tuple[Report, dict[str, str]]]) -> None:
    identified = []
    in_trees = []
    total = 0
    for name, (report, sets) in nested.items():
        rows = {row.path: row for row in checked(name).report.result_sets if row.runs_found}
        for row, origin, codes in known_sets(report, sets):
            of_tree = rows[origin]
            if "RAW102" in codes:  # a copy, which does not count outside of a tree
                of_tree = row
            has_own_verdict = bool(codes & (OTHERS | OF_TREES))
            verdict = row.verdict if has_own_verdict else of_tree.verdict
            identified.append((name, *identity(row), row.verdict))
            in_trees.append((name, *identity(of_tree), verdict))
        total += len(rows)
    assert identified == in_trees
    assert (len(identified), total) == KNOWN[round_name]
