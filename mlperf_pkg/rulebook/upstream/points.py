"""Check the reference convergence points of an mlperf-logging for mistakes, new or known.

A mistake in a point changes the RCP test of every result set that is compared with it. The points
are those of the folder ``rcp_checker``. ``rules/reference_points.yaml`` lists the mistakes that are
known, with the reason why they are accepted and the published result sets that they touch. One that
is not listed is new; one that is listed and no longer in the data is stale.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import starmap
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.documents import every_round, read, rule_files
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, refuse
from mlperf_pkg.rulebook.validate import problem_at

_FACTOR = 3
"""A value this many times its median, or this fraction of it, is a typo.

Apart from the one typo, which is 11.4 times its median, the points of mlperf-logging 4.1.68 stay
within 2.1 times (``unet3d_ref_2_fp32``).
"""


class PointKind(StrEnum):
    """What is wrong with a reference point.

    OUTLIER: a run far from the others. FEW_RUNS: fewer than twice the runs of a submission.
    EQUAL_RUNS: a deviation of zero. MISNAMED: the point is of another benchmark than its file.
    UNUSED: the round does not have the benchmark.
    """

    OUTLIER = "outlier"
    FEW_RUNS = "few_runs"
    EQUAL_RUNS = "equal_runs"
    MISNAMED = "misnamed"
    UNUSED = "unused"


class PointProblem(Struct, frozen=True):
    """What is wrong with one reference point; ``file`` is relative to the mlperf-logging."""

    kind: PointKind
    usage: str
    round: str
    benchmark: str
    point: str
    batch_size: float
    file: str
    found: str
    expected: str


class PointRecord(Struct, frozen=True):
    """A point as its file has it, as far as it is checked."""

    benchmark: str = msgspec.field(name="Benchmark")
    batch_size: Annotated[float, Meta(gt=0)] = msgspec.field(name="BS")
    epochs: Annotated[list[float], Meta(min_length=1)] | None = msgspec.field(
        name="Epochs to converge", default=None
    )
    samples: Annotated[list[float], Meta(min_length=1)] | None = msgspec.field(
        name="samples to converge", default=None
    )
    hyperparameters: dict[str, Any] | None = msgspec.field(name="Hyperparams", default=None)

    @property
    def to_converge(self) -> list[float]:
        """The epochs or samples of each run, in the unit of the file."""
        return self.samples or self.epochs or []


def points_folder(folder: Path, round_: Round) -> Path:
    """Return the folder of an mlperf-logging with the points of a round, which need not exist."""
    return folder / "rcp_checker" / f"{round_.usage}_{round_.ruleset}"


def lint(folder: Path, rounds: Iterable[Round]) -> list[PointProblem]:
    """Return what is wrong with the points of some rounds in the folder of an mlperf-logging.

    Raises:
        UserError: a file of reference points cannot be read. The message names it.
    """
    problems: list[PointProblem] = []
    for round_ in rounds:
        for path in sorted(points_folder(folder, round_).glob("rcps_*.json")):
            name = path.stem.removeprefix("rcps_")
            file = path.relative_to(folder).as_posix()
            problems += lint_file(path, round_, name, visible(file))
    return problems


def lint_file(path: Path, round_: Round, name: str, file: str) -> Iterator[PointProblem]:
    """Yield what is wrong with the points in a file of benchmark ``name``, shown as ``file``.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    benchmark = load_benchmark(round_.usage, round_.name, name)
    runs = benchmark.runs.required if benchmark else None
    for point, record in read_points(path).items():
        place = round_.usage, round_.name, visible(name), visible(point)
        for kind, actual, expected in problems_of(record, name, runs):
            yield PointProblem(kind, *place, record.batch_size, file, actual, expected)


def problems_of(
    record: PointRecord, name: str, runs: int | None
) -> Iterator[tuple[PointKind, str, str]]:
    """Yield what is wrong with a point: the kind, what was found, what was expected.

    ``runs`` is what a submission needs; None where the round does not have the benchmark.
    """
    values = record.to_converge
    outliers = _outliers(values)
    if outliers:
        yield PointKind.OUTLIER, outliers, f"all within {_FACTOR} times the median"
    if runs is not None and len(values) < 2 * runs:
        expected = f"at least {2 * runs} (2N, where a submission has N = {runs})"
        yield PointKind.FEW_RUNS, f"{len(values)} runs", expected
    if min(values) == max(values):
        actual = f"{len(values)} runs, all at {_number(values[0])}"
        yield PointKind.EQUAL_RUNS, actual, "runs that differ"
    if record.benchmark != name:
        yield PointKind.MISNAMED, f"the benchmark {visible(record.benchmark)}", name
    if runs is None:
        yield (
            PointKind.UNUSED,
            "a point of a benchmark that the round does not have",
            "no such point",
        )


def _outliers(values: Sequence[float]) -> str:
    """Return the values far from the median, in words; empty where there are none."""
    middle = median(values)
    far = [value for value in values if not middle / _FACTOR <= value <= middle * _FACTOR]
    return "; ".join(
        _number(value) + (f", {value / middle:.1f} times the median" if middle else "")
        for value in far
    )


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")


