"""From the arguments of a command to a report: find, read, judge, waive, fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice

from msgspec.structs import replace

from mlperf_pkg.checker.fold import fold
from mlperf_pkg.checker.guard import guarded
from mlperf_pkg.checker.judge import Contents, JudgedPlan, judge
from mlperf_pkg.checker.plan import Plan, load_rules, names_of, plans_of, power_files, with_curves
from mlperf_pkg.checker.reading import File, Workers, read_all
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.inputs import check_input
from mlperf_pkg.checks.published import check_readable
from mlperf_pkg.checks.result_sets import not_described
from mlperf_pkg.checks.shared_runs import has_several_rounds, shared_runs
from mlperf_pkg.findings import Finding, folded, in_order, without_pass
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.find import find_input, labels
from mlperf_pkg.submission.model import Input
from mlperf_pkg.submission.twice import each_once


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
    judged = _compared(list(_judged(plans, options, waivers, runs)), waivers)
    unread = [finding for input_ in inputs for finding in check_input(input_)]
    sets = tuple(result for item in judged for result in item.sets)
    around = [*unread, *check_readable(), *not_described(sets)]
    report = fold(judged, runs, waivers.waive(around))
    if stale := list(waivers.stale(report.findings)):
        report = replace(report, findings=in_order([*report.findings, *folded(stale)]))
    return Checked(
        report=report,
        inputs=inputs,
        runs=tuple(runs),
        sets=sets,
        systems=tuple(system for item in judged for system in item.systems),
        contexts=tuple(context for item in judged for context in item.contexts),
    )


def _judged(
    plans: Sequence[Plan], options: Options, waivers: Waivers, runs: list[Run]
) -> Iterator[JudgedPlan]:
    """Judge each plan while the files of the next ones are read; add its runs to ``runs``."""
    names = names_of(plans)
    files: list[list[File]] = [[*plan.logs, *power_files(plan)] for plan in plans]
    workers = Workers(options.jobs, options.scheduler, partial(load_rules, plans))
    every_file = list(chain.from_iterable(files))
    with closing(read_all(every_file, workers, options.observer)) as contents:
        for plan, own_files in zip(plans, files, strict=True):
            own = list(islice(contents, len(own_files)))
            own_runs = [waivers.waive_run(run) for run in own if isinstance(run, Run)]
            power_logs = {log.path: log for log in own if isinstance(log, PowerLog)}
            runs += own_runs
            of_plan = Contents({run.path: run for run in own_runs}, power_logs, names)
            yield judge(plan, of_plan, waivers)


def _compared(judged: Sequence[JudgedPlan], waivers: Waivers) -> Sequence[JudgedPlan]:
    """Add the findings that compare result sets with each other."""
    contexts = [context for item in judged for context in item.contexts]
    groups = shared_runs(contexts)
    if not groups and not has_several_rounds(contexts):
        return judged
    from mlperf_pkg.checker.copies import with_comparisons  # noqa: PLC0415 - few inputs need it

    return guarded(
        ".",
        "comparing the result sets",
        lambda: with_comparisons(judged, groups, waivers),
        lambda finding: [_with_defect(judged[0], finding), *judged[1:]],
    )


def _with_defect(item: JudgedPlan, finding: Finding) -> JudgedPlan:
    findings = (*item.findings, finding)
    return replace(item, findings=findings, verdict=without_pass(item.verdict, findings))
