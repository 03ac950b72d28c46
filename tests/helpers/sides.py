"""Sides of a comparison of rounds, without files."""

from typing import Any

from mlperf_pkg.commands.review.round import ReviewSide, SideEntry
from mlperf_pkg.findings import Verdict
from tests.helpers.published import published_set

H100 = "NVIDIA H100-SXM5-80GB"


def entry(
    round_: str, *logs: int, official: Verdict | None = None, minutes: float = 20.0, **fields: Any
) -> SideEntry:
    """A set of ten runs of BERT on eight H100; without a mean, it is compared by its logs."""
    own = {"round": round_, "accelerator_model": H100, "system": f"box{fields.get('accelerators')}"}
    row = published_set(**{**own, "score_minutes": minutes, "unscaled_minutes": None, **fields})
    return SideEntry(row, logs, official=official)


def preview(minutes: float = 20.0, round_: str = "4.0", **fields: Any) -> SideEntry:
    return entry(round_, minutes=minutes, status="Preview", **fields)


def side(*entries: SideEntry) -> ReviewSide:
    return ReviewSide("side", entries)
