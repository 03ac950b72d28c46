"""Objections to a simulated round: their texts, states, and standing in a corrected tree."""

import contextlib
import csv
import json
import shlex
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.commands.review import github, objection_text, objections
from mlperf_pkg.commands.review.calendar import calendar_of
from mlperf_pkg.commands.review.examined import Examined
from mlperf_pkg.commands.review.objections import ObjectionEntry, ObjectionState, read_entries
from mlperf_pkg.render.findings import View
from mlperf_pkg.rulebook.load import finding_of
from tests.helpers.archives import ARCHIVES, in_archive
from tests.helpers.logs import edited, joined, line_of, records
from tests.helpers.program import call
from tests.helpers.reviews import write_round
from tests.helpers.trees import SYSTEM, simulated, write_set

SET = f"results/{SYSTEM}/resnet"
EPSILON = "acme-rn115"
FLOW = "{id: one, against: A, code: C, state: open, about: [x]}"
STATES = f"""\
objections:  # ours
  - id: one
    against: ACME
    code: RN115
    # ask on Tuesday
    state: drafted  # by hand
    about:
      - ACME/{SET}
  - state: open
    id: "two"
    against: Beta
    code: SET101
    issue:
    about: [Beta/{SET}]
"""


def edit(submission: Path, key: str, value: object) -> None:
    """Let all runs of a submission log another value."""
    for log in (submission / SET).iterdir():
        log.write_bytes(edited(log.read_bytes(), key, value=value))


@pytest.fixture
def a_round(tmp_path: Path) -> Path:
    """A round of two submitters: ACME with a wrong hyperparameter, Beta without a run."""
    root = write_round(tmp_path / "training_results_v2.0", "ACME", "Beta")
    edit(root / "ACME", "lars_epsilon", 1.0)
    (root / "Beta" / SET / "result_4.txt").unlink()
    return root


@pytest.fixture
def states(tmp_path: Path) -> Path:
    path = tmp_path / "objections.yaml"
    path.write_text(STATES, "utf-8")
    return path


# ---- the text -----------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["", f"ACME/{SET}/result_0.txt"])
def test_the_text(part: str, a_round: Path) -> None:
    number = line_of((a_round / "ACME" / SET / "result_0.txt").read_bytes(), "lars_epsilon")
    result = call("review", "objection", "rn115", a_round / part, "--by", "Beta")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [
        text
        for text in (
            f"# ACME, {SYSTEM}, resnet: lars_epsilon is 1.0; expected 0.0",
            "Labels: `by Beta`, `against ACME`",
            "- **Rule:** training_rules, Hyperparameters",
            f"## ACME/{SET}",
            "- found: 1\n- expected: 0.0",
            f"`ACME/{SET}/result_0.txt:{number}`\n\n    :::MLLOG ",
            f"The same in 2 more files: `result_3.txt:{number}`, `result_4.txt:",
            "- `lars_epsilon`, 2.0: once, 0.0",
        )
        if text not in result.stdout
    ] == []


def test_hyperparameters_that_differ(a_round: Path) -> None:
    """The run with the rare value is named with its line, and one with the usual value."""
    log = a_round / "ACME" / SET / "result_2.txt"
    log.write_bytes(edited(log.read_bytes(), "lars_opt_base_learning_rate", value=10.5))
    text = call("review", "objection", "SET122", a_round).stdout
    number = line_of(log.read_bytes(), "lars_opt_base_learning_rate")
    rare, usual = (f"`ACME/{SET}/result_{run}.txt:{number}`\n\n    :::MLLOG " for run in (2, 0))
    assert text.index(rare) < text.index(usual)
    assert '"value": 10.5' in text.partition(rare)[2].partition("`")[0]


def test_the_reference_of_a_key(a_round: Path) -> None:
    edit(a_round / "ACME", "lars_opt_weight_decay", 0.3)
    text = call("review", "objection", "all", a_round / "ACME").stdout.replace("\\", "")
    assert "rcp_checker/training_2.0.0/rcps_resnet.json of mlperf-logging, batch size" in text
    assert "opt_weight_decay 5e-05" in text


