"""The rank of a score among published results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options, scores
from mlperf_pkg.commands.score import standing
from mlperf_pkg.commands.score.formats import SCORE_FORMATS
from mlperf_pkg.commands.score.standing import with_standings
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.published.results import PublishedResultsError
from mlperf_pkg.render import View
from tests.helpers.program import call
from tests.helpers.published import published_set, results_of
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission


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
    model = "graphcore bow-ipu" if "model" in fields else "A1"
    fields.pop("model", None)
    return published_set(accelerator_model=model, score_minutes=minutes * factor, **fields)


def remarks(own: Checked, *rows: PublishedSet, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(standing, "published_results", lambda: results_of(*rows))
    text = SCORE_FORMATS["text"](with_standings(scores(own), own), View(100))
    return (line.strip() for line in text.splitlines() if "published" in line)


Other = tuple[float, dict[str, Any]]  # a factor, and changes
FAST: Other = (0.5, {})
SLOW: Other = (2.0, {})
ITSELF: Other = (1.0, {})
MODEL = {"model": True}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([FAST, SLOW], ["published: 2nd of 3 on 16 accelerators in 2.0"]),
        ([FAST, ITSELF], ["published: 2nd of 2 on 16 accelerators in 2.0"]),
        ([SLOW, ITSELF], ["published: 1st of 2 on 16 accelerators in 2.0"]),
        ([*10 * [FAST], *100 * [SLOW]], ["published: 11th of 111 on 16 accelerators in 2.0"]),
        ([*22 * [FAST]], ["published: 23rd of 23 on 16 accelerators in 2.0"]),
        (
            [FAST, (0.5, MODEL)],
            ["published: 3rd of 3 on 16 accelerators in 2.0, 2nd of 2 on Graphcore Bow IPU"],
        ),
        (
            [FAST, (0.5, {"division": "Closed"}), (0.5, {"division": "close"})],
            ["published: 4th of 4 on 16 accelerators in 2.0"],
        ),
        ([], []),
        ([ITSELF], []),
        ([(0.5, {"round": "2.1"})], []),
        ([(0.5, {"round": "1.1"}), (0.5, {"benchmark": "bert"})], []),
        ([(0.5, {"division": "open"})], []),
        ([(0.5, {"accelerators": 8})], []),
    ],
)
def test_in_its_own_round(
    own: Checked,
    rows: list[Other],
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = row(own, 9.0, benchmark="ssd")  # the round is published
    sets = [other, *(row(own, factor, **changes) for factor, changes in rows)]
    assert list(remarks(own, *sets, monkeypatch=monkeypatch)) == expected


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (["0.7", "1.0", "1.1"], ["published: 2nd of 2 on 16 accelerators in 1.1"]),
        (["2.1"], []),
    ],
)
def test_in_an_earlier_round(
    own: Checked, rounds: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = (row(own, 0.5, round=name) for name in rounds)
    assert list(remarks(own, *sets, monkeypatch=monkeypatch)) == expected


def test_a_folder_of_a_submission_has_its_description(
    tree: Path, own: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = check([str(tree / "results" / SYSTEM / "resnet")], Options(round="2.0"))
    assert list(remarks(part, row(own, 0.5), monkeypatch=monkeypatch)) == [
        "published: 2nd of 2 on 16 accelerators in 2.0"
    ]


def test_loose_logs_have_no_standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = check([str(write_set(tmp_path, simulated()))], Options())
    assert list(remarks(logs, row(logs, 0.5), monkeypatch=monkeypatch)) == []


def test_other_formats(tree: Path) -> None:
    csv = call("score", tree, "--format", "csv").stdout.splitlines()
    assert csv[0].endswith(",score_note,published_round,published_rank,published_of")
    assert ",2.0," in csv[1]
    assert (
        '"published": {\n        "round": "2.0",\n'
        in call("score", tree, "--format", "json").stdout
    )


def test_published_results_that_cannot_be_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise PublishedResultsError("the published results are missing: reinstall mlperf-pkg")

    monkeypatch.setattr(standing, "published_results", fail)
    result = call("score", tree)
    assert result.exit_code == 0
    assert result.stderr == ("note: the published results are missing: reinstall mlperf-pkg\n")
    assert "published" not in result.stdout
