"""The reference pages, made of what the program knows of itself: never committed, never stale."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from references import commands, rules, schemas


def pages() -> Iterator[tuple[str, str]]:
    """Names of files, relative to the folder of references, and their Markdown."""
    yield from commands.pages()
    yield from rules.pages()
    yield from schemas.pages()


def write(folder: Path) -> None:
    """Write every page that is new or differs, and remove what is no page any more."""
    made = {folder / name: text for name, text in pages()}
    for path in set(folder.rglob("*.md")) - made.keys():
        path.unlink()
    for path, text in made.items():
        if not path.is_file() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
