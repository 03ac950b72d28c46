"""Pairs of reviewers, walking down a rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

Group = list[int]
"""Two or three who review each other, as indexes of a rank, the first of which is 0."""

May = Callable[[int, int], bool]
"""Return whether two of a rank may review each other."""

_THREE = 3


def groups(number: int, may: May) -> list[Group]:
    """Return pairs down a rank; of an odd number, the last three are one group.

    One who may not review the next is paired with the nearest below that it may review. Where that
    leaves a last group that cannot review each other, it swaps a member with the nearest group
    above for which that helps. A group whose members still cannot all review one of it is
    returned as it is: ``reviews`` then leaves somebody out.
    """
    rank, formed = list(range(number)), []
    while len(rank) > _THREE or len(rank) == 2:  # noqa: PLR2004 - a pair
        first = rank.pop(0)
        formed.append([first, rank.pop(_nearest(first, rank, may))])
    formed += [rank] if rank else []
    for index in reversed(range(len(formed))):
        if not is_covered(formed[index], may):
            _swap(formed, index, may)
    return formed


def reviews(group: Group, may: May) -> Iterator[tuple[int, int]]:
    """Yield reviewer and reviewed: all pairs of a group, in both directions, that may be."""
    for one, other in combinations(group, 2):
        if may(one, other):
            yield one, other
            yield other, one


def is_covered(group: Group, may: May) -> bool:
    """Return whether each of a group may review another."""
    return {one for one, _ in reviews(group, may)} == {*group}


def _nearest(first: int, others: Sequence[int], may: May) -> int:
    """Return the index of the first of ``others`` that ``first`` may review; 0 if there is none."""
    return next((index for index, other in enumerate(others) if may(first, other)), 0)


def _swap(formed: list[Group], index: int, may: May) -> None:
    """Swap a member of a group with the nearest other group for which both are then covered."""
    nearest_first = sorted(range(len(formed)), key=lambda other: (abs(other - index), -other))
    for other in nearest_first[1:]:
        one, two = formed[index], formed[other]
        for mine, theirs in product(one, reversed(two)):
            swapped = {mine: theirs, theirs: mine}
            pair = [sorted(swapped.get(member, member) for member in group) for group in (one, two)]
            if all(is_covered(group, may) for group in pair):
                formed[index], formed[other] = pair
                return
