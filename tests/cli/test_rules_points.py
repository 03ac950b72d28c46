"""``rules verified``: what it says of the mistakes in reference points."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import program
from tests.helpers.rulesets import verify_rounds_with_ruleset
from tests.helpers.upstream import change, copied

GPT3 = "rcp_checker/training_4.1.0/rcps_gpt3.json"


@pytest.fixture(autouse=True, scope="module")
def _rounds_with_ruleset() -> Iterator[None]:
    with verify_rounds_with_ruleset():
        yield


@pytest.fixture
def mistaken(tmp_path: Path) -> Path:
    """An mlperf_logging with one new mistake, and without one that is known."""
    folder = copied(tmp_path / "mlperf_logging")
    change(folder, GPT3, "1157627904", "11576279040")
    change(folder, GPT3, "13790871552", "1207959552")
    return folder


def verified(*arguments: str) -> tuple[int, str]:
    result = program.call("rules", "verify", *arguments)
    return result.exit_code, result.stdout or result.stderr


def test_known_mistakes_are_counted() -> None:
    status, text = verified()
    assert status == 0
    assert text.partition("\n")[2] == (
        "Its reference points have 83 known mistakes (rules/reference_points.yaml):\n"
        "  KIND        POINTS  PUBLISHED SETS\n"
        "  outlier     1       3\n"
        "  few_runs    13      37\n"
        "  equal_runs  53      443\n"
        "  misnamed    3       5\n"
        "  unused      13      0\n"
    )


def test_new_mistakes_and_stale_ones_fail(mistaken: Path) -> None:
    status, text = verified("--against", str(mistaken))
    assert status == 1
    assert text.splitlines()[1:] == [
        "training 4.1, outlier: gpt3_ref_1536 (batch size 1536)",
        "  rcp_checker/training_4.1.0/rcps_gpt3.json",
        "  - expected        all within 3 times the median",
        "  + mlperf-logging  11,576,279,040, 9.4 times the median",
        "",
        "rules/reference_points.yaml:15: gpt3_ref_3072 of training 4.1 gpt3 no longer has the"
        " mistake outlier; remove it",
        "",
        "1 mistake in its reference points is new, 1 is gone",
    ]


def test_json_has_new_stale_and_known_mistakes(mistaken: Path) -> None:
    status, text = verified("--against", str(mistaken), "--format", "json")
    points = json.loads(text)["reference_points"]
    assert status == 1
    assert [(item["kind"], item["point"], item["batch_size"]) for item in points["new"]] == [
        ("outlier", "gpt3_ref_1536", 1536)
    ]
    (stale,) = points["stale"]
    assert (stale["point"], stale["file"]) == ("gpt3_ref_3072", "rules/reference_points.yaml")
    assert stale["at"] == ["Oracle/1536xBM.GPU.H100.8", "Oracle/3072xBM.GPU.H100.8"]
    assert len(points["known"]) == 82


def test_a_difference_of_the_rules_leaves_known_mistakes_out(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    change(folder, "compliance_checker/training_6.0.0/closed_llama31_8b.yaml", "0.95", "0.96")
    status, text = verified("--against", str(folder))
    assert (status, "reference points" in text) == (1, False)


def test_a_file_that_is_not_json_is_named(mistaken: Path) -> None:
    (mistaken / GPT3).write_text("{", "utf-8")
    status, text = verified("--against", str(mistaken))
    assert status == 2
    assert text.startswith(f"mlperf-pkg: error: {mistaken / GPT3}: not reference points: ")
