"""``verify_for_v*.sh`` of the repository of mlperf-logging: its checkers, one after another."""

import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlperf_pkg.checks.tree import FIRST_ROUND
from mlperf_pkg.compat import console as tools
from mlperf_pkg.compat import package_checker, repo_checker, result_summarizer
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.rulebook.model import version_of

_PARAMS = "package_checker_params"


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = tools.parser_of("verify", "Run all checkers on a submission, as verify_for_v*.sh.")
    parser.add_argument("folder", type=tools.path, help="the folder of a submission")
    tools.add_rules(parser)
    return parser


def flags_of(folder: Path) -> Iterator[str]:
    """Yield the options that a submission has at its top for the package checker.

    The script does not read a last line without a line end, and divides words as the shell does.
    """
    file = folder / _PARAMS
    if file.is_file():
        *lines, _ = read_file(file, MAX_BYTES).decode("utf-8", "replace").split("\n")
        for line in lines:
            yield from re.findall(r"[^ \t]+", f"--{line}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checkers and return the exit status: that of the first whose status is not 0.

    No other one runs after it, unless ``--exit-status`` asks for the errors of all.
    """
    args = get_parser().parse_args(argv)
    status_option = ["--exit-status"] if args.exit_status else []
    arguments = [*status_option, args.folder, args.usage, args.ruleset]
    flags = list(flags_of(Path(args.folder)))
    status = package_checker.main([*arguments, *flags])
    if status == 0 or args.exit_status:
        status = result_summarizer.main(arguments) or status
    has_repo_checker = version_of(args.ruleset) >= FIRST_ROUND
    if has_repo_checker and (status == 0 or args.exit_status):
        status = repo_checker.main(arguments) or status
    return status


if __name__ == "__main__":
    sys.exit(main())
