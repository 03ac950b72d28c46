"""Reports as people read them in a terminal or a pipe."""

import json
import re
from textwrap import dedent
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, Waiver, folded
from mlperf_pkg.render import FORMATS, Show, View
from mlperf_pkg.render.tables import results_markdown
from mlperf_pkg.render.text import MAX_BYTES, Submitters, by_code
from mlperf_pkg.results.report import ResultSetRow
from tests.helpers.reports import (
    FAIL,
    NOT_CHECKED,
    PASS,
    SET,
    finding,
    rcp,
    report,
    result_set,
    run,
    system,
)

VIEW = {"color", "verbose", "show", "quiet", "statistics"}


def text(**fields: Any) -> str:
    view = View(80, **{name: fields.pop(name) for name in VIEW.intersection(fields)})
    return FORMATS["text"](report(**fields), view)


def page(expected: str) -> str:
    return dedent(expected).lstrip("\n")


def test_a_submission() -> None:
    log = "results/dgx/bert/result_0.txt"
    findings = (
        finding("results/dgx/bert", basis=Basis.OFFICIAL, hint="a review decides", set=SET),
        finding(log, 7, severity=Severity.WARNING, set=SET),
        finding(log, 9, severity=Severity.NOTE, set=SET),
    )
    nothing: dict[str, Any] = {"runs_required": None, "rcp": None, "score_minutes": None}
    sets = (
        result_set(verdict=FAIL, rcp=rcp(official_pass=False, margin_percent=-1.0)),
        result_set(benchmark="resnet", system="a" * 60, division="open"),
        result_set(benchmark="dlrm", verdict=NOT_CHECKED, **nothing),
    )
    of_set = {"runs": (run(),), "systems": (system(),), "findings": findings}
    assert text(verdict=FAIL, result_sets=sets, **of_set) == page(
        """
        official: FAIL (mlperf-logging 9.9.9), 1 error in 1 of 3 result sets; 1 warning
        in 1 of 3 result sets; 1 of 3 result sets not checked
        rules:    pass, 1 warning in 1 of 3 result sets; 1 of 3 result sets not checked
        1 error, 1 warning, 1 note (to list every finding: --show all)
        round 2.0: as given

        Result sets   Runs  Minutes  RCP margin   Official     Rules
        dgx (closed)
          bert       10/10   20.500  FAIL -1.0 %  FAIL         pass
          dlrm          10        -  not checked  not checked  not checked
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (open)
          resnet     10/10   20.500  -            pass         pass

        Errors
          results/dgx/bert: wrong  X1 [official]
            hint: a review decides

        Warnings
          results/dgx/bert/result_0.txt:7: wrong  X1
        """
    )


def test_loose_logs() -> None:
    runs = (
        run(path="old/a.log", dropped="fastest", set="unknown/unknown/bert/closed"),
        run(path="old/b.log", status=None, minutes=None, verdict=FAIL, set="other"),
        run(path="old/c.log", benchmark="", set=None),
    )
    sets = (result_set(path="old", submitter=None, system=None, runs_found=1),)
    doubtful = {"round": None, "round_reason": "several rounds: 1.1, 2.0"}
    assert text(result_sets=sets, runs=runs, **doubtful) == page(
        """
        official: pass (mlperf-logging 9.9.9)
        rules:    pass
        0 errors, 0 warnings, 0 notes
        several rounds: 1.1, 2.0

        Result sets  Runs  Minutes  RCP margin    Official  Rules
        unnamed system (closed, in old, round 2.0)
          bert       1/10   20.500  pass +10.0 %  pass      pass

        Runs     Minutes  Status, dropped   Official  Rules
        old: unknown/unknown/bert/closed
          a.log   20.000  success, fastest  pass      pass
        old: other
          b.log        -  no run_stop       FAIL      pass
        old: no benchmark, closed
          c.log   20.000  success           pass      pass
        """
    )


def test_a_verbose_view_has_batch_size_and_scale() -> None:
    runs = (run(batch_size=3264, accelerators=16), run(path="results/dgx/bert/result_1.txt"))
    shown = text(verbose=True, runs=runs)
    assert (
        page(
            """
        Runs            Minutes  Batch  Scale  Status, dropped  Official  Rules
        results/dgx/bert: ACME/dgx/bert/closed
          result_0.txt   20.000  3,264     16  success          pass      pass
          result_1.txt   20.000      -      -  success          pass      pass
        """
        )
        in shown
    )


