"""``mlperf-pkg rcp``: commands about reference convergence points."""

from __future__ import annotations

import click

from mlperf_pkg.cli.group import Group

@click.group(name="rcp", cls=Group)
def command() -> None:
    """Show, check and write reference convergence points.

    The RCP test compares the convergence of result sets with runs of the reference at
    the same batch size.

    Exit status: that of the command.

    \b
    Examples:
      mlperf-pkg rcp show bert --round 5.0
      mlperf-pkg rcp show llama31_8b --batch-size 48
      mlperf-pkg rcp show llama31_8b --chart points.svg
      mlperf-pkg rcp check logs/ --custom rcps_llama31_8b.json
      mlperf-pkg rcp new reference-logs/ -o new-point.json
      mlperf-pkg rcp bootstrap llama31_8b --batch-size 32
      mlperf-pkg rcp diff 5.0 5.1
      mlperf-pkg rcp lint rcps_llama31_8b.json
    """