def test_hostile_texts_are_harmless(a_round: Path) -> None:
    edit(a_round / "ACME", "lars_epsilon", "\x1b[31m`</details>\n# all fine\u202e")
    text = call("review", "objection", "RN115", a_round).stdout
    assert not [evil for evil in ("\x1b", "\u202e", "\n# all fine") if evil in text]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("RN999 .", "no code begins with 'RN999'"),
        ("RCP101 .", "nothing to object to with CODES RCP101; the findings have the codes "),
        (f"all ACME/{SET}/nothing", "no such file or folder"),
        ("all . -o inside", "refusing to write inside an input folder"),
    ],
    ids=["unknown code", "not wrong", "no such path", "output in the input"],
)
def test_no_text(
    a_round: Path, arguments: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(a_round)
    result = call("review", "objection", *arguments.split())
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), message


# ---- a folder -----------------------------------------------------------------------------


def test_the_folder(a_round: Path, tmp_path: Path) -> None:
    folder = tmp_path / "objections"
    first = call("review", "objection", "RN115", a_round, "-o", folder, "--by", "Beta")
    assert first.stdout.endswith("1 objection written\n")
    call("review", "objections", folder / "objections.yaml", "--id", EPSILON, "--state", "open")
    (folder / f"{EPSILON}.md").write_text("as filed")
    second = call("review", "objection", "all", a_round, "-o", folder)
    assert "1 objection written; 1 already in " in second.stdout
    assert (folder / f"{EPSILON}.md").read_text() == "as filed"
    entries = read_entries(folder / "objections.yaml")
    assert [(e.id, e.state, e.by, e.about) for e in entries] == [
        (EPSILON, ObjectionState.OPEN, ("Beta",), (f"ACME/{SET}",)),
        ("beta-set101", ObjectionState.DRAFTED, (), (f"Beta/{SET}",)),
    ]
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{EPSILON}.json",
        f"{EPSILON}.md",
        "beta-set101.json",
        "beta-set101.md",
        "objections.yaml",
    ]


