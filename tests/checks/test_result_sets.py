"""Result sets: counts, failed runs, seeds, RCP, scores - with both verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.findings import Severity
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.broken_runs import every_log, slightly_fast
from tests.helpers.logs import edited, good_log, records, without
from tests.helpers.places import unfolded
from tests.helpers.trees import SYSTEM, remove, simulated, write_set, write_submission, write_system

SET = f"results/{SYSTEM}/resnet"


def checked(root: Path, round_: str = "2.0") -> Report:
    return check([str(root)], Options(round=round_)).report


def only(report: Report) -> ResultSetRow:
    (row,) = report.result_sets
    return row


def errors(report: Report) -> list[tuple[str, str, str]]:
    return sorted((f.code, f.basis.value, f.path) for f in unfolded(report.findings) if f.severity is Severity.ERROR)  # fmt: skip


def log(root: Path, index: int) -> Path:
    return root / SET / f"result_{index}.txt"


def rewrite(root: Path, index: int, content: bytes) -> None:
    log(root, index).write_bytes(content)


def other_log(benchmark: str = "resnet", **fields: Any) -> bytes:
    """Another log of the same system."""
    platform = next(
        r["value"] for r in records(simulated()[0]) if r["key"] == "submission_platform"
    )
    return edited(good_log(benchmark, **fields), "submission_platform", value=platform)


def kill(root: Path, *indexes: int) -> None:
    """Logs end in the middle of a record, after the first evaluation."""
    for index in indexes:
        content = log(root, index).read_bytes()
        rewrite(root, index, content[: content.index(b'"eval_accuracy"') + 400])


def placeholder(root: Path, *indexes: int) -> None:
    for index in indexes:
        rewrite(root, index, b"This run was killed by the scheduler.\n")


def diverge(root: Path, *indexes: int) -> None:
    for index in indexes:
        rewrite(root, index, other_log(failure="diverged", seed=100 + index))


def spoil(root: Path, *indexes: int) -> None:
    for index in indexes:
        rewrite(root, index, without(log(root, index).read_bytes(), "cache_clear"))


def same_seed(root: Path) -> None:
    for index in (0, 1):
        rewrite(root, index, edited(log(root, index).read_bytes(), "seed", value=5))


def batch(root: Path, size: Any, *indexes: int) -> None:
    for index in indexes or range(5):
        rewrite(root, index, edited(log(root, index).read_bytes(), "global_batch_size", value=size))


def early(root: Path) -> None:
    """All runs claim to have converged in half the epochs."""
    for index in range(5):
        fields = records(log(root, index).read_bytes())
        halved = [
            {**r, "metadata": {**r["metadata"], "epoch_num": r["metadata"]["epoch_num"] // 2}}
            if r["key"] == "eval_accuracy"
            else r
            for r in fields
        ]
        rewrite(
            root, index, b"".join(b":::MLLOG " + json.dumps(r).encode() + b"\n" for r in halved)
        )


NO_LOG_ERRORS: list[tuple[str, str, str]] = []
# what was done, the errors, official verdict, rules verdict
CASES = [
    ("nothing", lambda r: None, [], "pass", "pass"),
    ("one diverged", lambda r: diverge(r, 1), [], "pass", "pass"),
    ("two diverged", lambda r: diverge(r, 1, 2), [("RCP101", "official", SET), ("RN103", "official", f"{SET}/result_1.txt"), ("RN103", "official", f"{SET}/result_2.txt"), ("SET102", "both", SET), ("SET103", "official", SET)], "fail", "fail"),
    ("one spoilt", lambda r: spoil(r, 1), [("RUN105", "rules", f"{SET}/result_1.txt")], "pass", "fail"),
    ("two spoilt", lambda r: spoil(r, 1, 2), [("RUN105", "both", f"{SET}/result_1.txt"), ("RUN105", "both", f"{SET}/result_2.txt"), ("SET103", "official", SET)], "fail", "fail"),
    ("a run too few", lambda r: remove(log(r, 4)), [("SET101", "both", SET)], "fail", "fail"),
    ("a run too many", lambda r: rewrite(r, 5, other_log(seed=9)), [("SET101", "both", SET)], "fail", "fail"),
    ("same seed", same_seed, [("SEED102", "official", f"{SET}/result_1.txt")], "fail", "pass"),
    ("no seed", lambda r: rewrite(r, 0, without(log(r, 0).read_bytes(), "seed")), [("SEED101", "official", f"{SET}/result_0.txt")], "fail", "pass"),
    ("seed is text", lambda r: rewrite(r, 0, edited(log(r, 0).read_bytes(), "seed", value="x")), [("SEED103", "official", f"{SET}/result_0.txt")], "fail", "pass"),
    ("mixed batch sizes", lambda r: batch(r, 4096, 0), [("RCP103", "official", SET), ("SET108", "rules", SET)], "fail", "fail"),
    ("batch above all points", lambda r: batch(r, 10**7), [("RCP101", "official", SET)], "fail", "pass"),
    ("too early", early, [("RCP101", "official", SET)], "fail", "pass"),
    ("other benchmark inside", lambda r: rewrite(r, 0, other_log("bert")), [("RCP103", "official", SET), ("SET107", "rules", f"{SET}/result_0.txt"), ("SET108", "rules", SET)], "fail", "fail"),
    ("no system file", lambda r: remove(r / "systems" / f"{SYSTEM}.json"), [("SET110", "both", SET)], "fail", "fail"),
    ("system that is not JSON", lambda r: (r / "systems" / f"{SYSTEM}.json").write_text("{"), [("SET110", "both", SET), ("SYS001", "both", f"systems/{SYSTEM}.json")], "fail", "fail"),
    ("an entry moved to Open", lambda r: write_system(r / "systems", division="open"), [], "pass", "pass"),
    ("one killed", lambda r: kill(r, 1), [("SEED103", "official", f"{SET}/result_1.txt")], "fail", "pass"),
    ("misspelt division", lambda r: write_system(r / "systems", division="close"), [("SYS201", "rules", f"systems/{SYSTEM}.json")], "pass", "fail"),
    ("the checker crashes", lambda r: rewrite(r, 0, edited(log(r, 0).read_bytes(), "submission_division", value="x")), [("RUN103", "both", f"{SET}/result_0.txt"), ("SET104", "official", f"{SET}/result_0.txt")], "fail", "fail"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "expected", "official", "rules"), CASES, ids=[c[0] for c in CASES])  # fmt: skip
def test_submissions(
    tmp_path: Path, name: str, change: Any, expected: list[Any], official: str, rules: str
) -> None:
    change(write_submission(tmp_path))
    report = checked(tmp_path)
    assert errors(report) == sorted(expected)
    assert (report.verdict.official.value, report.verdict.rules.value) == (official, rules)


@pytest.mark.parametrize(
    ("flag", "change", "code"), [("rcp-bypass", early, "RCP102"), ("seed-checker-bypass", same_seed, None)]
)  # fmt: skip
def test_bypass(tmp_path: Path, flag: str, change: Any, code: str | None) -> None:
    change(write_submission(tmp_path))
    (tmp_path / SET / "package_checker_params").write_text(flag)
    report = checked(tmp_path)
    assert errors(report) == []
    assert report.verdict.official.value == "pass"
    assert code is None or code in {f.code for f in report.findings}
    row = only(report)
    assert (row.rcp and row.rcp.bypassed, row.rcp and row.rcp.official_pass, row.seeds.official_pass) == (
        (True, False, True) if code else (False, True, False)
    )  # fmt: skip


def test_the_score(tmp_path: Path) -> None:
    report = checked(write_submission(tmp_path))
    row, minutes = only(report), sorted(run.minutes or 0 for run in report.runs)
    mean = sum(minutes[1:4]) / 3
    assert row.unscaled_minutes == pytest.approx(mean, rel=1e-12)
    assert row.score_minutes == row.unscaled_minutes
    assert row.official_minutes == pytest.approx(mean, rel=1e-12)
    assert sorted(filter(None, (run.dropped for run in report.runs))) == ["fastest", "slowest"]


def test_the_score_with_a_diverged_run(tmp_path: Path) -> None:
    diverge(write_submission(tmp_path), 2)
    report = checked(tmp_path)
    minutes = sorted(run.minutes or 0 for run in report.runs if run.path != f"{SET}/result_2.txt")
    assert only(report).score_minutes == pytest.approx(sum(minutes[1:]) / 3, rel=1e-12)
    assert {run.path: run.dropped for run in report.runs}[
        f"{SET}/result_2.txt"
    ] == "did not converge"


@pytest.mark.parametrize(
    ("text", "factor", "has_official"),
    [
        ('{"scaling_factor": 1.5}', 1.5, True),
        ('{"scaling_factor": "x"}', 1.0, False),
        ("{", 1.0, False),
        ("[]", 1.0, False),
        (None, 1.0, True),
    ],
)
def test_scaling_json_on_request(
    tmp_path: Path, text: str | None, factor: float, has_official: bool
) -> None:
    """Without a factor in the file, the summarizer crashes."""
    root = every_log(slightly_fast, write_submission(tmp_path))
    if text is not None:
        (root / SET / "scaling.json").write_text(text)
    row = only(check([str(root)], Options(flags=frozenset({KEEP_SCALING}))).report)
    assert row.scaling_factor == factor
    assert row.score_minutes == pytest.approx((row.unscaled_minutes or 0) * factor)
    assert row.official_minutes == (row.score_minutes if has_official else None)


@pytest.mark.parametrize("text", [None, '{"scaling_factor": 1.5}', '{"scaling_factor": 1}', "{"])
def test_scores_are_scaled_by_the_rcp_test(tmp_path: Path, text: str | None) -> None:
    """Whatever ``scaling.json`` says, and in any round; one that says otherwise is a finding."""
    root = every_log(slightly_fast, write_submission(tmp_path))
    if text is not None:
        (root / SET / "scaling.json").write_text(text)
    report = checked(root)
    row = only(report)
    assert row.rcp
    assert 1 < row.scaling_factor == row.rcp.normalization
    assert row.score_minutes == (row.unscaled_minutes or 0) * row.scaling_factor
    assert row.official_minutes == row.score_minutes
    codes = [f.code for f in report.findings if f.code in {"SET119", "SET120"}]
    assert codes == {None: [], "{": ["SET119"]}.get(text, ["SET120"])


def test_open_sets_need_no_seed_and_no_convergence_of_the_reference(tmp_path: Path) -> None:
    root = write_submission(tmp_path, division="open")
    for index in range(5):
        rewrite(root, index, without(log(root, index).read_bytes(), "seed"))
    report = checked(root)
    assert errors(report) == []
    assert only(report).seeds.official_pass is False


def test_partial_sets_are_for_information(tmp_path: Path) -> None:
    write_set(tmp_path / "mine", simulated(runs=3))
    report = check([str(tmp_path)], Options(partial=True)).report
    row = only(report)
    assert errors(report) == []
    assert (row.runs_found, row.runs_required, row.score_note) == (3, 5, "only 3 of 5 runs")
    assert row.score_minutes is not None
    assert (report.verdict.official.value, report.verdict.rules.value) == ("pass", "pass")
    assert {f.code for f in report.findings if f.severity is Severity.NOTE} == {"SET101"}


def test_a_folder_that_is_no_benchmark(tmp_path: Path) -> None:
    root = write_submission(tmp_path)
    (root / SET).rename(root / "results" / SYSTEM / "resnet50")
    report = checked(root)
    assert {code for code, *_ in errors(report)} == {"SET106", "SET107"}
    assert only(report).verdict.official.value == "not_checked"
    (message,) = [finding.text for finding in report.findings if finding.code == "SET106"]
    assert message.endswith("the official checker skips the folder; did you mean resnet?")
    assert only(report).score_note == "no rules of resnet50 in round 2.0; did you mean resnet?"


def test_an_empty_submission_is_not_passed(tmp_path: Path) -> None:
    write_submission(tmp_path)
    remove(tmp_path / "results" / SYSTEM)
    write_set(tmp_path / "results" / "x" / "y", ())
    report = checked(tmp_path)
    assert report.verdict.official.value == "fail"


def copy_of(root: Path, index: int, *changes: Any) -> None:
    """Run ``index`` becomes run 0 with another seed, shifted in time."""
    fields = records(log(root, 0).read_bytes())
    shifted = [{**r, "time_ms": r["time_ms"] + 86_400_000} for r in fields]
    lines = (b":::MLLOG " + json.dumps(r).encode() + b"\n" for r in shifted)
    rewrite(root, index, edited(b"".join(lines), "seed", value=4711))


def other_line(root: Path) -> None:
    for index in (0, 1):
        source_line = {"file": "a.py", "lineno": index}
        rewrite(
            root,
            index,
            edited(log(root, index).read_bytes(), "seed", value=5, metadata=source_line),
        )


def reworded(root: Path) -> None:
    """A later record whose key only holds the word that the RCP checker looks for."""
    extra = {"key": "eval_global_batch_size", "value": 128, "time_ms": 1, "metadata": {}}
    for index in range(5):
        path = log(root, index)
        path.write_bytes(path.read_bytes() + b":::MLLOG " + json.dumps(extra).encode() + b"\n")


def named(root: Path, key: str, value: Any) -> None:
    for index in range(5):
        rewrite(root, index, edited(log(root, index).read_bytes(), key, value=value))


def code(root: Path, benchmark: str, name: str) -> None:
    path = root / "benchmarks" / benchmark / name
    path.parent.mkdir(parents=True)
    path.write_text("x")


# what was done, the code of the finding, its basis and severity
TRAPS = [
    ("a copy with another seed and time", lambda r: copy_of(r, 3), "SET112", "rules", "error"),
    ("same seed elsewhere", other_line, "SEED104", "advice", "note"),
    ("batch size of another key", reworded, "RCP104", "rules", "warning"),
    ("placeholder", lambda r: named(r, "submission_platform", "1xSUBMISSION_PLATFORM_PLACEHOLDER"), "SET114", "advice", "note"),
    ("another organisation", lambda r: named(r, "submission_org", "Others"), "SET115", "advice", "note"),
    ("no code at all", lambda r: None, "CODE100", "rules", "warning"),
    ("code of others only", lambda r: code(r, "bert", "a.sh"), "CODE101", "rules", "warning"),
    ("a system without results", lambda r: write_system(r / "systems", "idle"), "TREE120", "advice", "warning"),
    ("aborted", lambda r: rewrite(r, 0, edited(log(r, 0).read_bytes(), "run_stop", metadata={"status": "aborted"})), "RUN130", "rules", "note"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "expected", "basis", "severity"), TRAPS, ids=[t[0] for t in TRAPS])  # fmt: skip
def test_what_the_official_checker_lets_pass(
    tmp_path: Path, name: str, change: Any, expected: str | None, basis: str, severity: str
) -> None:
    change(write_submission(tmp_path / "Graphcore"))
    report = checked(tmp_path / "Graphcore")
    findings = {(f.code, f.basis.value, f.severity.value) for f in report.findings}
    assert expected is None or (expected, basis, severity) in findings
    assert report.verdict.official.value == "pass"


def test_a_good_submission_has_only_its_code_unchecked(tmp_path: Path) -> None:
    report = checked(write_submission(tmp_path / "Graphcore"))
    assert [f.code for f in report.findings] == ["CODE100"]


@pytest.mark.parametrize(("with_code", "severity"), [(False, "note"), (True, "warning")])
def test_a_copy_of_the_results_of_a_round_has_no_code(
    tmp_path: Path, severity: str, *, with_code: bool
) -> None:
    for name in ("Graphcore", "Habana", "NVIDIA"):
        write_submission(tmp_path / "round" / name)
    if with_code:
        code(tmp_path / "round" / "NVIDIA", "resnet", "run_and_time.sh")
    findings = checked(tmp_path / "round").findings
    of_code = {f.severity.value for f in findings if f.code == "CODE100"}
    assert of_code == {severity}


def test_code_is_found(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Graphcore")
    code(root, "resnet", "run_and_time.sh")
    (root / "benchmarks" / "resnet" / "README.md").write_text("bash run_and_time.sh")
    assert checked(tmp_path / "Graphcore").findings == ()


def test_overlapping_runs_are_noted(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Graphcore")
    first, second = (records(log(root, index).read_bytes()) for index in (0, 1))
    earlier = second[0]["time_ms"] - first[0]["time_ms"]
    moved = [{**r, "time_ms": r["time_ms"] - earlier} for r in second]
    lines = (b":::MLLOG " + json.dumps(r).encode() + b"\n" for r in moved)
    rewrite(root, 1, b"".join(lines))
    report = checked(root)
    assert ("SET113", "note") in {(f.code, f.severity.value) for f in report.findings}
    assert report.verdict.rules.value == "pass"


def test_a_configuration_file_that_is_not_there(tmp_path: Path) -> None:
    root = tmp_path / "Graphcore"
    write_system(root / "systems")
    write_set(root / "results" / SYSTEM / "flux1", simulated("flux1", round_="6.1"))
    (named,) = {r["value"] for r in records(simulated("flux1", round_="6.1")[0]) if r["key"] == "config_filename"}  # fmt: skip
    code(root, "flux1", "other.sh")
    assert "CODE102" in {f.code for f in checked(root, "6.1").findings}
    (root / "benchmarks" / "flux1" / Path(named).name).write_text("x")
    assert "CODE102" not in {f.code for f in checked(root, "6.1").findings}
