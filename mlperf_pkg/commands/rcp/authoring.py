"""Make a new reference point from the logs of reference runs, and find mistakes in points.

The points are those of mlperf-logging or of a file.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from json import dumps
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.rcp import reference as references
from mlperf_pkg.commands.rcp.table import add_item, number
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import bounded
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.resources import installed_version, official_folder
from mlperf_pkg.infra.text import visible
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, by_key, json_text, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import NO_LIMIT, by_size, has_limit, prune
from mlperf_pkg.results.report import as_json
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Benchmark, Round
from mlperf_pkg.rulebook.rounds import where_instead
from mlperf_pkg.rulebook.upstream import points as upstream
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import is_hyperparameter

FORMAT = "mlperf-pkg/rcp-lint/1"
_MEANING = {
    upstream.PointKind.OUTLIER: "a run more than three times the median, or less than a third",
    upstream.PointKind.FEW_RUNS: "fewer runs than 2N, where a submission has N",
    upstream.PointKind.EQUAL_RUNS: "all runs are equal: the mean itself is the limit",
    upstream.PointKind.MISNAMED: "the benchmark of the point is not that of its file",
    upstream.PointKind.UNUSED: "the round does not have the benchmark",
}
_SHOWN = 3  # logs that a reason names


def new_point(checked: Checked, about: Mapping[str, str | None]) -> tuple[str, list[str]]:
    """Return the file of the reference point of all runs of a check, and notes on the point.

    ``about`` are ``creator``, ``platform``, ``when`` and ``precision``, as recorded in the point;
    None takes a field from the logs or the round.

    Raises:
        UserError: the runs do not make a reference point. The message has all reasons.
    """
    round_, rules = _rules(checked.runs)
    reasons = list(_reasons(checked.runs, rules.runs.required))
    if reasons:
        raise UserError("\n  ".join(["the logs do not make a reference point:", *reasons]))
    name = f"{rules.name}_ref_{checked.runs[0].convergence.batch_size:.15g}"
    record = _record(checked, about, round_, rules)
    parsed = msgspec.convert(record, upstream.PointRecord)
    reason = references.refused_point(parsed, 2 * rules.runs.drop)
    if reason:
        raise UserError(f"the official checker cannot use the point: {name} {reason}")
    text = dumps({name: as_json(record)}, indent=2) + "\n"
    notes = list(_notes(references.reference_of(round_, rules), name, parsed))
    errors = sum(run.verdicts.rules.value == "fail" for run in checked.runs)
    if errors:
        notes.append(f"{counted(errors, 'log')} with errors; 'mlperf-pkg check' shows them")
    return text, notes


# ---- reasons against a point ---------------------------------------------------------------


def _rules(runs: Sequence[Run]) -> tuple[Round, Benchmark]:
    """Return the round of the runs and the rules of their benchmark.

    Raises:
        UserError: they are of several benchmarks or rounds, or there are no rules.
    """
    names = Counter((run.benchmark, run.usage, run.round) for run in runs)
    if len(names) != 1:
        words = (f"{visible(name) or 'no benchmark'} {round_}" for name, _, round_ in names)
        raise UserError(
            f"the logs are of several benchmarks or rounds: {', '.join(words)}; expected one"
        )
    [(benchmark, usage, round_name)] = names
    rules = load_benchmark(usage, round_name, benchmark)
    if rules is None:
        problem = "the logs do not name a benchmark"
        if benchmark:
            where = where_instead(usage, round_name, benchmark)
            problem = f"round {round_name} does not have {visible(benchmark)}{where}"
        raise UserError(f"{problem}; expected logs of a benchmark of the round")
    return load_round(usage, round_name), rules


def _reasons(runs: Sequence[Run], required: int) -> Iterator[str]:
    """Yield the reasons why the runs do not make a reference point."""
    if len(runs) < 2 * required:
        yield (
            f"{counted(len(runs), 'log')}; expected at least {2 * required}"
            f" (2N, as a submission has N = {required} runs)"
        )
    sizes = _differing(run.convergence.batch_size for run in runs)
    if sizes:
        yield f"batch sizes {sizes}; expected one"
    elif (to_finite(runs[0].convergence.batch_size) or 0) <= 0:
        yield f"batch size {bounded(runs[0].convergence.batch_size)!r}; expected a positive number"
    converged = [run for run in runs if run.converged and run.convergence.converged]
    first = {run.fingerprint: run for run in reversed(runs)}
    refused = {
        "unreadable": [r for r in runs if not r.is_read],
        "the official checker crashes": [r for r in runs if r.convergence.crash],
        "not converged": [r for r in runs if r not in converged],
        "no number of epochs or samples to converge": [
            r for r in converged if to_finite(r.convergence.to_converge) is None
        ],
        "copies of other logs": [
            r for r in runs if r.fingerprint is not None and first[r.fingerprint] is not r
        ],
    }
    for problem, of_problem in refused.items():
        names = ", ".join(visible(run.path) for run in of_problem[:_SHOWN])
        more = ", ..." if len(of_problem) > _SHOWN else ""
        if names:
            yield f"{problem} ({counted(len(of_problem), 'log')}): {names}{more}"
    for key in sorted({key for run in runs for key in run.hyperparameters}):
        values = _differing(run.hyperparameters.get(key, "not logged") for run in runs)
        if values:
            yield f"{key} is {values}; expected one value"


def _differing(values: Iterator[Any]) -> str:
    """Return values with the number of their logs; empty if all are equal."""
    counts = Counter(visible(str(value)) for value in values)
    words = [f"{value} ({counted(count, 'log')})" for value, count in sorted(counts.items())]
    return " and ".join(words) if len(words) > 1 else ""


# ---- the point -----------------------------------------------------------------------------


def _record(
    checked: Checked, about: Mapping[str, str | None], round_: Round, rules: Benchmark
) -> dict[str, Any]:
    runs = checked.runs
    fields = {
        "Benchmark": rules.name,
        "Creator": about["creator"] or _logged(runs, "org"),
        "When": about["when"] or f"Prior to {round_.name} submission",
        "Platform": about["platform"] or _logged(runs, "platform"),
        "Precision": about["precision"],
        "BS": runs[0].convergence.batch_size,
        "Hyperparams": _hyperparameters(runs[0], checked),
        references.unit_key(rules.name): [run.convergence.to_converge for run in runs],
    }
    return {key: value for key, value in fields.items() if value is not None}


def _logged(runs: Sequence[Run], name: str) -> str:
    """Return the values of ``submission_<name>`` in the logs."""
    return ", ".join(sorted({run.text(name) for run in runs} - {""})) or "TBD"


def _hyperparameters(run: Run, checked: Checked) -> dict[str, Any]:
    """Return the first value of each hyperparameter in a log, with all its digits."""
    sources = {path: s for context in checked.contexts for path, s in context.sources.items()}
    values: dict[str, Any] = {}
    source = sources[run.path]
    with source.open() as stream:
        for record in filter(None, LogReader(stream, run.path, lambda _: None)):
            if isinstance(record.key, str) and is_hyperparameter(record.key):
                values.setdefault(record.key, bounded(record.value))
    return dict(sorted(values.items()))


def _notes(package: references.Reference, name: str, record: upstream.PointRecord) -> Iterator[str]:
    """Yield the mean and the limit of the point, the effect of pruning, and its problems."""
    new = references.point_of(name, record, package.runs)
    limit = number(new.minimum) if has_limit(new) else NO_LIMIT
    count = counted(len(record.to_converge), "run")
    yield f"{name}: {count}, mean {number(new.mean)} {package.unit}, limit {limit}"
    same = [point for point in package.points if point.batch_size == new.batch_size]
    others = [point for point in package.points if point.batch_size != new.batch_size]
    used = prune(by_size([*others, new]))
    pruned = [point.name for point in others if point in package.used and point not in used]
    words = "would be used by the test" if new in used else "would be pruned"
    text = f"with the points of {package.source}, it {words}"
    text += f", in place of {same[0].name} (mean {number(same[0].mean)})" if same else ""
    yield text + (f", and would prune {', '.join(pruned)}" if pruned else "")
    problems = upstream.problems_of(record, package.benchmark, package.runs.required)
    for kind, actual, expected in problems:
        yield f"{kind}: {actual}; expected {expected}"


# ---- mistakes -----------------------------------------------------------------------------


class Mistakes(Struct, frozen=True):
    """The mistakes in points from ``source``; ``detailed`` shows the values of each point.

    ``reasons`` says of each known mistake why it is accepted.
    """

    source: str
    mistakes: tuple[upstream.PointProblem, ...]
    reasons: Mapping[upstream.PointProblem, str] = {}
    detailed: bool = False

    @property
    def new(self) -> int:
        """How many mistakes are not known."""
        return len(self.mistakes) - len(self.reasons)


def mistakes(
    file: Path | None, usage: str | None, round_name: str | None, benchmark: str | None
) -> Mistakes:
    """Return the mistakes in the points of a file or, without one, of the installed mlperf-logging.

    Those of a file are for one benchmark, by default that of its points.

    Raises:
        UserError: mlperf-logging is not installed, there is no such round or benchmark, the file
            cannot be read, the official checker cannot use its points, or they are of several
            benchmarks.
    """
    if file:
        return _mistakes_of_file(file, usage, round_name, benchmark)
    if benchmark:
        references.reference(usage, round_name, benchmark)
    chosen = [
        load_round(of_usage, name)
        for of_usage in usages()
        for name in rounds(of_usage)
        if usage in (None, of_usage) and round_name in (None, name)
    ]
    if not chosen:
        raise UserError(f"the rulebook has no round {visible(round_name or '')!r}")
    every = upstream.lint(official_folder(), chosen)
    problems = tuple(problem for problem in every if benchmark in (None, problem.benchmark))
    entries = {upstream.identity(entry): entry.reason for entry in upstream.known_points()}
    identities = {problem: upstream.identity(problem) for problem in problems}
    reasons = {problem: entries[name] for problem, name in identities.items() if name in entries}
    return Mistakes(f"mlperf-logging {installed_version('mlperf-logging')}", problems, reasons)


def _mistakes_of_file(
    path: Path, usage: str | None, round_name: str | None, benchmark: str | None
) -> Mistakes:
    file = visible(str(path))
    names = [benchmark] if benchmark else references.benchmarks_in(path)
    if len(names) != 1:
        problem = f"points of {', '.join(map(visible, names))}" if names else "no reference point"
        raise UserError(f"{file}: {problem}; expected points of one benchmark")
    package = references.reference(usage, round_name, names[0], references.Origin(path))
    problems = upstream.lint_file(path, load_round(package.usage, package.round), names[0], file)
    source = f"{file} for {names[0]} of {package.usage} {package.round}"
    return Mistakes(source, tuple(problems), detailed=True)


# ---- output -------------------------------------------------------------------------------

_COLUMNS = (Column("Benchmark", 20), Column("Rounds: batch sizes", 58))


def text(result: Mistakes, view: View) -> str:
    """Render for a terminal: by kind, each point in detail if there are few."""
    terminal = Terminal(view)
    terminal.line((f"source: {result.source}", PLAIN))
    terminal.line()
    detailed = result.detailed or view.verbose
    for kind in upstream.PointKind:
        mistakes = [item for item in result.mistakes if item.kind == kind]
        if mistakes:
            title = f"{kind}: {counted(len(mistakes), 'point')}; {_MEANING[kind]}"
            terminal.paragraph((title, HEADING))
            if not detailed:
                by_benchmark = sorted(by_key((item.benchmark, item) for item in mistakes).items())
                rows = [[name, _rounds(problems)] for name, problems in by_benchmark]
                terminal.table(table_of(_COLUMNS, rows))
                continue
            for item in mistakes:
                where = f"{item.point} ({item.usage} {item.round}, {item.batch_size:.15g})"
                add_item(terminal, "  ", f"{where}: {item.found}; expected {item.expected}")
            terminal.line()
    summary = "The points have no mistakes."
    if result.mistakes:
        state = f", {result.new} of them new" if result.new else ", all known and accepted"
        more = "" if detailed else "; --verbose shows each point"
        number = counted(len(result.mistakes), "mistake")
        summary = f"{number}{'' if result.detailed else state}{more}"
    terminal.paragraph((summary, PLAIN))
    return terminal.text()


def _rounds(problems: Sequence[upstream.PointProblem]) -> str:
    """Return the batch sizes by round: ``1.0: 48, 128; hpc 2.0: 64``."""
    words = []
    for (usage, name), of_round in groupby(problems, lambda item: (item.usage, item.round)):
        sizes = ", ".join(f"{problem.batch_size:.15g}" for problem in of_round)
        words.append(f"{'' if usage == 'training' else f'{usage} '}{name}: {sizes}")
    return "; ".join(words)


def json(result: Mistakes, _: View) -> str:
    """Render all fields."""
    mistakes = tables.records(_data(result))
    return json_text({"format": FORMAT, "source": result.source, "mistakes": mistakes})


def csv(result: Mistakes, _: View) -> str:
    """Render one line per mistake."""
    return tables.csv(_data(result))


def _data(result: Mistakes) -> tables.Table:
    columns = [Column(key=n, of=attrgetter(n)) for n in upstream.PointProblem.__struct_fields__]
    return table_of([*columns, Column(key="known_because", of=result.reasons.get)], result.mistakes)


LINT_FORMATS = {"text": text, "csv": csv, "json": json}
