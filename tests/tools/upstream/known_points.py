"""The mistakes in reference points that are known, and which of all are new or gone.

``known_points.yaml`` lists them, with the reason why they are accepted and the published result
sets that they touch. A mistake that is not listed is new; one that is listed and no longer in the
data is stale.
"""

from collections.abc import Iterator
from itertools import starmap
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mlperf_pkg.commands.rcp.records import points_folder
from mlperf_pkg.errors import RulebookError
from mlperf_pkg.rulebook.documents import every_round
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, refuse
from mlperf_pkg.rulebook.validate import parse, problem_at
from tests.tools.upstream.points import PointKind, PointProblem, lint

LEDGER = Path(__file__).with_suffix(".yaml")
"""The file of known mistakes."""


class TouchedSets(Struct, frozen=True, forbid_unknown_fields=True):
    """The published Closed sets whose RCP test uses a point, each as submitter and system.

    They are ``at`` its batch size, interpolated ``between`` it and a neighbour, or ``smaller`` than
    every point.
    """

    at: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    smaller: tuple[str, ...] = ()


_Place = Annotated[str, Meta(pattern=r"^[a-z]+/\d+\.\d+/[a-z0-9_]+$")]
_Points = Annotated[dict[str, TouchedSets], Meta(min_length=1)]


class KnownGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Known mistakes that are accepted for one reason: points by usage, round and benchmark."""

    reason: Annotated[str, Meta(min_length=1)]
    points: Annotated[dict[_Place, _Points], Meta(min_length=1)]


class KnownPoint(Struct, frozen=True):
    """A known mistake in a point; ``steps`` lead to it in ``file``."""

    kind: PointKind
    usage: str
    round: str
    benchmark: str
    point: str
    reason: str
    touched: TouchedSets
    file: RuleFile
    steps: Steps

    @property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """All published sets that it touches, each with its usage, round and benchmark."""
        names = (*self.touched.at, *self.touched.between, *self.touched.smaller)
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


def review(folder: Path, ledger: Path = LEDGER) -> PointReview:
    """Review the reference points in the folder of an mlperf-logging.

    What is listed for a round without a folder of reference points is left out.

    Raises:
        UserError: a file of points cannot be read.
        RulebookError: the list of known mistakes is not valid.
    """
    every = starmap(load_round, every_round())
    with_points = [round_ for round_ in every if points_folder(folder, round_).is_dir()]
    present = {(round_.usage, round_.name) for round_ in with_points}
    entries = [entry for entry in known_points(ledger) if (entry.usage, entry.round) in present]
    problems = lint(folder, with_points)
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


def known_points(ledger: Path = LEDGER) -> list[KnownPoint]:
    """Return all mistakes that are listed.

    Raises:
        RulebookError: the file is not valid, or lists a mistake twice.
    """
    entries: dict[tuple[str, ...], KnownPoint] = {}
    repeated = []
    for entry in _entries(RuleFile(ledger, ledger.name)):
        first = entries.setdefault(identity(entry), entry)
        if first is not entry:
            line = first.problem("").line
            message = f"{entry.kind} of {entry.point} is listed twice, first on line {line}"
            repeated.append(entry.problem(message))
    refuse(repeated)
    return list(entries.values())


def _entries(file: RuleFile) -> Iterator[KnownPoint]:
    document = parse(file, file.read())
    try:
        groups_by_kind = msgspec.convert(document, dict[PointKind, list[KnownGroup]])
    except msgspec.ValidationError as error:
        raise RulebookError(f"{file.shown}: {error}") from error
    for kind, groups in groups_by_kind.items():
        for index, group in enumerate(groups):
            reason = " ".join(group.reason.split())
            for place, points in group.points.items():
                usage, round_, benchmark = place.split("/")
                for point, touched in points.items():
                    steps = (kind.value, index, "points", place, point)
                    yield KnownPoint(
                        kind, usage, round_, benchmark, point, reason, touched, file, steps
                    )