def test_what_raw_logs_leave_open_is_shown_to_be_pasted() -> None:
    shown = text(
        result_sets=(result_set(path=".", system_by="the folder name"), result_set(judged=False)),
        configuration="# who?\nsystems:\n  dgx: {}\n",
    )
    heading = "Complete the following lines, and save them as mlperf-pkg.yaml beside systems/"
    assert f"{heading}\n# who?\nsystems:\n  dgx: {{}}\n" in shown
    assert (
        "round 2.0: as given\nsystem dgx: identified by the folder name\n"
        "only the logs were judged in 1 of 2 result sets; to judge the result sets, check\n"
        "a folder of logs without --partial\n\n"
    ) in shown


WARNING, WAIVER = Severity.WARNING, Waiver("agreed", "Jane", "2026-12-31")
NOTE = finding("a.log", 2, severity=Severity.NOTE, source="the rules")
MADE = [
    finding("a.log", 1, hint="fix"),
    finding("b.log", 1),
    finding("a.log", code="W1", severity=Severity.WARNING),
    NOTE,
    replace(NOTE, waiver=WAIVER),
]
ERRORS = "Errors\n  wrong  X1\n    2 files: a.log, b.log\n    hint: fix\n\n"
EACH = "Errors\n  a.log:1: wrong  X1\n    hint: fix\n  b.log:1: wrong  X1\n\n"
WARNINGS = "Warnings\n  a.log: wrong  W1\n\n"
NOTES = "Notes\n  a.log:2: wrong  X1\n"
WAIVED = "Waived\n  a.log:2: wrong  X1\n    waived by Jane until 2026-12-31: agreed\n"
SOURCE = "    source: the rules\n"


@pytest.mark.parametrize(
    ("show", "shown"),
    [
        ("errors", ERRORS + WAIVED),
        ("warnings", ERRORS + WARNINGS + WAIVED),
        ("notes", f"{ERRORS}{WARNINGS}{NOTES}\n{WAIVED}"),
        ("all", f"{EACH}{WARNINGS}{NOTES}{SOURCE}\n{WAIVED}{SOURCE}"),
    ],
)
@pytest.mark.parametrize("verbose", [False, True])
def test_what_is_shown(show: str, shown: str, verbose: bool) -> None:
    """Waived findings always are; ``verbose`` shows runs, not findings."""
    verdicts, _, lines = text(verbose=verbose, show=Show(show), findings=MADE).partition("\n\n")
    assert lines == shown
    more = "" if show == "all" else " (to list every finding: --show all)"
    assert f"\n2 errors, 1 warning, 1 note, 1 waived{more}\n" in verdicts


TORN = finding("a.log", 3, code="LOG101", id="LOG101-1", message="torn", basis=Basis.RULES)
FOLDED = [
    TORN,
    finding("a.log", code="K1", id="K1-1", cause="LOG101-1", hint="fix it"),
    finding("a.log", code="K2", id="K2-1", cause="K1-1", severity=Severity.NOTE),
    finding("b.log", code="K3", id="K3-1"),
]
CAUSE = "Causes\n  a.log:3: torn  error LOG101 [rules]\n"
K1 = "    follows: a.log: wrong  error K1\n"
K2 = "    follows: a.log: wrong  note K2\n"
K1_ALONE = "Errors\n  a.log: wrong  K1\n    hint: fix it\n  b.log: wrong  K3\n"
K3 = "\nErrors\n  b.log: wrong  K3\n"
AS_NOTE = replace(TORN, severity=Severity.NOTE)


