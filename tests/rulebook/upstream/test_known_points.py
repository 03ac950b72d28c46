"""Known mistakes in reference points: the list agrees with the data, and any change is reported."""

import shutil
from pathlib import Path

import pytest

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import rules_read_from
from mlperf_pkg.rulebook.check import check_rulebook
from mlperf_pkg.rulebook.upstream.points import LEDGER, PointKind, known_points, review
from tests.helpers.upstream import RUNS, change, copied, point, points_in

GPT3 = "rcp_checker/training_4.1.0/rcps_gpt3.json"
TYPO = "13790871552"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copied(tmp_path)


# ---- today --------------------------------------------------------------------------------


def test_the_installed_points_have_the_known_mistakes_with_reasons() -> None:
    assert not review().fails
    assert [entry for entry in known_points() if len(entry.reason) < 20] == []


# ---- another mlperf-logging ---------------------------------------------------------------


def test_new_mistakes_and_those_that_are_gone_are_reported(copy: Path) -> None:
    for old, new in (("1157627904", "11576279040"), ('"gpt3"', '"gpt"'), (TYPO, "1207959552")):
        change(copy, GPT3, old, new)
    (copy / "rcp_checker/training_5.1.0/rcps_bert.json").unlink()
    result = review(copy)
    gone = {(entry.kind, entry.benchmark) for entry in result.stale}
    assert {item.kind for item in result.new} == {PointKind.OUTLIER, PointKind.MISNAMED}
    assert (result.fails, gone) == (True, {("outlier", "gpt3"), ("unused", "bert")})
    assert len(result.known) + len(result.stale) == len(known_points()) == 83
    assert str(result.stale[0].problem("gone")).startswith(f"rules/{LEDGER}:")


def test_what_is_known_of_a_round_without_points_is_not_stale(copy: Path) -> None:
    shutil.rmtree(copy / "rcp_checker/training_4.1.0")
    assert not review(copy).fails


# ---- the list -----------------------------------------------------------------------------

ENTRY = "outlier:\n- reason: A typo.\n  points:\n    {place}:\n      {point}: {sets}\n"


def written(folder: Path, text: str) -> Path:
    (folder / LEDGER).write_text(text, "utf-8")
    return folder


def entry(place: str = "training/4.1/gpt3", point: str = "x", sets: str = "{}") -> str:
    return ENTRY.format(place=place, point=point, sets=sets)


WRONG = {
    "a kind": ("outliers: []\n", 1, "unknown field 'outliers' of the file; did you mean 'outlier'"),
    "no reason": ("outlier:\n- points: {training/4.1/gpt3: {x: {}}}\n", 2, "has no reason"),
    "no points": ("outlier:\n- reason: A typo.\n", 2, "has no points"),
    "a place": (entry(place="4.1/gpt3"), 4, "expected a benchmark of a round"),
    "a name of sets": (entry(sets="{near: [A/x]}"), 5, "unknown field 'near'"),
    "a set twice": (entry(sets="{at: [A/x, A/x]}"), 5, "no entry twice"),
    "a point twice": (entry() + "      x: {}\n", 6, "'x' is given twice, first on line 5"),
    "not YAML": ("outlier: ]", 1, "not valid YAML"),
    "in two groups": (
        entry() + entry().replace("outlier:\n", ""),
        9,
        "outlier of x is listed twice, first at",
    ),
    "in the rulebook already": (
        entry(point="gpt3_ref_3072"),
        None,
        "outlier of gpt3_ref_3072 is listed twice, first at",
    ),
}


@pytest.mark.parametrize(("text", "line", "message"), WRONG.values(), ids=list(WRONG))
def test_a_wrong_list_is_reported_with_its_line(
    text: str, line: int | None, message: str, tmp_path: Path
) -> None:
    folder = written(tmp_path, text)
    with rules_read_from(folder), pytest.raises(RulebookError) as caught:
        known_points()
    first = str(caught.value).splitlines()[0]
    if line:
        assert first.startswith(f"{folder}/{LEDGER}:{line}: ")
    assert message in first


def test_rules_of_the_user_add_to_the_list(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    data = points_in(tmp_path / "data", {"x": point([*RUNS, 900])})
    with rules_read_from(written(rules, entry(sets="{at: [ACME/big]}"))):
        result = review(data)
    (known_point,) = result.known
    assert (result.new, known_point.at) == ((), ("ACME/big",))
    assert known_point.sets == (("training", "4.1", "gpt3", "ACME/big"),)
    assert review(data).new


def test_the_list_is_a_file_that_a_folder_of_rules_may_have(tmp_path: Path) -> None:
    round_ = tmp_path / "training/4.1/round.yaml"
    round_.parent.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[3] / "rules/training/4.1/round.yaml", round_)
    check_rulebook(written(tmp_path, entry()))
