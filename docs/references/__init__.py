"""Reference pages, generated from the program: never committed, never out of date."""

from collections.abc import Iterator
from pathlib import Path

from references import commands, rules, schemas


def pages() -> Iterator[tuple[str, str]]:
    """Yield file names, relative to the reference folder, and their Markdown."""
    yield from commands.pages()
    yield from rules.pages()
    yield from schemas.pages()


def write(folder: Path) -> None:
    """Write new and changed pages, and remove pages that no longer exist."""
    made = {folder / name: text for name, text in pages()}
    for path in set(folder.rglob("*.md")) - made.keys():
        path.unlink()
    for path, text in made.items():
        if not path.is_file() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
