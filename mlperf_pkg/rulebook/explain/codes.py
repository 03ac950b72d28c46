"""Look up codes as users type them."""

from __future__ import annotations

from collections.abc import Set
from difflib import get_close_matches

from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.rulebook.explain.describe import rulebook_codes


def known_code(code: str) -> str:
    """A code as it is spelled, whatever its case.

    Raises:
        UserError: there is none; the nearest is named.
    """
    known = codes().keys() | rulebook_codes()
    wanted = code.upper()
    if wanted in known:
        return wanted
    raise UserError(f"no finding has the code {code!r}: {_near(wanted, known)}")


def known_prefix(prefix: str) -> str:
    """The beginning of some codes as it is spelled, whatever its case.

    Raises:
        UserError: no code begins so; the nearest is named.
    """
    known = codes().keys() | rulebook_codes()
    wanted = prefix.upper()
    if wanted and any(code.startswith(wanted) for code in known):
        return wanted
    families = {code.rstrip("0123456789") for code in known}
    raise UserError(f"no code begins with {prefix!r}: {_near(wanted, known | families)}")


def _near(wanted: str, known: Set[str]) -> str:
    near = get_close_matches(wanted, sorted(known), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(near)}?" if near else "a code looks like SET101 or BERT111"
