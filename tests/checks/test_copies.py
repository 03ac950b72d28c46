"""Result sets that are checked together: copies, allowed or not, and Previews with later
results.
"""

import gzip
import json
import re
import tarfile
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from mlperf_pkg.checker import fold
from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.findings import Finding
from mlperf_pkg.results.report import Report
from tests.helpers.copies import LORA, Change, submission, system, two_rounds, two_systems
from tests.helpers.logs import edited
from tests.helpers.models import models
from tests.helpers.program import call
from tests.helpers.stored import compared
from tests.helpers.traps import shifted
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

CODES = ("SET150", "SET151")


def report_of(*trees: Path, **options: Any) -> Report:
    return compared(check(list(map(str, trees)), Options(jobs=1, **options))).report


def copied(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.code in CODES]


def facts(report: Report) -> list[tuple[str, str, str, str, int | None, int | None]]:
    """Return code, severity, basis, path, number of copies and number of runs of the findings."""
    return [(f.code, f.severity, f.basis, f.about, f.runs, f.of_runs) for f in copied(report)]


# ---- one submission: two systems -----------------------------------------------------------


def reseeded(log: bytes) -> bytes:
    return edited(log, "seed", value=crc32(log))


def renamed(log: bytes) -> bytes:
    return edited(edited(log, "submission_platform", value="pod64"), "submission_org", value="B")


COPIED = [
    ("copied", bytes, 5, "(identical files)"),
    ("other seeds", reseeded, 5, "(the files differ, but their values agree)"),
    (
        "other times",
        partial(shifted, by_ms=86_400_000),
        5,
        "(the files differ, but their values agree)",
    ),
    ("another platform", renamed, 3, "(the files differ, but their values agree)"),
    ("one of five", bytes, 1, "(identical files)"),
]


@pytest.mark.parametrize(
    ("change", "count", "files"), [c[1:] for c in COPIED], ids=[c[0] for c in COPIED]
)
def test_copies_between_two_systems(change: Change, count: int, files: str, tmp_path: Path) -> None:
    tree = two_systems(tmp_path, change, count)
    report = report_of(tree, round="2.0")
    copy, original = "results/pod64/resnet", f"results/{SYSTEM}/resnet"
    assert facts(report) == [("SET150", "error", "rules", copy, count, 5)]
    (finding,) = copied(report)
    assert finding.text == (
        f"the runs of this set are copies of the runs of {original} {files}"
        "; expected the set to have its own runs"
    )
    runs = [(place.path, place.found) for place in finding.places]
    names = [f"result_{number}.txt" for number in range(count)]
    assert runs == [(f"{copy}/{name}", (f"{original}/{name}",)) for name in names]
    verdicts = {row.path: (row.verdict.official, row.verdict.rules) for row in report.result_sets}
    assert verdicts == {original: ("pass", "pass"), copy: ("pass", "fail")}
    assert (report.verdict.official, report.verdict.rules) == ("pass", "fail")


def test_some_files_are_identical(tmp_path: Path) -> None:
    tree = two_systems(tmp_path)
    path = tree / "results/pod64/resnet/result_2.txt"
    path.write_bytes(reseeded(path.read_bytes()))
    (finding,) = copied(report_of(tree, round="2.0"))
    assert "(4 of 5 files are identical, and the values of the rest agree)" in finding.text


def test_the_copy_is_the_set_that_the_logs_do_not_name(tmp_path: Path) -> None:
    tree = two_systems(tmp_path)
    for result in (f"results/{SYSTEM}/resnet", "results/pod64/resnet"):
        write_set(
            tree / result,
            tuple(edited(log, "submission_platform", value="pod64") for log in simulated()),
        )
    assert [fact[3] for fact in facts(report_of(tree, round="2.0"))] == [f"results/{SYSTEM}/resnet"]


