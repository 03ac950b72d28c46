"""The command ``mlperf-pkg``."""

import os
import sys
from contextlib import suppress
from typing import Any

import click

from mlperf_pkg import __version__
from mlperf_pkg.cli.group import GENERAL, Failure, Program, apply_general, system_error
from mlperf_pkg.cli.streams import prepare_streams

SECTIONS = {
    "Submit": ("init", "check", "score", "select", "build", "pack", "verify", "watch"),
    "Review": ("review", "diff", "compare", "results", "report"),
    "Look up": ("rules", "rcp", "export"),
    "Set up": ("system", "simulate", "doctor", "completion"),
}
"""The commands by who types them, in the order of the help."""


@click.group(
    cls=Program,
    sections=SECTIONS,
    params=list(GENERAL),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(__version__, "-V", "--version", message="mlperf-pkg %(version)s")
@click.pass_context
def cli(ctx: click.Context, /, **_: Any) -> None:
    """Check and build MLPerf Training submissions.

    The general options below may stand before the name of a command or after it. If an
    option is given twice, the last one counts. Commands that have no use for --jobs,
    --scheduler, --quiet or --verbose ignore them.

    Exit status: 0 for success, 1 if a command found errors, 2 if it could not do its
    work.

    \b
    Examples:
      mlperf-pkg check logs/
      mlperf-pkg score logs/
      mlperf-pkg build --division closed
      mlperf-pkg check logs/ --rules our-rules --jobs 4
    """
    for option in GENERAL:
        apply_general(ctx, option.name or "")


def main() -> None:
    """Run the command line and exit: 0 for success, 1 for errors found, 2 for failure."""
    prepare_streams()
    # OpenBLAS, of numpy, sends Ctrl-C to its process where it cannot start its threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
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