@pytest.mark.parametrize(
    ("view", "cause", "shown"),
    [
        ({}, TORN, f"{CAUSE}    1 finding follows from this cause (-v lists it): K1\n{K3}"),
        (
            {"show": Show.NOTES},
            TORN,
            f"{CAUSE}    2 findings follow from this cause (-v lists them): K1, K2\n{K3}",
        ),
        ({"verbose": True}, TORN, f"{CAUSE}{K1}{K3}"),
        ({"show": Show.ALL}, TORN, f"{CAUSE}{K1}{K2}{K3}"),
        (
            {},
            replace(TORN, waiver=WAIVER),
            f"{K1_ALONE}\nWaived\n  a.log:3: torn  LOG101 [rules]\n",
        ),
        ({}, AS_NOTE, K1_ALONE),
    ],
    ids=["folded", "with notes", "verbose", "all", "waived cause", "hidden cause"],
)
def test_what_follows_is_folded_under_its_cause(
    view: dict[str, Any], cause: Finding, shown: str
) -> None:
    lines = text(findings=[cause, *FOLDED[1:]], **view).partition("\n\n")[2]
    assert lines.startswith(shown)


def test_what_is_folded_is_counted_and_is_not_all() -> None:
    assert ("\n3 errors, 0 warnings, 1 note (to list every finding: --show all)\n") in text(
        findings=FOLDED
    )


def test_causes_in_several_sets_are_folded_by_their_code() -> None:
    others = [replace(one, path="c.log", id=f"{one.code}-2") for one in FOLDED[:2]]
    others[1] = replace(others[1], cause="LOG101-2")
    assert (
        "Causes\n  torn  error LOG101 [rules]\n    2 files: a.log, c.log\n"
        "    2 findings follow from this cause (-v lists them): K1\n"
    ) in text(findings=[*FOLDED, *others])


def test_a_finding_is_never_cut() -> None:
    path, message = f"{'folder/' * 30}result_0.txt", "word " * 60 + "end"
    shown = text(findings=[finding(path, 3, message=message)])
    assert f"\n  {path}:3: {message}  X1\n" in shown


def test_color_changes_nothing_but_colours() -> None:
    fields: dict[str, Any] = {"result_sets": (result_set(verdict=FAIL),), "findings": [finding()]}
    plain, colored = text(**fields), text(color=True, **fields)
    assert "\x1b[1;31mX1\x1b[0m" in colored
    bare = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert "\n".join(line.rstrip() for line in bare.split("\n")) == plain


# ---- a round ------------------------------------------------------------------------------


def row(submitter: str, benchmark: str, **changes: Any) -> ResultSetRow:
    path = f"{submitter}/results/dgx/{benchmark}"
    return result_set(path=path, submitter=submitter, benchmark=benchmark, **changes)


ROWS = (
    row("ACME", "bert", verdict=FAIL, rcp=rcp(official_pass=False, margin_percent=-1.0)),
    row("ACME", "resnet"),
    row("beta", "bert", verdict=Verdicts(Verdict.FAIL, Verdict.FAIL)),
    row("beta", "chess", verdict=NOT_CHECKED, rcp=None, runs_required=None),
    row("Zeta", "bert"),
)


def of_set(place: str, code: str, message: str, *values: Any, **fields: Any) -> list[Finding]:
    """A finding on a set, or on its first runs, each with its value."""
    submitter, benchmark = place.split("/")
    path = f"{submitter}/results/dgx/{benchmark}"
    runs = [f"{path}/result_{number}.txt" for number in range(10)]
    made = [
        finding(run, 7 + number, code=code, message=message, found=value, **fields)
        for number, (run, value) in enumerate(zip(runs, values, strict=False))
    ]
    made = made or [finding(path, code=code, message=message, **fields)]
    return folded(made, path, runs if values else (), f"{submitter}/dgx/{benchmark}/closed")


def of_system(submitter: str, *names: str) -> list[Finding]:
    path, message = f"{submitter}/systems/dgx.json", "no value for {found:s}"
    fields: dict[str, Any] = {"message": message, "severity": WARNING, "basis": Basis.RULES}
    return folded([finding(path, 9, code="SYS202", found=name, **fields) for name in names], path)


