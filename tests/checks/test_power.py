"""Measured power: files against the official power checker, energy against the summarizer."""

import io
import math
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.compliance_checker.mlp_parser.ruleset_200 import parse_generator
from mlperf_logging.package_checker.power_checker import PowerChecker
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.infra.source import Source
from mlperf_pkg.results.report import Report
from mlperf_pkg.run import power
from mlperf_pkg.run.power import PowerFile, PowerLog, joules, read_power_log
from mlperf_pkg.submission.model import AS_FILED
from tests.helpers.broken_runs import SET
from tests.helpers.examples import SHARE
from tests.helpers.logs import without
from tests.helpers.official import package_verdict
from tests.helpers.power import START, line, measure, node
from tests.helpers.stored import compared
from tests.helpers.trees import SYSTEM, write_submission
from tests.parity.incumbent import quickened


def measured(log: bytes, switch: bool = False) -> PowerLog:
    return read_power_log(PowerFile(Source("node_0.txt", log), switch))


# ---- one measurement ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "missing"),
    [
        ([], 0),
        ([5], 0),
        ([0, 1, 2, 3], 0),
        ([0, 0.5, 1, 1.5, 2], 0),
        ([0, 0, 2, 2, 4, 4, 6], 0),  # whole seconds
        ([0, 2, 4, 6], 0.5),
        ([0, 0.1, 0.2, 0.3, 10.3], 8 / 10.3),  # enough samples, but not in time
    ],
)
def test_missing_samples(seconds: list[float], missing: float) -> None:
    log = b"".join(line("power_reading", START + 1000 * second, 500.0) for second in seconds)
    assert measured(log).missing == pytest.approx(max(missing, 0))


CRASHES = [
    (b"", False, "ValueError"),
    (line("power_measurement_stop", 5), False, "ValueError"),
    (
        line("power_measurement_start", 5) + line("power_measurement_stop", 5),
        False,
        "ZeroDivisionError",
    ),
    (line("power_measurement_start", 0), False, "ZeroDivisionError"),
    (line("power_measurement_start", 1) + line("power_reading", 2, "x"), False, "TypeError"),
    (line("power_measurement_start", 1) + line("power_reading", 2, None), False, "TypeError"),
    (
        line("power_measurement_start", 1) + line("power_reading", 2, 10**400),
        False,
        "OverflowError",
    ),
    (node() + line("conversion_eff", 5, "0.9"), False, ""),
    (node() + line("conversion_eff", START + 5, "0.9"), False, "TypeError"),
    (line("interconnect_power_est", 1, "x"), True, "TypeError"),
    (line("interconnect_power_est", 1, [1]), True, "TypeError"),
    (b':::MLLOG {"key": "x"}\n', True, ""),
]


@pytest.mark.parametrize(("log", "switch", "crash"), CRASHES)
def test_what_the_summarizer_crashes_on(log: bytes, switch: bool, crash: str) -> None:
    assert crash in (measured(log, switch).crash or "")
    assert math.isnan(official_joules(log, switch)) is (measured(log, switch).watts is None)


def test_a_measurement_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "MAX_BYTES", len(node()))
    assert measured(node()).crash is None
    longer = measured(node() + b"\n")
    assert (longer.watts, longer.readings) == (None, 0)
    assert "the largest size that is read" in (longer.crash or "")


def official_joules(log: bytes, switch: bool, time_ms: float = 90_000.0) -> float:
    """Its energy; NaN where it raises."""
    compute = getattr(result_summarizer, f"_compute_power_{'sw' if switch else 'node'}")
    try:
        loglines, _ = parse_generator(io.StringIO(log.decode("latin-1")))
        return float(compute(loglines, time_ms))
    except Exception:  # noqa: BLE001 - whatever it raises
        return math.nan


KEYS = ["power_measurement_start", "power_measurement_stop", "power_reading", "power_reading"]
VALUES = st.one_of(st.floats(0, 1e4), st.integers(0, 9999), st.sampled_from([None, "1", True, [0]]))
NUMBERS = st.floats(0, 1e4) | st.integers(0, 9999)


