"""Histories of a few published results."""

from typing import Any

from mlperf_pkg.commands.page.history import ResultHistory, history
from mlperf_pkg.published.model import PublishedSet
from tests.helpers.published import published_set


def entry(round_: str, minutes: float, benchmark: str = "resnet", **fields: Any) -> PublishedSet:
    number = fields.get("accelerators", 8)
    path = f"ACME/results/{minutes}x{number}/{benchmark}"
    values = {
        "round": round_,
        "benchmark": benchmark,
        "system": f"{minutes}x{number}",
        "path": path,
    }
    scores = {"score_minutes": minutes, "unscaled_minutes": minutes}
    return published_set(**{**values, **scores, **fields})


def history_of(*sets: PublishedSet, own: tuple[PublishedSet, ...] = ()) -> ResultHistory:
    return history(sets, "from here", own)
