"""The folders that the rulebook is read from: that of the package and, before it, the user's own.

Which folders these are is a value of the current context (``contextvars``), not a parameter of
each function that needs a rule. Every result that depends on the rulebook is remembered by these
folders (``per_rulebook``), so that two checks with different folders in one process do not mix.
Forked processes inherit the folders; others are started with them (``read_rules_from``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeAlias, TypeVar

from mlperf_pkg.infra.resources import data_folder

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

Folders: TypeAlias = tuple[Path, ...]

_folders: ContextVar[Folders] = ContextVar("rules folders", default=())


def rules_folders() -> Folders:
    """Return the folders of rules; a file is taken from the first that has it."""
    return _folders.get() or (data_folder("rules"),)


def read_rules_from(folders: Folders) -> None:
    """Read all rules from these folders, from now on and in this context."""
    _folders.set(folders)


@contextmanager
def rules_read_from(*folders: Path) -> Iterator[None]:
    """Read rules from these folders, until the end of a ``with`` statement."""
    token = _folders.set(folders)
    try:
        yield
    finally:
        _folders.reset(token)


def per_rulebook(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Remember what a function of the rulebook returns, as ``lru_cache``, for each rulebook."""

    @lru_cache
    def remembered(_: Folders, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return function(*args, **kwargs)

    @wraps(function)
    def of_folders(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return remembered(rules_folders(), *args, **kwargs)  # type: ignore[arg-type]

    return of_folders
