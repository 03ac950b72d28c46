"""Reports as people read them in a terminal or a pipe."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Severity, Verdict, Verdicts, Waiver
from mlperf_pkg.render import FORMATS, Show, View
from tests.helpers.reports import (
    FAIL,
    NOT_CHECKED,
    PASS,
    SET,
    finding,
    on_raw_set,
    raw_sets,
    rcp,
    report,
    result_set,
    run,
    system,
)
from tests.helpers.round_report import a_round

VIEW = {"color", "verbose", "show", "quiet", "statistics"}


def text(**fields: Any) -> str:
    view = View(80, **{name: fields.pop(name) for name in VIEW.intersection(fields)})
    return FORMATS["text"](report(**fields), view)


def page(expected: str) -> str:
    return dedent(expected).lstrip("\n")


def test_a_submission() -> None:
    findings = (
        finding(
            "results/dgx/bert",
            code="RCP101",
            message="too fast",
            basis=Basis.OFFICIAL,
            hint="a review decides",
            set=SET,
        ),
        finding("results/dgx/bert/result_0.txt", 7, severity=Severity.WARNING, set=SET),
        finding("results/dgx/bert/result_0.txt", 9, severity=Severity.NOTE, set=SET),
    )
    dlrm = result_set(
        benchmark="dlrm", verdict=NOT_CHECKED, runs_required=None, rcp=None, score_minutes=None
    )
    shown = text(
        verdict=FAIL,
        result_sets=(
            result_set(verdict=FAIL, rcp=rcp(official_pass=False, margin_percent=-1.0)),
            result_set(benchmark="resnet", system="a" * 60, division="open"),
            dlrm,
        ),
        runs=(run(),),
        systems=(system(),),
        findings=findings,
    )
    assert shown == page(
        """
        Result sets   Runs  Minutes  RCP margin   Official     Rules
        dgx (closed)
          bert       10/10   20.500  FAIL -1.0 %  FAIL         pass
          dlrm          10        -  not checked  not checked  not checked
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (open)
          resnet     10/10   20.500  -            pass         pass

        Errors
          results/dgx/bert: too fast  RCP101 [official]
            hint: a review decides

        Warnings
          results/dgx/bert/result_0.txt:7: wrong  X1

        official: FAIL, mlperf-logging 9.9.9 rejects this, 1 error in 1 of 3 result
        sets, 1 warning in 1 of 3 result sets, 1 of 3 result sets not checked
        rules:    pass, 1 warning in 1 of 3 result sets, 1 of 3 result sets not checked
        1 error, 1 warning, 1 note (--show all lists them)
        round 2.0: as given
        """
    )


def test_loose_logs() -> None:
    shown = text(
        round=None,
        round_reason="several rounds: 1.1, 2.0",
        result_sets=(
            result_set(path=".", submitter=None, runs_found=2),
            result_set(path="old", submitter=None, system=None, round="1.1", runs_found=1),
        ),
        runs=(
            run(path="a.log", dropped="fastest", set="unknown/dgx/bert/closed"),
            run(
                path="old/b.log",
                status=None,
                minutes=None,
                verdict=FAIL,
                set="unknown/unknown/bert/closed",
            ),
            run(path="old/c.log", benchmark="", set=None),
        ),
    )
    assert shown == page(
        """
        Result sets  Runs  Minutes  RCP margin    Official  Rules
        dgx (closed, round 2.0)
          bert       2/10   20.500  pass +10.0 %  pass      pass
        unnamed system (closed, in old, round 1.1)
          bert       1/10   20.500  pass +10.0 %  pass      pass

        Runs     Minutes  Status, dropped   Official  Rules
        unknown/dgx/bert/closed
          a.log   20.000  success, fastest  pass      pass
        old: unknown/unknown/bert/closed
          b.log        -  no run_stop       FAIL      pass
        old: no benchmark, closed
          c.log   20.000  success           pass      pass

        official: pass, mlperf-logging 9.9.9 accepts this
        rules:    pass
        0 errors, 0 warnings, 0 notes
        several rounds: 1.1, 2.0
        """
    )


@pytest.mark.parametrize("verbose", [False, True])
def test_sets_of_raw_logs_in_one_folder(verbose: bool) -> None:
    made = [*on_raw_set("alpha", finding("alpha_1.log", 7, code="X2")), *on_raw_set("beta")]
    made += [
        *on_raw_set("alpha", finding(".", code="X3")),
        *on_raw_set("beta", finding(".", code="X3")),
    ]
    assert text(**raw_sets(), findings=made, verbose=verbose) == page(
        """
        Result sets   Runs  Minutes  RCP margin    Official  Rules
        alpha (closed)
          bert       10/10   20.500  pass +10.0 %  pass      pass
        beta (closed)
          bert       10/10   20.500  pass +10.0 %  pass      pass

        Runs           Minutes  Status, dropped  Official  Rules
        ACME/alpha/bert/closed
          alpha_0.log   20.000  success          pass      pass
          alpha_1.log   20.000  success          pass      pass
        ACME/beta/bert/closed
          beta_0.log    20.000  success          pass      pass
          beta_1.log    20.000  success          pass      pass

        Errors
          ACME/beta/bert/closed: wrong  X1
          alpha_1.log:7: wrong (1 of 2 runs)  X2
          wrong  X3
            2 result sets: ACME/alpha/bert/closed, ACME/beta/bert/closed

        official: pass, mlperf-logging 9.9.9 accepts this, 4 errors in 2 of 2 result
        sets
        rules:    pass, 4 errors in 2 of 2 result sets
        4 errors, 0 warnings, 0 notes (--show all lists them)
        round 2.0: as given
        """
    )


def test_what_raw_logs_leave_open_is_shown_to_be_pasted() -> None:
    shown = text(
        result_sets=(result_set(path=".", system_by="the folder name"), result_set(judged=False)),
        configuration="# who?\nsystems:\n  dgx: {}\n",
    )
    assert "Save this as mlperf-pkg.yaml and complete it\n# who?\nsystems:\n  dgx: {}\n\n" in shown
    assert shown.endswith(
        "round 2.0: as given\nsystem found by the folder name: dgx\n"
        "only the logs were judged in 1 of 2 result sets: to judge sets, check a folder\n"
        "without --partial\n"
    )


def test_verbose_shows_runs_and_systems() -> None:
    shown = text(
        verbose=True,
        result_sets=(result_set(),),
        runs=(run(),),
        systems=(system(),),
    )
    assert "results/dgx/bert: ACME/dgx/bert/closed\n  result_0.txt" in shown
    assert "Rules\nACME\n  dgx    closed               8  pass      pass\n" in shown


NOTE = finding("a.log", 2, severity=Severity.NOTE, source="the rules")
MADE = [
    finding("a.log", 1, hint="fix", source="the rules"),
    finding("b.log", 1),
    finding("a.log", code="W1", severity=Severity.WARNING),
    NOTE,
]
ERRORS = "Errors\n  wrong  X1\n    2 files: a.log, b.log\n    hint: fix\n\n"
WARNINGS = "Warnings\n  a.log: wrong  W1\n\n"
ALL = """\
Errors
  a.log:1: wrong  X1
    hint: fix
    source: the rules
  b.log:1: wrong  X1