@pytest.mark.parametrize(
    ("text", "indent"),
    [(STATES.replace("\n  ", "\n").rstrip(), ""), (STATES.rstrip(), "  ")],
    ids=["without indent", "with indent"],
)
def test_a_file_that_was_written_by_hand(
    text: str, indent: str, a_round: Path, tmp_path: Path
) -> None:
    folder = tmp_path / f"{len(indent)} spaces"
    folder.mkdir()
    written = folder / "objections.yaml"
    written.write_text(text)
    assert call("review", "objection", "all", a_round, "-o", folder).exit_code == 0
    assert written.read_text().startswith(text)
    assert f"\n{indent}- id: {EPSILON}\n" in written.read_text()
    assert read_entries(written)[-1].id == "beta-set101"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"mine": "mine"}, "not empty, but without objections.yaml"),
        (
            {"objections.yaml": f"objections: [{FLOW}]"},
            "write every objection on lines of its own",
        ),
        (
            {"objections.yaml": "objections: []", f"{EPSILON}.md": "mine"},
            "exists, but is not in objections.yaml",
        ),
    ],
    ids=["notes", "objections on one line", "a file of an objection"],
)
def test_other_folders_are_left_alone(
    files: dict[str, str], message: str, a_round: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    result = call("review", "objection", "all", a_round, "-o", folder)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert {path.name: path.read_text() for path in folder.iterdir()} == files


# ---- states -------------------------------------------------------------------------------


def changed(states: Path, *arguments: str | Path) -> Any:
    return call("review", "objections", states, *arguments)


def test_a_change_keeps_comments(states: Path) -> None:
    arguments = ("--id", "one", "--id", "two", "--state", "fix required", "--issue", "a: #1")
    result = changed(states, *arguments, "--note", "x")
    assert (result.exit_code, result.stderr) == (0, "")
    text = states.read_text("utf-8")
    assert 'state: supported  # by hand\n    issue: "a: #1"\n    note: x\n    about:' in text
    assert '  - state: supported\n    note: x\n    id: "two"' in text
    assert 'issue: "a: #1"\n    about: [Beta' in text
    assert "# ask on Tuesday" in text
    assert [(e.state, e.issue) for e in read_entries(states)] == [
        (ObjectionState.SUPPORTED, "a: #1")
    ] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--id one --state waived", "--state waived needs TREE"),
        ("--id one --state setled", "unknown state 'setled'; did you mean settled?"),
        ("--id three --state settled", "no objection 'three'"),
        ("--id one", "--id needs a change"),
        ("--note x", "--id needs a change"),
    ],
)
def test_refused_changes(arguments: str, message: str, states: Path) -> None:
    result = changed(states, *arguments.split())
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert states.read_text("utf-8") == STATES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- one\n", ":1: expected the key objections"),
        ("objections: 1\n", ":1: objections is not a list"),
        ("objections:\n  - one\n", ":2: expected an objection with id, against"),
        ("objections:\n  - id: one\n", ":2: the objection lacks against, state"),
        (STATES.replace("    about:\n", "    lines:\n"), ":2: the objection lacks about"),
        (f"format: 1\n{STATES}", ":1: the format is not mlperf-pkg/objections/2"),
        (STATES.replace("code: RN", "cod: RN"), ":2: unknown key 'cod'"),
        (STATES.replace("drafted", "waived"), ":2: the state waived lacks percent"),
        (STATES.replace("drafted", "waived\n    percent: 3 %"), ":2: waived at 3 %"),
        (STATES.replace("drafted", "waived\n    percent: nan"), ":2: waived at nan %"),
        (STATES.replace("drafted", "settled\n    scores: 1"), ":2: scores is not a mapping"),
        (STATES.replace("drafted", "settled\n    scores: {x: y}"), ":2: scores is not a number"),
        (STATES.replace("against: ACME", "against: [A]"), ":2: against is not text"),
        (STATES.replace(f"[Beta/{SET}]", "{Beta: 1}"), ":9: about is not a list of texts"),
        (STATES.replace('"two"', "one"), "the id 'one' is repeated"),
    ],
    ids=[
        "not a mapping",
        "not a list",
        "not an objection",
        "keys lack",
        "a code without subjects",
        "another format",
        "unknown key",
        "waived without percent",
        "percent is not a number",
        "percent is not finite",
        "scores are not a mapping",
        "a score is not a number",
        "against is not text",
        "about is not a list",
        "repeated id",
    ],
)
def test_files_that_are_not_valid(states: Path, text: str, message: str) -> None:
    states.write_text(text, "utf-8")
    result = changed(states)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_an_empty_file_has_no_objections(states: Path) -> None:
    states.write_text("")
    assert changed(states).stdout == "0 objections\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("one", f"objections:\n  - {FLOW}\n", "write every field of the objection on its own line"),
        ("two", STATES.replace("issue:", "issue: |\n      text"), "write issue on one line"),
    ],
)
def test_values_that_are_not_replaced(name: str, text: str, message: str, states: Path) -> None:
    states.write_text(text, "utf-8")
    result = changed(states, "--id", name, "--state", "settled", "--issue", "x")
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert states.read_text("utf-8") == text


# ---- a corrected tree ---------------------------------------------------------------------


@pytest.fixture
def filed(a_round: Path, tmp_path: Path) -> Path:
    """The states of the objections to all errors."""
    call("review", "objection", "all", a_round, "-o", tmp_path / "objections")
    return tmp_path / "objections/objections.yaml"


def corrected(tree: Path) -> None:
    """Replace the runs of ACME by other ones, with the right value."""
    write_set(tree / "ACME" / SET, simulated(seed=7))


def corrected_with_another(tree: Path) -> None:
    """Correct the value that is objected to, and break another rule."""
    corrected(tree)
    edit(tree / "ACME", "lars_opt_end_learning_rate", 1)


def edited_in_place(tree: Path) -> None:
    edit(tree / "ACME", "lars_epsilon", 0.0)


def edited_and_shifted(tree: Path) -> None:
    """Edit the logs, a day later, under another name of the system."""
    edited_in_place(tree)
    for log in (tree / "ACME" / SET).iterdir():
        shifted = [{**r, "time_ms": r["time_ms"] + 86_400_000} for r in records(log.read_bytes())]
        log.write_bytes(joined(shifted))
    (tree / f"ACME/results/{SYSTEM}").rename(tree / "ACME/results/other")
    (tree / f"ACME/systems/{SYSTEM}.json").rename(tree / "ACME/systems/other.json")


