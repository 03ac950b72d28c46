"""Arguments that name the same logs: these are judged once."""

from __future__ import annotations

from collections.abc import Sequence

from mlperf_pkg.infra.paths import with_slashes
from mlperf_pkg.submission.model import Input, Place, Unread, Why


def each_once(arguments: Sequence[str], inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Return the inputs, each without contents if another one has all of them.

    Of equal inputs the first stays. Links are followed to tell what is the same.
    """
    if len(inputs) == 1:
        return tuple(inputs)
    identities = [_identities(contents) for contents in inputs]
    return tuple(
        contents if whole is None else _read_elsewhere(arguments[index], arguments[whole], contents)
        for index, contents in enumerate(inputs)
        for whole in [_whole(index, identities)]
    )


def _whole(index: int, identities: Sequence[frozenset[str]]) -> int | None:
    """Return the index of another input that has all of this one; None if there is none."""
    part = identities[index]
    return next(
        (
            other
            for other, whole in enumerate(identities)
            if part < whole or (part == whole and other < index)
        ),
        None,
    )


def _identities(contents: Input) -> frozenset[str]:
    """Return the logs and the submissions of an input as paths without links."""
    trees = (submission.place for submission in contents.submissions)
    return frozenset(str(place.path.resolve()) for place in (*contents.every_log, *trees))


def _read_elsewhere(argument: str, other: str, contents: Input) -> Input:
    """Return an input without contents, that says where they are read."""
    places = (*contents.every_log, *(submission.place for submission in contents.submissions))
    reason = f"{other} is the same" if argument == other else f"{other} has the same logs"
    place = Place(places[0].location, with_slashes(argument).rstrip("/"))
    return Input(unread=(Unread(place, reason, Why.TWICE),))