def test_copies_within_a_set_are_only_reported_there(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "Graphcore")
    logs = simulated()
    write_set(tree / "results" / SYSTEM / "resnet", (*logs[:4], reseeded(logs[0])))
    report = report_of(tree, round="2.0")
    assert "SET112" in {finding.code for finding in report.findings}
    assert not copied(report)


def test_compressed_logs_of_two_systems(tmp_path: Path) -> None:
    """Without system descriptions, the same runs are only noted."""
    write_set(tmp_path / "logs/a", simulated())
    copies = (edited(log, "submission_platform", value="other") for log in simulated())
    write_set(tmp_path / "logs/b", tuple(copies))
    for log in (tmp_path / "logs/b").iterdir():
        log.with_suffix(".txt.gz").write_bytes(gzip.compress(log.read_bytes()))
        log.unlink()
    report = report_of(tmp_path / "logs", round="2.0")
    assert facts(report) == [("SET150", "note", "advice", "Graphcore/other/resnet/closed", 5, 5)]
    words = f"Graphcore/{SYSTEM}/resnet/closed (the files differ, but their values agree)"
    assert words in copied(report)[0].text


# ---- runs without a fingerprint ------------------------------------------------------------


def killed(log: bytes) -> bytes:
    return log[: log.index(b'"eval_accuracy"') - 20]


def test_killed_runs_are_compared_by_their_bytes(tmp_path: Path) -> None:
    tree = two_systems(tmp_path, killed, 1)
    assert not copied(report_of(tree, round="2.0"))
    path = tree / "results" / SYSTEM / "resnet/result_0.txt"
    path.write_bytes(killed(path.read_bytes()))
    assert [fact[4] for fact in facts(report_of(tree, round="2.0"))] == [1]
    path.write_bytes(path.read_bytes().replace(b"cache_clear", b"cache_cleax"))
    assert not copied(report_of(tree, round="2.0"))


@pytest.mark.parametrize("log", [b"", b"killed by the scheduler\n"])
def test_placeholders_are_not_copies(log: bytes, tmp_path: Path) -> None:
    tree = two_systems(tmp_path, count=0)
    assert not copied(report_of(tree, round="2.0"))
    for name in (SYSTEM, "pod64"):
        (tree / "results" / name / "resnet/result_0.txt").write_bytes(log)
    assert not copied(report_of(tree, round="2.0"))


# ---- several submitters, rounds, scalings ---------------------------------------------------


def test_copies_of_another_submitter(tmp_path: Path) -> None:
    root = tmp_path / "training_results_v2.0"
    write_submission(root / "Graphcore")
    write_submission(root / "Acme")
    write_system(root / "Acme/systems", submitter="Acme")
    copy = f"Acme/results/{SYSTEM}/resnet"
    assert facts(report_of(root)) == [("SET150", "error", "rules", copy, 5, 5)]
    logs = (edited(log, "submission_org", value="Acme") for log in simulated(seed=8))
    write_set(root / f"Graphcore/results/{SYSTEM}/resnet", tuple(logs))
    swapped = [
        f.about for f in report_of(root).findings if f.code == "SET115" and f.severity == "warning"
    ]
    assert swapped == [copy, f"Graphcore/results/{SYSTEM}/resnet"]  # each names the other


def with_power(tree: Path, name: str = SYSTEM) -> None:
    folder = tree / "results" / name / "resnet/power/result_0"
    folder.mkdir(parents=True)
    (folder / "node_0.txt").write_text("")


def test_power_variants_of_one_submitter(tmp_path: Path) -> None:
    root = tmp_path / "training_results_v2.0"
    trees = [write_submission(root / name) for name in ("acme", "acme-ac-power", "acme-dc-power")]
    assert {fact[:3] for fact in facts(report_of(root))} == {("SET150", "error", "rules")}
    for tree in trees[1:]:
        with_power(tree)
    assert [fact[:3] for fact in facts(report_of(root))] == [("SET150", "note", "advice")] * 2


