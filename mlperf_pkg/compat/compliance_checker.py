"""``mlperf_logging.compliance_checker``."""

import sys
from argparse import ArgumentParser, Namespace

from msgspec import Struct

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.compat import console as tools
from mlperf_pkg.compat.official import warned_runs
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.rulebook.documents import usages

_CONFIG = "--config is not supported: 'mlperf-pkg --rules DIR check' reads your own rules"


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = tools.parser_of("compliance_checker", "Check a log.")
    parser.add_argument("filename", type=tools.path, help="the log")
    parser.add_argument("--usage", choices=usages(), default="training")
    parser.add_argument("--ruleset", choices=tools.rulesets(), default=tools.rulesets()[-1])
    parser.add_argument(
        "--config",
        type=tools.path,
        help="not supported: 'mlperf-pkg --rules DIR' reads your rules",
    )
    tools.add_warnings(parser)
    tools.add_log_output(parser, "compliance_checker")
    return parser


class ComplianceChecker(Struct, frozen=True):
    """The rules by which ``main`` checks logs; ``ruleset`` is a version such as ``5.1.0``."""

    usage: str
    ruleset: str
    quiet: bool
    werror: bool

    def check_file(
        self, filename: str, config_file: str | None = None, console: tools.Console | None = None
    ) -> bool:
        """Return whether a log passes, and write its findings, by default with ``logging``.

        Raises:
            UserError: the log cannot be read, the rulebook does not have the round, or
                ``config_file`` is not that of the ruleset.
        """
        console = console or tools.LoggingConsole()
        if config_file not in (None, f"{self.usage}_{self.ruleset}/common.yaml"):
            raise UserError(_CONFIG)
        checked = check([filename], Options(self.usage, round_name(self.ruleset), whole_files=True))
        tools.refuse_drift_of_runs(checked, self.usage, self.ruleset)
        report = checked.report
        if len(report.runs) != 1:
            raise UserError(f"{filename}: expected one log")
        console.log("INFO", f"Running compliance on file: {filename}")
        console.findings(report.findings, quiet=self.quiet and not self.werror, errors=False)
        (row,) = report.runs
        is_warned = self.werror and row.path in warned_runs(report)
        return row.verdict.official is Verdict.PASS and not is_warned


make_checker = ComplianceChecker


def main(
    filename: str, config_file: str | None, checker: ComplianceChecker
) -> tuple[bool, None, None, None]:
    """Check a log, as ``mlperf_logging.compliance_checker.mlp_compliance.main`` does."""
    return checker.check_file(filename, config_file), None, None, None


def _check(args: Namespace, console: tools.Console) -> int:
    checker = make_checker(args.usage, args.ruleset, args.quiet, args.werror)
    passed = checker.check_file(args.filename, args.config, console)
    if not passed:
        console.log("ERROR", "FAILED")
    console.say_where("** Logging output also at")
    if passed:
        console.log("INFO", "SUCCESS")
    return int(not passed)


command = tools.command(get_parser, _check, "filename")
"""Check a log and return the exit status."""

if __name__ == "__main__":
    sys.exit(command())
