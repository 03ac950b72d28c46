"""The folders that the rulebook is read from: that of the package and, before it, the user's own.

Which folders these are is a value of the current context (``contextvars``), not a parameter of
every function that needs a rule. Whatever depends on the rulebook is remembered by these folders
and their contents (``per_rulebook``), so that checks with different rules in one process do not
mix. Forks inherit the folders; other processes are given ``rules_context()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeAlias, TypeVar

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import data_folder

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class RulesFolder(Struct, frozen=True):
    """A folder laid out as ``rules/``, with a digest of its YAML files."""

    path: Path
    digest: str

    def __str__(self) -> str:
        """Return the name of the folder and the beginning of the digest, for a report."""
        return f"{self.path.name} ({self.digest[:12]})"


RulesContext: TypeAlias = tuple[RulesFolder, ...]
"""The user's own folders of rules, the first to be asked first; empty means the package's alone."""

_context: ContextVar[RulesContext] = ContextVar("rules_context", default=())


def rules_context() -> RulesContext:
    """Return the user's own folders of rules, to be handed to another process."""
    return _context.get()


def set_rules_context(context: RulesContext) -> None:
    """Read rules from these folders, in this process and from now on.

    Raises:
        UserError: a folder does not have the files that the context was made of.
    """
    for folder in context:
        if _digest(folder.path) != folder.digest:
            raise UserError(
                f"{folder.path}: a worker has other rules there than this machine:"
                " give all machines the same folder"
            )
    _context.set(context)


@contextmanager
def rules_read_from(*folders: Path) -> Iterator[None]:
    """Read rules from these folders before that of the package, within a ``with`` statement."""
    token = _context.set(tuple(RulesFolder(path, _digest(path)) for path in folders))
    try:
        yield
    finally:
        _context.reset(token)


def rules_folders() -> tuple[Path, ...]:
    """Return all folders of rules; a file is taken from the first that has it."""
    return (*(folder.path for folder in _context.get()), data_folder("rules"))


def _digest(folder: Path) -> str:
    import hashlib  # noqa: PLC0415 - most commands read only the package's rules

    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*.yaml") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\0".encode())
    return digest.hexdigest()


def per_rulebook(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Remember what a function of the rulebook returns, as ``lru_cache``, for each rulebook."""

    @lru_cache
    def remembered(
        _: RulesContext, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result:
        return function(*args, **kwargs)

    @wraps(function)
    def of_context(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return remembered(_context.get(), *args, **kwargs)  # type: ignore[arg-type]

    return of_context
