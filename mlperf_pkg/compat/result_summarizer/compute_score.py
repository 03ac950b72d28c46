"""``mlperf_logging.result_summarizer.compute_score``: the score of one result set."""

import sys
from argparse import ArgumentParser, Namespace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.compat.console import (
    Console,
    command,
    parser_of,
    path,
    refuse_drift_of_runs,
    rulesets,
)
from mlperf_pkg.compat.rcp_checker import logs_in
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.rulebook.documents import usages


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of("result_summarizer.compute_score", "Compute the score of a result set.")
    parser.add_argument(
        "--benchmark_folder", type=path, required=True, help="the folder of the logs"
    )
    parser.add_argument("--usage", choices=usages(), required=True)
    parser.add_argument("--ruleset", choices=rulesets(), required=True)
    parser.add_argument("--system", help="the name of the system, which is shown")
    parser.add_argument("--scale", action="store_true", help="normalise by the RCP test")
    for name in ("--has_power", "--is_weak_scaling"):
        parser.add_argument(name, action="store_true", help="not supported: 'mlperf-pkg score'")
    return parser


def _compute(args: Namespace, console: Console) -> int:
    if args.has_power or args.is_weak_scaling:
        raise UserError("for energy or weak scaling, run 'mlperf-pkg score FOLDER'")
    logs = logs_in(args.benchmark_folder)
    checked = check(logs, Options(args.usage, round_name(args.ruleset), whole_files=True))
    refuse_drift_of_runs(checked, args.usage, args.ruleset)
    report = checked.report
    if len(report.result_sets) != 1:
        raise UserError(f"{args.benchmark_folder}: the logs are not those of one result set")
    (row,) = report.result_sets
    passed = [run for run in report.runs if run.verdict.official is Verdict.PASS]
    _say_set(args, row, console)
    for run in passed:
        console.say(
            f"Score - Time to Train (minutes) for {run.path}: {run.official_minutes}."
            f" Samples/Epochs to converge: {run.samples_to_converge}"
        )
    mean = row.official_minutes
    if row.runs_found < (row.runs_required or 0):
        mean = sum(run.official_minutes or 0.0 for run in passed) / row.runs_found
        console.say("WARNING: Olympic scoring skipped")
    score = None if mean is None else mean * _factor(args, row)
    console.say(f"Final score - Time to Train (minutes): {score}")
    return int(score is None and args.exit_status)


def _say_set(args: Namespace, row: ResultSetRow, console: Console) -> None:
    console.say(f"Folder: {args.benchmark_folder}")
    console.say(f"Version: {args.ruleset}")
    console.say(f"System: {args.system}")
    console.say(f"Benchmark: {row.benchmark}")


def _factor(args: Namespace, row: ResultSetRow) -> float:
    if args.scale and row.rcp and row.rcp.official_pass:
        return row.rcp.normalization
    return 1.0


main = command(get_parser, _compute, "benchmark_folder")
"""Compute a score and return the exit status."""

if __name__ == "__main__":
    sys.exit(main())