Warnings
  a.log: wrong  W1

Notes
  a.log:2: wrong  X1
    source: the rules

"""


@pytest.mark.parametrize(
    ("show", "shown"),
    [
        ("errors", ERRORS),
        ("warnings", ERRORS + WARNINGS),
        ("notes", ERRORS + WARNINGS + "Notes\n  a.log:2: wrong  X1\n\n"),
        ("all", ALL),
    ],
)
@pytest.mark.parametrize("verbose", [False, True])
def test_what_is_shown(show: str, shown: str, verbose: bool) -> None:
    """``verbose`` shows runs, not findings."""
    lines, verdicts = text(verbose=verbose, show=Show(show), findings=MADE).split("official: ")
    assert lines == shown
    more = "" if show == "all" else " (--show all lists them)"
    assert f"\n2 errors, 1 warning, 1 note{more}\n" in verdicts


def test_findings_on_one_thing_are_all_listed() -> None:
    made = [finding("a.log", 4, message="b"), finding("a.log", 3, message="a")]
    shown = text(findings=made)
    assert shown.startswith("Errors\n  a.log:3: a  X1\n  a.log:4: b  X1\n\n")
    assert "\n2 errors, 0 warnings, 0 notes\n" in shown


@pytest.mark.parametrize("show", Show)
def test_waived_findings_are_always_shown(show: Show) -> None:
    waiver = Waiver("agreed", "Jane", "2026-12-31")
    shown = text(show=show, findings=[replace(NOTE, waiver=waiver)])
    assert shown.startswith(
        "Waived\n  a.log:2: wrong  X1\n    waived by Jane until 2026-12-31: agreed\n"
    )


def test_quiet_shows_the_verdicts_alone() -> None:
    shown = text(quiet=True, verbose=True, statistics=True, findings=MADE, runs=(run(),))
    assert shown == page(
        """
        official: pass, mlperf-logging 9.9.9 accepts this, 2 errors, 1 warning
        rules:    pass, 2 errors, 1 warning
        """
    )


def test_statistics_are_of_all_findings() -> None:
    shown = text(statistics=True, show=Show.ERRORS, findings=MADE)
    assert shown.startswith(
        page(
            """
            Codes  Findings  Places
            Errors
              X1          2       2
            Warnings
              W1          1       1
            Notes
              X1          1       1

            """
        )
    )


def test_submitters_are_named_where_there_are_several() -> None:
    sets = tuple(result_set(path=f"{n}/results/dgx/bert", submitter=n) for n in "AB")
    shown = text(result_sets=sets, verbose=True)
    assert "\nA: dgx (closed)\n" in shown
    assert "\nB: dgx (closed)\n" in shown


@pytest.mark.parametrize(
    ("verdict", "lines"),
    [
        (
            PASS,
            [
                "official: pass, mlperf-logging 9.9.9 accepts this",
                "rules:    pass",
            ],
        ),
        (
            Verdicts(Verdict.FAIL, Verdict.FAIL),
            [
                "official: FAIL, mlperf-logging 9.9.9 rejects this",
                "rules:    FAIL",
            ],
        ),
        (
            NOT_CHECKED,
            [
                "official: not checked, there is no result set",
                "rules:    not checked, there is no result set",
            ],
        ),
    ],
)
def test_verdicts(verdict: Verdicts, lines: list[str]) -> None:
    assert text(verdict=verdict).splitlines()[:2] == lines


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


def test_hostile_names_do_not_act() -> None:
    evil = "\x1b[2J[red]\n:smile:\udcff"
    shown = text(
        result_sets=(result_set(system=evil, benchmark=evil, submitter=evil, division=evil),),
        runs=(run(path=evil, status=evil, benchmark=evil),),
        findings=[finding(evil, message=evil, hint=evil, code=evil)],
        round_reason=evil,
    )
    assert "Errors\n  \\x1b[2J[red]\\n:smile:\\udcff: \\x1b[2J[red]\\n:smile:" in shown
    assert all(line.isprintable() for line in shown.split("\n"))


# ---- a round ------------------------------------------------------------------------------

SUBMITTERS = """\
Submitters   Sets  Official     Rules        Errors  Warnings  RCP failures
  ACME          2  FAIL         pass              1         2             1
  beta          2  FAIL         FAIL              1         3             -
  Zeta          1  FAIL         FAIL              1         1             -
  elsewhere     0  not checked  not checked       -         1             -

