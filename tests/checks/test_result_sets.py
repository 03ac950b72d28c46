"""Result sets: scores, bypasses, scaling, weak scaling; what breaks a set is in ``test_traps``."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.log.record import Record
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.results.scoring import Score, weak_score
from mlperf_pkg.run.readers import InstanceScale
from tests.helpers.broken_runs import SET
from tests.helpers.logs import edited, halved, joined, records, without
from tests.helpers.models import models, of_models
from tests.helpers.official import official_verdict
from tests.helpers.places import unfolded
from tests.helpers.stored import compared
from tests.helpers.traps import change, diverged, field, killed, log, rewrite
from tests.helpers.trees import (
    SYSTEM,
    remove,
    simulated_models,
    write_code,
    write_set,
    write_submission,
    write_system,
)


def checked(root: Path, round_: str = "2.0") -> Report:
    return compared(check([str(root)], Options(round=round_))).report


def only(report: Report) -> ResultSetRow:
    (row,) = report.result_sets
    return row


def errors(report: Report) -> list[tuple[str, str, str]]:
    return sorted(
        (f.code, f.basis.value, f.path)
        for f in unfolded(report.findings)
        if f.severity is Severity.ERROR
    )


@pytest.mark.parametrize(
    ("flag", "change", "code"),
    [
        ("rcp-bypass", change(SET, halved), "RCP102"),
        ("seed-checker-bypass", field("seed", 5, 0, 1), None),
    ],
)
def test_bypass(tmp_path: Path, flag: str, change: Any, code: str | None) -> None:
    change(write_submission(tmp_path))
    (tmp_path / SET / "package_checker_params").write_text(flag)
    report = checked(tmp_path)
    assert errors(report) == []
    assert report.verdict.official.value == "pass"
    assert code is None or code in {f.code for f in report.findings}
    row = only(report)
    assert (
        row.rcp and row.rcp.bypassed,
        row.rcp and row.rcp.official_pass,
        row.seeds.official_pass,
    ) == ((True, False, True) if code else (False, True, False))


def test_too_few_runs_for_the_rcp_test(tmp_path: Path) -> None:
    write_submission(tmp_path)
    for index in (2, 3, 4):
        remove(log(tmp_path, index))
    (text,) = [f.text for f in checked(tmp_path).findings if f.code == "RCP101"]
    reason = 'the official checker counts this as failed, although it prints only "RCP found"'
    outcome = "there are too few runs to compute a mean, so no RCP test was possible"
    assert text == f"{outcome}; {reason}"


def test_a_batch_size_without_reference_points(tmp_path: Path) -> None:
    """``review`` counts such a set as missing, not as failed."""
    field("global_batch_size", 100_000)(write_submission(tmp_path))
    (text,) = [f.text for f in checked(tmp_path).findings if f.code == "RCP101"]
    assert text.startswith("RCP missing: there is no reference point for batch size 100,000")


def test_the_score(tmp_path: Path) -> None:
    report = checked(write_submission(tmp_path))
    row, minutes = only(report), sorted(run.minutes or 0 for run in report.runs)
    mean = sum(minutes[1:4]) / 3
    assert row.unscaled_minutes == pytest.approx(mean, rel=1e-12)
    assert row.score_minutes == row.unscaled_minutes
    assert row.official_minutes == pytest.approx(mean, rel=1e-12)
    assert sorted(filter(None, (run.dropped for run in report.runs))) == ["fastest", "slowest"]


def test_the_score_with_a_diverged_run(tmp_path: Path) -> None:
    write_submission(tmp_path)
    rewrite(tmp_path, diverged(102), 2)
    report = checked(tmp_path)
    minutes = sorted(run.minutes or 0 for run in report.runs if run.path != f"{SET}/result_2.txt")
    assert only(report).score_minutes == pytest.approx(sum(minutes[1:]) / 3, rel=1e-12)
    assert report.runs[2].dropped == "did not converge"


def bare(log: bytes) -> bytes:
    """The records of the seed, of the evaluations and of the end have no metadata."""
    keys = ("eval_accuracy", "run_stop", "seed")
    return joined(
        [
            {k: v for k, v in r.items() if r["key"] not in keys or k != "metadata"}
            for r in records(log)
        ]
    )


@pytest.mark.parametrize(("change", "verdict"), [(bare, "fail"), (killed, "pass")])
def test_the_log_of_the_run_that_may_fail_is_one(tmp_path: Path, change: Any, verdict: str) -> None:
    """A killed run may lack records; those that its log has are whole."""
    rewrite(write_submission(tmp_path), change, 0)
    report = checked(tmp_path)
    assert report.verdict.rules.value == verdict
    by_rules = [finding.code for finding in report.findings if finding.fails(Basis.RULES)]
    assert by_rules == ["LOG102"] * (change is bare)


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


@pytest.mark.parametrize(("with_code", "severity"), [(False, "note"), (True, "error")])
def test_a_copy_of_the_results_of_a_round_has_no_code(
    tmp_path: Path, severity: str, *, with_code: bool
) -> None:
    for name in ("Graphcore", "Habana", "NVIDIA"):
        write_submission(tmp_path / "round" / name)
    if with_code:
        write_code(tmp_path / "round" / "NVIDIA", "resnet")
    findings = checked(tmp_path / "round").findings
    of_code = {f.severity.value for f in findings if f.code == "CODE100"}
    assert of_code == {severity}


MINUTE = 60_000.0


def test_from_the_first_start_to_the_last_stop() -> None:
    rows: list[tuple[list[tuple[float, float]], int, Score]] = [
        ([(0, MINUTE), (MINUTE, 3 * MINUTE)], 2, Score(3.0)),
        ([(5, 5 + MINUTE)], 1, Score(1.0)),
        ([(0, MINUTE)], 2, Score(None, (), "only 1 of 2 models were trained")),
        ([], 1, Score(None, (), "only 0 of 1 models were trained")),
    ]
    assert [weak_score(runs, [], required) for runs, required, of_runs in rows] == [
        of_runs for runs, required, of_runs in rows
    ]
    score = weak_score([(0, MINUTE)], [("b", True), ("c", False)], 1)
    assert score == Score(1.0, (("b", "did not converge"), ("c", "has no time-to-train")))


@pytest.mark.parametrize(
    ("logged", "scale"),
    [
        ([("number_of_nodes", 128), ("accelerators_per_node", 4)], 512),
        ([("accelerators_per_node", 0), ("number_of_nodes", 7)], 7),
        ([("number_of_nodes", "2"), ("accelerators_per_node", "8")], 16),
        ([("number_of_nodes", 1), ("number_of_nodes", 2), ("accelerators_per_node", 3)], 6),
        ([("number_of_nodes", 2), ("accelerators_per_node", 3), ("number_of_nodes", 9)], 6),
        ([("number_of_nodes", 2), ("number_of_nodes", None), ("accelerators_per_node", 3)], None),
        ([("number_of_nodes", 2)], None),
        ([("number_of_nodes", "x"), ("accelerators_per_node", 3)], None),
        ([], None),
    ],
)
def test_instance_scale(logged: list[tuple[str, Any]], scale: int | None) -> None:
    reader = InstanceScale()
    for key, value in logged:
        reader.take(Record(key, 0, value, {}), 0)
    assert reader.result() == scale
    assert official_scale(logged) == scale


def official_scale(records: list[tuple[str, Any]]) -> int | None:
    lines = [SimpleNamespace(key=key, value={"value": value}) for key, value in records]
    try:
        scale: int = result_summarizer._query_instance_scale(lines)
    except ValueError:
        return None
    return scale


# ---- in a submission ----------------------------------------------------------------------


def aborted(log: bytes) -> bytes:
    return edited(log, "run_stop", metadata={"status": "aborted"})


def one_seed(log: bytes) -> bytes:
    return edited(log, "seed", value=5)


@pytest.mark.parametrize(
    ("scalings", "changed", "verdicts", "errors"),
    [
        (("strong", "weak"), 0, ("pass", "pass"), []),
        (("weak",), 0, ("pass", "fail"), ["SET131 rules"]),
        (("strong",), 0, ("pass", "pass"), []),
        (
            ("strong", "weak"),
            2,
            ("fail", "fail"),
            ["SEED102 official", "SEED102 official", "SEED109 rules"],
        ),
        (("strong",), 2, ("fail", "pass"), ["SEED102 official"]),
    ],
)
def test_throughput_needs_time_to_solution_and_its_models_other_seeds(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    scalings: tuple[str, ...],
    changed: int,
    verdicts: tuple[str, str],
    errors: list[str],
) -> None:
    logs = (*map(one_seed, models()[:changed]), *models()[changed:])
    root = of_models(tmp_path, dict.fromkeys(scalings, logs))
    report = compared(check([str(root)], Options("hpc", "2.0", jobs=1))).report
    codes = sorted(f"{f.code} {f.basis}" for f in report.findings if f.severity.value == "error")
    assert (report.verdict.official.value, report.verdict.rules.value) == verdicts
    assert codes == errors
    official, _ = official_verdict(root, tmp_path, caplog, usage="hpc", ruleset="2.0.0")
    assert official == verdicts[0]


@pytest.mark.parametrize(
    ("round_", "scaling", "same", "lines"),
    [
        ("1.0", "weak", 2, 0),
        ("2.0", "weak", 0, 0),
        ("2.0", "weak", 3, 2),
        ("3.0", "weak", 2, 1),
        ("3.0", "strong", 2, 0),
    ],
)
def test_instances_of_one_seed(
    round_: str, scaling: str, same: int, lines: int, tmp_path: Path
) -> None:
    logs = (*map(one_seed, models()[:same]), *models()[same:])
    root = of_models(tmp_path, {"strong": models(), scaling: logs})
    report = check([str(root)], Options("hpc", round_, jobs=1)).report
    assert sum(f.count for f in report.findings if f.code == "SEED109") == lines


@pytest.mark.parametrize(
    ("scaling", "stopped", "severity"),
    [("weak", 1, "error"), ("weak", 0, None), ("strong", 1, None), ("strong", 2, "error")],
)
def test_all_models_of_weak_scaling_converge(
    scaling: str, stopped: int, severity: str | None, tmp_path: Path
) -> None:
    logs = (*map(aborted, models(7)[:stopped]), *models(7)[stopped:])
    root = of_models(tmp_path, {"strong": models(), "weak": models(), scaling: logs})
    report = compared(check([str(root)], Options("hpc", "2.0", jobs=1))).report
    failed = [(f.severity, f.basis, f.found) for f in report.findings if f.code == "SET102"]
    basis = "both" if stopped > 1 else "rules"
    assert failed == ([(severity, basis, stopped)] if severity else [])


@pytest.mark.parametrize(
    ("edit", "verdicts", "expected"),
    [
        (lambda log: log, ("pass", "pass"), ["SET132 note"]),
        (lambda log: without(log, "opt_name"), ("pass", "fail"), ["CAM105 error", "SET132 note"]),
        (aborted, ("pass", "pass"), ["RUN140 warning", "SET132 note"]),
    ],
)
def test_pruned_models_are_read_and_do_not_count(
    edit: Callable[[bytes], bytes], verdicts: tuple[str, str], expected: list[str], tmp_path: Path
) -> None:
    root = of_models(tmp_path, {"strong": models(), "weak": models(7)})
    folder = root / "results" / SYSTEM / "weak" / "deepcam"
    write_set(folder / "pruned_results", tuple(map(edit, models(9)[:2])))
    report = compared(check([str(root)], Options("hpc", "2.0", jobs=1))).report
    weak = [row for row in report.result_sets if row.scaling == "weak"]
    assert [(row.runs_found, row.number_of_models) for row in weak] == [(7, 7)]
    assert len(report.runs) == 12
    assert (report.verdict.official.value, report.verdict.rules.value) == verdicts
    of_pruned = (f for f in report.findings if "pruned_results" in f"{f.path} {f.text}")
    assert sorted(f"{f.code} {f.severity}" for f in of_pruned) == expected


@pytest.mark.parametrize(("nodes", "scales"), [(2, []), (4, [[16, 32]])])
def test_models_of_different_scale(nodes: int, scales: list[list[int]], tmp_path: Path) -> None:
    logs = simulated_models(10)
    write_system(tmp_path / "ACME" / "systems", "box")
    weak = tmp_path / "ACME" / "results" / "box" / "weak" / "cosmoflow"
    write_set(weak, (*logs[:9], edited(logs[9], "number_of_nodes", value=nodes)))
    report = compared(check([str(tmp_path / "ACME")], Options("hpc", "3.0"))).report
    assert [f.found for f in report.findings if f.code == "SET130"] == scales