def forged(tree: Path) -> None:
    """Edit the logs, their seeds and their evaluations, a day later."""
    edited_in_place(tree)
    for log in (tree / "ACME" / SET).iterdir():
        forged = [{**r, "time_ms": r["time_ms"] + 86_400_000} for r in records(log.read_bytes())]
        for record in forged:
            if record["key"] == "seed":
                record["value"] += 1
            elif record["key"] == "eval_accuracy":
                record["value"] += 0.0001
        log.write_bytes(joined(forged))


def one_edited(tree: Path) -> None:
    """Replace all runs but one, whose log is edited."""
    edited_in_place(tree)
    logs = simulated(seed=7)
    for number, log in enumerate(logs[1:], 1):
        (tree / "ACME" / SET / f"result_{number}.txt").write_bytes(log)


NEW_RUNS = "by new runs"
EDITED = (
    "the runs are the same, but logs were edited; the objection stands until the committee decides;"
    " "
)
STAGES: list[tuple[Callable[[Path], object], str, str, str, bool, list[str]]] = [
    (lambda _: None, "open", "stands", "", False, []),
    (lambda _: None, "withdrawn", "stands", "", True, []),
    (lambda _: None, "rejected", "stands", "", True, []),
    (lambda _: None, "settled", "stands", "", False, []),
    (corrected, "supported", "settled", NEW_RUNS, True, []),
    (corrected_with_another, "open", "settled", NEW_RUNS, True, ["RN112"]),
    (
        edited_in_place,
        "supported",
        "stands",
        f"{EDITED}lars_epsilon 1.0 is now 0.0 (5 logs)",
        False,
        [],
    ),
    (edited_in_place, "settled", "stands", EDITED, True, []),
    (edited_and_shifted, "open", "stands", f"{EDITED}lars_epsilon 1.0 is now", False, []),
    (forged, "open", "stands", EDITED, False, []),
    (one_edited, "open", "stands", f"{EDITED}lars_epsilon 1.0 is now 0.0 (1 log)", False, []),
    (lambda tree: shutil.rmtree(tree / "ACME"), "open", "removed", "", True, []),
]


@pytest.mark.parametrize(
    ("correct", "state", "standing", "why", "settled", "new"),
    STAGES,
    ids=[
        "unchanged",
        "withdrawn",
        "rejected",
        "decided, but unchanged",
        "corrected",
        "another finding",
        "edited",
        "edited, and accepted",
        "edited, shifted and renamed",
        "forged",
        "one log edited",
        "removed",
    ],
)
def test_a_corrected_tree(
    correct: Any,
    state: str,
    standing: str,
    why: str,
    settled: bool,
    new: list[str],
    a_round: Path,
    filed: Path,
) -> None:
    changed(filed, "--id", "beta-set101", "--state", "withdrawn")
    changed(filed, "--id", EPSILON, "--state", state)
    correct(a_round)
    result = changed(filed, a_round, "--format", "json")
    outcome = json.loads(result.stdout)
    own = outcome["objections"][0]
    assert (own["standing"], own["why"][: len(why)]) == (standing, why)
    assert (outcome["settled"], result.exit_code) == (settled, int(not settled))
    assert [error["code"] for error in outcome["new"]] == new
    text = changed(filed, a_round).stdout
    assert standing in text
    assert ("Possible objections" in text) is bool(new)


def test_a_new_description_settles(a_round: Path, tmp_path: Path) -> None:
    description = a_round / f"ACME/systems/{SYSTEM}.json"
    whole = description.read_text()
    description.write_text(whole.replace('"framework"', '"frame"'))
    folder = tmp_path / "objections"
    written = call("review", "objection", "SYS", a_round / "ACME", "-o", folder)
    assert f": ACME, {SYSTEM}: " in written.stdout
    description.write_text(whole)
    outcome = json.loads(changed(folder / "objections.yaml", a_round, "--format", "json").stdout)
    assert {item["why"] for item in outcome["objections"]} == {"by a new description"}


