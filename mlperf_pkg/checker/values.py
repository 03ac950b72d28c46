"""The options and the result of a check."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.checker.reading import Observer
from mlperf_pkg.config import CONFIG_NAME, Config, read_config_file
from mlperf_pkg.infra.stores import is_url
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import Input, Place, Submission

if TYPE_CHECKING:
    from mlperf_pkg.checks.context import SetContext
    from mlperf_pkg.checks.descriptions import SystemFile
    from mlperf_pkg.checks.result_sets import SetResult


UNREAD = ("LOG112", "LOG113")
"""The codes of findings on logs that no command can read."""


class Options(Struct, frozen=True):
    """The options of a check; None where an option is not set.

    ``usage`` and ``round`` are then inferred, and ``jobs`` is one process per processor. ``config``
    is the content of ``mlperf-pkg.yaml`` at ``origin``, which the other options override.
    ``scheduler`` is the address of the scheduler of a Dask cluster, whose workers read the files.
    ``curves`` asks for the curves of the runs, for charts and tables.
    ``flags`` apply to all result sets, as if their ``package_checker_params`` had them.
    ``partial`` expects more runs: a set of raw logs with too few runs is not judged.
    ``whole_files`` reads every file as one log, as the official tools do.
    ``named`` says that the user named ``config``, which then replaces that of a workspace.
    ``complete`` says that a tree is what is submitted, so that its code must be there.
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
    whole_files: bool = False
    complete: bool = False

    @property
    def processes(self) -> int:
        """How many processes ``jobs`` means."""
        return self.jobs or os.cpu_count() or 1


def with_config(
    options: Options, file: Path | None, inputs: Sequence[str], note: Callable[[str], object]
) -> Options:
    """Return the options with the configuration in ``file``, by default in the current folder.

    The default file is not read if it is inside an input; ``note`` then receives a message about
    its waivers, if it has any.

    Raises:
        UserError: as ``read_config_file``.
    """
    path = file or Path(CONFIG_NAME)
    if file is None and not (path.exists() and _is_outside(path, inputs, note)):
        return options
    named = file is not None
    return replace(options, config=read_config_file(path), origin=str(path), named=named)


def _is_outside(file: Path, inputs: Sequence[str], note: Callable[[str], object]) -> bool:
    here = file.absolute()
    for argument in inputs:
        if not is_url(argument) and here.resolve().is_relative_to(Path(argument).resolve()):
            if read_config_file(file).waivers:
                where = f"{file} is inside the input {argument}"
                note(f"{where}, so its waivers are not read; to read them, use --config {file}")
            return False
    return True


class Checked(Struct, frozen=True, dict=True):
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

    @property
    def submissions(self) -> list[Submission]:
        """The submissions of all inputs."""
        return list(chain.from_iterable(input_.submissions for input_ in self.inputs))

    @property
    def alone(self) -> Submission | None:
        """The only submission, if it was checked without its round."""
        submissions = self.submissions
        return submissions[0] if len(submissions) == 1 and submissions[0].is_alone else None

    @cached_property
    def _by_label(self) -> dict[str, Submission]:
        return {submission.place.label: submission for submission in self.submissions}

    def submission_of(self, path: str) -> Submission | None:
        """Return the submission that a path of the report is in, if any."""
        folder = path
        while folder and folder not in self._by_label:
            folder = folder.rpartition("/")[0]
        return self._by_label.get(folder)

    def named(self, path: str) -> str:
        """Return a path of the report as one that begins with the name of its submission.

        So a submission has the same paths alone, in its round, and in an archive of either.
        """
        submission = self.submission_of(path)
        if submission is None:
            return path
        if path in (submission.place.label, "."):
            return submission.name
        return f"{submission.name}/{submission.within(path)}"

    @cached_property
    def _name_counts(self) -> Counter[str]:
        return Counter(submission.name for submission in self.submissions)

    def distinct(self, path: str) -> str:
        """Return a path as ``named`` does, or as it is if other submissions have that name, too."""
        submission = self.submission_of(path)
        is_shared = submission is not None and self._name_counts[submission.name] > 1
        return path if is_shared else self.named(path)

    @property
    def places(self) -> dict[str, Place]:
        """The files of all inputs by their labels."""
        places: dict[str, Place] = {}
        for input_ in self.inputs:
            places |= input_.places
        return places


class Rank(Struct, frozen=True):
    """The rank of a score, 1 for the fastest, among ``of`` scores including it."""

    rank: int
    of: int


class Standing(Struct, frozen=True):
    """The rank of a score among the scores of a published round.

    They have the same benchmark, division, number of accelerators and ``category``, in words;
    ``of_model`` is the rank among those on the same model of accelerator, None if there is no
    other. The next is the next faster score or, of the fastest, the next slower one.
    """

    round: str
    accelerators: int
    overall: Rank
    accelerator_model: str
    of_model: Rank | None
    next_submitter: str = ""
    next_minutes: float = 0.0
    category: str = ""


class ScoredSet(Struct, frozen=True):
    """A result set, its runs, and its standing among published results (None if unknown)."""

    row: ResultSetRow
    runs: tuple[RunRow, ...]
    published: Standing | None = None


class Scores(Struct, frozen=True):
    """All result sets of a report, each with its runs.

    What is made for showing has the ids of the ``unverified`` sets, and what must stand beside it.
    """

    report: Report
    sets: tuple[ScoredSet, ...]
    unverified: frozenset[str] = frozenset()
    notice: tuple[str, ...] = ()


def scores(checked: Checked) -> Scores:
    """Return the result sets of a check with their runs."""
    runs = {run.label: run for run in checked.report.runs}
    sets: list[ScoredSet] = []
    for row, result in zip(checked.report.result_sets, checked.sets, strict=True):
        set_runs = tuple(runs[path] for path in result.runs)
        sets.append(ScoredSet(row, set_runs))
    return Scores(checked.report, tuple(sets))
