"""The command ``mlperf-pkg``."""

from __future__ import annotations

import gc

import click

from mlperf_pkg import __version__
from mlperf_pkg.cli.group import Program

COMMANDS = {
    "check": "mlperf_pkg.cli.check",
    "score": "mlperf_pkg.cli.score",
    "select": "mlperf_pkg.cli.select",
    "init": "mlperf_pkg.cli.init",
    "build": "mlperf_pkg.cli.build",
    "pack": "mlperf_pkg.cli.pack",
    "verify": "mlperf_pkg.cli.verify",
    "diff": "mlperf_pkg.cli.diff",
    "report": "mlperf_pkg.cli.report",
    "plot": "mlperf_pkg.cli.plot",
    "compare": "mlperf_pkg.cli.compare",
    "rules": "mlperf_pkg.cli.rules",
    "system": "mlperf_pkg.cli.system",
    "watch": "mlperf_pkg.cli.watch",
    "simulate": "mlperf_pkg.cli.simulate",
}


# Python's own 700 makes it search again and again among what a check keeps: modules, rules, runs.
_OBJECTS_BETWEEN_COLLECTIONS = 5_000


@click.group(
    cls=Program,
    modules=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(__version__, message="mlperf-pkg %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of a defect.")
def cli(debug: bool) -> None:
    """Check and build MLPerf Training submissions.

    Exit status: 0 if nothing is wrong, 1 if something was found, 2 if the command
    could not do its work.

    \b
    Examples:
      mlperf-pkg check logs/
      mlperf-pkg score logs/
      mlperf-pkg build --division closed
    """


def main() -> None:
    """Run the command line and exit: 0 clean, 1 errors were found, 2 it could not be done."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        cli(prog_name="mlperf-pkg")
    finally:
        gc.freeze()  # nobody needs the cycles found of a process that ends
