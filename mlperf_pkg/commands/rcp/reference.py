"""The reference points of one benchmark in one round, and how the RCP test uses them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.rcp.custom import custom_points
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import installed_version, official_folder
from mlperf_pkg.infra.text import did_you_mean, visible
from mlperf_pkg.results import rcp
from mlperf_pkg.results.rcp import ReferencePoint
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import benchmarks_of, load_benchmark, load_round
from mlperf_pkg.rulebook.model import Benchmark, Round, Runs
from mlperf_pkg.rulebook.rounds import TRAINING
from mlperf_pkg.rulebook.upstream.points import points_folder


class Origin(Struct, frozen=True):
    """The source of points: mlperf-logging or a ``file``, with ``merge`` both.

    A point of the file replaces one of mlperf-logging with the same batch size.
    """

    file: Path | None = None
    merge: bool = False


PACKAGE = Origin()


class Reference(Struct, frozen=True):
    """The reference points of a benchmark in a round, by ascending batch size.

    Convergence is in ``unit``; a submission has ``runs``. The official checker accepts a mean that
    is smaller than the smallest acceptable one by up to ``allowance``. ``in_round`` says whether
    the round has the benchmark, ``covered`` whether the checker covers it. ``source`` is the origin
    of the points in words.
    """

    usage: str
    round: str
    benchmark: str
    unit: str
    runs: Runs
    allowance: int
    in_round: bool
    covered: bool
    source: str
    points: tuple[ReferencePoint, ...]

    @property
    def used(self) -> tuple[ReferencePoint, ...]:
        """The points that remain after pruning, which the test uses."""
        return rcp.prune(self.points)

    @property
    def every_size(self) -> Sequence[int]:
        """All batch sizes from the smallest to the largest point that the test uses."""
        used = self.used
        return range(ceil(used[0].batch_size), floor(used[-1].batch_size) + 1)

    @property
    def notes(self) -> Iterator[str]:
        """Notes below a table of the points."""
        if not self.in_round:
            yield f"Round {self.round} does not have {self.benchmark}: its points are not used."
        if not self.covered:
            yield f"The official checker does not cover {self.benchmark}, and crashes on it."
        if self.allowance:
            yield (
                f"The official checker accepts {self.allowance:,} {self.unit} less than the"
                " smallest acceptable mean; the rules do so only in round 5.0."
            )

    def at(self, batch_size: float) -> rcp.Comparison:
        """Return the comparison that the test makes for sets of this batch size."""
        return rcp.comparison_at(self.used, batch_size, runs=self.runs.required)


def references(usage: str | None, round_name: str | None) -> list[Reference]:
    """Return the points of all benchmarks of a round, by default of the newest round.

    Raises:
        UserError: there is no such round, or mlperf-logging has no points of it.
    """
    round_ = load_round(usage or _usage_of_round(round_name), round_name or _newest(usage))
    names = benchmarks_with_points(round_)
    if chosen := [_of_package(round_, name) for name in names if _rules(round_, name)]:
        return chosen
    others = ", ".join(_rounds_with_points(round_.usage))
    raise UserError(
        f"{_package()} has no reference points of {round_.usage} {round_.name};"
        f" rounds with points: {others}"
    )


def reference(
    usage: str | None, round_name: str | None, benchmark: str, origin: Origin = PACKAGE
) -> Reference:
    """Return the points of a benchmark, by default in the newest round that has it and its points.

    Raises:
        UserError: there are no such points, or a file cannot be read.
    """
    round_ = _round_of(usage, round_name, benchmark)
    package = _of_package(round_, benchmark)
    if origin.file:
        return with_points_of(package, origin)
    if not package.points:
        names = _rounds_with_points(round_.usage, benchmark)
        others = f"; rounds with points: {', '.join(names)}" if names else ""
        raise UserError(
            f"{_package()} has no reference points of {visible(benchmark)} in {round_.usage}"
            f" {round_.name}{others}"
        )
    return package


def reference_of(round_: Round, rules: Benchmark, origin: Origin = PACKAGE) -> Reference:
    """Return the points of a benchmark of a round, possibly none.

    Raises:
        UserError: a file cannot be read.
    """
    package = _reference(round_, rules)
    return with_points_of(package, origin) if origin.file else package


def with_points_of(package: Reference, origin: Origin) -> Reference:
    """Return a reference with the points of a file, instead of its own or added to them.

    Raises:
        UserError: the file cannot be read.
    """
    assert origin.file  # noqa: S101
    points = custom_points(origin.file, package.benchmark, package.runs)
    source = visible(str(origin.file))
    if not origin.merge:
        return replace(package, points=points, source=source)
    sizes = {point.batch_size for point in points}
    kept = [point for point in package.points if point.batch_size not in sizes]
    sources = f"{package.source} and {source}"
    return replace(package, points=rcp.by_size([*kept, *points]), source=sources)


# ---- the choice of a round -----------------------------------------------------------------


def _round_of(usage: str | None, name: str | None, benchmark: str) -> Round:
    """Return the round of this name, by default the newest one with the benchmark and its points.

    Raises:
        UserError: there is no such round or benchmark.
    """
    candidates = [usage] if usage else _usages_with(benchmark)
    if not candidates:
        names = sorted(
            {
                name
                for of_usage in usages()
                for of in rounds(of_usage)
                for name in _all(of_usage, of)
            }
        )
        hint = did_you_mean(benchmark, names) or f"; expected one of {', '.join(names)}"
        raise UserError(f"there is no benchmark {visible(benchmark)!r}{hint}")
    if name:
        return load_round(candidates[0], name)
    for of_usage in candidates:
        names = _rounds_with_points(of_usage, benchmark)
        in_round = [name for name in names if benchmark in benchmarks_of(of_usage, name)]
        if names:
            return load_round(of_usage, (in_round or names)[-1])
    return load_round(candidates[0], _newest(candidates[0]))


def _usages_with(benchmark: str) -> list[str]:
    return [
        usage
        for usage in _usages()
        if any(benchmark in _all(usage, name) for name in rounds(usage))
    ]


def _all(usage: str, name: str) -> Sequence[str]:
    return [*benchmarks_of(usage, name), *benchmarks_with_points(load_round(usage, name))]


def _usage_of_round(name: str | None) -> str:
    """Return training, unless only HPC has the round."""
    return next((usage for usage in _usages() if name in (None, *rounds(usage))), TRAINING)


def _usages() -> list[str]:
    return sorted(usages(), key=lambda usage: usage != TRAINING)


def _newest(usage: str | None) -> str:
    """Return the newest round of which mlperf-logging has points, else the newest."""
    of_usage = usage or TRAINING
    return (_rounds_with_points(of_usage) or rounds(of_usage))[-1]


def _rounds_with_points(usage: str, benchmark: str | None = None) -> list[str]:
    """Return the rounds of which mlperf-logging has points of a benchmark (None: any), by age."""
    names = {name: benchmarks_with_points(load_round(usage, name)) for name in rounds(usage)}
    return [name for name, of in names.items() if (benchmark in of if benchmark else of)]


# ---- mlperf-logging ------------------------------------------------------------------------


def benchmarks_with_points(round_: Round) -> list[str]:
    """Return the benchmarks of which mlperf-logging has points in a round, sorted."""
    files = points_folder(official_folder(), round_).glob("rcps_*.json")
    return sorted(file.stem.removeprefix("rcps_") for file in files)


def _of_package(round_: Round, name: str) -> Reference:
    rules = _rules(round_, name)
    if rules is None:
        raise UserError(f"the rulebook has no benchmark {visible(name)!r} of {round_.usage}")
    return _reference(round_, rules)


def _rules(round_: Round, name: str) -> Benchmark | None:
    """Return the rules of a benchmark in a round, else in the newest round that has it."""
    names = (round_.name, *reversed(rounds(round_.usage)))
    candidates = (load_benchmark(round_.usage, round_name, name) for round_name in names)
    return next((rules for rules in candidates if rules), None)


def _reference(round_: Round, rules: Benchmark) -> Reference:
    usage, name, runs = round_.usage, rules.name, rules.runs
    file = f"{points_folder(Path(), round_).as_posix()}/rcps_{name}.json"
    return Reference(
        usage=usage,
        round=round_.name,
        benchmark=name,
        unit=rules.unit,
        runs=runs,
        allowance=rcp.allowance(usage, name),
        in_round=name in round_.benchmarks,
        covered=rcp.is_covered(usage, name),
        source=f"{_package()}, {file}",
        points=rcp.reference_points(
            usage, round_.ruleset, name, runs=runs.required, drop=runs.drop
        ),
    )


def _package() -> str:
    return f"mlperf-logging {installed_version('mlperf-logging')}"
