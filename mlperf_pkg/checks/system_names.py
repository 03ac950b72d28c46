"""Names of processors and accelerators as published descriptions spell them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache

from mlperf_pkg.infra.resources import data_folder

FIELDS = ("host_processor_model_name", "accelerator_model_name")

_LEFT_OUT = r"(?:\((?:r|tm)\)|[^\w+]|_)+"  # trademarks, spaces and punctuation


def published_spelling(field: str, name: str) -> str | None:
    """Return the published spelling of a name; None for one that is unlike all that are known.

    Spellings of one name differ in nothing but case, spaces, punctuation and trademarks.
    """
    return name if name in _names(field) else _spellings(field).get(plain_name(name))


@cache
def _names(field: str) -> Sequence[str]:
    file = data_folder("rules") / "systems" / "names.json"
    names: list[str] = json.loads(file.read_text(encoding="utf-8"))[field]
    return names


@cache
def _spellings(field: str) -> Mapping[str, str]:
    return {plain_name(name): name for name in _names(field)}


def plain_name(name: str) -> str:
    """Return the letters, digits and pluses of a name, which distinguish models; no trademarks."""
    return re.sub(_LEFT_OUT, "", name.lower())