def test_runs_that_were_not_recorded(a_round: Path, filed: Path) -> None:
    (filed.parent / f"{EPSILON}.json").unlink()
    edited_in_place(a_round)
    outcome = json.loads(changed(filed, a_round, "--format", "json").stdout)
    assert outcome["objections"][0]["why"].startswith("the runs of the objection were not recorded")
    (filed.parent / f"{EPSILON}.json").write_text("[]")
    result = changed(filed, a_round)
    assert (result.exit_code, "not the evidence of an objection" in result.stderr) == (2, True)


@pytest.mark.parametrize("form", ARCHIVES)
def test_archives(form: str, a_round: Path, filed: Path, tmp_path: Path) -> None:
    """Objections to a round are those to its archives, and stand in these."""
    tree = ARCHIVES[form](a_round, tmp_path / "archives")
    call("review", "objection", "all", tree, "-o", tmp_path / "of archives")
    written = {path.name: path.read_text() for path in (tmp_path / "of archives").iterdir()}
    assert written == {path.name: path.read_text() for path in filed.parent.iterdir()}
    assert changed(filed, tree).stdout == changed(filed, a_round).stdout
    assert "2 objections: 2 standing" in call("check", tree, "--objections", filed).stderr


def test_one_submission_in_an_archive(a_round: Path, filed: Path, tmp_path: Path) -> None:
    alone = in_archive(a_round / "ACME", tmp_path)
    assert "2 objections: 1 standing, 1 not in TREE" in changed(filed, alone).stdout


def test_several_arguments(a_round: Path, filed: Path) -> None:
    result = call("check", a_round / "ACME", a_round / "Beta", "--objections", filed)
    assert "2 objections: 2 standing" in result.stderr


def test_settled_objections(a_round: Path, filed: Path, tmp_path: Path) -> None:
    """The report and the exit status of ``check`` are those without objections."""
    corrected(a_round)
    plain = call("check", a_round, "--format", "json")
    result = call("check", a_round, "--format", "json", "--objections", filed)
    assert (result.stdout, result.exit_code) == (plain.stdout, plain.exit_code)
    assert "drafted; settled by new runs" in result.stderr
    assert "2 objections: 1 settled, 1 standing" in result.stderr
    missing = call("check", a_round, "--objections", tmp_path / "none.yaml")
    assert (missing.exit_code, missing.stdout) == (2, "")
    result = changed(filed, a_round / "ACME")  # without the other submitter
    assert result.exit_code == 0
    assert "2 objections: 1 settled, 1 not in TREE" in " ".join(result.stdout.split())


# ---- waivers, which are measured ----------------------------------------------------------


def slower(tree: Path, name: str, seconds: float) -> None:
    """Let each run of a submitter take so much longer."""
    for log in (tree / name / SET).iterdir():
        (stop,) = (r["time_ms"] for r in records(log.read_bytes()) if r["key"] == "run_stop")
        time_ms = stop + round(1000 * seconds)
        log.write_bytes(edited(log.read_bytes(), "run_stop", time_ms=time_ms))


def of_acme(filed: Path) -> ObjectionEntry:
    return next(entry for entry in read_entries(filed) if entry.id == EPSILON)


def corrected_by(tree: Path, filed: Path, percent: float) -> None:
    """Correct ACME, which takes so much longer than when the objection was written, or Beta."""
    edited_in_place(tree)
    assert list(of_acme(filed).scores) == [f"ACME/{SET}"]
    slower(tree, "ACME", of_acme(filed).scores[f"ACME/{SET}"] * 60 * percent / 100)
    slower(tree, "Beta", 10_000)


def test_a_waiver_is_measured(a_round: Path, filed: Path) -> None:
    """More than 2 % are too much, less are not."""
    waive = ("--id", EPSILON, "--state", "waived")
    corrected_by(a_round, filed, 2.5)
    result = changed(filed, a_round, *waive)
    assert (result.exit_code, of_acme(filed).state) == (2, ObjectionState.DRAFTED)
    assert "waived at 2.5 %; only total differences below 2 %" in result.stderr
    corrected_by(a_round, filed, -1.0)
    changed(filed, a_round, *waive)
    assert (of_acme(filed).state, round(of_acme(filed).percent or 0, 1)) == (
        ObjectionState.WAIVED,
        1.5,
    )


