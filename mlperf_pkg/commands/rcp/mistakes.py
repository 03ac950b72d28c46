"""Mistakes in the data of reference points, of mlperf-logging or of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from mlperf_pkg.commands.rcp.lines import add_item
from mlperf_pkg.commands.rcp.reference import Origin, reference
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import installed_version, official_folder
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Table, csv_text
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.files import rounds, usages
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.upstream.known_points import KnownPoint, known_points
from mlperf_pkg.rulebook.upstream.points import Kind, PointProblem, lint, lint_file

FORMAT = "mlperf-pkg/rcp-lint/1"
_MEANING = {
    Kind.OUTLIER: "a run more than three times the median, or less than a third",
    Kind.FEW_RUNS: "fewer runs than 2N, where a submission has N",
    Kind.EQUAL_RUNS: "all runs are equal: the mean itself is the limit",
    Kind.MISNAMED: "the benchmark of the point is not that of its file",
    Kind.UNUSED: "the round does not have the benchmark",
}


class Mistake(Struct, frozen=True):
    """A mistake in a point; a known mistake has the ``reason`` why it is accepted."""

    problem: PointProblem
    reason: str | None = None


class Mistakes(Struct, frozen=True):
    """The mistakes in points from ``source``; ``detailed`` shows the values of each point."""

    source: str
    mistakes: tuple[Mistake, ...]
    detailed: bool = False

    @property
    def fails(self) -> bool:
        """Whether there is a mistake that is not known."""
        return any(mistake.reason is None for mistake in self.mistakes)


def mistakes_of_package(
    usage: str | None, round_name: str | None, benchmark: str | None
) -> Mistakes:
    """Return the mistakes in the points of the installed mlperf-logging.

    Raises:
        UserError: mlperf-logging is not installed, or there is no such round or benchmark.
    """
    if benchmark:
        reference(usage, round_name, benchmark)
    chosen = [
        load_round(of_usage, name)
        for of_usage in usages()
        for name in rounds(of_usage)
        if usage in (None, of_usage) and round_name in (None, name)
    ]
    if not chosen:
        raise UserError(f"the rulebook has no round {visible(round_name or '')!r}")
    reasons = {_identity(entry): entry.reason for entry in known_points()}
    problems = lint(official_folder(), chosen)
    return Mistakes(
        f"mlperf-logging {installed_version('mlperf-logging')}",
        tuple(
            Mistake(problem, reasons.get(_identity(problem)))
            for problem in problems
            if benchmark in (None, problem.benchmark)
        ),
    )


def mistakes_of_file(
    path: Path, usage: str | None, round_name: str | None, benchmark: str
) -> Mistakes:
    """Return the mistakes in the points of a file for a benchmark.

    Raises:
        UserError: the file cannot be read, or the official checker cannot use its points.
    """
    package = reference(usage, round_name, benchmark, Origin(path))
    round_ = load_round(package.usage, package.round)
    problems = lint_file(path, round_, benchmark, visible(str(path)))
    source = f"{package.source} for {benchmark} of {package.usage} {package.round}"
    return Mistakes(source, tuple(map(Mistake, problems)), detailed=True)


def _identity(item: PointProblem | KnownPoint) -> tuple[str, ...]:
    return str(item.kind), item.usage, item.round, item.benchmark, item.point


# ---- output -------------------------------------------------------------------------------

_COLUMNS = (Column("Benchmark", 20), Column("Rounds: batch sizes", 58))


def text(result: Mistakes, view: View) -> str:
    """Render for a terminal: by kind, each point in detail if there are few."""
    terminal = Terminal(view)
    terminal.line((f"source: {result.source}", PLAIN))
    terminal.line()
    by_kind = {
        kind: [mistake for mistake in result.mistakes if mistake.problem.kind == kind]
        for kind in Kind
    }
    detailed = result.detailed or view.verbose
    for kind, mistakes in by_kind.items():
        if mistakes:
            title = f"{kind}: {counted(len(mistakes), 'point')}; {_MEANING[kind]}"
            terminal.paragraph((title, HEADING))
            (_add_details if detailed else _add_benchmarks)(terminal, mistakes)
    terminal.paragraph((_summary(result, detailed=detailed), PLAIN))
    return terminal.text()


def _add_benchmarks(terminal: Terminal, mistakes: Sequence[Mistake]) -> None:
    by_benchmark: dict[str, list[PointProblem]] = {}
    for mistake in mistakes:
        by_benchmark.setdefault(mistake.problem.benchmark, []).append(mistake.problem)
    rows = [[(name, PLAIN), (_rounds(of), PLAIN)] for name, of in sorted(by_benchmark.items())]
    terminal.table(Table(_COLUMNS, [Group("", rows)]))


def _rounds(problems: Sequence[PointProblem]) -> str:
    """Return the batch sizes by round: ``1.0: 48, 128; hpc 2.0: 64``."""
    return "; ".join(
        f"{'' if usage == 'training' else f'{usage} '}{name}: {_sizes(of_round)}"
        for (usage, name), of_round in groupby(problems, lambda item: (item.usage, item.round))
    )


def _sizes(problems: Iterator[PointProblem]) -> str:
    return ", ".join(f"{problem.batch_size:.15g}" for problem in problems)


def _add_details(terminal: Terminal, mistakes: Sequence[Mistake]) -> None:
    for mistake in mistakes:
        problem = mistake.problem
        where = f"{problem.point} ({problem.usage} {problem.round}, {problem.batch_size:.15g})"
        add_item(terminal, "  ", f"{where}: {problem.found}; expected {problem.expected}")
    terminal.line()


def _summary(result: Mistakes, *, detailed: bool) -> str:
    number = len(result.mistakes)
    if not number:
        return "The points have no mistakes."
    new = sum(mistake.reason is None for mistake in result.mistakes)
    more = "" if detailed else "; --verbose shows each point"
    if result.detailed:
        return f"{counted(number, 'mistake')}{more}"
    state = f"{new} of them new" if new else "all known and accepted"
    return f"{counted(number, 'mistake')}, {state}{more}"


def json(result: Mistakes, _: View) -> str:
    """Render all fields."""
    mistakes = [{**asdict(m.problem), "known_because": m.reason} for m in result.mistakes]
    return tables.json_text({"format": FORMAT, "source": result.source, "mistakes": mistakes})


def csv(result: Mistakes, _: View) -> str:
    """Render one line per mistake."""
    header = (*PointProblem.__struct_fields__, "known_because")
    rows = ([*asdict(m.problem).values(), m.reason] for m in result.mistakes)
    return csv_text(header, rows)


LINT_FORMATS: Mapping[str, Callable[[Mistakes, View], str]] = {
    "text": text,
    "csv": csv,
    "json": json,
}
