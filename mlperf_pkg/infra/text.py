"""Make text safe to show on a terminal, in Markdown, in HTML and in a spreadsheet.

Logs, file names and system descriptions come from strangers. All text of theirs that is shown
goes through ``visible`` once.
"""

import codecs
import re
from collections.abc import Container, Iterable
from functools import lru_cache
from itertools import chain, count

UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How text in UTF-16 begins."""

_ASCII = 64  # characters that show whether text is UTF-16 without a mark

FROM_UTF_16 = "convert it with iconv -f UTF-16 -t UTF-8"
"""What to do with a file in UTF-16."""

_MARKUP = r"[\\`*\[\]<>|~$&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # compiled when it is used
_FORMULA = r"""((?:^|;)(?=[\s"']*[=+\-@]))"""
_ESCAPED_FORMULA = r"""(^|;)'(?=[\s"']*[=+\-@])"""


def utf_16_of(data: bytes) -> str | None:
    """Return the name of the encoding if text begins like UTF-16, also without a mark."""
    if data.startswith(UTF_16_MARKS):
        return "UTF-16"
    even = data[: 2 * _ASCII : 2]
    odd = data[1 : 2 * _ASCII : 2]
    if odd == bytes(_ASCII) and 0 not in even:
        return "UTF-16LE"
    if even == bytes(_ASCII) and 0 not in odd:
        return "UTF-16BE"
    return None


def visible(text: str) -> str:
    """Return ``text`` with characters that do not print as themselves escaped as in Python source.

    These are line breaks, terminal escapes, invisible and direction-changing characters, halves
    of surrogate pairs, and spaces other than the plain one. The result is one line, can be encoded
    as UTF-8, and does not change when passed again.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape_markdown(text: str) -> str:
    """Return ``text`` so that a line or a table cell of Markdown shows it literally."""
    return re.sub(_MARKUP, r"\\\g<0>", visible(text))


def escape_html(text: str) -> str:
    """Return ``text`` so that an element or an attribute of HTML holds it literally."""
    from html import escape  # noqa: PLC0415 - slow to import

    return escape(visible(text), quote=True)


def escape_cell(text: str) -> str:
    """Return ``text`` as a cell that no spreadsheet takes for a formula."""
    return escape_formula(visible(text))


def escape_formula(text: str) -> str:
    """Return ``text`` with an apostrophe before everything that a spreadsheet reads as a formula.

    Formulas start the text or follow a semicolon, which separates cells in many spreadsheets.
    """
    return re.sub(_FORMULA, r"\1'", text)


def unescape_formula(text: str) -> str:
    """Return the text of which ``escape_formula`` made ``text``."""
    return re.sub(_ESCAPED_FORMULA, r"\1", text)


@lru_cache(4096)  # a check compares each of its sets with thousands of published ones
def letters(name: str) -> str:
    """Return the letters and digits of a name in lower case, alike in all its spellings."""
    return "".join(filter(str.isalnum, name.lower()))


def nearest(name: str, candidates: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the candidate most like ``name``, ignoring case; None if none is like it.

    ``likeness`` is the least similarity, from 0 to 1 for the same text.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    by_lower = {candidate.lower(): candidate for candidate in candidates}
    matches = get_close_matches(name.lower(), by_lower, 1, likeness)
    return by_lower[matches[0]] if matches else None


def unused(name: str, taken: Container[str], joint: str = "-") -> str:
    """Return a name, numbered (``name-2``) if it is ``taken``."""
    numbered = (f"{name}{joint}{number}" for number in count(2))
    return next(free for free in chain([name], numbered) if free not in taken)


def did_you_mean(name: str, candidates: Iterable[str], likeness: float = 0.6) -> str:
    """Return ``; did you mean bert?``, or nothing if no candidate is like ``name``."""
    match = nearest(name, candidates, likeness)
    return f"; did you mean {match}?" if match else ""
