"""What changed between two sides: pairs, counts, and nothing where nothing did."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.commands import diff
from mlperf_pkg.commands.diff.changes import (
    ComparedSide,
    ComparedSystem,
    FieldChange,
    FindingChange,
    compare,
)
from mlperf_pkg.commands.diff.runs import ComparedLog
from mlperf_pkg.findings import Severity
from tests.helpers.compared_sides import a_set, a_side
from tests.helpers.reports import FAIL, finding, rcp


def logs(*settings: Any, key: str = "lr") -> tuple[ComparedLog, ...]:
    """Runs whose ``lr`` is this; None: not logged."""
    return tuple(
        ComparedLog(f"result_{i}.txt", f"{i}{value}", {} if value is None else {key: value})
        for i, value in enumerate(settings)
    )


BERT = {"path": "results/dgx/bert", "system": "dgx", "benchmark": "bert", "division": "closed"}


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ([{}], [{}], [(0, 0)]),
        ([{}], [], []),
        # Another path, system or division, but the only set of the benchmark.
        ([{}], [{"path": "results/h100/bert", "system": "h100"}], [(0, 0)]),
        ([{}], [{"division": "open"}], [(0, 0)]),
        ([{}], [{"path": "x", "system": "h100", "division": "open"}], [(0, 0)]),
        ([{}], [{"benchmark": "resnet", "path": "results/dgx/resnet"}], []),
        # Two of the benchmark on one side: only what keeps its path is paired.
        ([{}, {"path": "b", "system": "b"}], [{"path": "c", "system": "c"}], []),
        ([{}, {"path": "b", "system": "b"}], [{"path": "b", "system": "b"}], [(1, 0)]),
        # Loose sets in one folder are paired by division.
        (
            [{"path": "."}, {"path": ".", "division": "open"}],
            [{"path": ".", "division": "open"}, {"path": "."}],
            [(0, 1), (1, 0)],
        ),
        ([{"path": "."}, {"path": ".", "division": "open"}], [{"path": "."}], [(0, 0)]),
    ],
)
def test_pairs(old: Any, new: Any, pairs: list[tuple[int, int]]) -> None:
    before = [a_set(**{**BERT, **fields}) for fields in old]
    after = [a_set(**{**BERT, **fields}) for fields in new]
    comparison = compare(a_side(*before), a_side(*after))
    indexes = [(before.index(one.old), after.index(one.new)) for one in comparison.sets]
    assert sorted(indexes) == pairs
    assert len(comparison.removed_sets) == len(old) - len(pairs)
    assert len(comparison.added_sets) == len(new) - len(pairs)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        (logs("1", "1"), logs("1", "1"), ()),
        (logs("1", "1"), logs("1"), ()),
        (logs(None), logs(None, None), ()),
        (logs("1", "1"), logs("1", "2"), ((("1", 2),), (("1", 1), ("2", 1)))),
        (logs("1", "1", "2"), logs("1", "2", "2"), ((("1", 2), ("2", 1)), (("2", 2), ("1", 1)))),
        (logs("1", "2", "2"), logs("1", "2"), ()),
        (logs("1"), logs(None), ((("1", 1),), ((None, 1),))),
    ],
)
def test_settings(old: tuple[ComparedLog, ...], new: tuple[ComparedLog, ...], changes: Any) -> None:
    """``changes`` are the values with their numbers of runs before and after, empty for none."""
    [only] = compare(a_side(a_set(logs=old)), a_side(a_set(logs=new))).sets
    sides = ([diff.changes.SettingValue(*value) for value in side] for side in changes)
    assert only.settings == ((diff.changes.SettingChange("lr", *sides),) if changes else ())


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        ({"score_minutes": 19.0}, [FieldChange("score_minutes", 20.5, 19.0)]),
        ({"score_minutes": None}, [FieldChange("score_minutes", 20.5, None)]),
        ({"verdict": FAIL}, [FieldChange("official", "pass", "fail")]),
        ({"round": "2.1"}, [FieldChange("round", "2.0", "2.1")]),
        ({"rcp": None}, [FieldChange("rcp", "pass", "not_checked")]),
        ({"submitter": "Other", "score_note": "x"}, []),
    ],
)
def test_results(row: Any, changes: list[FieldChange]) -> None:
    before: dict[str, Any] = {
        "rcp": rcp(mean=None, margin_percent=None),
        "scaling_factor": float("nan"),
    }
    [only] = compare(a_side(a_set(**before)), a_side(a_set(**{**before, **row}))).sets
    assert list(only.results) == changes


def test_findings_by_code() -> None:
    two = [finding(code="A", message="one"), finding(code="A", message="two")]
    old = a_side(a_set(findings=[*two, finding(code="B")]), findings=(finding(code="T"),))
    new = a_side(a_set(findings=[two[1], finding(code="C")]))
    comparison = compare(old, new)
    assert comparison.sets[0].findings == (
        FindingChange("A", Severity.ERROR, "two", 2, 1),
        FindingChange("B", Severity.ERROR, "wrong", 1, 0),
        FindingChange("C", Severity.ERROR, "wrong", 0, 1),
    )
    assert comparison.findings == (FindingChange("T", Severity.ERROR, "wrong", 1, 0),)


def test_systems() -> None:
    old = ComparedSystem("systems/a.json", "a", "1", {"x": 1, "y": "b", "gone": [1]})
    new = ComparedSystem("systems/a.json", "a", "2", {"x": 1.0, "y": "c", "more": None})
    [only] = compare(a_side(systems=(old,)), a_side(systems=(new,))).systems
    assert only.fields == (FieldChange("y", "b", "c"), FieldChange("gone", [1], None))


def test_runs_are_what_their_bytes_are() -> None:
    old = [ComparedLog(name, digest, {}) for name, digest in zip("abcd", "1123", strict=True)]
    new = [ComparedLog(name, digest, {}) for name, digest in zip("abce", "4135", strict=True)]
    [only] = compare(a_side(a_set(logs=old)), a_side(a_set(logs=new))).sets
    # 1 and 3 are on both sides; the second 1 is gone, 2 is gone, 4 and 5 are new.
    assert only.runs == diff.changes.NameChanges(
        unchanged=2, changed=(), removed=("b", "c"), added=("a", "e")
    )


NAMES = st.sampled_from("abc")
SETS = st.builds(
    lambda path, system, benchmark, division, settings: a_set(
        path, logs(*settings), system=system, benchmark=benchmark, division=division
    ),
    path=NAMES,
    system=NAMES,
    benchmark=NAMES,
    division=st.sampled_from(["closed", "open"]),
    settings=st.lists(st.none() | st.sampled_from("123"), max_size=4),
)
SIDES = st.builds(
    lambda sets, files: a_side(*sets, files=files),
    st.lists(SETS, max_size=4, unique_by=lambda s: (s.path, s.row.system, s.row.benchmark)),
    st.dictionaries(NAMES, NAMES),
)


@given(SIDES)
def test_nothing_changed_from_itself(side: ComparedSide) -> None:
    assert not compare(side, side).any


@given(SIDES, SIDES)
def test_the_reverse_comparison_mirrors_the_changes(old: ComparedSide, new: ComparedSide) -> None:
    there, back = compare(old, new), compare(new, old)
    assert there.any == back.any
    assert len(there.removed_sets) == len(back.added_sets)
    assert there.files.removed == back.files.added
    pairs = {(id(change.old), id(change.new)) for change in there.sets}
    assert pairs == {(id(change.new), id(change.old)) for change in back.sets}
    assert len(there.sets) + len(there.removed_sets) == len(old.sets)
    assert len(there.sets) + len(there.added_sets) == len(new.sets)
