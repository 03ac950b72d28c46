"""Compare the mistakes in reference convergence points with those that are known.

``rules/reference_points.yaml`` lists them with the reason why they are accepted and the published
result sets that they touch. One that is not listed is new; one that is listed and no longer in the
data is stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.rulebook.files import read, rounds, rule_files, usages
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, refuse
from mlperf_pkg.rulebook.strictyaml import problem_at
from mlperf_pkg.rulebook.upstream.points import PointProblem, lint, points_folder

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
    every_round = [load_round(usage, name) for usage in usages() for name in rounds(usage)]
    return compared(lint(root, every_round), _of_rounds(root, every_round))


def compared(problems: Sequence[PointProblem], entries: Sequence[KnownPoint]) -> PointReview:
    """Return which problems are new, and which known ones are stale."""
    actual, accepted = set(map(_identity, problems)), set(map(_identity, entries))
    return PointReview(
        new=tuple(problem for problem in problems if _identity(problem) not in accepted),
        stale=tuple(entry for entry in entries if _identity(entry) not in actual),
        known=tuple(entry for entry in entries if _identity(entry) in actual),
    )


def _identity(item: PointProblem | KnownPoint) -> tuple[str, ...]:
    return str(item.kind), item.usage, item.round, item.benchmark, item.point


def _of_rounds(root: Path, every_round: Sequence[Round]) -> list[KnownPoint]:
    """Return the known mistakes of the rounds of which an mlperf-logging has points."""
    present = {
        (round_.usage, round_.name)
        for round_ in every_round
        if points_folder(root, round_).is_dir()
    }
    return [entry for entry in known_points() if (entry.usage, entry.round) in present]


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
            first = entries.setdefault(_identity(entry), entry)
            if first is not entry:
                at = first.problem("")
                message = f"{entry.kind} of {entry.point} is listed twice, first at"
                repeated.append(entry.problem(f"{message} {at.file}:{at.line}"))
    refuse(repeated)
    return list(entries.values())


def _entries(file: RuleFile) -> Iterator[KnownPoint]:
    for kind, groups in read(file).items():
        for index, group in enumerate(groups):
            for place, points in group["points"].items():
                usage, round_name, benchmark = place.split("/")
                for point, sets in points.items():
                    yield KnownPoint(
                        kind=kind,
                        usage=usage,
                        round=round_name,
                        benchmark=benchmark,
                        point=point,
                        reason=" ".join(group["reason"].split()),
                        file=file,
                        steps=(kind, index, "points", place, point),
                        **{name: tuple(names) for name, names in sets.items()},
                    )
