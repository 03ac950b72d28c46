"""Pairs down a ranking: everybody is reviewed, nobody reviews a partner."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.commands.review.submitters import Group, May, groups, is_covered, reviews


def apart(*partners: str) -> May:
    """Partners as digits: apart("01", "24")."""
    conflicts = {frozenset(pair) for names in partners for pair in combinations(map(int, names), 2)}
    return lambda one, other: frozenset((one, other)) not in conflicts


@pytest.mark.parametrize(
    ("number", "partners", "expected"),
    [
        (0, (), []),
        (1, (), [[0]]),
        (2, (), [[0, 1]]),
        (3, (), [[0, 1, 2]]),
        (4, (), [[0, 1], [2, 3]]),
        (5, (), [[0, 1], [2, 3, 4]]),
        (4, ("01",), [[0, 2], [1, 3]]),
        (4, ("12",), [[0, 1], [2, 3]]),
        (4, ("23",), [[0, 2], [1, 3]]),
        (6, ("012",), [[0, 3], [1, 4], [2, 5]]),
        (6, ("345",), [[0, 4], [1, 5], [2, 3]]),
        (3, ("01",), [[0, 1, 2]]),
        (5, ("234",), [[0, 2], [1, 3, 4]]),
        (2, ("01",), [[0, 1]]),
        (5, ("01234",), [[0, 1], [2, 3, 4]]),
    ],
)
def test_groups(number: int, partners: tuple[str, ...], expected: list[Group]) -> None:
    assert sorted(groups(number, apart(*partners))) == expected


def test_reviews_of_three() -> None:
    assert sorted(reviews([0, 1, 2], apart())) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert sorted(reviews([0, 1, 2], apart("01"))) == [(0, 2), (1, 2), (2, 0), (2, 1)]


@st.composite
def ranks(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A number of submitters, and for each the joint submission that it is in."""
    number = draw(st.integers(0, 9))
    return number, draw(st.lists(st.integers(0, 4), min_size=number, max_size=number))


def ways(members: list[int]) -> Iterator[list[Group]]:
    """All ways to make pairs, and three of an odd number."""
    if len(members) <= 3 and len(members) != 2:
        yield [members] if members else []
        return
    first, *others = members
    for other in others:
        for way in ways([member for member in others if member != other]):
            yield [[first, other], *way]
    if len(members) % 2:
        for two in combinations(others, 2):
            for way in ways([member for member in others if member not in two]):
                yield [[first, *two], *way]


@given(ranks())
def test_everybody_who_can_be_reviewed_is(rank: tuple[int, list[int]]) -> None:
    number, joint = rank

    def may(one: int, other: int) -> bool:
        return joint[one] != joint[other]

    formed = groups(number, may)
    assert sorted(member for group in formed for member in group) == list(range(number))
    assert all(len(group) == 2 for group in formed[:-1])
    pairs = [pair for group in formed for pair in reviews(group, may)]
    assert all(may(*pair) for pair in pairs)
    assert {(two, one) for one, two in pairs} == {*pairs}
    if any(all(is_covered(group, may) for group in way) for way in ways(list(range(number)))):
        assert {one for one, _ in pairs} == set(range(number))


@given(st.integers(2, 60))
def test_without_partners_neighbours_are_paired(number: int) -> None:
    formed = groups(number, apart())
    assert [member for group in formed for member in group] == list(range(number))
    assert {len(group) for group in formed[:-1]} <= {2}
    assert len(formed[-1]) == 2 + number % 2