@pytest.mark.parametrize(
    ("percent", "is_named", "doubt"),
    [
        (1.5, True, ""),
        (1.5, False, "the findings are not corrected in this round, so there is nothing"),
        (2.5, True, "the measured difference is 2.5 %, which is not below 2 %"),
    ],
)
def test_a_waiver_that_was_typed_is_measured(
    a_round: Path, filed: Path, tmp_path: Path, percent: float, is_named: bool, doubt: str
) -> None:
    """The scores are those of the logs in both rounds, whatever the file says."""
    fixed = shutil.copytree(a_round, tmp_path / "fixed" / a_round.name)
    corrected_by(fixed, filed, percent)
    words = "state: waived\n    percent: 0.1" + f"\n    corrected: {fixed}" * is_named
    filed.write_text(filed.read_text("utf-8").replace("state: drafted", words, 1), "utf-8")
    result = changed(filed, a_round, "--format", "json")
    (own, _) = json.loads(result.stdout)["objections"]
    assert (own["standing"], own["doubt"].partition(" to measure")[0]) == ("stands", doubt)
    assert own["measured"] == (pytest.approx(percent, abs=0.01) if is_named else None)
    with contextlib.chdir(tmp_path):
        summary = " ".join(call("review", a_round).stdout.split())
    assert ("acme-rn115 is not waived" in summary) is bool(doubt)


def judged_of(entry: ObjectionEntry, checked: Checked) -> Any:
    file = Path("objections.yaml")
    return objections.judge([entry], Examined(checked), Options(), file).objections


def test_a_waiver_of_what_is_corrected_in_part(a_round: Path) -> None:
    """The scores are those of the file, as the round has only one of them."""
    about = tuple(f"{name}/{SET}" for name in ("ACME", "Beta"))
    checked = check([str(a_round)], Options(jobs=1))
    scores = {about[0]: 1.0}
    entry = ObjectionEntry(
        "one",
        "ACME",
        ObjectionState.WAIVED,
        code="RN115",
        about=about,
        percent=0.1,
        scores=scores,
    )
    (judged,) = judged_of(entry, checked)
    assert judged.is_open
    assert judged.doubt.startswith("the order of competitors changes")


@pytest.mark.parametrize("factor", [1.01, 1.03])
def test_a_waiver_of_normalisation_is_measured(a_round: Path, filed: Path, factor: float) -> None:
    """By the scores with and without the factor."""
    entry = ObjectionEntry(
        "one",
        "ACME",
        ObjectionState.WAIVED,
        code="RCP101",
        about=(f"ACME/{SET}",),
        percent=0.1,
    )
    checked = check([str(a_round)], Options(jobs=1))
    (set_, *rest) = checked.report.result_sets
    score = (set_.unscaled_minutes or 0) * factor
    own = replace(set_, scaling_factor=factor, score_minutes=score)
    finding = finding_of("RCP101", "fast", set_.path)
    report = replace(checked.report, result_sets=(own, *rest), findings=(finding,))
    (judged,) = judged_of(entry, replace(checked, report=report))
    assert judged.measured == pytest.approx(100 * (factor - 1))
    assert judged.is_open is (factor > 1.02)


# ---- deadlines, the agenda, and commands for GitHub ---------------------------------------

HOSTILE = "A, \"B\"; rm -rf $HOME `x` 'y'"
ENTRIES = (
    ObjectionEntry(
        "one", HOSTILE, ObjectionState.DRAFTED, ("Beta",), "SET108", "-two $(sizes)", about=("x",)
    ),
    ObjectionEntry(
        "two", "ACME", ObjectionState.OPEN, ("Beta", "C"), title="no loss", issue="http://i/2"
    ),
    ObjectionEntry(
        "three",
        "ACME",
        ObjectionState.SUPPORTED,
        code="RN115",
        issue="http://i/3",
        about=("x",),
    ),
    ObjectionEntry(
        "four",
        "ACME",
        ObjectionState.WAIVED,
        code="RN112",
        percent=1.2,
        note="agreed on Tuesday",
        issue="http://i/4",
        about=("x",),
    ),
)
DATES = calendar_of(date(2025, 10, 10))


