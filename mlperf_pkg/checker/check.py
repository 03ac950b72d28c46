"""From the arguments of a command to a report: find, read, judge, waive, fold. Or to a log."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.plan import CheckPlan, names_of, plans_of, power_files
from mlperf_pkg.checker.reading import File, read_all
from mlperf_pkg.checker.values import UNREAD, Checked, Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Verdicts
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.streams import Keeper
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import printable, shown
from mlperf_pkg.results.report import RunRow, table_of
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.find import find_input, find_inputs
from mlperf_pkg.submission.model import Input
from mlperf_pkg.submission.raw_logs import with_runs

if TYPE_CHECKING:
    import pandas as pd

    from mlperf_pkg.checker.judge import JudgedPlan


_Content = TypeVar("_Content", Run, PowerLog)


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
    if not options.whole_files:
        inputs = with_runs(inputs)
    waivers = Waivers(options.config.waivers, options.origin)
    waivers.refuse_unknown_codes()
    if options.flags:
        inputs = tuple(input_.with_flags(options.flags) for input_ in inputs)
    if options.complete:
        inputs = tuple(map(_needing_code, inputs))
    plans = list(plans_of(inputs, options))
    if options.curves:
        plans = list(map(_with_curves, plans))
    set_names = names_of(plans)
    set_ids = set[str]()
    runs: list[Run] = []
    run_rows: list[RunRow] = []
    judged_plans: list[JudgedPlan] = []
    # Closed so that no process is left if a plan cannot be judged.
    with closing(_read_plans(plans, options, waivers)) as read_plans:
        for plan, plan_runs, power_logs in read_plans:
            # Imported here so that other processes read logs in the meantime.
            from mlperf_pkg.checker.fold import run_rows_of  # noqa: PLC0415
            from mlperf_pkg.checker.judge import Contents, judge  # noqa: PLC0415
            from mlperf_pkg.rulebook.verified import drift  # noqa: PLC0415

            contents = Contents(
                runs=_by_path(plan_runs),
                power_logs=_by_path(power_logs),
                waivers=waivers,
                names=set_names,
                ids=set_ids,
                partial=options.partial,
            )
            judged_plans.append(judge(plan, contents))
            counted_runs = judged_plans[-1].counted(plan_runs)
            run_rows += run_rows_of(judged_plans[-1], counted_runs)
            runs += counted_runs
            if plan.usage and plan.round:
                # Remembered for the fold, which asks again when no other process has work.
                drift(plan.usage, plan.round)
    from mlperf_pkg.checker.fold import fold  # noqa: PLC0415 - as above

    return fold(inputs, judged_plans, runs, run_rows, waivers)


def _needing_code(contents: Input) -> Input:
    """Return an input with submissions of which the code must be there."""
    submissions = [replace(submission, needs_code=True) for submission in contents.submissions]
    return replace(contents, submissions=tuple(submissions))


def _by_path(contents: Iterable[_Content]) -> dict[str, _Content]:
    return {content.path: content for content in contents}


def _with_curves(plan: CheckPlan) -> CheckPlan:
    """Return a plan by which the curves of the runs are read, too."""
    return replace(plan, logs=tuple(replace(log, curve=True) for log in plan.logs))


def _read_plans(
    plans: Sequence[CheckPlan], options: Options, waivers: Waivers
) -> Generator[tuple[CheckPlan, list[Run], list[PowerLog]]]:
    """Yield each plan with its runs and power logs, while the files of the next ones are read.

    The last run is that of the ``whole`` file of the plan, if it has one.
    The findings of the runs are waived.
    """
    keeper = Keeper()
    files_of_plans: list[list[File]] = []
    for plan in plans:
        whole = [plan.whole] if plan.whole else []
        files_of_plans.append([*plan.logs, *whole, *power_files(plan)])
    all_files = list(chain.from_iterable(files_of_plans))
    reading = read_all(all_files, options.processes, options.scheduler, options.observer)
    with closing(reading) as all_contents:
        for plan, files in zip(plans, files_of_plans, strict=True):
            contents = list(islice(all_contents, len(files)))
            runs: list[Run] = []
            power_logs: list[PowerLog] = []
            for content in contents:
                if isinstance(content, Run):
                    runs.append(waivers.waive_run(content).kept_by(keeper))
                else:
                    power_logs.append(content)
            yield plan, runs, power_logs


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

    def __repr__(self) -> str:
        """Return one line, for a prompt or a notebook; the fields and ``to_pandas`` have all."""
        what = f"{self.usage} {self.round} {self.benchmark} {self.division}"
        verdicts = f"official {self.verdict.official}, rules {self.verdict.rules}"
        counts = f"records {len(self.records):,}, findings {len(self.findings):,}"
        return f"<Log: {self.path}; {what}; {verdicts}; {counts}>"

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
    (run,) = check_inputs((contents,), replace(options, curves=True, whole_files=True)).runs
    unread = next((finding for finding in run.findings if finding.code in UNREAD), None)
    if unread:
        raise UserError(f"{path}: {unread.text}")
    fields: dict[str, Any] = {
        "path": path,
        "verdict": run.verdicts,
        "evaluations": tuple(evaluations_of(run)),
        "records": tuple(_records(contents.every_log[0].source)),
    }
    for name in Log.__struct_fields__:
        if name not in fields:
            fields[name] = getattr(run, name)
    return Log(**fields)


def evaluations_of(run: Run) -> Iterator[LogEvaluation]:
    """Yield the metrics of all evaluations in the curve of a run."""
    if run.curve is None:
        return
    for evaluation in run.curve.evaluations:
        minutes = None
        if run.start_ms is not None:
            # Divided as for the time-to-train.
            minutes = (evaluation.time_ms - run.start_ms) / 60 / 1000
        for metric, value in evaluation.values.items():
            yield LogEvaluation(
                line=evaluation.line,
                minutes=minutes,
                position=evaluation.position,
                unit=evaluation.unit,
                metric=metric,
                value=value,
            )


def _records(source: Source) -> Iterator[LogRecord]:
    with source.open() as stream:
        reader = LogReader(stream, source.label, lambda _: None, first_line=source.first_line)
        for number, record in enumerate(reader):
            if record:
                key = record.key if isinstance(record.key, str) else shown(record.key)
                line = reader.line_of(number)
                value = printable(record.value)
                time_ms = float(record.time_ms)
                yield LogRecord(line, time_ms, key, value, record.metadata)
