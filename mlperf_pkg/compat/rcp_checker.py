"""``mlperf_logging.rcp_checker``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.rcp import crash_of, rcp_test
from mlperf_pkg.commands.rcp.reference import Origin, reference_of
from mlperf_pkg.compat.console import Console, add_log_output, parser_of, run
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.files import usages
from mlperf_pkg.submission.params import TRAIN_SAMPLES

_ADVICE = "consider adding --rcp_bypass in when running the package_checker."
_PRUNED, _FULL = "pruned_rcps", "full_rcps"


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of("rcp_checker", "Test the convergence of a result set.")
    parser.add_argument("dir", help="the folder of a result set")
    parser.add_argument("--rcp_usage", choices=usages(), default="training")
    parser.add_argument("--rcp_version", default="6.0.0", help="the ruleset, such as 5.1.0")
    parser.add_argument("--verbose", action="store_true", help="say more about the test")
    parser.add_argument("--bert_train_samples", action="store_true", help="for BERT, by samples")
    parser.add_argument("--rcp_pass", choices=[_PRUNED, _FULL], default=_PRUNED)
    parser.add_argument("--custom_rcps", type=Path, help="a file of reference points")
    add_log_output(parser, "rcp_checker")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Test a result set and return the exit status."""
    return run(get_parser(), _check, argv, "dir")


def logs_in(folder: str) -> list[str]:
    """Return the logs of a result set.

    Raises:
        UserError: there is none.
    """
    if logs := sorted(map(str, Path(folder).glob("result_*.txt"))):
        return logs
    raise UserError(f"{folder}: no log of a result set (no file named result_*.txt)")


def _check(args: Namespace, console: Console) -> int:
    flags = frozenset(TRAIN_SAMPLES) if args.bert_train_samples else frozenset()
    options = Options(args.rcp_usage, round_name(args.rcp_version), flags=flags)
    contexts = check(logs_in(args.dir), options).contexts
    if len(contexts) != 1 or contexts[0].rules is None:
        raise UserError(f"{args.dir}: the logs are not those of one result set of the round")
    (context,) = contexts
    reference = reference_of(context.round, contexts[0].rules, Origin(args.custom_rcps))
    points = reference.points if args.rcp_pass == _FULL else reference.used
    result = rcp_test(context, points)
    if result is None:
        raise UserError(f"{args.dir}: cannot be tested: {crash_of(context, points)}")
    console.log("INFO", f" Running RCP Checker, pass: {args.rcp_pass}")
    if result.mean is not None:
        console.log("INFO", f" Submission mean epochs: {result.mean:.4f}")
    if args.verbose:
        console.log("INFO", f" Smallest acceptable mean: {result.minimum}")
    if result.official_pass:
        console.log("INFO", f"{result.message}, RCP test PASSED")
    else:
        console.log("ERROR", f"{result.message}, RCP test FAILED, {_ADVICE}")
    console.say_where("** Logging output also at")
    return int(not result.official_pass)


if __name__ == "__main__":
    sys.exit(main())
