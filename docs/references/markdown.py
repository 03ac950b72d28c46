"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&])")


def plain(text: str) -> str:
    """Text that stands for itself."""
    return _SPECIAL.sub(r"\\\1", text)


def code(text: str) -> str:
    """Text as code within a line, also in a cell of a table."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    edge = " " if "`" in text else ""
    return f"{ticks}{edge}{text}{edge}{ticks}".replace("|", "\\|")


def block(text: str, language: str = "text") -> str:
    """Lines as code."""
    return f"```{language}\n{text.rstrip()}\n```"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells that are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page(title: str, parts: Iterable[str]) -> str:
    """A page of paragraphs."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def contents(names: Iterable[str]) -> str:
    """The pages below this one, shown in the navigation alone."""
    return block(":hidden:\n\n" + "\n".join(names), "{toctree}")
