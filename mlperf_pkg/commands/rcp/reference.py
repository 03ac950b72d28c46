"""The reference points of one benchmark in one round, and how the RCP test uses them.

They are those of mlperf-logging, or of a file that has others, such as a pending change.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil, floor
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.rcp.records import PointRecord, points_folder, read_points
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.infra.text import did_you_mean, visible
from mlperf_pkg.results import rcp
from mlperf_pkg.results.rcp import ReferencePoint
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import benchmarks_of, load_benchmark, load_round
from mlperf_pkg.rulebook.model import Benchmark, Round, Runs
from mlperf_pkg.rulebook.rounds import TRAINING
from mlperf_pkg.rulebook.verified import drift, installed_name, verified

_LARGEST = 1e9
"""Batch sizes are smaller: the official checker starts its search at this value."""

_MOST = 1e11
"""The largest value of a run: from 4.5e11 on, the search for the smallest mean never ends."""

_IN_SAMPLES = frozenset({"llama2_70b_lora", "flux1"})
"""The benchmarks whose points have "samples to converge" in mlperf-logging 4.1.68."""


class PointsOrigin(Struct, frozen=True):
    """The source of points: mlperf-logging or a ``file``, with ``merge`` both.

    A point of the file replaces one of mlperf-logging with the same batch size.
    """

    file: Path | None = None
    merge: bool = False


PACKAGE = PointsOrigin()


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
            yield (
                f"Round {self.round} does not have the benchmark {self.benchmark}, so the points"
                f" of {self.benchmark} are not used."
            )
        if not self.covered:
            yield (
                f"The official checker has no RCP test for {self.benchmark}, and crashes on its"
                " result sets."
            )
        if self.allowance:
            yield (
                f"The official checker also accepts a mean that is up to {self.allowance:,}"
                f" {self.unit} below the smallest acceptable mean; the written rules allow this"
                " only in round 5.0."
            )

    def at(self, batch_size: float) -> rcp.RcpComparison:
        """Return the comparison that the test makes for sets of this batch size."""
        return rcp.comparison_at(self.used, batch_size, runs=self.runs.required)


def references(usage: str | None, round_name: str | None) -> list[Reference]:
    """Return the points of all benchmarks of a round, by default of the newest round.

    Raises:
        UserError: there is no such round, or mlperf-logging has no points of it.
    """
    if usage is None:
        usage = _usage_with_round(round_name)
    round_ = load_round(usage, round_name or _newest(usage))
    chosen = []
    for benchmark in benchmarks_with_points(round_):
        rules = _rules(round_, benchmark)
        if rules:
            chosen.append(reference_of(round_, rules))
    if not chosen:
        raise _lacking(f"{usage} {round_.name}", _rounds_with_points(usage))
    return chosen


def _usage_with_round(round_name: str | None) -> str:
    """Return the first usage that has a round of this name (None: any), else Training."""
    for usage in _usages():
        if round_name is None or round_name in rounds(usage):
            return usage
    return TRAINING


def reference(
    usage: str | None, round_name: str | None, benchmark: str, origin: PointsOrigin = PACKAGE
) -> Reference:
    """Return the points of a benchmark, by default in the newest round that has it and its points.

    Raises:
        UserError: there are no such points, or a file cannot be read.
    """
    round_ = _round_of(usage, round_name, benchmark)
    rules = _rules(round_, benchmark)
    if rules is None:
        raise UserError(f"there is no benchmark {visible(benchmark)!r} of {round_.usage}")
    result = reference_of(round_, rules, origin)
    if not result.points:
        subject = f"{visible(benchmark)} in {round_.usage} {round_.name}"
        raise _lacking(subject, _rounds_with_points(round_.usage, benchmark))
    return result


def _lacking(subject: str, others: Sequence[str]) -> UserError:
    """Return the error that there are no points of a round or a benchmark, only of others."""
    message = f"{installed_name()} has no reference points of {subject}"
    if others:
        message += f"; rounds with points: {', '.join(others)}"
    return UserError(message)


def reference_of(round_: Round, rules: Benchmark, origin: PointsOrigin = PACKAGE) -> Reference:
    """Return the points of a benchmark of a round, possibly none.

    Raises:
        UserError: a file cannot be read.
    """
    usage = round_.usage
    name = rules.name
    runs = rules.runs
    points = rcp.reference_points(usage, round_.ruleset, name, runs=runs.required, drop=runs.drop)
    source = f"{installed_name()}, {points_folder(Path(), round_).as_posix()}/rcps_{name}.json"
    if name in drift(usage, round_.name).points:
        source = f"{source}, which differs from that of {verified().version}"
    if origin.file:
        own_points = custom_points(origin.file, name, runs)
        own_source = visible(str(origin.file))
        if origin.merge:
            own_sizes = {point.batch_size for point in own_points}
            kept = [point for point in points if point.batch_size not in own_sizes]
            points = rcp.by_size([*kept, *own_points])
            source = f"{source} and {own_source}"
        else:
            points = own_points
            source = own_source
    return Reference(
        usage=usage,
        round=round_.name,
        benchmark=name,
        unit=rules.unit,
        runs=runs,
        allowance=rcp.allowance(usage, name),
        in_round=name in round_.benchmarks,
        covered=rcp.is_covered(usage, name),
        source=source,
        points=points,
    )


def benchmarks_with_points(round_: Round) -> list[str]:
    """Return the benchmarks of which mlperf-logging has points in a round, sorted."""
    files = points_folder(official_folder(), round_).glob("rcps_*.json")
    return sorted(file.stem.removeprefix("rcps_") for file in files)


def other_points(rounds_: Iterable[tuple[str, str]], benchmarks: Collection[str]) -> str | None:
    """Return the installed mlperf-logging in words, where its points are not the verified ones.

    Such as ``mlperf-logging 4.2.0, which differs from 4.1.68 in the reference points of bert of
    5.1``; None if no points of the benchmarks in these usages and rounds differ.
    """
    differences = []
    for usage, name in rounds_:
        of_points = replace(drift(usage, name).of(benchmarks), code=(), rules=())
        if of_points:
            differences.append(of_points.in_words())
    if not differences:
        return None
    words = "; ".join(differences)
    return f"{installed_name()}, which differs from {verified().version} in {words}"


def _rules(round_: Round, name: str) -> Benchmark | None:
    """Return the rules of a benchmark in a round, else in the newest round that has it."""
    for round_name in (round_.name, *reversed(rounds(round_.usage))):
        rules = load_benchmark(round_.usage, round_name, name)
        if rules:
            return rules
    return None


# ---- the choice of a round -----------------------------------------------------------------


def _round_of(usage: str | None, name: str | None, benchmark: str) -> Round:
    """Return the round of this name, by default the newest one with the benchmark and its points.

    Raises:
        UserError: there is no such round or benchmark.
    """
    candidates = [usage] if usage else _usages_with(benchmark)
    if name:
        return load_round(candidates[0], name)
    for candidate in candidates:
        with_points = _rounds_with_points(candidate, benchmark)
        if with_points:
            in_round = [name for name in with_points if benchmark in benchmarks_of(candidate, name)]
            return load_round(candidate, (in_round or with_points)[-1])
    return load_round(candidates[0], _newest(candidates[0]))


def _usages() -> list[str]:
    return sorted(usages(), key=lambda usage: usage != TRAINING)


def _usages_with(benchmark: str) -> list[str]:
    """Return the usages of which a round, in the rulebook or in mlperf-logging, has a benchmark.

    Raises:
        UserError: there is none.
    """
    chosen = []
    every = set[str]()
    for usage in _usages():
        names = set().union(*_with_points(usage).values())
        for round_name in rounds(usage):
            names.update(benchmarks_of(usage, round_name))
        every |= names
        if benchmark in names:
            chosen.append(usage)
    if not chosen:
        names_in_words = ", ".join(sorted(every))
        hint = did_you_mean(benchmark, sorted(every)) or f"; expected one of {names_in_words}"
        raise UserError(f"there is no benchmark {visible(benchmark)!r}{hint}")
    return chosen


def _newest(usage: str) -> str:
    """Return the newest round of which mlperf-logging has points, else the newest."""
    return (_rounds_with_points(usage) or rounds(usage))[-1]


def _rounds_with_points(usage: str, benchmark: str | None = None) -> list[str]:
    """Return the rounds of which mlperf-logging has points of a benchmark (None: any), by age."""
    chosen = []
    for round_name, benchmarks in _with_points(usage).items():
        if benchmark in benchmarks or (benchmarks and not benchmark):
            chosen.append(round_name)
    return chosen


def _with_points(usage: str) -> dict[str, list[str]]:
    """Return the benchmarks of which mlperf-logging has points, by round."""
    return {name: benchmarks_with_points(load_round(usage, name)) for name in rounds(usage)}


# ---- the points of a file -----------------------------------------------------------------


def unit_key(benchmark: str) -> str:
    """Return the key under which the official checker reads the runs of a benchmark."""
    return "samples to converge" if benchmark in _IN_SAMPLES else "Epochs to converge"


def custom_points(path: Path, benchmark: str, runs: Runs) -> tuple[ReferencePoint, ...]:
    """Return the points for a benchmark in a file in the format of mlperf-logging, by batch size.

    If no point names the benchmark, all are used: some names in mlperf-logging are wrong.

    Raises:
        UserError: the file cannot be read, or the official checker cannot use it.
    """
    every = read_points(path)
    of_benchmark = {name: record for name, record in every.items() if record.benchmark == benchmark}
    records = of_benchmark or every
    reason = _refused(records, dropped=2 * runs.drop)
    if reason:
        raise UserError(f"{visible(str(path))}: {reason}")
    points = []
    for name, record in records.items():
        to_converge = record.to_converge
        point = ReferencePoint.from_runs(
            name, record.batch_size, to_converge, runs=runs.required, drop=runs.drop
        )
        points.append(point)
    return rcp.by_size(points)


def benchmarks_in(path: Path) -> list[str]:
    """Return the benchmarks that the points of a file name, sorted.

    Raises:
        UserError: the file cannot be read.
    """
    return sorted({record.benchmark for record in read_points(path).values()})


def _refused(records: Mapping[str, PointRecord], *, dropped: int) -> str | None:
    """Return the reason why the official checker cannot use the points of a file, or None.

    ``dropped`` is the number of runs of a point that do not count in its mean.
    """
    if not records:
        return "no reference point"
    sizes: dict[float, str] = {}
    for name, record in records.items():
        point = visible(name)
        first = sizes.setdefault(record.batch_size, name)
        if first != name:
            return f"{point} and {visible(first)} both have batch size {record.batch_size:.15g}"
        reason = _refused_point(record, dropped)
        if reason:
            return f"{point} {reason}"
    return None


def _refused_point(record: PointRecord, dropped: int) -> str | None:
    """Return the reason why the official checker cannot use a point, or None."""
    key = unit_key(record.benchmark)
    values = record.samples if key.startswith("samples") else record.epochs
    if record.hyperparameters is None:
        return 'has no "Hyperparams", which the official checker reads'
    if not values:
        return f'has no "{key}", which the official checker reads'
    if len(values) <= dropped:
        return (
            f"has {len(values)} runs; expected more than {dropped}, the number of runs that are"
            " dropped"
        )
    if record.batch_size >= _LARGEST:
        return f"has batch size {record.batch_size:.15g}; expected less than {_LARGEST:,.0f}"
    if not all(0 < value <= _MOST for value in values):
        return f"has a run that converges outside the range of 0 to {_MOST:,.0f}"
    return None
