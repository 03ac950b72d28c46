"""Reports as people read them in a terminal or a pipe."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import pytest

from mlperf_pkg.findings import Basis, Severity, Verdict, Verdicts
from mlperf_pkg.render import FORMATS, View
from tests.helpers.reports import (
    FAIL,
    NOT_CHECKED,
    PASS,
    finding,
    rcp,
    report,
    result_set,
    run,
    system,
)


def text(*, verbose: bool = False, color: bool = False, **fields: Any) -> str:
    return FORMATS["text"](report(**fields), View(80, color, verbose))


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
        ),
        finding("results/dgx/bert/result_0.txt", 7, severity=Severity.WARNING),
        finding("results/dgx/bert/result_0.txt", 9, severity=Severity.NOTE),
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

        results/dgx/bert: error RCP101: too fast [official]
          hint: a review decides
        results/dgx/bert/result_0.txt:7: warning X1: wrong

        official: FAIL - mlperf-logging 9.9.9 rejects this; 1 of 3 result sets not
        checked
        rules:    pass - no violation of the written rules found; 1 of 3 result sets not
        checked
        1 error, 1 warning, 1 note (--verbose shows the notes)
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
            run(path="a.log", dropped="fastest"),
            run(path="old/b.log", status=None, minutes=None, verdict=FAIL),
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
        bert, closed
          a.log   20.000  success, fastest  pass      pass
        old: bert, closed
          b.log        -  no run_stop       FAIL      pass

        official: pass - mlperf-logging 9.9.9 accepts this
        rules:    pass - no violation of the written rules found
        0 errors, 0 warnings, 0 notes
        several rounds: 1.1, 2.0
        """
    )


def test_verbose_shows_runs_systems_notes_and_sources() -> None:
    note = finding("a.log", severity=Severity.NOTE, source="the rules")
    shown = text(
        verbose=True,
        result_sets=(result_set(),),
        runs=(run(),),
        systems=(system(),),
        findings=[note],
    )
    assert "results/dgx/bert: bert, closed\n  result_0.txt" in shown
    assert "Rules\nACME\n  dgx    closed               8  pass      pass\n" in shown
    assert "a.log: note X1: wrong\n  source: the rules\n" in shown
    assert "0 errors, 0 warnings, 1 note\n" in shown


def test_submitters_are_named_where_there_are_several() -> None:
    sets = (result_set(submitter="A"), result_set(submitter="B"))
    shown = text(result_sets=sets)
    assert "\nA: dgx (closed)\n" in shown
    assert "\nB: dgx (closed)\n" in shown


@pytest.mark.parametrize(
    ("verdict", "lines"),
    [
        (
            PASS,
            [
                "official: pass - mlperf-logging 9.9.9 accepts this",
                "rules:    pass - no violation of the written rules found",
            ],
        ),
        (
            Verdicts(Verdict.FAIL, Verdict.FAIL),
            [
                "official: FAIL - mlperf-logging 9.9.9 rejects this",
                "rules:    FAIL - violates the written rules",
            ],
        ),
        (
            NOT_CHECKED,
            [
                "official: not checked - the verdict of mlperf-logging 9.9.9 is unknown",
                "rules:    not checked - the rulebook does not cover this",
            ],
        ),
    ],
)
def test_verdicts(verdict: Verdicts, lines: list[str]) -> None:
    assert text(verdict=verdict).splitlines()[:2] == lines


def test_a_finding_is_never_cut() -> None:
    path, message = f"{'folder/' * 30}result_0.txt", "word " * 60 + "end"
    shown = text(findings=[finding(path, 3, message=message)])
    assert f"{path}:3: error X1: {message}\n" in shown


def test_color_changes_nothing_but_colours() -> None:
    fields: dict[str, Any] = {"result_sets": (result_set(verdict=FAIL),), "findings": [finding()]}
    plain, colored = text(**fields), text(color=True, **fields)
    assert "\x1b[1;31merror\x1b[0m" in colored
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
    assert "\\x1b[2J[red]\\n:smile:\\udcff: error \\x1b[2J[red]" in shown
    assert all(line.isprintable() for line in shown.split("\n"))
