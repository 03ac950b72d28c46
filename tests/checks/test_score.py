"""The score of a set, the factor of the official tables, and what gives another score."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.score import OTHER_SCORE
from mlperf_pkg.published import results
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.submission.model import AS_FILED
from tests.helpers.broken_runs import SET, every_log, slightly_fast
from tests.helpers.trees import write_submission, write_system
from tests.tools.export import encoded, of_rounds

MEAN = 19.565038888888888
"""The olympic mean of the set, in minutes."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A Closed submission that converges faster than the reference, in a folder of round 2.0."""
    return every_log(slightly_fast, write_submission(tmp_path / "v2.0/Graphcore"))


def filed(tree: Path, text: str | None) -> Path:
    """The submission with this ``scaling.json``, if any."""
    if text is not None:
        (tree / SET / "scaling.json").write_text(text)
    return tree


def scored(tree: Path, round_: str | None = None) -> tuple[ResultSetRow, Report]:
    report = check([str(tree)], Options(round=round_)).report
    (row,) = report.result_sets
    return row, report


def of_scores(report: Report) -> list[str]:
    """The findings on factors, with their severity."""
    about_factors = ("SET118", "SET119", OTHER_SCORE)
    return [f"{f.code} {f.severity}" for f in report.findings if f.code in about_factors]


NOTE = "SET120 note"


@pytest.mark.parametrize(
    ("round_", "division", "text", "is_scaled", "codes"),
    [
        pytest.param("2.0", "closed", None, False, [NOTE], id="no rule before 2.1"),
        pytest.param("2.1", "closed", None, True, [], id="a rule from 2.1 on"),
        pytest.param("2.1", "open", None, False, [], id="Open"),
        pytest.param("2.0", "closed", "1.5", False, [NOTE, NOTE], id="a file before 2.1"),
        pytest.param("2.1", "closed", "1.5", True, [NOTE], id="a slower file"),
        pytest.param("2.1", "closed", "1", True, ["SET120 error"], id="a faster file"),
        pytest.param("2.1", "closed", "1.0043", True, [NOTE], id="a rounded file"),
        pytest.param("2.1", "closed", "0.9", True, ["SET118 error"], id="an improving file"),
        pytest.param("2.1", "closed", '"x"', True, ["SET119 error"], id="a file without a number"),
        pytest.param("2.1", "open", "1.5", False, [NOTE], id="a file of Open"),
    ],
)
def test_the_score_of_a_set_that_is_not_published(
    tree: Path, round_: str, division: str, text: str | None, is_scaled: bool, codes: list[str]
) -> None:
    write_system(tree / "systems", division=division)
    row, report = scored(filed(tree, text and f'{{"scaling_factor": {text}}}'), round_)
    assert row.rcp
    assert row.rcp.normalization > 1
    assert row.scaling_factor == (row.rcp.normalization if is_scaled else 1.0)
    assert row.score_minutes == (row.unscaled_minutes or 0) * row.scaling_factor
    assert of_scores(report) == codes


@pytest.mark.parametrize(
    ("factor", "text", "published", "minutes"),
    [
        pytest.param(1.0, None, "1", "19.565", id="without a factor"),
        pytest.param(1.25, "1.25", "1.25", "24.456", id="with that of the file"),
    ],
)
def test_a_published_set_has_the_published_score(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    factor: float,
    text: str | None,
    published: str,
    minutes: str,
) -> None:
    publish_score(tree, monkeypatch, MEAN * factor)
    row, report = scored(filed(tree, text and f'{{"scaling_factor": {text}}}'))
    assert (row.score_minutes, row.scaling_factor) == (MEAN * factor, factor)
    (message,) = [f.text for f in report.findings if f.code == OTHER_SCORE]
    assert message == (
        "with the reference points of the installed mlperf-logging, the scaling factor is 1.0044"
        f" (published: {published}) and the score is 19.651 minutes (published: {minutes})"
    )


@pytest.mark.parametrize(
    ("other", "factor"),
    [
        pytest.param({}, 1.25, id="all alike"),
        pytest.param({"division": "Closed"}, 1.25, id="another spelling of the division"),
        pytest.param({"division": "open"}, 1.0, id="another division"),
        pytest.param({"runs": 6}, 1.0, id="more runs"),
        pytest.param({"unscaled_minutes": MEAN + 1e-6}, 1.0, id="another mean"),
        pytest.param({"round": "1.1"}, 1.0, id="another round"),
        pytest.param({"path": "Acme/results/bow-pod16/resnet"}, 1.0, id="another submitter"),
        pytest.param({"score_minutes": None}, 1.0, id="no score in the record"),
    ],
)
def test_which_set_is_published(
    tree: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], factor: float
) -> None:
    publish_score(tree, monkeypatch, **{"minutes": MEAN * 1.25, **other})
    row, _ = scored(tree)
    assert row.scaling_factor == factor


def test_logs_that_are_named_one_by_one(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_score(tree, monkeypatch, MEAN * 1.25)
    logs = sorted(map(str, (tree / SET).glob("result_*.txt")))
    (row,) = check(logs, Options()).report.result_sets
    assert row.score_minutes == MEAN * 1.25


def publish_score(
    tree: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, **fields: Any
) -> None:
    """Replace the published results by the set of a submission, with this score."""
    facts = of_rounds([str(tree.parent)], date(2026, 11, 22))
    (row,) = facts.sets
    row = replace(row, **{"score_minutes": minutes, **fields})
    path = tree.parent.parent / "published.msgpack"
    path.write_bytes(encoded(replace(facts, sets=[row])))
    monkeypatch.setattr(results, "PATH", path)


# ---- the factor of the official tables ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ('{"scaling_factor": 1.5}', 1.5),
        ('{"scaling_factor": "x"}', None),
        ("{", None),
        ("[]", None),
        (None, 1.0),
    ],
)
def test_the_factor_that_the_summarizer_finds(
    tree: Path, text: str | None, factor: float | None
) -> None:
    """Without a factor in the file, the summarizer crashes."""
    checked = check([str(filed(tree, text))], Options(flags=frozenset({AS_FILED})))
    (result,) = checked.sets
    assert result.summarized.scaling_factor == factor
    assert result.row.official_minutes == (factor and MEAN * factor)
    assert result.row.score_minutes == MEAN
