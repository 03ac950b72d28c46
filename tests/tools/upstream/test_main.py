"""``python -m tests.tools.upstream``: its exit status and what it prints."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.rulesets import only_rounds_with_ruleset
from tests.helpers.upstream import change, copied
from tests.tools.upstream import differences
from tests.tools.upstream.__main__ import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True, scope="module")
def _rounds_with_ruleset() -> Iterator[None]:
    with only_rounds_with_ruleset():
        yield


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An mlperf_logging that asks something else of one key."""
    folder = copied(tmp_path_factory.mktemp("other"))
    change(folder, "compliance_checker/training_6.0.0/closed_llama31_8b.yaml", "0.95", "0.96")
    return folder


def test_the_installed_one_agrees(capsys: Captured) -> None:
    assert main([]) == 0
    first, _, mistakes = capsys.readouterr().out.partition("\n")
    assert first.startswith("The rulebook's ")
    assert "agree with mlperf-logging " in first
    assert len(first) <= 80
    count = "Its reference points have 83 known mistakes (known_points.yaml):"
    titles, *rows = mistakes.removeprefix(f"{count}\n").splitlines()
    assert titles == "  KIND        POINTS  PUBLISHED SETS"
    assert len(rows) == 5
    assert rows[2] == "  equal_runs  53      443"


def test_each_difference_is_named(other: Path, capsys: Captured) -> None:
    assert main(["--against", str(other)]) == 1
    assert capsys.readouterr().out == (
        "training 6.0, rule: opt_adamw_beta_2\n"
        "  compliance_checker/training_6.0.0/closed_llama31_8b.yaml\n"
        "  in closed llama31_8b\n"
        "  - rulebook        value == 0.95\n"
        "  + mlperf-logging  value == 0.96\n"
        "\n"
        f"1 difference between the rulebook and {other}\n"
    )


def test_what_people_accept_is_no_difference_any_more(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "accepted.json"
    shutil.copy(differences.LEDGER, ledger)
    monkeypatch.setattr(differences, "LEDGER", ledger)
    against = ["--against", str(other)]
    assert main([*against, "--accept", "Both are too small to matter."]) == 0
    assert main(against) == 0
    assert "value == 0.96" not in ledger.read_text("utf-8")


def test_new_mistakes_and_stale_ones_fail(tmp_path: Path, capsys: Captured) -> None:
    """One new mistake of reference points, and one that is known is gone."""
    folder = copied(tmp_path / "mlperf_logging")
    for old, new in (("1157627904", "11576279040"), ("13790871552", "1207959552")):
        change(folder, "rcp_checker/training_4.1.0/rcps_gpt3.json", old, new)
    assert main(["--against", str(folder)]) == 1
    text = capsys.readouterr().out
    assert "training 4.1, outlier: gpt3_ref_" in text
    assert "points.yaml:15: gpt3_ref_3072 of training 4.1 gpt3 no longer" in text
    assert text.endswith("1 mistake in its reference points is new, 1 is gone\n")


def test_a_folder_without_rules(tmp_path: Path, capsys: Captured) -> None:
    assert main(["--against", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        f"{tmp_path}: not a copy of mlperf_logging: it has no folder compliance_checker/\n"
    )
