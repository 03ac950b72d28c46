"""``mlperf_logging.repo_checker``."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from mlperf_pkg.checks.tree import FIRST_ROUND, check_repository
from mlperf_pkg.compat.console import (
    Console,
    add_log_output,
    command,
    parser_of,
    path,
    refuse_drift,
    rulesets,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import is_folder, list_tree
from mlperf_pkg.rulebook.documents import usages
from mlperf_pkg.rulebook.model import version_of


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of("repo_checker", "Check names, sizes and links for git.")
    parser.add_argument("folder", type=path, help="the folder of a submission")
    parser.add_argument("usage", choices=usages(), help="training or hpc")
    covered = [name for name in rulesets() if version_of(name) >= FIRST_ROUND]
    parser.add_argument("ruleset", choices=covered, help="the ruleset, such as 5.1.0")
    add_log_output(parser, "repo_checker")
    return parser


def _check(args: Namespace, console: Console) -> int:
    folder = Path(args.folder)
    refuse_drift(args.usage, args.ruleset)
    if not is_folder(folder):
        raise UserError(f"{folder}: no such folder")
    console.log("INFO", "Running repository checks.")
    findings = list(check_repository(folder.resolve().name, str(folder), list_tree(folder)))
    console.findings(findings, quiet=False)
    console.log("INFO", "CHECKS FAILED." if findings else "ALL CHECKS PASSED.")
    return int(bool(findings) and args.exit_status)


main = command(get_parser, _check)
"""Check the files of a submission and return the exit status."""

if __name__ == "__main__":
    sys.exit(main())
