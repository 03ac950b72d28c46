"""From the arguments of a command to a report: find, read, judge, fold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from mlperf_pkg.checker.fold import fold, in_order
from mlperf_pkg.checker.judge import judge, not_followed
from mlperf_pkg.checker.plan import load_rules, plans_of, power_files
from mlperf_pkg.checker.reading import Workers, read_all
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.find import find_input, labels
from mlperf_pkg.submission.model import Input


def check(arguments: Sequence[str], options: Options) -> Checked:
    """Check files, folders, submissions or whole rounds.

    Raises:
        UserError: an argument is no such path, cannot be read or holds no log; the rulebook has
            no such round.
    """
    prefixes = labels(arguments)
    found = (find_input(arg, prefix) for arg, prefix in zip(arguments, prefixes, strict=True))
    return check_inputs(tuple(found), options)


def check_inputs(inputs: tuple[Input, ...], options: Options) -> Checked:
    """As ``check``, of what was found already.

    Raises:
        UserError: a log cannot be read; the rulebook has no such round.
    """
    waivers = Waivers(options.config.waivers, options.origin)
    waivers.check_codes()
    plans = [plan for given in inputs for plan in plans_of(given, options)]
    logs = [log for plan in plans for log in plan.logs]
    power = [file for plan in plans for file in power_files(plan)]
    workers = Workers(options.jobs, options.scheduler, partial(load_rules, plans))
    read = read_all([*logs, *power], workers, options.observer)
    runs = [waivers.on_run(each) for each in read if isinstance(each, Run)]
    measured = {each.path: each for each in read if isinstance(each, PowerLog)}
    by_path = {run.path: run for run in runs}
    judged = [judge(plan, by_path, measured, waivers) for plan in plans]
    skipped = [not_followed(place) for given in inputs for place in given.skipped]
    report = fold(judged, runs, waivers.on_findings(skipped))
    if stale := list(waivers.stale(report.findings)):
        report = replace(report, findings=in_order([*report.findings, *stale]))
    return Checked(
        report=report,
        inputs=inputs,
        runs=tuple(runs),
        sets=tuple(s for each in judged for s in each.sets),
        systems=tuple(s for each in judged for s in each.systems),
    )
