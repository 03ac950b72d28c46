"""Codes of findings as users type them."""

from __future__ import annotations

from collections.abc import Set
from difflib import get_close_matches

from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.rulebook.explain.describe import rulebook_codes


def known_code(code: str) -> str:
    """Return a code of a finding in capital letters.

    Raises:
        UserError: there is no such code. The message names the nearest.
    """
    names = codes().keys() | rulebook_codes()
    wanted = code.upper()
    if wanted in names:
        return wanted
    raise UserError(f"no finding has the code {code!r}: {_near(wanted, names)}")


def known_prefix(prefix: str) -> str:
    """Return a prefix of codes in capital letters.

    Raises:
        UserError: no code begins with it. The message names the nearest.
    """
    names = codes().keys() | rulebook_codes()
    wanted = prefix.upper()
    if wanted and any(code.startswith(wanted) for code in names):
        return wanted
    families = {code.rstrip("0123456789") for code in names}
    raise UserError(f"no code begins with {prefix!r}: {_near(wanted, names | families)}")


def _near(wanted: str, names: Set[str]) -> str:
    near = get_close_matches(wanted, sorted(names), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(near)}?" if near else "a code looks like SET101 or BERT111"
