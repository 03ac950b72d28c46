"""``mlperf_logging.compliance_checker``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.compat.console import (
    Console,
    add_log_output,
    add_warnings,
    parser_of,
    rulesets,
    run,
)
from mlperf_pkg.compat.judged import warned_runs
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.rulebook.files import usages


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of("compliance_checker", "Check a log.")
    parser.add_argument("filename", help="the log")
    parser.add_argument("--usage", choices=usages(), default="training")
    parser.add_argument("--ruleset", choices=rulesets(), default=rulesets()[-1])
    parser.add_argument("--config", help="not supported: 'mlperf-pkg --rules DIR' reads own rules")
    add_warnings(parser)
    add_log_output(parser, "compliance_checker")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Check a log and return the exit status."""
    return run(get_parser(), _check, argv, "filename")


def _check(args: Namespace, console: Console) -> int:
    if args.config not in (None, f"{args.usage}_{args.ruleset}/common.yaml"):
        raise UserError("--config is not supported: 'mlperf-pkg --rules DIR check' reads own rules")
    report = check([args.filename], Options(args.usage, round_name(args.ruleset))).report
    if len(report.runs) != 1:
        raise UserError(f"{args.filename}: expected one log")
    console.log("INFO", f"Running compliance on file: {args.filename}")
    quiet = args.quiet and not args.werror
    console.findings(report.findings, quiet=quiet, errors=False)
    (row,) = report.runs
    is_warned = args.werror and row.path in warned_runs(report)
    passed = row.verdict.official is Verdict.PASS and not is_warned
    if not passed:
        console.log("ERROR", "FAILED")
    console.say_where("** Logging output also at")
    if passed:
        console.log("INFO", "SUCCESS")
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
