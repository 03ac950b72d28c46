"""``mlperf-pkg review resubmitted``."""

from __future__ import annotations

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.review_sides import sides_argument
from mlperf_pkg.commands.review.section import LISTING_FORMATS


@click.command(name="resubmitted")
@sides_argument
@options.judged
@options.written(LISTING_FORMATS)
def command(*, sides: tuple[str, ...], check_options: Options, format_: str, target: Output) -> int:
    """List result sets with logs of an earlier round.

    OLD is the earlier round, NEW the later one. Both are folders of submissions or
    published rounds, such as 4.1; without them, all published rounds are compared.

    Logs may be resubmitted if the system description is the same in both rounds and the
    logs pass the checker of the newer round. Logs of a Preview do not prove an Available
    result. Of published rounds, only a few fields of a description are compared, and the
    logs are not checked.

    Text shows the sets that are not allowed; --verbose shows all.

    Exit status: 0 if all sets are allowed, 1 if not, 2 if they could not be compared.

    \b
    Examples:
      mlperf-pkg review resubmitted 5.0 5.1
      mlperf-pkg review resubmitted 5.1 training_results_v6.0
      mlperf-pkg review resubmitted training_results_v5.0 training_results_v5.1 -v
    """
    from mlperf_pkg.commands.review.resubmitted import (  # noqa: PLC0415 - slow to import
        NOT_ALLOWED,
        resubmitted,
    )
    from mlperf_pkg.commands.review.round import read_sides  # noqa: PLC0415

    target.refuse_early(sides)
    listing = resubmitted(*read_sides(sides, check_options))
    target.write(LISTING_FORMATS[format_](listing, target.view()))
    return int(listing.counts[NOT_ALLOWED] > 0)
