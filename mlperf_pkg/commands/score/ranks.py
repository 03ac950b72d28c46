"""The wording of standings among published results."""

from __future__ import annotations

from mlperf_pkg.checker.values import Rank, Standing
from mlperf_pkg.results.wording import counted

_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


def standing_in_words(standing: Standing) -> str:
    """Return ``3rd of 41 on 8 accelerators in 5.1, 1st of 6 on NVIDIA H100``."""
    model = standing.of_model
    of_model = f", {_in_words(model)} on {standing.accelerator_model}" if model else ""
    return f"{standing_in_short(standing)}{of_model}"


def standing_in_short(standing: Standing) -> str:
    """Return ``3rd of 41 on 8 accelerators in 5.1``."""
    accelerators = counted(standing.accelerators, "accelerator")
    return f"{_in_words(standing.overall)} on {accelerators} in {standing.round}"


def _in_words(rank: Rank) -> str:
    is_teen = rank.rank % 100 in range(11, 14)
    suffix = "th" if is_teen else _SUFFIXES.get(rank.rank % 10, "th")
    return f"{rank.rank}{suffix} of {rank.of}"
