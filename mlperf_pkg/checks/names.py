"""Names of processors and accelerators, which are spelt in different ways."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from itertools import chain
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.published.model import PublishedSet

FIELDS = ("host_processor_model_name", "accelerator_model_name")
"""The fields of a description of which ``published_spelling`` knows names."""

_CASED = {"Lu", "Ll", "Lt"}  # categories of letters, of alphabets with capitals
_MODEL_WORD = r"\b(?=[a-z]*\d)(?!\d{1,3}\b)[a-z0-9]+"
_LEFT_OUT = r"(?:\((?:r|tm)\)|[^\w+]|_)+"  # trademarks, spaces and punctuation


def published_spelling(field: str, name: str) -> str | None:
    """Return the published spelling of a name; None for one that is unlike all that are known.

    Spellings of one name differ in nothing but case, spaces, punctuation and trademarks.
    """
    return name if name in _names(field) else _spellings(field).get(plain_name(name))


def is_of_model(word: str, names: Iterable[str]) -> bool:
    """Return whether a word is in names of models, given or published: ``7773x``, ``a100``.

    Numbers of fewer than four digits alone, as in ``64-Core``, are of no model.
    """
    return word in _published_words() or word in _model_words(names)


@cache
def _published_words() -> set[str]:
    return _model_words(chain.from_iterable(map(_names, FIELDS)))


def _model_words(names: Iterable[str]) -> set[str]:
    return set(re.findall(_MODEL_WORD, "\n".join(names).lower()))


@cache
def system_data(name: str) -> dict[str, Any]:
    """Return a file of ``rules/systems/``, by its name without ``.json``."""
    file = data_folder("rules") / "systems" / f"{name}.json"
    contents: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return contents


def _names(field: str) -> Sequence[str]:
    names: list[str] = system_data("names")[field]
    return names


@cache
def _spellings(field: str) -> Mapping[str, str]:
    return {plain_name(name): name for name in _names(field)}


def plain_name(name: str) -> str:
    """Return the letters, digits and pluses of a name, which distinguish models; no trademarks."""
    return re.sub(_LEFT_OUT, "", name.lower())


def of_two_alphabets(subject: str, name: str) -> str:
    """Return the message that a name with Latin letters has one of another alphabet, else nothing.

    Such a letter looks like a Latin one, and makes another name. Writing without capitals, such as
    Chinese, is never meant. The ``subject`` says whose name it is.
    """
    if name.isascii():
        return ""
    cased = [letter for letter in name if unicodedata.category(letter) in _CASED]
    foreign = [letter for letter in cased if "LATIN" not in unicodedata.name(letter, "")]
    if not foreign or len(foreign) == len(cased):
        return ""
    letter = f"{unicodedata.name(foreign[0], 'a letter')} (U+{ord(foreign[0]):04X})"
    return f"{subject} is {{found}}, with {letter}; expected letters of one alphabet"


# ---- accelerators, which the descriptions of two rounds name in different ways ------------

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
_MODEL = re.compile(r"\b(?!sxm|hbm|ddr)[a-z]{1,5}\d{2,4}[a-z]?\b")
_NO_ACCELERATOR = {"", "na", "none", "no", "cpu"}

_NUMBERED = r"(?i)\dx|x\d"  # in the name of a file; few have it


class NumberedAccelerators(Struct, frozen=True):
    """A number of accelerators and their model in the name of a file, such as ``8xH100``."""

    text: str
    number: int


def accelerators_in(name: str) -> set[str]:
    """Return the models of known accelerators in a name: ``h100``, ``mi300x``, ``gb200``."""
    return set(re.findall(rf"(?:{_models()})(?!\d)", name.lower()))


def numbered_accelerators(stem: str) -> list[NumberedAccelerators]:
    """Return the numbers of known accelerators in the name of a file.

    They are as in ``8xH100``, ``XE9680x8H100`` and ``A100x8``.
    """
    if not re.search(_NUMBERED, stem):
        return []
    model = f"(?:{_models()})"
    before = rf"(?<!\d)(\d+)x[-_ ]?{model}(?!\d)|x(\d+){model}(?!\d)"
    after = rf"{model}x(\d+)(?![\da-z])"
    numbered: list[NumberedAccelerators] = []
    for match in re.finditer(f"{before}|{after}", stem, re.IGNORECASE):
        number = match[1] or match[2] or match[3]
        numbered.append(NumberedAccelerators(match[0], int(number)))
    return numbered


@cache
def _models() -> str:
    """Return a pattern of the models of known accelerators, the longest first."""
    models: set[str] = set()
    for name in _names("accelerator_model_name"):
        models.update(_MODEL.findall(name.lower()))
    return "|".join(sorted(models, key=lambda model: (-len(model), model)))


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
    first = words_of(one.accelerator_model)
    second = words_of(other.accelerator_model)
    if not first and not second:
        is_same = plain_name(one.host_processor) == plain_name(other.host_processor)
        return Likeness.SAME if is_same else Likeness.PROCESSOR
    if one.accelerator_model == other.accelerator_model:
        return Likeness.SAME
    if first == second:
        return Likeness.SPELLING
    is_part = first < second or second < first
    if first and second and is_part:
        return Likeness.NAME
    return None