A_ROUND = report(
    verdict=Verdicts.worst([PASS, *(row.verdict for row in ROWS)]),
    systems=[system(path=f"{name}/systems/dgx.json", submitter=name) for name in ("ACME", "beta")],
    result_sets=ROWS,
    findings=[
        *of_set("ACME/bert", "RCP101", "too fast", basis=Basis.OFFICIAL, hint="a review"),
        *of_set("beta/bert", "RUN107", "x is {found}; expected 0", 1, 2, 2),
        *of_set("Zeta/bert", "RUN107", "x is {found}; expected 0", 9),
        *of_system("ACME", "cooling", "framework"),
        *of_system("beta", "cooling"),
        *folded([finding("beta", code="CODE100", message="no code", severity=WARNING)], "beta"),
        *of_set("ACME/resnet", "SET103", "refused", waiver=WAIVER, basis=Basis.OFFICIAL),
        *of_set("Zeta/bert", "SET113", "overlap", severity=Severity.NOTE),
        finding("mlperf-pkg.yaml", 3, code="WAIVE101", message="ended", severity=WARNING),
    ],
)
SUBMITTERS = """\
Submitters   Sets  Official     Rules        Errors  Warnings  RCP failures
  ACME          2  FAIL         pass              1         1             1
  beta          2  FAIL         FAIL              1         2             -
  Zeta          1  FAIL         FAIL              1         -             -
  elsewhere     0  not checked  not checked       -         1             -

"""
VERDICTS = """\
official: FAIL (mlperf-logging 9.9.9), 3 errors in 3 of 5 result sets; 1 warning
in 1 submission, 1 warning in 1 file; 1 of 5 result sets not checked; 1 finding
waived, but the official checker ignores waivers
rules:    FAIL, 2 errors in 2 of 5 result sets; 2 warnings in 2 system
descriptions, 1 warning in 1 submission, 1 warning in 1 file; 1 of 5 result sets
not checked
"""
COUNTS = """\
3 errors, 4 warnings, 1 note, 1 waived (to list every finding: --show all)
round 2.0: as given

"""
GROUPS = """\
Errors
  x is 1 to 9; expected 0  RUN107
    2 result sets: 1 by Zeta, 1 by beta; first in Zeta/results/dgx/bert/result_0.txt:7
  ACME/results/dgx/bert: too fast  RCP101 [official]
    hint: a review

Warnings
  beta: no code  CODE100
  mlperf-pkg.yaml:3: ended  WAIVE101
  no value for cooling; 1 more like this  SYS202 [rules]
    2 system descriptions: 1 by ACME, 1 by beta; first in ACME/systems/dgx.json:9

Waived
  ACME/results/dgx/resnet: refused  SET103 [official]
    waived by Jane until 2026-12-31: agreed

"""
STATISTICS = """\
Codes                Findings  Places  Submitters
Errors
  RUN107                    2       4  1 by Zeta, 1 by beta
  RCP101 [official]         1       1  1 by ACME
Warnings
  CODE100                   1       1  1 by beta
  WAIVE101                  1       1  1 elsewhere
  SYS202 [rules]            2       3  1 by ACME, 1 by beta
Notes
  SET113                    1       1  1 by Zeta
Waived
  SET103 [official]         1       1  1 by ACME

"""


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ({}, VERDICTS + COUNTS + SUBMITTERS + GROUPS),
        ({"quiet": True, "statistics": True}, VERDICTS),
        ({"statistics": True}, VERDICTS + COUNTS + SUBMITTERS + STATISTICS),
    ],
)
def test_a_round(view: dict[str, Any], shown: str) -> None:
    assert FORMATS["text"](A_ROUND, View(80, **view)) == shown.rstrip() + "\n"


@pytest.mark.parametrize(
    ("show", "kinds", "end"),
    [
        ("warnings", 12, "4 more codes"),
        ("notes", 12, "5 more codes"),
        ("all", 17, "agreed"),
    ],
)
def test_the_kinds_of_findings_of_a_round_are_limited(show: str, kinds: int, end: str) -> None:
    more = [finding(f"{n}.log", code=f"Y{n}", message="word " * 200) for n in range(10)]
    made = replace(A_ROUND, findings=(*A_ROUND.findings, *more))
    shown = FORMATS["text"](made, View(100, wraps=True, show=Show(show)))
    assert len(set(re.findall(r"  ([A-Z]+\d+)(?: \[.*)?$", shown, re.M))) == kinds
    assert shown.removesuffix(f"; --show {show} lists all codes\n").rstrip().endswith(end)
    assert (shown.count("\n") < 100) == (show != "all")


def test_all_kinds_of_a_severity_are_shown_by_code() -> None:
    """``--show warnings`` leaves none out, and lists only what it groups."""
    more = [finding(f"{n}.log", code=f"Y{n}") for n in range(20)] * 2
    made = replace(A_ROUND, findings=(*A_ROUND.findings, *more))
    shown = FORMATS["text"](made, View(100, show=Show.WARNINGS, all_kinds=True))
    assert set(re.findall(r"Y\d+", shown)) == {f"Y{n}" for n in range(20)}
    assert "more kind" not in shown


