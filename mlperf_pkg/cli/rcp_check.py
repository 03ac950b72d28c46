"""``mlperf-pkg rcp check``."""

from __future__ import annotations

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import Command
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.rcp_options import origin_options
from mlperf_pkg.cli.reporting import noted
from mlperf_pkg.commands.rcp.reference import Origin
from mlperf_pkg.commands.rcp.tested import CHECK_FORMATS, tested_sets


@command.command(name="check")
@options.checked
@options.counting_samples
@origin_options
@options.written(CHECK_FORMATS)
def check_points(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    origin: Origin,
    format_: str,
    target: Output,
) -> int:
    """Test the convergence of result sets against reference points.

    PATH is as for 'mlperf-pkg check'. Show for each result set its batch size, olympic
    mean, smallest acceptable mean (limit) and margin, the factor by which normalisation
    multiplies the score, and whether the set passes. Open sets are tested too, but need
    not pass. With more than 20 sets, text shows only those that do not pass.

    --custom FILE tests against points that mlperf-logging does not have, such as a
    pending change. They replace the points of mlperf-logging, as with --custom_rcps of
    the official RCP checker; --merge adds them instead. FILE applies to the benchmarks
    that its points name. If mlperf-logging comes to another outcome, both are shown.

    Exit status: 0 if all sets pass except Open ones, 1 if one fails or was not checked,
    2 if no set could be tested.

    \b
    Examples:
      mlperf-pkg rcp check logs/
      mlperf-pkg rcp check submissions/ACME --format csv
      mlperf-pkg rcp check logs/ --custom new-point.json --merge
    """
    files = [str(origin.file)] if origin.file else []
    target.refuse_early([*paths, *files])
    result = tested_sets(noted(check(paths, check_options)), origin)
    target.write(CHECK_FORMATS[format_](result, target.view()))
    return result.status
