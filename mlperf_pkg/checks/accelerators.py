"""Names of accelerators, which the descriptions of two rounds spell in different ways."""

from __future__ import annotations

import re
from enum import StrEnum

from mlperf_pkg.checks.system_names import plain_name
from mlperf_pkg.published.model import PublishedSet

_REMARKS = re.compile(r"\((?:r|tm|c|[\d ]+w)\)|[®™]")
_WORD = re.compile(r"[a-z0-9]+")
_SPLIT = (  # what is written apart, and the same in one word
    (re.compile(r"\b(\d+) ?gb\b"), r"\1gb"),
    (re.compile(r"\b(gaudi|ascend|hl)[ -]+(\d)"), r"\1\2"),
    (re.compile(r"\bsxm\d\b"), "sxm"),
)
_MAKERS = {"nvidia", "amd", "intel", "google", "habana", "graphcore", "huawei"}
_FAMILIES = {"tesla", "geforce", "instinct", "radeon", "blackwell", "hopper", "ampere", "ultra"}
_GENERAL = {"gpu", "ai", "tensor", "core", "accelerator", "module", "cts", "dlc"}
_MEMORIES = {"hbm2", "hbm2e", "hbm3", "hbm3e"}
_NOT_A_MODEL = _MAKERS | _FAMILIES | _GENERAL | _MEMORIES
_NO_ACCELERATOR = {"", "na", "none", "no", "cpu"}


class Likeness(StrEnum):
    """How sure it is that two systems have the same accelerator, the surest first.

    SPELLING: the names differ in spelling alone. NAME: one name has more words, such as the memory.
    PROCESSOR: neither system has an accelerator, and the processors have different names.
    """

    SAME = "same"
    SPELLING = "spelled differently"
    NAME = "by name only"
    PROCESSOR = "processors differ in name"

    @property
    def is_sure(self) -> bool:
        """Whether the names are the same but for spelling."""
        return self in (Likeness.SAME, Likeness.SPELLING)


def words_of(name: str) -> frozenset[str]:
    """Return the words of a name that distinguish models; none if there is no accelerator.

    Manufacturers, families, kinds of memory and power limits are left out:
    ``NVIDIA H100-SXM5-80GB`` and ``H100 80 GB (SXM)`` are the same.
    """
    text = _REMARKS.sub(" ", name.lower().replace("_", " "))
    if plain_name(text) in _NO_ACCELERATOR:
        return frozenset()
    for pattern, replacement in _SPLIT:
        text = pattern.sub(replacement, text)
    words = frozenset(_WORD.findall(text))
    return words - _NOT_A_MODEL or words


def likeness(one: PublishedSet, other: PublishedSet) -> Likeness | None:
    """Return how alike the accelerators of two sets are named; None if they are different."""
    first, second = words_of(one.accelerator_model), words_of(other.accelerator_model)
    if not first and not second:
        is_same = plain_name(one.host_processor) == plain_name(other.host_processor)
        return Likeness.SAME if is_same else Likeness.PROCESSOR
    if one.accelerator_model == other.accelerator_model:
        return Likeness.SAME
    if first == second:
        return Likeness.SPELLING
    return Likeness.NAME if first and second and (first < second or second < first) else None
