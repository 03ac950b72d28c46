"""The command ``mlperf-pkg``."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from mlperf_pkg import __version__
from mlperf_pkg.cli.group import Failure, Program, system_error
from mlperf_pkg.cli.rules_folder import PATH, use_rules
from mlperf_pkg.cli.streams import prepare_streams

SECTIONS = {
    "Submit": ("init", "check", "score", "select", "build", "pack", "verify", "watch"),
    "Review": ("review", "diff", "compare", "results", "report"),
    "Look up": ("rules", "rcp", "export"),
    "Set up": ("system", "simulate", "doctor", "completion"),
}
"""The commands by who types them, in the order of the help."""
COMMANDS = {
    **{name: f"mlperf_pkg.cli.{name}" for names in SECTIONS.values() for name in names},
    "completion": "mlperf_pkg.cli.shells",
}


@click.group(
    cls=Program,
    modules=COMMANDS,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(__version__, "-V", "--version", message="mlperf-pkg %(version)s")
@click.option("--debug", is_flag=True, help="Show the tracebacks of unexpected errors.")
@click.option(
    "--rules",
    type=PATH,
    envvar="MLPERF_PKG_RULES",
    metavar="DIR",
    help="Read rounds and benchmarks from DIR too; they replace those of the same name.",
)
@click.pass_context
def cli(ctx: click.Context, debug: bool, rules: Path | None) -> None:
    """Check and build MLPerf Training submissions.

    Exit status: 0 for success, 1 if a command found errors, 2 if it could not do its
    work.

    \b
    Examples:
      mlperf-pkg check logs/
      mlperf-pkg score logs/
      mlperf-pkg build --division closed
      mlperf-pkg --rules our-rules check logs/
    """
    if debug:
        import logging  # noqa: PLC0415 - only a defect needs it

        logging.basicConfig(format="%(message)s")
        logging.getLogger("mlperf_pkg").setLevel(logging.DEBUG)
    if rules is not None:
        use_rules(ctx, rules.absolute())


def main() -> None:
    """Run the command line and exit: 0 for success, 1 for errors found, 2 for failure."""
    prepare_streams()
    try:
        cli(prog_name="mlperf-pkg")
    except SystemExit as end:
        with suppress(OSError):  # Python flushes again and reports it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(end.code or 0))  # skip freeing the objects of a check, which is slow
        raise
    except OSError as error:  # from a help text; all others are messages already
        failure = Failure(system_error(error))
        failure.show()
        raise SystemExit(failure.exit_code) from error
