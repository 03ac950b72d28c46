"""Waivers: what they cover, what they change, and the findings about the waivers themselves."""

from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.config import Config, WaiverConfig
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Severity, Verdict, Verdicts, Waiver
from tests.helpers.logs import without
from tests.helpers.reports import finding
from tests.helpers.stored import compared
from tests.helpers.trees import simulated, write_set, write_submission

PASS, FAIL = Verdict.PASS, Verdict.FAIL


def config(code: str, path: str, until: str = "9999-12-31", line: int = 2) -> WaiverConfig:
    return WaiverConfig(code, path, Waiver("a reason", "somebody", until), line)


def on(day: str, *configs: WaiverConfig) -> Waivers:
    return Waivers(configs, "mlperf-pkg.yaml", day)


@pytest.mark.parametrize(
    ("path", "code", "pattern", "covered"),
    [
        ("results/a/bert/result_0.txt", "SET101", "results/a/bert/result_0.txt", True),
        ("results/a/bert/result_0.txt", "set101", "results/a/bert/result_0.txt", True),
        ("results/a/bert/result_0.txt", "SET101", "*/bert/*", True),
        ("results/a/bert/result_0.txt", "SET101", "result_0.txt", True),
        ("results/a/bert/result_0.txt", "SET101", "result_?.txt", True),
        ("results/a/bert/result_0.txt", "SET101", "results/a", True),
        ("results/a/bert/result_0.txt", "SET101", "a/bert/", True),
        ("results/a/bert/result_0.txt", "SET101", "*", True),
        ("results/a/bert/result_0.txt", "SET101", "ert/result_0.txt", False),
        ("results/a/bert/result_0.txt", "SET101", "results/b", False),
        ("results/a/bert/result_0.txt", "SET10", "*", False),
        ("results/a/bert/result_0.txt", "SET102", "*", False),
    ],
)
def test_what_a_waiver_covers(path: str, code: str, pattern: str, covered: bool) -> None:
    waivers = on("2026-01-01", config(code, pattern))
    (waived,) = waivers.waive([finding(path, code="SET101")])
    assert (waived.waiver is not None) is covered


@pytest.mark.parametrize(
    ("day", "holds"), [("2026-06-29", True), ("2026-06-30", True), ("2026-07-01", False)]
)
def test_a_waiver_holds_to_the_end_of_its_day(day: str, holds: bool) -> None:
    waivers = on(day, config("X1", "*", until="2026-06-30", line=7))
    findings = waivers.waive([finding(code="X1")])
    assert (findings[0].waiver is not None) is holds
    stale = [(f.code, f.line, f.severity, f.basis) for f in waivers.stale(findings)]
    assert stale == ([] if holds else [("WAIVE101", 7, Severity.WARNING, Basis.ADVICE)])


def test_a_waiver_that_waives_nothing_is_reported() -> None:
    (stale,) = on("2026-01-01", config("X2", "*")).stale([finding(code="X1")])
    assert (stale.code, stale.path) == ("WAIVE102", "mlperf-pkg.yaml")


# ---- in a check ---------------------------------------------------------------------------


def spoil(log: Path) -> None:
    """Remove a record that the rules require."""
    log.write_bytes(without(log.read_bytes(), "submission_org"))


def checked(path: Path, *configs: WaiverConfig) -> tuple[Verdicts, list[str], list[str]]:
    """The verdict, the codes of errors, and those of waived findings; that of the set may
    follow.
    """
    report = compared(check([str(path)], Options(config=Config(waivers=configs)))).report
    if configs and not any(f.is_error for f in report.findings):
        assert report.result_sets[0].verdict == report.verdict
    errors = [finding.code for finding in report.findings if finding.is_error]
    return report.verdict, errors, [f.code for f in report.findings if f.waiver]


def test_loose_logs(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "logs", simulated())
    spoil(folder / "result_0.txt")
    verdict, (code,), _ = checked(folder)
    assert verdict.rules is FAIL
    again, errors, waived = checked(folder, config(code, "result_0.txt"))
    assert (again, errors, waived) == (Verdicts(verdict.official, PASS), [], [code])


def test_a_submission(tmp_path: Path) -> None:
    tree = write_submission(tmp_path)
    (next(tree.glob("results/*/*")) / "result_4.txt").unlink()
    assert checked(tree, config("SET101", "*")) == (Verdicts(FAIL, PASS), [], ["SET101"])
    (tree / "systems" / "spare.json").write_text("{}")
    _, codes, _ = checked(tree)
    verdict, errors, waived = checked(tree, config("SET101", "results"))
    assert (verdict, waived) == (Verdicts(FAIL, FAIL), ["SET101"])
    assert {*codes} == {*errors, "SET101"}
    verdict, errors, _ = checked(tree, *(config(code, "*") for code in codes))
    assert (verdict, errors) == (Verdicts(FAIL, PASS), [])


def test_a_benchmark_that_was_not_checked_does_not_pass(tmp_path: Path) -> None:
    tree = write_submission(tmp_path)
    folder = next(tree.glob("results/*/*"))
    folder.rename(folder.with_name("resnett"))
    configs = tuple(config(code, "*") for code in ("SET106", "SET107"))
    report = compared(check([str(tree)], Options(config=Config(waivers=configs)))).report
    assert [row.verdict.rules for row in report.result_sets] == [Verdict.NOT_CHECKED]


def test_an_unknown_code_is_refused(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "logs", simulated())
    with pytest.raises(UserError, match=r"mlperf-pkg\.yaml:2: .*'SET1O1'; did you mean SET1"):
        checked(folder, config("SET1O1", "*"))