@pytest.mark.parametrize(
    ("name", "measured", "severity"),
    [
        (f"{SYSTEM}_POWER", True, "note"),
        (f"Power-{SYSTEM}", True, "note"),
        (f"{SYSTEM}_POWER", False, "error"),
        ("another", True, "error"),
        ("another described alike", True, "note"),
    ],
)
def test_a_set_for_power(name: str, severity: str, tmp_path: Path, *, measured: bool) -> None:
    """It may have the runs of the set for performance; its system is the same by another name."""
    tree = write_submission(tmp_path / "Graphcore")
    name, _, is_alike = name.partition(" ")
    system(tree, name, simulated())
    if is_alike:
        write_system(tree / "systems", name)
    if measured:
        with_power(tree, name)
    assert [fact[:2] for fact in facts(report_of(tree, round="2.0"))] == [("SET150", severity)]


def test_two_versions_of_a_tree(tmp_path: Path) -> None:
    trees = [write_submission(tmp_path / name / "Graphcore") for name in ("old", "new")]
    report = report_of(*trees, round="2.0")
    assert [fact[:3] for fact in facts(report)] == [("SET150", "note", "advice")]
    assert "the same result set as " in copied(report)[0].text


@pytest.mark.parametrize(("same_name", "severity"), [(True, "note"), (False, "error")])
def test_strong_and_weak_scaling(same_name: bool, severity: str, tmp_path: Path) -> None:
    tree = tmp_path / "hpc_results_v2.0/Graphcore"
    for name, scaling in (("pod", "strong"), ("pods", "weak")):
        write_system(tree / "systems", name, system_name="A Pod" if same_name else name)
        write_set(tree / "results" / name / scaling / "deepcam", models())
    assert [fact[:2] for fact in facts(report_of(tree))] == [("SET150", severity)]


RESUBMITTED = [
    (
        "the same description",
        {},
        "note",
        "advice",
        "; the rules allow submitting these runs again, because the system description is the same",
    ),
    (
        "another name",
        {"system_name": "x"},
        "warning",
        "rules",
        "; the description differs in system_name, so the rules forbid submitting these runs again",
    ),
    (
        "one field less",
        {"cooling": ...},
        "warning",
        "rules",
        "differs in cooling, so the rules forbid submitting these runs again",
    ),
    (
        "a status of the same meaning",
        {"status": "Available on-premise"},
        "note",
        "advice",
        "; the rules allow submitting these runs again, because the system description is the same",
    ),
    ("a number as text", {"number_of_nodes": "01"}, "note", "advice", "description is the same"),
    (
        "another status",
        {"status": "research"},
        "warning",
        "rules",
        "description differs in status, so the rules forbid submitting these runs again",
    ),
]


