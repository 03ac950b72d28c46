"""From the arguments of a command to a report: find, read, judge, waive, fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from mlperf_pkg.checker.plan import Plan, load_rules, names_of, plans_of, power_files, with_curves
from mlperf_pkg.checker.reading import File, Workers, read_all
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.find import each_once, find_input, labels
from mlperf_pkg.submission.model import Input

if TYPE_CHECKING:
    from mlperf_pkg.checker.judge import JudgedPlan


def check(arguments: Sequence[str], options: Options) -> Checked:
    """Check files, folders, submissions or whole rounds.

    Raises:
        UserError: an argument does not exist, cannot be read or holds no log; the rulebook does
            not have the round; a waiver has an unknown code.
    """
    prefixes = labels(arguments)
    inputs = [find_input(arg, prefix) for arg, prefix in zip(arguments, prefixes, strict=True)]
    return check_inputs(each_once(arguments, inputs), options)


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
        plans = list(map(with_curves, plans))
    runs: list[Run] = []
    judged = list(_judged(plans, options, waivers, runs))
    from mlperf_pkg.checker.fold import fold  # noqa: PLC0415 - see _judged

    return fold(inputs, judged, runs, waivers)


def _judged(
    plans: Sequence[Plan], options: Options, waivers: Waivers, runs: list[Run]
) -> Iterator[JudgedPlan]:
    """Judge each plan while the files of the next ones are read; add its runs to ``runs``."""
    names, ids = names_of(plans), set[str]()
    files: list[list[File]] = [[*plan.logs, *power_files(plan)] for plan in plans]
    workers = Workers(options.jobs, options.scheduler, partial(load_rules, plans))
    every_file = list(chain.from_iterable(files))
    with closing(read_all(every_file, workers, options.observer)) as contents:
        for plan, own_files in zip(plans, files, strict=True):
            own = list(islice(contents, len(own_files)))
            # Imported here so that other processes read logs in the meantime.
            from mlperf_pkg.checker.judge import Contents, judge  # noqa: PLC0415

            own_runs = [waivers.waive_run(run) for run in own if isinstance(run, Run)]
            power_logs = {log.path: log for log in own if isinstance(log, PowerLog)}
            runs += own_runs
            by_path = {run.path: run for run in own_runs}
            of_plan = Contents(by_path, power_logs, names, ids, options.partial)
            yield judge(plan, of_plan, waivers)
