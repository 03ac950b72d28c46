"""Published results next to the user's own."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.commands.compare import published
from mlperf_pkg.commands.compare.formats import COMPARE_FORMATS, hyperparameters, shown_rows
from mlperf_pkg.commands.compare.published import read_rounds
from mlperf_pkg.commands.compare.ratios import Result, Row, compare
from mlperf_pkg.commands.compare.reading import Filter
from mlperf_pkg.errors import UserError
from mlperf_pkg.published.model import Setting
from mlperf_pkg.render import View
from tests.helpers.published import published_set, results_of

SETS = (
    published_set(round="5.0", system="slow", score_minutes=40.0, path="A/results/slow/bert"),
    published_set(round="5.0", system="fast", accelerators=16, score_minutes=10.0, path="A/r/f/b"),
    published_set(round="5.0", system="none", score_minutes=None, path="A/results/none/bert"),
    published_set(round="4.1", system="old", division="Closed", path="A/results/old/bert"),
    published_set(round="4.1", system="open", division="open", path="A/results/open/bert"),
    published_set(round="4.1", benchmark="gnn"),
    published_set(usage="hpc", round="3.0", benchmark="deepcam", path="A/results/s/weak/deepcam"),
)
SETTINGS = (
    Setting(0, "opt_name", '"lamb"', 10),
    Setting(0, "global_batch_size", "448", 3),
    Setting(0, "global_batch_size", "480", 7),
    Setting(3, "opt_name", '"lamb"', 10),
    Setting(3, "global_batch_size", "448", 10),
)
OWN = Result(
    argument=0,
    round="6.0",
    submitter="ACME",
    system="own",
    system_name=None,
    benchmark="bert",
    division="closed",
    minutes=25.0,
    path="own",
    accelerators=8,
    hyperparameters={"global_batch_size": "500", "opt_name": '"lamb"'},
)


@pytest.fixture(autouse=True)
def few_results(monkeypatch: pytest.MonkeyPatch) -> None:
    results = results_of(*SETS, settings=SETTINGS)
    monkeypatch.setattr(published, "published_results", lambda: results)


def read(*names: str, own: tuple[Result, ...] = (), **more: Any) -> list[str]:
    return [result.system for result in read_rounds(names, own, Filter(**more), None)]


@pytest.mark.parametrize(
    ("names", "own", "more", "systems"),
    [
        (["5.0"], (), {}, ["fast", "slow"]),
        (["5.0"], (OWN,), {}, ["fast", "slow"]),
        (["5.0", "4.1"], (OWN,), {}, ["fast", "old", "slow"]),
        (["4.1"], (), {"benchmarks": ("bert",)}, ["old", "open"]),
        (["4.1"], (), {"benchmarks": ("g*",)}, ["box"]),
        (["4.1"], (), {"divisions": ("open",)}, ["open"]),
        (["all"], (), {"systems": ("5.0 f*",)}, ["fast"]),
        (["3.0"], (), {}, ["box"]),
        (["5.0"], (replace(OWN, division="Closed"),), {}, ["fast", "slow"]),
        (["5.0"], (OWN,), {"accelerators": (16, 7)}, ["fast"]),
    ],
)
def test_chosen_results(
    names: list[str],
    own: tuple[Result, ...],
    more: dict[str, Any],
    systems: list[str],
) -> None:
    assert read(*names, own=own, **more) == systems


def test_a_published_result_is_not_compared_with_itself() -> None:
    own = Result(0, "5.0", "A", "renamed", None, "bert", "closed", 40.0, "x")
    assert read("5.0", own=(own,)) == ["fast"]


@pytest.mark.parametrize(
    ("names", "own", "more", "message"),
    [
        (["4.2"], (), {}, r"--published 4\.2: no such round; did you mean 4\.1\? \(of 4\.1, "),
        (["5.2"], (), {}, r"--published 5\.2: newer than the published results of this package \("),
        (["al"], (), {}, r"did you mean all\? \(of 4\.1, 5\.0, 3\.0, all\)$"),
        (["5.0"], (), {"benchmarks": ("brt",)}, r"did you mean bert\? \(they have bert\)$"),
        (["5.0"], (), {"benchmarks": ("gnn",)}, r"rounds; published in 4\.1 \(they have bert\)$"),
        (
            ["5.0"],
            (),
            {"systems": ("slwo",)},
            r"--system, --division and --accelerators; did you mean slow\?$",
        ),
        (
            ["3.0"],
            (OWN,),
            {},
            r"^--published: no result of bert \(closed\) in these rounds; published in 4\.1, 5\.0$",
        ),
    ],
)
def test_refused(
    names: list[str], own: tuple[Result, ...], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read(*names, own=own, **more)


def rows(*names: str) -> tuple[Row, ...]:
    results = [OWN, *read_rounds(names, (OWN,), Filter(), None)]
    return compare(results, {}, lambda result: result.argument == 0)


def test_text_shows_those_on_as_many_accelerators() -> None:
    shown = COMPARE_FORMATS["text"](rows("5.0"), View(80))
    assert shown.startswith(
        dedent(
            """\
            Time to train  Submitter  Avail.  Accel.  Minutes  Speed
            bert (closed)
              own *        ACME       -            8   25.000  1.00x
              [5.0] slow   ACME       onprem       8   40.000  0.62x
              1 published result on other numbers of accelerators: --verbose shows them

            Hyperparameters      Baseline  Published (result sets)
            bert (closed)
              global_batch_size  500       480 (1)
            """
        )
    )
    assert "opt_name" not in shown
    assert "[round]: published in that round; its score is normalised" in shown


def test_verbose_text_shows_all() -> None:
    shown = COMPARE_FORMATS["text"](rows("5.0"), View(80, verbose=True))
    assert "[5.0] fast" in shown
    assert "opt_name" in shown
    assert "--verbose" not in shown


def test_all_are_shown_if_none_has_as_many_accelerators() -> None:
    other = replace(OWN, accelerators=7)
    results = [other, *read_rounds(["5.0"], (other,), Filter(), None)]
    table = compare(results, {}, lambda result: result.argument == 0)
    assert shown_rows(table, View()) == list(table)


def test_the_baseline_is_always_shown() -> None:
    results = [OWN, *read_rounds(["5.0"], (OWN,), Filter(), None)]
    table = compare(results, {}, lambda result: result.system == "fast")
    assert [row.result.system for row in shown_rows(table, View())] == ["fast", "own", "slow"]


def test_hyperparameters_of_many() -> None:
    (group,) = hyperparameters(rows("5.0", "4.1"), View())
    assert [[*cells] for cells in group.rows] == [["global_batch_size", "500", "448 (1), 480 (1)"]]