def with_values(*values: Any, **changes: Any) -> list[Finding]:
    return [
        finding(f"{index}.log", message="x is {found}", found=value, **changes)
        for index, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (with_values(1), "x is 1"),
        (with_values(3, 1, 2), "x is 1 to 3"),
        (with_values("b", "a", "b"), 'x is "b"; 2 more like this'),
        ([*with_values(1), finding(message="other")], "x is 1; 1 more like this"),
        ([finding(message=f"{n}") for n in range(9)], "0; 8 more like this"),
    ],
)
def test_a_group_has_the_values_of_all_its_findings(made: list[Finding], text: str) -> None:
    (group,) = by_code(made)
    assert group.text == text


@pytest.mark.parametrize(
    ("sets", "made", "verdicts"),
    [
        ([PASS], [], PASS),
        ([PASS, FAIL], [], FAIL),
        ([NOT_CHECKED], [], NOT_CHECKED),
        ([NOT_CHECKED, PASS], [], PASS),
        ([NOT_CHECKED], [finding("A/x", severity=WARNING)], NOT_CHECKED),
        (
            [NOT_CHECKED],
            [finding("A/x", basis=Basis.RULES)],
            Verdicts(Verdict.NOT_CHECKED, Verdict.FAIL),
        ),
        ([PASS], [finding("A/x", basis=Basis.OFFICIAL)], FAIL),
        ([PASS], [finding("A/x", waiver=WAIVER)], FAIL),
        ([PASS], [finding("B/x")], PASS),
    ],
)
def test_the_verdicts_of_a_submitter(
    sets: list[Verdicts], made: list[Finding], verdicts: Verdicts
) -> None:
    rows = tuple(
        result_set(path=f"A/results/{index}/bert", submitter="A", verdict=verdict)
        for index, verdict in enumerate(sets)
    )
    row = next(Submitters(report(result_sets=rows, findings=made)).rows())
    assert row.verdict == verdicts


MANY = [f"{name}{number}" for name in "AB" for number in range(4)]
COUNTED = report(
    result_sets=[
        result_set(path=f"{name}/results/dgx/{benchmark}", submitter=name, benchmark=benchmark)
        for name in ("A", "B", *MANY)
        for benchmark in ("bert", "resnet")
    ]
)


@pytest.mark.parametrize(
    ("places", "subjects", "findings"),
    [
        (["A/bert"] * 3, "1 result set, all by A", "3 by A"),
        (["A/bert", "A/bert", "A/resnet"], "2 result sets, both by A", "3 by A"),
        (
            ["A/bert", "A/bert", "A/resnet", "B/bert"],
            "3 result sets: 2 by A, 1 by B",
            "3 by A, 1 by B",
        ),
        (
            ["A/bert", *(f"{name}/bert" for name in MANY)],
            "9 result sets: 1 by A, 1 by A0, 1 by A1, 1 by A2, 1 by A3, 1 by B0 and 3 more"
            " submitters",
            "1 by A, 1 by A0, 1 by A1, 1 by A2, 1 by A3, 1 by B0 and 3 more submitters",
        ),
    ],
    ids=["one set", "two sets", "two submitters", "many submitters"],
)
def test_a_group_counts_what_it_says(places: list[str], subjects: str, findings: str) -> None:
    made = [one for place in places for one in of_set(place, "RUN107", "wrong")]
    (group,) = by_code(made)
    submitters = Submitters(COUNTED)
    assert submitters.things_in_words(group) + submitters.whose(group) == subjects
    assert submitters.owners(group.findings) == findings


WITHIN = report(result_sets=(result_set(),))  # a submission that was checked from within
RAW = report(
    result_sets=[
        result_set(path=".", submitter="ACME"),
        result_set(path="logs", submitter=None, id="Zeta/dgx/bert/closed"),
    ]
)