"""
VERDICTS = """\
official: FAIL, mlperf-logging 9.9.9 rejects this, 3 errors in 3 of 5 result
sets, 2 warnings, 1 of 5 result sets not checked, 1 waived, which the official
checker ignores
rules:    FAIL, 2 errors in 2 of 5 result sets, 7 warnings in 3 of 5 result
sets, 1 of 5 result sets not checked
"""
COUNTS = """\
3 errors, 7 warnings, 1 note, 1 waived (--show all lists them)
round 2.0: as given
"""
GROUPS = """\
Errors
  ACME/results/dgx/bert: too fast  RCP101 [official]
    hint: a review
  x is 1 to 9; expected 0  RUN107
    2 result sets: Zeta 1, beta 1
    first Zeta/results/dgx/bert/result_0.txt:7

Warnings
  evaluated every 12,288 to 30,000 samples; expected every 150,000  BERT121 [rules]
    3 result sets: ACME 1, Zeta 1, beta 1
    first ACME/results/dgx/bert
  beta: no code  CODE100
  no value for cooling, framework  SYS202 [rules]
    2 files: ACME 1, beta 1
    first ACME/systems/dgx.json:9
  mlperf-pkg.yaml:3: ended  WAIVE101

Waived
  ACME/results/dgx/resnet: refused  SET103 [official]
    waived by Jane until 2026-12-31: a known mistake of the checker

