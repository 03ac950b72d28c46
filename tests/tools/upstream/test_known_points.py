"""Known mistakes in reference points: the list agrees with the data, and any change is reported."""

import shutil
from pathlib import Path

import pytest

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import official_folder
from tests.helpers.upstream import RUNS, change, copied, point, points_in
from tests.tools.upstream.known_points import LEDGER, known_points, review
from tests.tools.upstream.points import PointKind

GPT3 = "rcp_checker/training_4.1.0/rcps_gpt3.json"
TYPO = "13790871552"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copied(tmp_path)


# ---- today --------------------------------------------------------------------------------


def test_the_installed_points_have_the_known_mistakes_with_reasons() -> None:
    assert not review(official_folder()).fails
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
    assert str(result.stale[0].problem("gone")).startswith(f"{LEDGER.name}:")


def test_what_is_known_of_a_round_without_points_is_not_stale(copy: Path) -> None:
    shutil.rmtree(copy / "rcp_checker/training_4.1.0")
    assert not review(copy).fails


# ---- the list -----------------------------------------------------------------------------

ENTRY = "outlier:\n- reason: A typo.\n  points:\n    {place}:\n      {point}: {sets}\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "known.yaml"
    path.write_text(text, "utf-8")
    return path


def entry(place: str = "training/4.1/gpt3", point: str = "x", sets: str = "{}") -> str:
    return ENTRY.format(place=place, point=point, sets=sets)


WRONG = {
    "a kind": ("outliers: []\n", "known.yaml: Invalid enum value 'outliers'"),
    "no reason": (
        "outlier:\n- points: {training/4.1/gpt3: {x: {}}}\n",
        "known.yaml: Object missing required field `reason`",
    ),
    "no points": (
        "outlier:\n- reason: A typo.\n",
        "known.yaml: Object missing required field `points`",
    ),
    "a place": (entry(place="4.1/gpt3"), "known.yaml: Expected `str` matching regex"),
    "a name of sets": (
        entry(sets="{near: [A/x]}"),
        "known.yaml: Object contains unknown field `near`",
    ),
    "a point twice": (
        entry() + "      x: {}\n",
        "known.yaml:6: 'x' is given twice, first on line 5",
    ),
    "not YAML": ("outlier: ]", "known.yaml:1: not valid YAML"),
    "in two groups": (
        entry() + entry().replace("outlier:\n", ""),
        "known.yaml:9: outlier of x is listed twice, first on line 5",
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=list(WRONG))
def test_a_wrong_list_is_reported(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RulebookError) as caught:
        known_points(written(tmp_path, text))
    assert str(caught.value).startswith(message)


def test_what_a_list_has_is_known(tmp_path: Path) -> None:
    data = points_in(tmp_path / "data", {"x": point([*RUNS, 900])})
    ledger = written(tmp_path, entry(sets="{at: [ACME/big]}"))
    assert review(data).new
    result = review(data, ledger)
    (known_point,) = result.known
    assert result.new == ()
    assert known_point.sets == (("training", "4.1", "gpt3", "ACME/big"),)
