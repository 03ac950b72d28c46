"""Guards: what goes wrong in the check of one thing is a finding about it; all else is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.codes import codes

if TYPE_CHECKING:
    from mlperf_pkg.infra.parallel import WorkerLostError

_Result = TypeVar("_Result")

_DEFECT, _LOST = "CHECK101", "CHECK102"
_SHOWN = 200  # characters of the text of an exception, which may hold some of a hostile file


def guarded(
    path: str, action: str, function: Callable[[], _Result], instead: Callable[[Unchecked], _Result]
) -> _Result:
    """Return the result of a function, or ``instead`` with a finding that it raised an exception.

    ``action`` says what the function does to ``path``: "reading this log". ``--debug`` shows the
    traceback.

    Raises:
        UserError: as the function; it is about the command, not about ``path``.
    """
    try:
        return function()
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it stops only this item
        _log_traceback(path, action)
        return instead(defect(path, action, error))


def defect(path: str, action: str, error: Exception) -> Unchecked:
    """Return the finding that an exception ended the check of ``path``."""
    text = visible(f"{type(error).__name__}: {error}".removesuffix(": "))
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return Unchecked(
        code=_DEFECT,
        message=f"not checked: internal error of mlperf-pkg while {action}: {{found:s}}",
        path=path,
        found=shown,
        hint="please report it with the output of 'mlperf-pkg --debug ...'",
        source=codes()[_DEFECT].source,
    )


def lost(path: str, worker: WorkerLostError) -> Unchecked:
    """Return the finding that the process which read ``path`` ended, twice."""
    return Unchecked(
        code=_LOST,
        message="not checked: the process reading this file ended twice: {found:s}",
        path=path,
        found=worker.reason,
        hint="SIGKILL usually means that memory ran out; otherwise, please report this",
        source=codes()[_LOST].source,
    )


def _log_traceback(path: str, action: str) -> None:
    import logging  # noqa: PLC0415 - only a defect needs it

    logging.getLogger("mlperf_pkg").debug("%s: %s", visible(path), action, exc_info=True)
