"""``mlperf-pkg compare``."""

from collections.abc import Mapping
from pathlib import Path

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FILE, PATH, Command
from mlperf_pkg.cli.options import noted
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.compare.formats import COMPARE_FORMATS
from mlperf_pkg.commands.compare.ratios import (
    Result,
    all_prices,
    baseline_test,
    compare,
    with_rounds,
)
from mlperf_pkg.commands.compare.reading import Filter, read_results
from mlperf_pkg.errors import UserError


@click.command(name="compare", cls=Command)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=PATH)
@options.published_option("Compare with")
@click.option(
    "--baseline",
    metavar="NAME",
    help="Compare with this baseline: a system, a submitter or SUBMITTER/SYSTEM (default: the"
    " first result of the first PATH).",
)
@options.repeatable(
    "--benchmark",
    "benchmarks",
    metavar="NAME",
    text="Compare only this benchmark; * in NAME matches any text",
)
@options.repeatable(
    "--system",
    "systems",
    metavar="NAME",
    text="Compare only results of this system or submitter (* in NAME matches any text). With"
    " --published, the option limits only the published results, and all results in PATH are"
    " compared",
)
@options.repeatable("--division", "divisions", metavar="NAME", text="Compare only this division")
@options.count_option(
    "--accelerators",
    multiple=True,
    text="Compare only systems with N accelerators. With --published, the option limits only the"
    " published results, and all results in PATH are compared; repeatable.",
)
@click.option(
    "--prices",
    type=FILE,
    help="Read list prices from FILE, in YAML: 'dgx-a100: {price_usd: 300000, source: a quote}'."
    " FILE overrides the prices in --config and in systems/prices.yaml.",
)
@options.chart_option(
    "the ratios into FILE, which ends in .svg or .png; with several benchmarks, one file for each"
    " benchmark"
)
@options.judged
@options.written(COMPARE_FORMATS)
@options.gathered(Filter, "result_filter")
def command(
    *,
    paths: tuple[str, ...],
    published: tuple[str, ...],
    baseline: str | None,
    result_filter: Filter,
    prices: Path | None,
    chart: Path | None,
    check_options: Options,
    target: Output,
) -> int:
    """Compare results in speed, price and energy.

    PATH is a submission, a folder of submissions, a system or result set in one
    (ACME/results/dgx/bert), a folder of logs, or a .csv file of published scores.
    Such a file has the columns system, benchmark and minutes, and optionally round,
    submitter, division, accelerators, nodes, energy_joules and availability.

    --published adds the published results of a round, which mlperf-pkg contains. Only
    results of the benchmarks and divisions in the PATHs are added; without a PATH, all
    results are. Published results are marked with their round, such as [5.1]. Text shows
    only published results with the same number of accelerators as a result in a PATH;
    --verbose shows all.

    Results are compared if they have the same benchmark and division, and if the
    benchmark did not change between their rounds; "since 1.0" names the first round
    that can be compared. The fastest result comes first. The baseline of each benchmark
    is the first result of the first PATH. With --baseline, it is the first result of
    this system or submitter (ACME/dgx names both).

    --chart draws the systems with as many accelerators as the baseline; with --verbose,
    it draws all systems. If there are several benchmarks, each has a chart of its own:
    for --chart speed.svg, the files are speed-resnet-closed.svg and so on.

    Exit status: 0 if a result was compared with a baseline, 1 if there was nothing to
    compare, 2 if the comparison or its chart could not be done.

    \b
    Examples:
      mlperf-pkg compare v1.0/NVIDIA v1.0/Graphcore --division closed
      mlperf-pkg compare ACME/results/dgx/bert published.csv --division closed
      mlperf-pkg compare logs/bert --published 5.0 --system NVIDIA
      mlperf-pkg compare --published 5.0,5.1 --benchmark rgat --accelerators 8
      mlperf-pkg compare v1.0/NVIDIA v1.0/Graphcore --chart speed.svg
      mlperf-pkg compare v1.0 v1.1 --baseline 'ipu-pod16*' --benchmark resnet
    """
    if not paths and not published:
        raise click.UsageError("nothing to compare: name a PATH, or a round with --published")
    inputs = [*paths, str(prices)] if prices else paths
    target.refuse_early(inputs)
    if chart:
        Output(chart, target.force).refuse_early(inputs)
        from mlperf_pkg.commands.charts.drawing import ratio_pictures  # noqa: PLC0415 - slow to import

        draw = ratio_pictures(chart, all_sizes=target.verbose)
    price_list = all_prices(prices, check_options.config.prices, Path())
    results = _results(paths, published, result_filter, check_options)
    rows = compare(results, price_list, baseline_test(baseline, results))
    pictures: Mapping[Path, bytes] = {}
    try:
        if chart:
            pictures = draw(rows)
    finally:  # without its chart, a comparison is still a comparison
        target.show(rows, pictures)
    is_compared = any(row.speed is not None and not row.baseline for row in rows)
    return int(not is_compared)


def _results(
    paths: tuple[str, ...], published: tuple[str, ...], wanted: Filter, check_options: Options
) -> list[Result]:
    """Return the results in paths, then published ones; only these are filtered by system."""
    wanted_in_paths = wanted
    if published:
        wanted_in_paths = Filter(wanted.benchmarks, divisions=wanted.divisions)
    results = read_results(paths, wanted_in_paths, check_options, noted)
    if not results and (paths or not published):
        raise UserError("no result matches --benchmark, --system, --division and --accelerators")
    if published:
        from mlperf_pkg.commands.compare.published import read_rounds  # noqa: PLC0415 - if asked

        usage = check_options.usage or check_options.config.usage
        results += read_rounds(published, results, wanted, usage)
    return with_rounds(results)
