"""A rule file, and what is wrong in it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.text import nearest

_LARGEST = 1 << 20  # bytes
Step: TypeAlias = str | int
"""A name in a mapping or an index in a list; several lead to a part of a document."""

Steps: TypeAlias = tuple[Step, ...]


class RuleFile(Struct, frozen=True):
    """One YAML file; ``shown`` is its name in messages: ``rules/training/7.0/newb.yaml``."""

    path: Path
    shown: str

    def read(self) -> bytes:
        """Return its content.

        Raises:
            OSError: it cannot be read, or is too large for rules.
        """
        return read_file(self.path, _LARGEST)


class Problem(Struct, frozen=True, order=True):
    """What is wrong in a file, and on which line."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        """Return the problem as compilers report it: ``file:line: message``."""
        return f"{self.file}:{self.line}: {self.message}"


def refuse(problems: Sequence[Problem]) -> None:
    """Raise an error that reports every problem, one a line.

    Raises:
        RulebookError: there is a problem.
    """
    if problems:
        raise RulebookError("\n".join(map(str, sorted(set(problems)))))


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'bert'?`` with the most similar of some names; empty if none is."""
    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near else ""
