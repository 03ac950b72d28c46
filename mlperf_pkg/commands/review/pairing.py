"""Pairs of reviewers down a ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

Group = list[int]
"""Two or three submitters who review each other, as indexes in a ranking."""

May = Callable[[int, int], bool]
"""Return whether two submitters may review each other."""

_THREE = 3


def groups(number: int, may: May) -> list[Group]:
    """Return pairs down a ranking; if the number is odd, the last three are one group.

    A submitter that may not review the next one is paired with the nearest one below that it may
    review. If the members of the last group cannot review each other, the group swaps a member
    with the nearest group above such that both can. If no swap helps, the group stays, and
    ``reviews`` leaves a member out.
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
    """Yield the allowed pairs of a group, reviewer first, in both directions."""
    for first, second in combinations(group, 2):
        if may(first, second):
            yield first, second
            yield second, first


def is_covered(group: Group, may: May) -> bool:
    """Return whether each member of a group may review another member."""
    return {reviewer for reviewer, _ in reviews(group, may)} == {*group}


def _nearest(first: int, others: Sequence[int], may: May) -> int:
    """Return the index of the first of ``others`` that ``first`` may review, by default 0."""
    return next((index for index, second in enumerate(others) if may(first, second)), 0)


def _swap(formed: list[Group], index: int, may: May) -> None:
    """Swap a member of a group with one of the nearest other group, such that both are covered."""
    nearest_first = sorted(range(len(formed)), key=lambda near: (abs(near - index), -near))
    for near in nearest_first[1:]:
        first, second = formed[index], formed[near]
        for mine, theirs in product(first, reversed(second)):
            swapped = {mine: theirs, theirs: mine}
            pair = [sorted(swapped.get(item, item) for item in group) for group in (first, second)]
            if all(is_covered(group, may) for group in pair):
                formed[index], formed[near] = pair
                return