def test_the_agenda() -> None:
    assert objection_text.agenda(ENTRIES[1:], DATES).split("\n\n") == [
        "# Agenda of the review",
        "The days of decision are Tuesday 2025-10-21 and Thursday 2025-10-23.",
        "## ACME (2)",
        "- [ ] two by Beta, C against ACME: open, due 2025-10-20. no loss. http://i/2\n"
        "- [ ] three by nobody against ACME: supported (fix required), due 2025-10-29. RN115. http://i/3",
        "## Decided (1)",
        "- four by nobody against ACME: waived (1.2 %). RN112. http://i/4. agreed on Tuesday\n",
    ]
    assert "Nothing is open." in objection_text.agenda(ENTRIES[3:], None)


def test_commands_for_github() -> None:
    """A shell reads hostile names as one word, and gh labels with commas as one label."""
    judged = tuple(map(objections.Judged, ENTRIES))
    outcome = objections.ObjectionOutcome(judged, file=Path("/o/objections.yaml"))
    script = github.script(outcome, View(80))
    lines = [line for line in script.splitlines() if line[0] != "#"]
    words = [shlex.split(line.removeprefix("url=$(").removesuffix(")")) for line in lines[1:]]
    names = ["by Beta", f"against {HOSTILE}", "fix_required", "waived"]
    assert words[:4] == [["gh", "label", "create", "--force", "--", name] for name in names]
    assert words[4][3:5] == ["--title=-two $(sizes)", "--body-file=/o/one.md"]
    labels = [word.removeprefix("--label=") for word in words[4][5:]]
    assert [next(csv.reader([label])) for label in labels] == [[name] for name in names[:2]]
    assert lines[6].startswith("mlperf-pkg review objections /o/objections.yaml --id=one --state")
    assert words[6:] == [
        ["gh", "issue", "edit", "--add-label=fix_required", "--", "http://i/3"],
        ["gh", "issue", "edit", "--add-label=waived", "--", "http://i/4"],
        ["gh", "issue", "close", "--", "http://i/4"],
    ]


def issue(number: int, body: str = "", state: str = "OPEN", *labels: str, **more: Any) -> Any:
    """An issue as GitHub's client prints it."""
    url = f"https://github.com/o/r/issues/{number}"
    named = [{"id": "x", "name": label, "color": "f00"} for label in labels]
    fields = {"number": number, "title": f"title {number}", "body": body, "state": state}
    return {**fields, "labels": named, "author": {"login": "chair"}, "url": url, **more}


PERSONS = """In https://github.com/o/training_results_v2.0/blob/0a1b/ACME/benchmarks/x.py#L3-L9
the loss is another one: https://github.com/mlcommons/training/blob/master/y.py#L8
and ACME/results/bow-pod16/resnet/result_0.txt:12 says so."""
LABELS = ("by Beta", "by Gamma", "against ACME")
ISSUES: list[tuple[Any, str, dict[str, Any]]] = [
    (issue(7, PERSONS, "OPEN", *LABELS), "issue-7", {"state": "open", "by": ("Beta", "Gamma")}),
    (
        issue(7, PERSONS, "OPEN", *LABELS),
        "issue-7",
        {
            "lines": ("ACME/benchmarks/x.py:3-9", "ACME/results/bow-pod16/resnet/result_0.txt:12"),
            "reference": ("y.py:8",),
            "about": ("ACME/results/bow-pod16/resnet",),
        },
    ),
    (issue(7, "", "OPEN", *LABELS, "fix_required"), "issue-7", {"state": "supported"}),
    (issue(7, "", "CLOSED", *LABELS, "fix_required"), "issue-7", {"state": "settled"}),
    (
        issue(7, "", "CLOSED", *LABELS, stateReason="NOT_PLANNED"),
        "issue-7",
        {"state": "rejected"},
    ),
    (issue(7, "", "CLOSED", *LABELS, "withdrawn"), "issue-7", {"state": "withdrawn"}),
    (
        issue(7, "x\n\nObjection `one` of mlperf-pkg.\n", "OPEN", "by Beta"),
        "one",
        {"state": "open", "by": ("Beta",), "code": "RN115", "issue": issue(7)["url"]},
    ),
    (
        issue(7, "Objection `one` of mlperf-pkg.", "OPEN", "waived"),
        "one",
        {
            "state": "drafted",
            "note": "the issue is labelled waived, but the change of the scores was not measured;"
            " give TREE and --state waived to measure the change",
        },
    ),
]


