"""``mlperf_logging.system_desc_checker``."""

import sys
from argparse import ArgumentParser, Namespace

from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.commands.system.description import SystemRound, checked_description
from mlperf_pkg.compat import console as tools
from mlperf_pkg.compat.official import crash_paths, rejects
from mlperf_pkg.config import round_name
from mlperf_pkg.rulebook.load import load_round


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = tools.parser_of("system_desc_checker", "Check a system description.")
    parser.add_argument("filename", type=tools.path, help="the system description")
    tools.add_rules(parser)
    tools.add_warnings(parser)
    tools.add_log_output(parser, "system_desc_checker")
    return parser


def _check(args: Namespace, console: tools.Console) -> int:
    tools.refuse_drift(args.usage, args.ruleset)
    round_ = load_round(args.usage, round_name(args.ruleset))
    system = checked_description(args.filename, SystemRound(args.usage, round_.name, "as given"))
    is_wrong = rejects(system.findings)
    console.findings(system.findings, quiet=args.quiet and not args.werror)
    say_system(system, console)
    console.say_where("** Logging output also at")
    if crash_paths(system.findings):
        return tools.CRASHED
    return int(is_wrong and args.exit_status)


def say_system(system: SystemFile, console: tools.Console) -> None:
    """Write whether a system description passes."""
    name = system.system_name or ""
    if rejects(system.findings):
        console.log("ERROR", f"  System description checker failed for {name}")
    else:
        console.log("INFO", f"  System description checker passed for {name}")


main = tools.command(get_parser, _check, "filename")
"""Check a system description and return the exit status."""

if __name__ == "__main__":
    sys.exit(main())