def logs_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    keys = st.sampled_from([*KEYS, "conversion_eff", "interconnect_power_est", "other"])
    return st.lists(st.builds(line, keys, st.integers(0, 9), values), max_size=9).map(b"".join)


@given(logs_of(NUMBERS) | logs_of(VALUES), st.booleans())
def test_energy_of_any_measurement(log: bytes, switch: bool) -> None:
    log = line("power_measurement_start", 3) + log
    ours = measured(log, switch)
    energy = joules([ours], 90_000.0) if ours.watts is not None else math.nan
    assert energy == pytest.approx(official_joules(log, switch), rel=1e-9, nan_ok=True)


def test_energy() -> None:
    log = measured(node(watts=500.0))
    assert joules([log, log], 10_000) == pytest.approx(2 * 0.9 * 500 * 10)
    estimate = measured(line("interconnect_power_est", 1, 50), switch=True)
    assert joules([log, estimate], 10_000) == pytest.approx((0.9 * 500 + 50) * 10)


# ---- names and numbers of files -----------------------------------------------------------

Files = dict[str, list[str] | None]
"""The names in each folder of ``power/``; None for a file in place of a folder."""


def lay(root: Path, files: Files) -> None:
    for result, names in files.items():
        folder = root / SET / "power" / result
        paths = [folder] if names is None else [folder / name for name in names]
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        if names is not None:
            folder.mkdir(parents=True, exist_ok=True)


def everywhere(*names: str, **others: list[str]) -> Files:
    return {f"result_{i}": others.get(f"r{i}", list(names)) for i in range(5)}


def missing(*indexes: int, **others: list[str]) -> Files:
    files = everywhere("node_0.txt", **others)
    return {name: files[name] for name in files if int(name[-1]) not in indexes}


def checked(root: Path) -> Report:
    return check([str(root)], Options(round="4.0", jobs=1)).report


def official(root: Path) -> tuple[set[str], bool]:
    """The runs that the power checker blames, and whether it crashes."""
    logs = sorted(str(path) for path in (root / SET).glob("result_*.txt"))
    try:
        _, blamed = PowerChecker("2.0.0").check_power(str(root / SET / "power"), logs)
    except Exception:  # noqa: BLE001 - whatever it raises
        return set(), True
    return {f"{SET}/{name}.txt" for name in blamed}, False


TWO = ["node_0.txt", "node_1.txt"]
FILES: list[tuple[Files, dict[str, str], str]] = [
    (everywhere("node_0.txt", "sw_0.txt"), {}, "pass"),
    (everywhere("node_0.txt", "notes.md"), {}, "pass"),
    (everywhere("node_1.txt"), {"POW102": "official", "SET103": "official"}, "fail"),
    (everywhere("node_0.txt", r1=["node_1.txt"]), {}, "pass"),
    (everywhere("node_0.txt", r1=["node_-1.txt"]), {}, "pass"),
    (everywhere("node_0.txt", r1=["node_x_0.txt"]), {}, "pass"),
    (everywhere("node_0.txt", r1=["node_0."]), {"POW205": "rules"}, "pass"),
    (everywhere(*TWO, r1=["node_0.txt", "node_0.log"]), {}, "pass"),
    (everywhere("node_0.txt", r1=TWO), {"POW103": "rules"}, "pass"),
    (everywhere("node_0.txt", r1=TWO, r2=TWO), {"POW103": "both", "SET103": "official"}, "fail"),
    (everywhere("sw_0.txt", r1=["sw_1.txt"]), {"POW205": "rules"}, "pass"),
    (missing(4), {"POW101": "rules"}, "pass"),
    (missing(3, 4), {"POW101": "both", "SET103": "official"}, "fail"),
    (missing(0, r3=TWO), {"POW101": "both", "POW103": "official", "SET103": "official"}, "fail"),
    (missing(0, 1, 2, 3, 4), {}, "pass"),
    ({"else": []}, {"POW104": "official"}, "fail"),
    (everywhere("node.txt"), {"POW104": "official"}, "fail"),
    (everywhere("node_0.txt", r1=["swx"]), {"POW104": "official"}, "fail"),
    ({**everywhere("node_0.txt"), "result_1": None}, {"POW104": "official"}, "fail"),
]


