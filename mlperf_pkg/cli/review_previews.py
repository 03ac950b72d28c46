"""``mlperf-pkg review previews``."""

from __future__ import annotations

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.review_sides import sides_argument
from mlperf_pkg.commands.review.section import LISTING_FORMATS


@click.command(name="previews")
@sides_argument
@options.judged
@options.written(LISTING_FORMATS)
def command(*, sides: tuple[str, ...], check_options: Options, format_: str, target: Output) -> int:
    """Compare Previews with their Available successors.

    OLD has the Previews, NEW the successors. Both are folders of submissions or
    published rounds, such as 4.1; without them, all published rounds are compared.

    The smallest and the largest previewed scale each need a successor: a result of the
    same submitter, accelerator, benchmark and division, in the next round or in the
    first one 140 days later. Its performance may be 2 % lower. With more accelerators,
    it must be faster; with fewer, time x accelerators is compared. If both measured
    energy, energy is compared instead. Logs of a Preview itself do not count.

    Text shows the Previews that are not settled; --verbose shows all.

    Exit status: 0 if all Previews are settled, 1 if not, 2 if they could not be
    compared.

    \b
    Examples:
      mlperf-pkg review previews
      mlperf-pkg review previews 4.1 5.0 --verbose
      mlperf-pkg review previews 5.1 training_results_v6.0
      mlperf-pkg review previews 4.1 5.0 --format csv -o previews.csv
    """
    from mlperf_pkg.commands.review.previews import (  # noqa: PLC0415 - slow to import
        Outcome,
        previews,
    )
    from mlperf_pkg.commands.review.round import read_sides  # noqa: PLC0415

    target.refuse_early(sides)
    listing = previews(*read_sides(sides, check_options))
    target.write(LISTING_FORMATS[format_](listing, target.view()))
    return int(any(Outcome(name).is_open for name in listing.counts))