def test_whose_file_it_is() -> None:
    assert [
        (made, path, set_, submitter)
        for made, path, set_, submitter in (
            (A_ROUND, "ACME", None, "ACME"),
            (A_ROUND, "ACME/results/dgx/bert/result_0.txt", None, "ACME"),
            (A_ROUND, "ACME2/systems/x.json", None, None),
            (WITHIN, "systems/x.json", None, "ACME"),
            (RAW, ".", SET, "ACME"),
            (RAW, ".", "Zeta/dgx/bert/closed", None),
            (RAW, ".", None, None),
        )
        if Submitters(made).of(finding(path, set=set_)) != submitter
    ] == []
    roots = [set(Submitters(made).roots) for made in (A_ROUND, WITHIN, RAW)]
    assert roots == [{"ACME", "beta", "Zeta"}, {""}, set()]


@pytest.mark.parametrize(
    ("submitters", "remarks"),
    [
        (["A", "B"], []),
        (
            ["A", "B+C"],
            [
                "3 submitters in 2 submissions, as each company of a joint submission counts as one"
                " submitter; a company with several folders counts once"
            ],
        ),
    ],
)
def test_a_joint_submission_has_one_row(submitters: list[str], remarks: list[str]) -> None:
    rows = [result_set(path=f"{name}/results/x/bert", submitter=name) for name in submitters]
    (group,) = Submitters(report(result_sets=rows)).table().groups
    assert (len(group.rows), group.remarks) == (2, remarks)


markdown = FORMATS["markdown"]


def test_a_report() -> None:
    made = finding("results/dgx/bert", basis=Basis.OFFICIAL, hint="fix it", set=SET)
    note = finding("systems/dgx.json", 3, severity=Severity.NOTE)
    report_ = report(verdict=FAIL, result_sets=(result_set(verdict=FAIL),), findings=[made, note])
    results = results_markdown(report_)
    assert markdown(report_, View()) == (
        "## MLPerf check\n\n"
        "- **official**: FAIL (mlperf-logging 9.9.9), 1 error in 1 of 1 result set\n"
        "- **rules**: pass\n- 1 error, 0 warnings, 1 note\n- round 2.0: as given\n\n"
        f"### Results\n\n{results}\n### Findings\n\n"
        "- results/dgx/bert: **error X1 \\[official\\]**: wrong\n  <br>hint: fix it\n"
    )


def test_the_summary_has_a_limit() -> None:
    """GitHub rejects more than 1 MiB."""
    number = 500
    findings = [finding(f"{index}/a", message="ä" * 5000) for index in range(number)]
    summary = markdown(report(findings=findings), View())
    assert MAX_BYTES - 20_000 < len(summary.encode()) < 1 << 20
    last = summary.splitlines()[-1]
    left_out = number - summary.count("\n- ") + 4  # the verdicts are a list too
    assert last == f"{left_out} more lines are left out: a summary has at most 1 MiB."


def test_lines_of_a_log() -> None:
    made = [
        finding("a", 7, basis=Basis.RULES),
        finding("b", severity=Severity.WARNING),
        finding("c", severity=Severity.NOTE),
        finding("d", waiver=WAIVER),
    ]
    lines = FORMATS["log"](report(findings=made), View(show=Show.NOTES)).split("\n")
    assert lines[1:5] == [
        "ERROR - a:7: X1 [rules]: wrong",
        "WARNING - b: X1: wrong",
        "INFO - c: X1: wrong",
        "INFO - d: waived: X1: wrong",
    ]


def test_a_folded_finding() -> None:
    fields: dict[str, Any] = {"message": "x is {found}; expected {expected}", "expected": 9}
    places = ((1, 3), (1, 5), (2, 4))
    made = [finding(f"a/{n}.log", line, found=n, **fields) for n, line in places]
    made = folded(made, "a", ["a/1.log", "a/2.log", "a/3.log"])
    read = json.loads(FORMATS["json"](report(findings=made), View()))["findings"][0]
    names = ("message", "path", "line", "found", "expected", "subject", "runs", "of_runs")
    values = ["x is 1 to 2; expected 9", "a/1.log", 3, 1, 9, "a", 2, 3]
    assert [read[name] for name in names] == values
    assert read["places"] == [
        {"path": "a/1.log", "lines": [3, 5], "count": 2, "found": [1], "expected": [9]},
        {"path": "a/2.log", "lines": [4], "count": 1, "found": [2], "expected": [9]},
    ]