@pytest.mark.parametrize(("files", "expected_errors", "verdict"), FILES)
def test_files(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    files: Files,
    expected_errors: dict[str, str],
    verdict: str,
) -> None:
    root = write_submission(tmp_path / "Org")
    lay(root, files)
    report = compared(checked(root))
    errors = {f.code: f.basis.value for f in report.findings if f.severity.value == "error"}
    unequal = [f.text for f in report.findings if f.code == "POW103"]
    assert all(text.startswith("the number of files node_<number>.txt is ") for text in unequal)
    assert errors.pop("POW202", "rules") == "rules"  # the files of nodes are empty
    assert (errors, report.verdict.official.value) == (expected_errors, verdict)
    assert package_verdict(root, caplog) == ("crash" if "POW104" in expected_errors else verdict)


def test_numbers_of_files_are_a_list(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Org")
    lay(root, everywhere("node_-1.txt", "node_2.txt"))
    texts = [f.text for f in checked(root).findings if f.code == "POW102"]
    assert texts == ["the files node_<number>.txt have the numbers -1, 2; expected 0, 1"]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Org")
    (root / SET / "power").touch()
    report = checked(root)
    assert official(root) == (set(), True)
    assert {f.code for f in report.findings if f.severity.value == "error"} == {"POW104"}
    assert report.result_sets[0].official_minutes is not None


def test_a_failed_log_and_another_without_power_are_two(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Org")
    lay(root, missing(4))
    log = root / SET / "result_0.txt"
    log.write_bytes(without(log.read_bytes(), "cache_clear"))
    assert checked(root).result_sets[0].verdict.official.value == "fail"


NAMES = ["node_0.txt", "node_1.txt", "node_2.txt", "sw_0.txt", "sw_1.txt", "node_-1.txt", "x.txt"]
DEADLY = ["node.txt", "sw_.txt", "node_1x.txt"]


@pytest.mark.parametrize("seed", range(80 // SHARE))
def test_any_files_as_the_power_checker(tmp_path: Path, seed: int) -> None:
    """By what decides its verdict: the runs it blames, and whether it crashes."""
    chosen = random.Random(seed)
    root = write_submission(tmp_path / "Org")
    (root / SET / "power").mkdir()
    lay(root, _random_files(chosen))
    blamed, crashes = official(root)
    row = checked(root).result_sets[0]
    assert row.verdict.official.value == ("fail" if crashes or len(blamed) > 1 else "pass")


def _random_files(chosen: random.Random) -> Files:
    usual = chosen.sample(NAMES, chosen.randint(1, 3))
    files: Files = {}
    for index in range(5):
        names = chosen.choice([usual, usual, usual, chosen.sample(NAMES, 2)])
        if chosen.random() < 0.9:
            files[f"result_{index}"] = [*names, *chosen.sample(DEADLY, chosen.random() < 0.05)]
    return files


# ---- energy of a set, and the samples by the rules ----------------------------------------


def summarized(root: Path) -> Any:
    with quickened():
        return result_summarizer._compute_strong_score_standalone(
            "resnet", SYSTEM, True, str(root / SET), "training", "2.0.0"
        )


def test_energy_of_a_set_as_the_summarizer(tmp_path: Path) -> None:
    root = measure(write_submission(tmp_path / "Org"))
    (root / SET / "scaling.json").write_text('{"scaling_factor": 1.25}')
    kept = Options(round="4.0", flags=frozenset({AS_FILED}))
    report = compared(check([str(root)], kept)).report
    assert [f for f in report.findings if f.code.startswith("POW")] == []
    _, energy, _ = summarized(root)
    assert report.result_sets[0].energy_joules == pytest.approx(energy, rel=1e-12)
    counted = [run.energy_joules or 0.0 for run in report.runs if run.dropped is None]
    assert 1.25 * sum(counted) / len(counted) == pytest.approx(energy, rel=1e-12)
    seen = {(run.batch_size, run.accelerators, run.convergence_unit) for run in report.runs}
    assert seen == {(3264, 16, "epochs")}


def test_why_a_set_has_no_energy(tmp_path: Path) -> None:
    root = measure(write_submission(tmp_path / "Org"))
    for log in sorted((root / SET).glob("result_*.txt"))[:2]:
        log.write_bytes(without(log.read_bytes(), "cache_clear"))
    row = check([str(root)], Options(round="4.0")).report.result_sets[0]
    assert (row.energy_joules, row.energy_note) == (
        None,
        "too few runs (3 of 5) pass the official checker",
    )


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({}, {}),
        ({"short": 15}, {"POW203": "warning"}),
        ({"start": 0}, {"POW203": "error"}),
        ({"start": 2**45}, {"POW203": "error"}),
        ({"watts": 0.0}, {"POW206": "error"}),
        ({"watts": "many"}, {"POW105": "warning", "POW206": "error"}),
        ({"watts": "500.5"}, {"POW105": "warning", "POW206": "note"}),
        ({"watts": "-1"}, {"POW105": "warning", "POW206": "error"}),
        ({"efficiency": "0.9"}, {"POW105": "warning", "POW206": "note"}),
        ({"stamp": 0}, {"POW105": "warning", "POW203": "note"}),
        ({"stamp": 90}, {"POW203": "note"}),
        ({"first": 3}, {"POW203": "warning"}),
        ({"first": 300}, {"POW203": "error"}),
        ({"stamp": 90_000}, {}),
        ({"step": 2}, {"POW201": "error"}),
        ({"missing": 50}, {"POW201": "warning"}),
        ({"efficiency": 1}, {}),
        ({"started": False}, {"POW105": "warning", "POW208": "error"}),
        ({"efficiency": 0}, {"POW206": "error"}),
        ({"efficiency": None}, {"POW105": "warning", "POW206": "error"}),
    ],
)
def test_samples(tmp_path: Path, changes: dict[str, Any], codes: dict[str, str]) -> None:
    report = compared(checked(measure(write_submission(tmp_path / "Org"), **changes)))
    findings = [f for f in report.findings if f.code.startswith("POW")]
    assert {f.code: f.severity.value for f in findings} == codes
    weights = {(f.basis.value, f.severity.value == "note") for f in findings if f.code != "POW105"}
    assert weights <= {("rules", False), ("advice", True)}
    assert report.verdict.official.value == "pass"


def test_a_switch_without_an_estimate(tmp_path: Path) -> None:
    root = measure(write_submission(tmp_path / "Org"))
    for folder in (root / SET / "power").iterdir():
        (folder / "sw_0.txt").write_bytes(node())
    assert {f.code for f in compared(checked(root)).findings if f.code.startswith("POW")} == {
        "POW204"
    }


@pytest.mark.parametrize("content", [None, b"", line("power_measurement_stop", 5)])
def test_no_energy_where_the_summarizer_crashes(tmp_path: Path, content: bytes | None) -> None:
    root = measure(write_submission(tmp_path / "Org"))
    path = root / SET / "power" / "result_0" / "node_0.txt"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    report = compared(checked(root))
    row = report.result_sets[0]
    assert (row.energy_joules, row.official_minutes) == (None, None)
    assert "POW105" in {f.code for f in report.findings}
    with pytest.raises((AssertionError, ValueError)):
        summarized(root)


@pytest.mark.parametrize(
    ("log", "folder"),
    [
        ("run.{}.log", "run.{}"),
        ("run_{}.node1.log", "run_{}"),
        ("run_{}.node1.log", "run_{}.node1"),
        ("run.{}", "run.{}"),
    ],
)
def test_the_folder_of_a_raw_log(tmp_path: Path, log: str, folder: str) -> None:
    measured = measure(write_submission(tmp_path / "Org")) / SET
    for index in range(5):
        (measured / f"result_{index}.txt").rename(tmp_path / log.format(index))
        path = tmp_path / "power" / folder.format(index)
        path.parent.mkdir(exist_ok=True)
        (measured / "power" / f"result_{index}").rename(path)
    shutil.rmtree(tmp_path / "Org")
    (tmp_path / "power" / folder.format(0) / "node_0.txt").write_bytes(node(seconds=100))
    report = checked(tmp_path)
    assert report.runs[1].energy_joules is not None
    (short,) = (f for f in report.findings if f.code == "POW203")
    assert short.path == f"power/{folder.format(0)}/node_0.txt"
