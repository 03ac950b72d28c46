"""Pieces of Markdown."""

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&])")


def plain(text: str) -> str:
    """Escape text so that Markdown shows it literally."""
    return _SPECIAL.sub(r"\\\1", text)


def code(text: str) -> str:
    """Format text as inline code that also works in a table cell."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    edge = " " if "`" in text else ""
    return f"{ticks}{edge}{text}{edge}{ticks}".replace("|", "\\|")


def block(text: str, language: str = "text") -> str:
    """Format lines as a code block."""
    return f"```{language}\n{text.rstrip()}\n```"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table; the cells are Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page(title: str, parts: Iterable[str]) -> str:
    """Join a title and paragraphs into a page."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def contents(names: Iterable[str]) -> str:
    """List the pages below this one, visible only in the navigation."""
    return block(":hidden:\n\n" + "\n".join(names), "{toctree}")
