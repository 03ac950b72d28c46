"""Published results next to the user's own, and the rank of a score among them."""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options, scores
from mlperf_pkg.commands.compare import published
from mlperf_pkg.commands.compare.formats import COMPARE_FORMATS
from mlperf_pkg.commands.compare.published import read_rounds, with_standings
from mlperf_pkg.commands.compare.ratios import compare
from mlperf_pkg.commands.compare.reading import Filter
from mlperf_pkg.commands.results.score import SCORE_FORMATS
from mlperf_pkg.errors import UserError
from mlperf_pkg.published.model import PublishedSet, Setting
from mlperf_pkg.published.results import PublishedResultsError
from mlperf_pkg.render import View
from tests.helpers.program import call
from tests.helpers.published import published_set, result, results_of
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission

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
HYPERPARAMETERS = {"global_batch_size": "500", "opt_name": '"lamb"'}
OWN = result(round="5.0", system="own", minutes=25.0, path="", hyperparameters=HYPERPARAMETERS)


@pytest.fixture(autouse=True)
def few_results(monkeypatch: pytest.MonkeyPatch) -> None:
    results = results_of(*SETS, settings=SETTINGS)
    monkeypatch.setattr(published, "published_results", lambda: results)


def read(*names: str, own: Any = (), **more: Any) -> list[str]:
    return [result.system for result in read_rounds(names, own, Filter(**more), None)]


