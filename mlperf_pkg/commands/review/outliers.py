"""Hyperparameters of Closed result sets that differ from those of all others in a round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from mlperf_pkg.commands.review.settings import (
    BATCH_SIZE,
    OF_SCALE,
    Entry,
    Reference,
    limits,
    number,
    plain,
)
from mlperf_pkg.infra.text import letters
from mlperf_pkg.results.wording import counted
from mlperf_pkg.submission.membership import submitters

OFTEN = 2  # other submitters that agree, or with which a value is compared
TWICE, TENFOLD = 2.0, 10.0
CUBED = 3  # a value is as far from the reference as the farthest other one, three times over

_APART = OF_SCALE | {BATCH_SIZE}
_IN_STEPS = ("_steps", "_step")  # reference points and logs have epochs in some of them
_OF_LENGTH = (*_IN_STEPS, "_epochs", "_samples")


class Outlier(Struct, frozen=True):
    """A value of a hyperparameter unlike that of others, and the reason in words."""

    entry: Entry
    key: str
    why: str


def outliers(
    entries: Sequence[Entry], reference: Reference, published: Mapping[tuple[str, str], str]
) -> list[Outlier]:
    """Return the outliers among the Closed sets of a benchmark, one for each value.

    Values that the reference has at the batch size are not outliers, and neither are values that
    follow from others or from the scale. ``published`` has, by path and key, the reason why a
    value is unlike all published ones.
    """
    keys = sorted({key for entry in entries for key in entry.counts} - _APART - reference.derived)
    return [
        Outlier(entry, key, "; ".join(why))
        for entry in entries
        for key in keys
        if entry.value(key) and not reference.has(entry.value(key), key, entry.size)
        if (
            why := [
                *_reasons(entry, key, entries, reference),
                *filter(None, [published.get((entry.path, key))]),
            ]
        )
    ]


def _reasons(
    entry: Entry, key: str, entries: Sequence[Entry], reference: Reference
) -> Iterator[str]:
    own = letters(entry.submitter)
    peers = [peer for peer in entries if letters(peer.submitter) != own and peer.value(key)]
    yield from _alone(entry, key, [peer for peer in peers if peer.size == entry.size])
    if reference.values(key, entry.size):
        if not key.endswith(_IN_STEPS):
            yield from _far(entry, key, peers, reference)
    elif not key.endswith(_OF_LENGTH):
        yield from _apart(entry, key, peers)


def _alone(entry: Entry, key: str, peers: Sequence[Entry]) -> Iterator[str]:
    """Yield a reason if all others at this batch size agree on another value."""
    values = {peer.value(key).lower() for peer in peers}
    names = submitters(peer.submitter for peer in peers)
    if len(names) >= OFTEN and len(values) == 1 and entry.value(key).lower() not in values:
        number_ = "both" if len(names) == OFTEN else f"all {len(names)}"
        value = plain(peers[0].value(key))
        yield f"{number_} other submitters at this batch size have {value}"


def _far(entry: Entry, key: str, peers: Sequence[Entry], reference: Reference) -> Iterator[str]:
    """Yield a reason if a value is much farther from the reference than those of all others."""
    factor = _factor(entry, key, reference)
    factors = [_factor(peer, key, reference) for peer in peers]
    most = max((value for value in factors if value is not None), default=None)
    if factor is None:
        return
    if most is None:
        if factor >= TENFOLD:
            yield f"differs by a factor of {factor:.3g} from the reference"
    elif factor >= max(TWICE, most**CUBED):
        rest = "which all others have" if most == 1 else f"all others by at most {most:.3g}"
        yield f"differs by a factor of {factor:.3g} from the reference, {rest}"


def _factor(entry: Entry, key: str, reference: Reference) -> float | None:
    """Return the factor by which a value differs from the reference, at least 1; None: unknown."""
    value, range_ = number(entry.value(key)), limits(reference.values(key, entry.size))
    if value is None or range_ is None or value <= 0 or range_[0] <= 0:
        return None
    return max(range_[0] / value, value / range_[1], 1.0)


def _apart(entry: Entry, key: str, peers: Sequence[Entry]) -> Iterator[str]:
    """Yield a reason if a value without a reference differs from all others by a factor of ten."""
    value, range_ = number(entry.value(key)), limits([peer.value(key) for peer in peers])
    names = submitters(peer.submitter for peer in peers)
    if value is None or range_ is None or value <= 0 or range_[0] <= 0 or len(names) < OFTEN:
        return
    if value >= TENFOLD * range_[1] or value * TENFOLD <= range_[0]:
        words = " to ".join(dict.fromkeys(f"{limit:.6g}" for limit in range_))
        yield f"{counted(len(names), 'other submitter')} have {words}"
