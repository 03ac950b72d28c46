"""Text of any origin made safe to show: on a terminal, in Markdown, in a spreadsheet.

Logs, file names and system descriptions come from strangers. Whatever of them is shown goes
through ``visible`` once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARKUP = re.compile(r"[\\`*\[\]<>|~$&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_FORMULA = ("=", "+", "-", "@")


def visible(text: str) -> str:
    """``text`` with every character that does not print as itself spelt as in Python source.

    That is line breaks, terminal escapes, invisible and direction-changing characters, halves of
    surrogate pairs, and spaces other than the plain one. What comes out stays as it is when
    passed again, holds one line and can be encoded as UTF-8.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _spelt(each) for each in text)


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def escape_markdown(text: str) -> str:
    """``text`` to be read literally within a line or a table cell of Markdown."""
    return _MARKUP.sub(r"\\\g<0>", visible(text))


def escape_html(text: str) -> str:
    """``text`` to be read literally within an element or an attribute of HTML."""
    from html import escape  # noqa: PLC0415 - slow to import

    return escape(visible(text), quote=True)


def escape_cell(text: str) -> str:
    """``text`` as a cell that no spreadsheet takes for a formula."""
    return escape_formula(visible(text))


def escape_formula(text: str) -> str:
    """``text`` as it is, but behind an apostrophe where a spreadsheet took it for a formula."""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is most like ``name``, whatever its case; None where none is.

    ``likeness`` is how much it must be, from 0 to 1 for the same.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    listed = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), listed, 1, likeness)
    return listed[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean bert?``, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found}?" if found else ""
