"""From the arguments of a command to a report: find, read, judge, waive, fold. Or to a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.plan import Plan, load_rules, names_of, plans_of, power_files
from mlperf_pkg.checker.reading import File, read_all
from mlperf_pkg.checker.values import UNREAD, Checked, Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Verdicts
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import printable, shown
from mlperf_pkg.results.report import table_of
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.find import find_input, find_inputs
from mlperf_pkg.submission.model import Input

if TYPE_CHECKING:
    import pandas as pd

    from mlperf_pkg.checker.judge import JudgedPlan


def check(arguments: Sequence[str], options: Options) -> Checked:
    """Check files, folders, submissions or whole rounds.

    Raises:
        UserError: an argument does not exist, cannot be read or holds no log; the rulebook does
            not have the round; a waiver has an unknown code.
    """
    return check_inputs(find_inputs(arguments), options)


def check_inputs(inputs: tuple[Input, ...], options: Options) -> Checked:
    """Check inputs that were found already.

    Raises:
        UserError: a log cannot be read; the rulebook does not have the round; a waiver has an
            unknown code.
    """
    waivers = Waivers(options.config.waivers, options.origin)
    waivers.refuse_unknown_codes()
    if options.flags:
        inputs = tuple(input_.with_flags(options.flags) for input_ in inputs)
    plans = list(plans_of(inputs, options))
    if options.curves:
        plans = [replace(p, logs=tuple(replace(log, curve=True) for log in p.logs)) for p in plans]
    runs: list[Run] = []
    judged = list(_judged(plans, options, waivers, runs))
    from mlperf_pkg.checker.fold import fold  # noqa: PLC0415 - see _judged

    return fold(inputs, judged, runs, waivers)


def _judged(
    plans: Sequence[Plan], options: Options, waivers: Waivers, runs: list[Run]
) -> Iterator[JudgedPlan]:
    """Judge each plan while the files of the next ones are read; add its runs to ``runs``."""
    names = names_of(plans)
    ids = set[str]()
    files: list[list[File]] = [[*plan.logs, *power_files(plan)] for plan in plans]
    every_file = list(chain.from_iterable(files))
    prepare = partial(load_rules, plans)
    read = read_all(every_file, options.jobs, options.scheduler, prepare, options.observer)
    with closing(read) as contents:
        for plan, own_files in zip(plans, files, strict=True):
            own = list(islice(contents, len(own_files)))
            # Imported here so that other processes read logs in the meantime.
            from mlperf_pkg.checker.judge import Contents, judge  # noqa: PLC0415

            own_runs = [waivers.waive_run(run) for run in own if isinstance(run, Run)]
            power_logs = {log.path: log for log in own if isinstance(log, PowerLog)}
            runs += own_runs
            by_path = {run.path: run for run in own_runs}
            yield judge(plan, Contents(by_path, power_logs, waivers, names, ids, options.partial))


# ---- the log of a training run, for the Python API ----------------------------------------


class LogRecord(Struct, frozen=True):
    """A record of a log.

    ``line`` counts from 1; ``time_ms`` is in milliseconds since the epoch. ``value`` and
    ``metadata`` are JSON values.
    """

    line: int
    time_ms: float
    key: str
    value: Any
    metadata: Any


class LogEvaluation(Struct, frozen=True):
    """A metric of an evaluation.

    ``line`` is that of its record, counted from 1. ``minutes`` is the time since ``run_start``;
    ``position`` is how far the run had trained, in ``unit``: samples, epochs or steps. ``metric``
    is empty if the benchmark has only one.
    """

    line: int
    minutes: float | None
    position: float
    unit: str
    metric: str
    value: float


class Log(Struct, frozen=True):
    """The log of a training run.

    ``round`` is inferred as in a check of the log. ``benchmark`` and ``division`` are empty if the
    log does not name them; ``status`` is that of ``run_stop``. ``start_ms`` and ``stop_ms`` are the
    times of ``run_start`` and ``run_stop``, in milliseconds since the epoch. ``minutes`` is the
    time-to-train between them by the rules, ``official_minutes`` that of the official summarizer.
    ``hyperparameters`` maps each key to its first value, as JSON.

    ``verdict`` and ``findings`` are those of the log alone. ``records`` omits the lines that the
    official parser cannot read; findings report them.
    """

    path: str
    usage: str
    round: str
    benchmark: str
    division: str
    status: str | None
    start_ms: float | None
    stop_ms: float | None
    minutes: float | None
    official_minutes: float | None
    verdict: Verdicts
    hyperparameters: Mapping[str, str]
    evaluations: tuple[LogEvaluation, ...]
    records: tuple[LogRecord, ...]
    findings: tuple[Finding, ...]

    def to_pandas(self, table: str = "evaluations") -> pd.DataFrame:
        """Return a table of the log: ``evaluations``, ``records`` or ``findings``.

        Raises:
            UserError: there is no such table.
        """
        return table_of(self, table)


def log_of(path: str, options: Options) -> Log:
    """Read one log.

    Raises:
        UserError: as ``check``; the path holds several logs; the log cannot be read.
    """
    contents = find_input(path)
    if len(contents.every_log) != 1:
        raise UserError(f"{path}: {len(contents.every_log)} logs; expected one")
    (run,) = check_inputs((contents,), replace(options, curves=True)).runs
    unread = next((finding for finding in run.findings if finding.code in UNREAD), None)
    if unread:
        raise UserError(f"{path}: {unread.text}")
    own: dict[str, Any] = {
        "path": path,
        "verdict": run.verdicts,
        "evaluations": tuple(evaluations_of(run)),
        "records": tuple(_records(contents.every_log[0].source)),
    }
    of_run = {name: getattr(run, name) for name in Log.__struct_fields__ if name not in own}
    return Log(**own, **of_run)


def evaluations_of(run: Run) -> Iterator[LogEvaluation]:
    """Yield the metrics of all evaluations in the curve of a run."""
    start_ms = run.start_ms
    for evaluation in run.curve.evaluations if run.curve else ():
        # Divided as for the time-to-train.
        minutes = None if start_ms is None else (evaluation.time_ms - start_ms) / 60 / 1000
        where = (evaluation.line, minutes, evaluation.position, evaluation.unit)
        yield from (LogEvaluation(*where, *of_metric) for of_metric in evaluation.values.items())


def _records(source: Source) -> Iterator[LogRecord]:
    with source.open() as stream:
        reader = LogReader(stream, source.label, lambda _: None)
        for number, record in enumerate(reader):
            if record:
                key = record.key if isinstance(record.key, str) else shown(record.key)
                line = reader.line_of(number)
                value = printable(record.value)
                yield LogRecord(line, float(record.time_ms), key, value, record.metadata)