@pytest.mark.parametrize(
    ("names", "more", "systems"),
    [
        (["5.0"], {}, ["fast", "slow"]),
        (["5.0"], {"own": (OWN,)}, ["fast", "slow"]),
        (["5.0", "4.1"], {"own": (OWN,)}, ["fast", "old", "slow"]),
        (["4.1"], {"benchmarks": ("bert",)}, ["old", "open"]),
        (["4.1"], {"benchmarks": ("g*",)}, ["box"]),
        (["4.1"], {"divisions": ("open",)}, ["open"]),
        (["all"], {"systems": ("5.0 f*",)}, ["fast"]),
        (["3.0"], {}, ["box"]),
        (["5.0"], {"own": (replace(OWN, division="Closed"),)}, ["fast", "slow"]),
        (["5.0"], {"own": (OWN,), "accelerators": (16, 7)}, ["fast"]),
        # A published result is not compared with itself.
        (["5.0"], {"own": (result(minutes=40.0),)}, ["fast"]),
    ],
)
def test_chosen_results(names: list[str], more: Any, systems: list[str]) -> None:
    assert read(*names, **more) == systems


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (
            "4.2",
            {},
            r"--published 4\.2: no such round; did you mean 4\.1\? \(expected 4\.1, ",
        ),
        (
            "5.2",
            {},
            r"--published 5\.2: the round is newer than the published results in mlperf-pkg \(",
        ),
        ("al", {}, r"did you mean all\? \(expected 4\.1, 5\.0, 3\.0 or all\)$"),
        ("5.0", {"benchmarks": ("brt",)}, r"benchmark, only of bert; did you mean bert\?$"),
        ("5.0", {"benchmarks": ("gnn",)}, r"only of bert; such results were published in 4\.1$"),
        ("5.0", {"systems": ("slwo",)}, r"and --accelerators; did you mean slow\?$"),
        (
            "3.0",
            {"own": (OWN,)},
            r"^--published: the chosen rounds have no result of bert \(closed, since 1\.0\);"
            r" such results were published in 4\.1, 5\.0$",
        ),
    ],
    ids=[
        "no such round",
        "a newer round",
        "a typo of all",
        "a typo of a benchmark",
        "a benchmark of other rounds",
        "a typo of a system",
        "no result of the own benchmark",
    ],
)
def test_refused(names: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(names, **more)


def test_text_shows_those_on_as_many_accelerators() -> None:
    results = [OWN, *read_rounds(["5.0"], (OWN,), Filter(), None)]
    shown = COMPARE_FORMATS["text"](compare(results, {}, lambda one: one is OWN), View(80))
    assert shown.startswith(
        dedent(
            """\
            Time to train  Submitter  Avail.  Accelerators  Minutes  Speed
            bert (closed, since 1.0)
              own *        ACME       -                  8   25.000  1.00x
              [5.0] slow   ACME       onprem             8   40.000  0.62x
              1 published result on other numbers of accelerators: --verbose shows them

            Hyperparameters      Baseline  Published (result sets)
            bert (closed, since 1.0)
              global_batch_size  500       480 (1)
            """
        )
    )
    assert "opt_name" not in shown
    assert "[round] marks a result that was published in this round." in shown


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission to 2.0 of one set, on 16 accelerators."""
    return write_submission(tmp_path_factory.mktemp("round") / "v2.0" / "ACME", "resnet")


@pytest.fixture(scope="module")
def own(tree: Path) -> Checked:
    return check([str(tree)], Options())


def row(own: Checked, factor: float, **changes: Any) -> PublishedSet:
    """Return a published set whose score is that of the own set times ``factor``."""
    minutes = own.report.result_sets[0].score_minutes or 0
    fields = {"round": "2.0", "benchmark": "resnet", "accelerators": 16} | changes
    return published_set(score_minutes=minutes * factor, **fields)


def remarks(own: Checked, *rows: PublishedSet, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rank of the own set among published ones, without what they have in common."""
    monkeypatch.setattr(published, "published_results", lambda: results_of(*rows))
    text = SCORE_FORMATS["text"](with_standings(scores(own), own), View(160))
    lines = (line.strip() for line in text.splitlines() if "published" in line)
    shared = re.compile(" on 16 accelerators|(?<=[0-9]) [(]Available on-premise[)]")
    return [shared.sub("", line) for line in lines]


FAST, SLOW, ITSELF = ((factor, dict[str, Any]()) for factor in (0.5, 2.0, 1.0))
RANKS: list[tuple[list[tuple[float, dict[str, Any]]], list[str]]] = [
    ([FAST, SLOW], ["2nd of 3 published results in round 2.0"]),
    ([FAST, ITSELF], ["2nd of 2 published results in round 2.0"]),
    ([SLOW, ITSELF], ["1st of 2 published results in round 2.0"]),
    ([*22 * [FAST]], ["23rd of 23 published results in round 2.0"]),
    ([*10 * [FAST], *100 * [SLOW]], ["11th of 111 published results in round 2.0"]),
    (
        [FAST, (0.5, {"accelerator_model": "graphcore bow-ipu"})],
        ["3rd of 3 published results in round 2.0, 2nd of 2 on Graphcore Bow IPU"],
    ),
    (
        [FAST, (0.5, {"division": "Closed"}), (0.5, {"division": "close"})],
        ["4th of 4 published results in round 2.0"],
    ),
    ([ITSELF], []),
    ([(0.5, {"round": "2.1"}), (0.5, {"round": "1.1"}), (0.5, {"benchmark": "bert"})], []),
    ([(0.5, {"division": "open"}), (0.5, {"accelerators": 8}), (0.5, {"status": "Preview"})], []),
]


@pytest.mark.parametrize(("rows", "expected"), RANKS)
def test_in_its_own_round(
    rows: list[tuple[float, dict[str, Any]]],
    expected: list[str],
    own: Checked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = row(own, 9.0, benchmark="ssd")  # the round is published
    sets = [other, *(row(own, factor, **changes) for factor, changes in rows)]
    assert remarks(own, *sets, monkeypatch=monkeypatch) == expected


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [(["0.7", "1.0", "1.1"], ["2nd of 2 published results in round 1.1"]), (["2.1"], [])],
)
def test_in_an_earlier_round(
    rounds: list[str], expected: list[str], own: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = (row(own, 0.5, round=name) for name in rounds)
    assert remarks(own, *sets, monkeypatch=monkeypatch) == expected


@pytest.mark.parametrize("as_logs", [False, True], ids=["a folder", "its logs"])
def test_a_part_of_a_submission_has_its_description(
    as_logs: bool, tree: Path, own: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tree / "results" / SYSTEM / "resnet"
    paths = sorted(folder.glob("*.txt")) if as_logs else [folder]
    part = check([*map(str, paths)], Options(round="2.0"))
    assert remarks(part, row(own, 0.5), monkeypatch=monkeypatch) == [
        "2nd of 2 published results in round 2.0"
    ]


def test_loose_logs_have_no_standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = check([str(write_set(tmp_path, simulated()))], Options())
    assert remarks(logs, row(logs, 0.5), monkeypatch=monkeypatch) == []


def test_published_results_that_cannot_be_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise PublishedResultsError("the published results are missing; reinstall mlperf-pkg")

    monkeypatch.setattr(published, "published_results", fail)
    result = call("score", tree)
    assert result.exit_code == 0
    assert result.stderr == ("note: the published results are missing; reinstall mlperf-pkg\n")
    assert "published" not in result.stdout
