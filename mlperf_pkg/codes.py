"""The codes of findings that are no rules of the rulebook: what each means and what to do.

They stand in ``rules/findings.yaml``. A rule's own code is explained by ``rulebook.describe``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from difflib import get_close_matches

from msgspec import Struct

from mlperf_pkg.checks import systems
from mlperf_pkg.errors import UserError
from mlperf_pkg.resources import data_folder
from mlperf_pkg.rulebook.describe import rulebook_codes
from mlperf_pkg.rulebook.load import read_yaml


class Code(Struct, frozen=True):
    """What a code stands for: a title, an explanation in prose, whose rule it is."""

    code: str
    title: str
    explanation: str
    source: str


def _read() -> dict[str, Code]:
    """The file's codes; those of system descriptions have their titles beside their check."""
    said = read_yaml(data_folder("rules") / "findings.yaml")
    for code, (title, source) in systems.CODES.items():
        said[code] = {"title": title, "source": source, **said[code]}
    return {code: Code(code=code, **fields) for code, fields in said.items()}


CODES: Mapping[str, Code] = _read()
"""Every code that is no rule's."""


def known_code(code: str) -> str:
    """A code as it is spelled, whatever its case.

    Raises:
        UserError: there is none; the nearest is named.
    """
    known = CODES.keys() | rulebook_codes()
    wanted = code.upper()
    if wanted in known:
        return wanted
    raise UserError(f"no finding has the code {code!r}: {_near(wanted, known)}")


def known_prefix(prefix: str) -> str:
    """The beginning of some codes as it is spelled, whatever its case.

    Raises:
        UserError: no code begins so; the nearest is named.
    """
    known = CODES.keys() | rulebook_codes()
    wanted = prefix.upper()
    if wanted and any(code.startswith(wanted) for code in known):
        return wanted
    families = {code.rstrip("0123456789") for code in known}
    raise UserError(f"no code begins with {prefix!r}: {_near(wanted, known | families)}")


def _near(wanted: str, known: Set[str]) -> str:
    near = get_close_matches(wanted, sorted(known), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(near)}?" if near else "a code looks like SET101 or BERT111"
