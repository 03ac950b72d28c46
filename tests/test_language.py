"""The language of the code: one name for one thing, variables that are nouns of the field, plain
English.
"""

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import mlperf_pkg
from tests.helpers.density import parsed

PACKAGE = Path(mlperf_pkg.__file__).parent
PROJECT = PACKAGE.parent
RULES = PROJECT / "rules"
DOCS = PROJECT / "docs"

VAGUE = {"asked", "each", "found", "given", "known", "listed", "said", "several", "told"}
"""Participles and pronouns that say how a value was come by, not what it is."""

QUAINT = re.compile(
    r"\b(dies|die of|died|tells|told|mends?|mended|stands (twice|beside|in|on)"
    r"|(?<![Tt]here )(is|are|was|were) no(?! (more|longer|worse|less|better)\b) [a-z]+"
    r"|so many|at last|for want of|as a whole or not|[Gg]ive up a|nothing waits|ends no more"
    r"|(has|have) no time(?!-)|in another way|in whatever usage|holds? together|small letters"
    r"|by another source line|(None|null|empty|False|0) without (one|any|an?)|without any memory"
    r"|an? (empty )?text(?! (file|stream)))\b"
)
"""Words of a literal translation; the contributing guide has what to write instead."""

MODULES = sorted(
    path
    for folder in (PACKAGE, *(PROJECT / name for name in ("tests", "bench", "ci-templates")))
    for path in folder.rglob("*.py")
)
EXEMPT = {Path(__file__), PROJECT / "tests/corpus/test_runs.py"}
"""This list itself, and a test whose published expectations have a key ``died``."""

TEXTS = sorted([*RULES.rglob("*.yaml"), *DOCS.rglob("*.md"), *PROJECT.glob("*.md")])


def name(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


ASSIGNED = re.compile(rf"\b({'|'.join(sorted(VAGUE))})\b *(?:[=:,)]|in\b)")


def variables(path: Path) -> Iterator[str]:
    """The names that a module assigns, without the fields of its classes (``Finding.found``)."""
    text = path.read_text("utf-8")
    nodes = list(ast.walk(ast.parse(text))) if ASSIGNED.search(text) else []
    fields = {
        id(part.target)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if isinstance(part, ast.AnnAssign)
    }
    for node in nodes:
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in fields
        ):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def words(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and texts of a module, with their lines; none where no line is quaint anyway."""
    if not QUAINT.search(path.read_text("utf-8")):
        return
    with path.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type in {tokenize.COMMENT, tokenize.STRING}:
                yield from enumerate(token.string.splitlines(), token.start[0])


def quaint(path: Path, lines: Iterable[tuple[int, str]]) -> list[str]:
    return [f"{name(path)}:{number}: {line}" for number, line in lines if QUAINT.search(line)]


def test_variables_are_nouns() -> None:
    assert [(name(path), word) for path in MODULES for word in VAGUE & {*variables(path)}] == []


def test_a_class_name_exists_once() -> None:
    """The glossary has one term for each concept, and so has the code."""
    places: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name(path))
    assert {word: paths for word, paths in places.items() if len(paths) > 1} == {}


def test_code_is_plain_english() -> None:
    assert [
        line for path in MODULES if path not in EXEMPT for line in quaint(path, words(path))
    ] == []


def test_texts_are_plain_english() -> None:
    assert [
        line
        for path in TEXTS
        for line in quaint(path, enumerate(path.read_text("utf-8").splitlines(), 1))
    ] == []