@pytest.mark.parametrize(
    ("changes", "severity", "basis", "words"),
    [c[1:] for c in RESUBMITTED],
    ids=[c[0] for c in RESUBMITTED],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_logs_of_an_earlier_round(
    changes: Any, severity: str, basis: str, words: str, reverse: bool, tmp_path: Path
) -> None:
    rounds = two_rounds(tmp_path, **changes)
    report = report_of(*(reversed(rounds) if reverse else rounds))
    (finding,) = copied(report)
    assert (finding.code, finding.severity, finding.basis) == ("SET151", severity, basis)
    assert finding.about.endswith(f"training_results_v5.1/Graphcore/results/{SYSTEM}/{LORA}")
    assert "(round 5.0, identical files)" in finding.text
    assert finding.text.endswith(words)
    assert {row.round for row in report.result_sets} == {"5.0", "5.1"}
    assert {row.verdict.rules for row in report.result_sets} == {"pass"}


def test_resubmitted_before_the_rules_said_what_may_be(tmp_path: Path) -> None:
    rounds = [tmp_path / f"training_results_v{name}" for name in ("2.0", "2.1")]
    for tree in rounds:
        write_submission(tree / "Graphcore")
    write_system(rounds[1] / "Graphcore/systems", cooling="air")
    (finding,) = copied(report_of(*rounds))
    assert (finding.code, finding.severity, finding.basis) == ("SET151", "note", "advice")
    assert finding.text.endswith(
        "; the description differs in cooling"
        " (the rules forbid such changes only from round 5.1 on)"
    )


def test_a_preview_is_not_proven_by_its_own_logs(tmp_path: Path) -> None:
    rounds = two_rounds(tmp_path)
    write_system(rounds[0] / "Graphcore/systems", status="preview")
    (finding,) = copied(report_of(*rounds))
    assert (finding.code, finding.severity) == ("SET151", "warning")
    assert finding.text.endswith(
        "; a former Preview needs new runs, so the rules forbid submitting these runs again"
    )


def test_logs_of_another_submitter_in_an_earlier_round(tmp_path: Path) -> None:
    report = report_of(*two_rounds(tmp_path, "Acme"))
    assert [fact[:3] for fact in facts(report)] == [("SET150", "error", "rules")]
    assert report.verdict.rules == "fail"


def test_result_sets_alone_have_no_descriptions(tmp_path: Path) -> None:
    paths = [tree / f"Graphcore/results/{SYSTEM}/{LORA}" for tree in two_rounds(tmp_path)]
    (finding,) = copied(report_of(*paths))
    assert (finding.code, finding.severity) == ("SET151", "note")
    assert finding.text.endswith(
        "; the rules allow this under certain conditions; not all could be checked, as it is not"
        " known whether the system description is the same"
    )


# ---- waivers, pack, defects -----------------------------------------------------------------


def test_a_waiver(tmp_path: Path) -> None:
    tree, config = two_systems(tmp_path), tmp_path / "mlperf-pkg.yaml"
    waiver = {"code": "SET150", "path": "results/pod64", "reason": "r", "approved_by": "J"}
    config.write_text(json.dumps({"waivers": [{**waiver, "until": "9999-12-31"}]}))
    assert call("check", tree, "--round", "2.0").exit_code == 1
    result = call("check", tree, "--round", "2.0", "--config", config)
    assert (result.exit_code, "1 waived" in result.stdout) == (0, True)


def test_a_defect_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr(fold, "copies_in", fail)
    report = report_of(two_systems(tmp_path), round="2.0")
    assert "CHECK101" in {finding.code for finding in report.findings}
    assert report.verdict.rules == "not_checked"


# ---- many copies ----------------------------------------------------------------------------


def test_one_run_in_many_sets(tmp_path: Path) -> None:
    """Each set has one finding: it is a copy of the first."""
    tree = tmp_path / "Graphcore"
    for number in range(12):
        system(tree, f"pod{number:02}", simulated()[:1])
    findings = copied(report_of(tree, round="2.0"))
    originals = {path for finding in findings for path in finding.places[0].found}
    names = [f"results/pod{number:02}/resnet" for number in range(1, 12)]
    assert [finding.about for finding in findings] == names
    assert originals == {"results/pod00/resnet/result_0.txt"}


def test_a_set_in_three_rounds(tmp_path: Path) -> None:
    """Each later one is resubmitted from the first of its name."""
    trees = [tmp_path / f"training_results_v{name}" for name in ("1.1", "2.0", "2.1")]
    for tree in trees:
        write_submission(tree / "Graphcore")
    system(trees[0] / "Graphcore", "a", simulated())  # whose name comes first
    findings = [f for f in copied(report_of(*trees)) if f.code == "SET151"]
    first = f"training_results_v1.1/Graphcore/results/{SYSTEM}/resnet (round 1.1, "
    assert [first in finding.text for finding in findings] == [True, True]


def test_runs_of_many_sets(tmp_path: Path) -> None:
    """A set with runs of more sets than have a finding each."""
    tree, logs = tmp_path / "Graphcore", simulated(runs=14)
    for number, log in enumerate(logs):
        system(tree, f"a{number:02}", (log,))
    system(tree, "z", logs)
    findings = [f for f in copied(report_of(tree, round="2.0")) if f.about == "results/z/resnet"]
    assert len(findings) == 10
    assert sum(finding.runs or 0 for finding in findings) == 14
    assert "results/a09/resnet and 4 more result sets" in findings[-1].text


def test_a_submission_in_an_archive(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0/Graphcore")
    with tarfile.open(tmp_path / "Acme.tar", "w") as archive:
        archive.add(tree, "training_results_v2.0/Acme")
    report = report_of(tree, tmp_path / "Acme.tar", round="2.0")
    (finding,) = copied(report)
    assert (finding.code, finding.severity) == ("SET150", "error")
    assert "Acme" in finding.about
    assert "(identical files)" in finding.text


def rounds(root: Path, factor: float = 1.0, seed: int = 8, **changes: Any) -> list[Finding]:
    """The findings on a Preview in 2.0 that is checked with a submission to 2.1."""
    old = submission(root, "2.0", 1.0, 8, status="preview", number_of_nodes="4")
    new = submission(root, "2.1", factor, seed, **{"number_of_nodes": "4", **changes})
    findings = compared(check([str(new), str(old)], Options(jobs=1))).report.findings
    return [finding for finding in findings if finding.code == "SET152"]


CASES = [
    ("as fast", 1.01, {}, True),
    ("slower by more than 2 %", 1.03, {}, False),
    ("faster on more", 0.99, {"number_of_nodes": "8"}, True),
    ("slower on more", 1.01, {"number_of_nodes": "8"}, False),
    ("twice the time on half", 2.03, {"number_of_nodes": "2"}, True),
    ("more than twice the time on half", 2.05, {"number_of_nodes": "2"}, False),
    ("in the cloud", 1.01, {"status": "cloud"}, True),
]


@pytest.mark.parametrize(
    ("factor", "changes", "is_met"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_performance(factor: float, changes: Any, is_met: bool, tmp_path: Path) -> None:
    (finding,) = rounds(tmp_path, factor, **changes)
    assert finding.about.endswith(f"training_results_v2.0/Graphcore/results/{SYSTEM}/resnet")
    assert f"training_results_v2.1/Graphcore/results/{SYSTEM}/resnet) has " in finding.text
    severity, basis, judgement = ("warning", "rules", "too slow")
    if is_met:
        severity, basis, judgement = ("note", "advice", "within what the rules allow")
    assert finding.text.endswith(f", which is {judgement}")
    start = r"the set was submitted as Preview with [\d.]+ minutes on \d+ accelerators; "
    assert re.match(start, finding.text)
    assert (finding.severity, finding.basis) == (severity, basis)


NO_PROOF = [
    ("the logs of the Preview", 1.0, {}),
    ("another accelerator", 1.01, {"accelerator_model_name": "x"}),
    ("a Preview again", 1.01, {"status": "preview"}),
    ("research", 1.01, {"status": "research"}),
    ("without accelerators", 1.01, {"number_of_nodes": "0"}),
]


@pytest.mark.parametrize(
    ("factor", "changes"), [c[1:] for c in NO_PROOF], ids=[c[0] for c in NO_PROOF]
)
def test_results_that_do_not_prove_a_preview(factor: float, changes: Any, tmp_path: Path) -> None:
    assert rounds(tmp_path, factor, **changes) == []


def test_the_preview_of_a_later_round(tmp_path: Path) -> None:
    old = submission(tmp_path, "2.0", 1.0, 8)
    new = submission(tmp_path, "2.1", 1.01, 8, status="preview")
    report = compared(check([str(old), str(new)], Options(jobs=1))).report
    assert "SET152" not in {finding.code for finding in report.findings}
