"""Check and build MLPerf Training submissions.

The names in ``__all__`` are the Python API (docs/public.md); all other modules may change.
"""

from __future__ import annotations

import os

__version__ = "0.1.0.dev0"

__all__ = [
    "Finding",
    "Log",
    "LogEvaluation",
    "LogRecord",
    "Report",
    "ResultSetRow",
    "RunRow",
    "SystemRow",
    "UserError",
    "Verdict",
    "Verdicts",
    "__version__",
    "check",
    "published_results",
    "read_log",
]

TYPE_CHECKING = False  # type checkers take it as that of ``typing``, which is slow to import
if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from mlperf_pkg.checker.check import Log, LogEvaluation, LogRecord
    from mlperf_pkg.checker.values import Options
    from mlperf_pkg.errors import UserError
    from mlperf_pkg.findings import Finding, Verdict, Verdicts
    from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, SystemRow
else:
    _HOMES = {
        "checker.check": ("Log", "LogEvaluation", "LogRecord"),
        "errors": ("UserError",),
        "findings": ("Finding", "Verdict", "Verdicts"),
        "results.report": ("Report", "ResultSetRow", "RunRow", "SystemRow"),
    }

    def __getattr__(name: str) -> type:
        """Import a type when it is first used."""
        from importlib import import_module  # noqa: PLC0415 - as all imports here

        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, also those that are imported on first use, for completion."""
    return __all__


def check(
    *paths: str | os.PathLike[str],
    usage: str | None = None,
    round: str | None = None,  # noqa: A002 - as the option of the command
    config: str | os.PathLike[str] | None = None,
    partial: bool = False,
    jobs: int | None = 1,
) -> Report:
    """Check logs, result sets, submissions or whole rounds, as ``mlperf-pkg check`` does.

    The parameters are the options of the command; its help also explains the default of
    ``config``. ``jobs`` is the number of processes that read logs; None is one per core. If it is
    not 1, scripts must be importable (``if __name__ == "__main__"``).

    Raises:
        UserError: a path does not exist, cannot be read or holds no log; there is no such usage or
            round; a configuration is not valid.
    """
    from mlperf_pkg.checker.check import check as check_paths  # noqa: PLC0415
    from mlperf_pkg.commands.export.frames import checked_report  # noqa: PLC0415
    from mlperf_pkg.errors import UserError  # noqa: PLC0415

    if not paths:
        raise UserError("no path: expected a log, a folder of logs or a submission")
    texts = list(map(_text, paths))
    options = _options(texts, usage, round, config, partial=partial, jobs=jobs)
    return checked_report(check_paths(texts, options))


def read_log(
    path: str | os.PathLike[str],
    *,
    usage: str | None = None,
    round: str | None = None,  # noqa: A002 - as the option of the command
) -> Log:
    """Read one log of a training run, which may be compressed; keep all its records in memory.

    Raises:
        UserError: as ``check``; the path holds several logs; the log cannot be read.
    """
    from mlperf_pkg.checker.check import log_of  # noqa: PLC0415

    text = _text(path)
    return log_of(text, _options([text], usage, round))


def published_results(table: str = "result_sets") -> pd.DataFrame:
    """Return the published ``result_sets`` of all rounds, one in each row, or their ``settings``.

    Raises:
        UserError: there is no such table, the published results are missing or damaged, or pandas
            is not installed.
    """
    from mlperf_pkg.commands.export.frames import published_frame  # noqa: PLC0415

    return published_frame(table)


def _text(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    try:
        if text and b"\0" not in os.fsencode(text):
            return text
    except UnicodeEncodeError:
        pass
    from mlperf_pkg.errors import EMPTY_PATH, UserError  # noqa: PLC0415

    if not text:
        raise UserError(EMPTY_PATH)
    raise UserError(f"{text!r} is not a path: no file can have this name")


def _options(
    inputs: Sequence[str],
    usage: str | None,
    round_: str | None,
    config: str | os.PathLike[str] | None = None,
    *,
    partial: bool = False,
    jobs: int | None = 1,
) -> Options:
    import warnings  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from mlperf_pkg.checker.values import Options, with_config  # noqa: PLC0415
    from mlperf_pkg.config import round_name  # noqa: PLC0415
    from mlperf_pkg.errors import UserError  # noqa: PLC0415

    if usage not in {None, "training", "hpc"}:
        raise UserError(f"usage is {usage!r}; expected 'training' or 'hpc'")
    if jobs is not None and jobs < 1:
        raise UserError(f"jobs is {jobs}; expected 1 or more")
    name = None if round_ is None else round_name(str(round_))
    options = Options(usage, name, jobs, curves=True, partial=partial)
    file = None if config is None else Path(_text(config))

    def warn(text: str) -> None:
        warnings.warn(text, stacklevel=6)

    return with_config(options, file, inputs, warn)