# ---- files --------------------------------------------------------------------------------


def read_points(path: Path) -> dict[str, PointRecord]:
    """Return the points of a file by name.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    file = visible(str(path))
    try:
        if not path.is_file():
            raise UserError(f"{file}: not a file")
        document = json.loads(
            read_file(path, MAX_BYTES).decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse,
        )
        records = msgspec.convert(document, dict[str, PointRecord])
    except RecursionError as error:
        raise UserError(f"{file}: not reference points: nested too deeply") from error
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from error
    except ValueError as error:  # of JSON, UTF-8 and msgspec
        raise UserError(f"{file}: not reference points: {visible(str(error))}") from error
    for point, record in records.items():
        numbers = record.batch_size, *record.to_converge
        if not record.to_converge or not all(map(math.isfinite, numbers)):
            problem = "has no finite numbers of epochs or samples to converge"
            raise UserError(f"{file}: not reference points: {visible(point)} {problem}")
    return records


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a mapping.

    Raises:
        ValueError: a name is in it twice, so that one of its values would be ignored.
    """
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{repeated!r} is given twice")
    return mapping


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


LEDGER = "reference_points.yaml"
"""The file of known mistakes, of the rulebook and of a user's own folder of rules."""


class KnownPoint(Struct, frozen=True):
    """A known mistake in a point, and the published Closed sets whose RCP test uses the point.

    Sets are named submitter and system. They are ``at`` its batch size, interpolated ``between`` it
    and a neighbour, or ``smaller`` than every point. ``steps`` lead to the mistake in ``file``.
    """

    kind: str
    usage: str
    round: str
    benchmark: str
    point: str
    reason: str
    file: RuleFile
    steps: Steps
    at: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    smaller: tuple[str, ...] = ()

    @property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """All published sets, each with its usage, round and benchmark."""
        names = (*self.at, *self.between, *self.smaller)
        return tuple((self.usage, self.round, self.benchmark, name) for name in names)

    def problem(self, message: str) -> Problem:
        """Return a problem on the line that lists the mistake."""
        return problem_at(self.file, self.steps, message)


class PointReview(Struct, frozen=True):
    """The mistakes in reference points: ``new``, ``stale`` and still ``known``."""

    new: tuple[PointProblem, ...]
    stale: tuple[KnownPoint, ...]
    known: tuple[KnownPoint, ...]

    @property
    def fails(self) -> bool:
        """Whether the list of known mistakes has to change."""
        return bool(self.new or self.stale)


def review(folder: Path | None = None) -> PointReview:
    """Review the reference points of an mlperf-logging, by default the installed.

    What is listed for a round without a folder of reference points is left out.

    Raises:
        UserError: mlperf-logging is not installed, or a file of points cannot be read.
        RulebookError: the list of known mistakes is not valid.
    """
    root = folder or official_folder()
    every = starmap(load_round, every_round())
    with_points = [round_ for round_ in every if points_folder(root, round_).is_dir()]
    present = {(round_.usage, round_.name) for round_ in with_points}
    entries = [entry for entry in known_points() if (entry.usage, entry.round) in present]
    problems = lint(root, with_points)
    actual = set(map(identity, problems))
    accepted = set(map(identity, entries))
    return PointReview(
        new=tuple(problem for problem in problems if identity(problem) not in accepted),
        stale=tuple(entry for entry in entries if identity(entry) not in actual),
        known=tuple(entry for entry in entries if identity(entry) in actual),
    )


def identity(item: PointProblem | KnownPoint) -> tuple[str, ...]:
    """Return what a mistake and the entry that accepts it have in common."""
    return str(item.kind), item.usage, item.round, item.benchmark, item.point


# ---- the list -----------------------------------------------------------------------------


def known_points() -> list[KnownPoint]:
    """Return all mistakes that are listed, in the rulebook and in the user's own folders.

    Raises:
        RulebookError: a file is not valid, or lists a mistake twice.
    """
    entries: dict[tuple[str, ...], KnownPoint] = {}
    repeated = []
    for file in rule_files(LEDGER):
        for entry in _entries(file):
            first = entries.setdefault(identity(entry), entry)
            if first is not entry:
                at = first.problem("")
                message = f"{entry.kind} of {entry.point} is listed twice, first at"
                repeated.append(entry.problem(f"{message} {at.file}:{at.line}"))
    refuse(repeated)
    return list(entries.values())


def _entries(file: RuleFile) -> Iterator[KnownPoint]:
    for kind, groups in read(file).items():
        for index, group in enumerate(groups):
            reason = " ".join(group["reason"].split())
            for place, points in group["points"].items():
                usage, round_, benchmark = place.split("/")
                for point, sets in points.items():
                    steps = (kind, index, "points", place, point)
                    touched = {name: tuple(names) for name, names in sets.items()}
                    yield KnownPoint(
                        kind, usage, round_, benchmark, point, reason, file, steps, **touched
                    )
