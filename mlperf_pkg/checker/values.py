"""The options and the result of a check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from mlperf_pkg.checker.reading import Observer
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.results.report import Report
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import Input

if TYPE_CHECKING:
    from mlperf_pkg.checks.context import SetContext
    from mlperf_pkg.checks.result_sets import SetResult
    from mlperf_pkg.checks.systems import SystemFile


class Options(Struct, frozen=True):
    """The options of a check; None where an option is not set.

    ``usage`` and ``round`` are then inferred, and ``jobs`` is one process per processor. ``config``
    is the content of ``mlperf-pkg.yaml`` at ``origin``, which the other options override.
    ``scheduler`` is the address of the scheduler of a Dask cluster, whose workers read the files.
    ``curves`` asks for the curves of the runs, for charts and tables.
    ``flags`` apply to all result sets, as if their ``package_checker_params`` had them.
    ``partial`` expects more runs: a set of raw logs with too few runs is not judged.
    ``named`` says that the user named ``config``, which then replaces that of a workspace.
    """

    usage: str | None = None
    round: str | None = None
    jobs: int | None = None
    config: Config = field(default_factory=Config)
    origin: str = CONFIG_NAME
    observer: Observer | None = None
    scheduler: str | None = None
    curves: bool = False
    flags: frozenset[str] = frozenset()
    partial: bool = False
    named: bool = False


class Checked(Struct, frozen=True):
    """A report and the values behind it, for commands that build on a check.

    ``systems`` and ``sets`` are in the order of the rows of the report; ``contexts`` are those from
    which the sets were judged.
    """

    report: Report
    inputs: tuple[Input, ...]
    runs: tuple[Run, ...]
    sets: tuple[SetResult, ...]
    systems: tuple[SystemFile, ...]
    contexts: tuple[SetContext, ...]