@pytest.mark.parametrize(
    ("printed", "name", "fields"),
    ISSUES,
    ids=[
        "several organisations",
        "lines of code and of the reference",
        "fix required",
        "closed",
        "not planned",
        "withdrawn",
        "of a draft",
        "waived, but not measured",
    ],
)
def test_issues_are_read(
    printed: Any, name: str, fields: dict[str, Any], states: Path, tmp_path: Path
) -> None:
    file = tmp_path / "issues.json"
    file.write_text(json.dumps([printed, issue(8, "", "OPEN", "question")]))
    first = changed(states, "--issues", file)
    assert "issue #8 is left out, as it has no label 'against <org>'" in first.stderr
    (entry,) = [entry for entry in read_entries(states) if entry.id == name]
    assert {field: getattr(entry, field) for field in fields} == fields
    assert "# ask on Tuesday" in states.read_text("utf-8")
    written = states.read_bytes()
    second = changed(states, "--issues", file)
    assert (states.read_bytes(), f"{name}: " in second.stderr) == (written, False)


def test_a_filed_objection_comes_back(a_round: Path, filed: Path, tmp_path: Path) -> None:
    """What the script files, the client prints, and is read as the same objection."""
    body = (filed.parent / f"{EPSILON}.md").read_text("utf-8")
    file = tmp_path / "issues.json"
    file.write_text(json.dumps([issue(3, body, "OPEN", "against ACME", "by Beta")]))
    before = read_entries(filed)
    changed(filed, "--issues", file)
    own, other = read_entries(filed)
    url = issue(3)["url"]
    assert own == replace(before[0], state=ObjectionState.OPEN, by=("Beta",), issue=url)
    assert other == before[1]


def test_no_issues(states: Path, tmp_path: Path) -> None:
    (tmp_path / "issues.json").write_text('{"number": 1}')
    result = changed(states, "--issues", tmp_path / "issues.json")
    assert (result.exit_code, "expected the output of 'gh issue list" in result.stderr) == (2, True)
    assert states.read_text("utf-8") == STATES


def test_organisations_are_added_and_removed(states: Path) -> None:
    changed(states, "--id", "one", "--by", "Beta", "--by", "Gamma")
    changed(states, "--id", "one", "--not-by", "Beta", "--by", "Delta")
    assert read_entries(states)[0].by == ("Gamma", "Delta")
    changed(states, "--id", "one", "--not-by", "Gamma", "--not-by", "Delta", "--issue", "u")
    assert "one: nobody objects" in changed(states).stdout


def test_an_objection_of_people(a_round: Path, states: Path) -> None:
    """It stands until people decide; changed lines are named."""
    code = a_round / "ACME/benchmarks/resnet/train.py"
    code.parent.mkdir(parents=True)
    code.write_text("loss = 1")
    line = "ACME/benchmarks/resnet/train.py:1"
    fields = f"against: ACME, state: open, by: Beta, lines: ['{line}']"
    states.write_text(
        f"objections:\n  - {{id: loss, {fields}}}\n".replace("{", "")
        .replace("}", "")
        .replace(", ", "\n    "),
        "utf-8",
    )
    changed(states, a_round, "--id", "loss", "--state", "supported")
    assert changed(states, a_round).exit_code == 1
    code.write_text("loss = 2")
    assert (f"files changed since the objection was written: {line[:-2]}") in " ".join(
        changed(states, a_round).stdout.split()
    )
    changed(states, "--id", "loss", "--state", "settled")
    assert changed(states, a_round).exit_code == 0


def test_deadlines(tmp_path: Path, states: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call("review", "calendar", "--start", "2025-10-10", "-o", "calendar.yaml")
    assert "drafted, due 2025-10-17" in changed(states).stdout
    outcome = json.loads(changed(states, "--format", "json").stdout)
    assert [item["due"] for item in outcome["objections"]] == ["2025-10-17", "2025-10-20"]
    assert (
        "two by nobody against Beta: open, due 2025-10-20"
        in call("review", "agenda", states).stdout
    )