"""
STATISTICS = """\
Codes                Findings  Places  Submitters
Errors
  RCP101 [official]         1       1  ACME 1
  RUN107                    2       4  Zeta 1, beta 1
Warnings
  BERT121 [rules]           3      13  ACME 1, Zeta 1, beta 1
  CODE100                   1       1  beta 1
  SYS202 [rules]            2       3  ACME 1, beta 1
  WAIVE101                  1       1  elsewhere 1
Notes
  SET113                    1       1  Zeta 1
Waived
  SET103 [official]         1       1  ACME 1

"""
SETS = """\
Result sets   Runs  Minutes  RCP margin    Official     Rules
ACME: dgx (closed)
  bert       10/10   20.500  FAIL -1.0 %   FAIL         pass
  resnet     10/10   20.500  pass +10.0 %  pass         pass
beta: dgx (closed)
  bert       10/10   20.500  pass +10.0 %  FAIL         FAIL
  chess         10   20.500  not checked   not checked  not checked
Zeta: dgx (closed)
  bert       10/10   20.500  pass +10.0 %  pass         pass

"""


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ({}, SUBMITTERS + GROUPS + VERDICTS + COUNTS),
        ({"quiet": True}, VERDICTS),
        ({"statistics": True}, SUBMITTERS + STATISTICS + VERDICTS + COUNTS),
        ({"verbose": True}, SUBMITTERS + SETS + GROUPS + VERDICTS + COUNTS),
    ],
    ids=["groups", "quiet", "statistics", "sets"],
)
def test_a_round(view: dict[str, Any], shown: str) -> None:
    assert FORMATS["text"](a_round(), View(80, **view)) == shown


def test_all_findings_of_a_round_one_by_one() -> None:
    shown = FORMATS["text"](a_round(), View(80, show=Show.ALL))
    for line in (
        "  Zeta/results/dgx/bert/result_0.txt:7: x is 9; expected 0 (1 of 10 runs)  RUN107",
        "  beta/results/dgx/bert: x is 1 to 2; expected 0 (3 of 10 runs; first result_0.txt:7)  RUN107",
        "  Zeta/results/dgx/bert: evaluated every 30,000 samples; expected every 150,000"
        " (10 of 10 runs; first result_0.txt:7)  BERT121 [rules]",
        "  beta/systems/dgx.json:9: no value for cooling  SYS202 [rules]",
        "  Zeta/results/dgx/bert: overlap  SET113",
    ):
        assert f"\n{line}\n" in shown


def test_the_name_of_a_submitter_is_not_folded() -> None:
    name = "Intel-HabanaLabs of Somewhere"
    sets = [result_set(path=f"{n}/results/dgx/bert", submitter=n) for n in ("A", name)]
    lines = text(result_sets=[replace(row, verdict=NOT_CHECKED) for row in sets]).splitlines()
    assert f"  {name}" in lines
    assert max(map(len, lines)) <= 80
