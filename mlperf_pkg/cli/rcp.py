"""``mlperf-pkg rcp``: commands about reference convergence points."""

from pathlib import Path

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import EXISTING_FILE, CommandFunction, CommandGroup, attached, reads
from mlperf_pkg.cli.options import noted
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.rcp.differences import DIFF_FORMATS, differences
from mlperf_pkg.commands.rcp.reference import PointsOrigin, reference, references
from mlperf_pkg.commands.rcp.table import SHOW_FORMATS, points_picture, shown
from mlperf_pkg.commands.rcp.tested import CHECK_FORMATS, tested_sets
from mlperf_pkg.config import round_name


@click.group(name="rcp", cls=CommandGroup)
def command() -> None:
    """Show, check and compare reference convergence points.

    The RCP test compares the convergence of result sets with runs of the reference at
    the same batch size.

    Exit status: that of the command.

    \b
    Examples:
      mlperf-pkg rcp show bert --round 5.0
      mlperf-pkg rcp show llama31_8b --batch-size 48
      mlperf-pkg rcp show llama31_8b --chart points.svg
      mlperf-pkg rcp check logs/ --custom rcps_llama31_8b.json
      mlperf-pkg rcp diff 5.0 5.1
    """


# ---- arguments and options that the commands share ----------------------------------------

_LARGEST_SIZE = 999_999_999
_benchmark_argument = click.argument(
    "benchmark",
    required=False,
    callback=lambda _, __, value: value and value.lower(),
    shell_complete=completion.benchmarks,
)


def origin_options(function: CommandFunction) -> CommandFunction:
    """Add ``origin``, the source of the points."""
    add_custom = click.option(
        "--custom",
        type=EXISTING_FILE,
        help="Use the reference points in FILE instead of those of mlperf-logging. FILE is written"
        " like the rcps_*.json files of mlperf-logging.",
    )
    add_merge = options.flag(
        "--merge",
        text="Use the points of --custom FILE and those of mlperf-logging; if both have a point for"
        " a batch size, the point of FILE is used.",
    )
    add_step = attached("origin", _origin, "custom", "merge")
    return add_custom(add_merge(add_step(function)))


def _origin(custom: Path | None, *, merge: bool) -> PointsOrigin:
    if merge and not custom:
        raise click.UsageError("--merge needs --custom FILE")
    return PointsOrigin(custom, merge)


# ---- commands -----------------------------------------------------------------------------


@command.command(name="show")
@_benchmark_argument
@options.round_option(
    "Show the points of this round (default: the newest round that has points for the benchmark)."
)
@reads("usage")
@click.option(
    "--all/--pruned",
    "--unpruned",
    "all_",
    default=True,
    help="Show all points (default), or only those that the RCP test uses.",
)
@options.repeatable(
    "--batch-size",
    "batch_sizes",
    type=click.IntRange(1, _LARGEST_SIZE),
    metavar="N",
    text="Show the reference point for result sets of batch size N, interpolated if necessary",
)
@options.flag(
    "--interpolate",
    text="Show the reference point for every batch size between the smallest and the largest that"
    " the RCP test uses.",
)
@options.chart_option("all reference runs and points into FILE, which ends in .svg, .png or .html")
@origin_options
@options.written(SHOW_FORMATS)
def show(
    *,
    benchmark: str | None,
    round_: str | None,
    usage: str | None,
    all_: bool,
    batch_sizes: tuple[int, ...],
    interpolate: bool,
    chart: Path | None,
    origin: PointsOrigin,
    target: Output,
) -> int:
    """Show the reference points of a benchmark.

    Show for each batch size the number of reference runs, their olympic mean and
    deviation, the smallest acceptable mean (limit), and whether the RCP test uses the
    point. Without BENCHMARK, list the benchmarks of the round; csv and json then
    contain the points of all these benchmarks. Numbers in csv and json are not rounded.

    --chart draws every reference run, the mean of each batch size, the points that
    the RCP test does not use, and the smallest acceptable mean between them.

    Exit status: 0 if there are points, 2 if not, or if the chart could not be written.

    \b
    Examples:
      mlperf-pkg rcp show
      mlperf-pkg rcp show bert --round 5.0 --pruned
      mlperf-pkg rcp show llama31_8b --batch-size 48 --batch-size 1000
      mlperf-pkg rcp show llama31_8b --interpolate -o limits.csv
      mlperf-pkg rcp show --round 5.1 --format csv -o points.csv
      mlperf-pkg rcp show bert --chart bert.svg
      mlperf-pkg rcp show bert --custom rcps_bert.json --merge
    """
    inputs = [str(origin.file)] if origin.file else []
    target.refuse_early(inputs)
    if benchmark is None and (batch_sizes or interpolate or chart or origin.file):
        raise click.UsageError("--batch-size, --interpolate, --chart and --custom need a BENCHMARK")
    if chart:
        Output(chart, target.force).refuse_early(inputs)
        draw = points_picture(chart)
    if benchmark is None:
        target.show([shown(points, pruned=not all_) for points in references(usage, round_)])
        return 0
    points = reference(usage, round_, benchmark, origin)
    pictures = {chart: draw(points)} if chart else {}
    sizes = points.every_size if interpolate else batch_sizes
    target.show([shown(points, sizes, pruned=not all_)], pictures)
    return 0


@command.command(name="check")
@options.checked
@options.counting_samples
@origin_options
@options.written(CHECK_FORMATS)
def check_points(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    origin: PointsOrigin,
    target: Output,
) -> int:
    """Test the convergence of result sets against reference points.

    PATH is as for 'mlperf-pkg check'. Show for each result set its batch size, olympic
    mean, smallest acceptable mean (limit) and margin, the factor by which the test
    multiplies the score, and whether the set passes. Open sets are tested too, but need
    not pass. With more than 20 sets, text shows only those that do not pass.

    --custom FILE tests against points that mlperf-logging does not have, such as a
    pending change. The points of FILE replace those of mlperf-logging, as with
    --custom_rcps of the official RCP checker; with --merge, they are added instead.
    FILE applies to the benchmarks that its points name. If the points of mlperf-logging
    give another outcome, both outcomes are shown.

    Exit status: 0 if all sets pass (Open sets need not), 1 if a set fails or was not
    checked, 2 if no set could be tested.

    \b
    Examples:
      mlperf-pkg rcp check logs/
      mlperf-pkg rcp check submissions/ACME --format csv
      mlperf-pkg rcp check logs/ --custom new-point.json --merge
    """
    inputs = [*paths, str(origin.file)] if origin.file else paths
    target.refuse_early(inputs)
    result = tested_sets(noted(check(paths, check_options)), origin)
    target.show(result)
    return result.status


@command.command(name="diff")
@click.argument("old", shell_complete=completion.rounds)
@click.argument("new", shell_complete=completion.rounds)
@_benchmark_argument
@reads("usage")
@options.written(DIFF_FORMATS)
def diff_points(
    *, old: str, new: str, benchmark: str | None, usage: str | None, target: Output
) -> int:
    """Show how the reference points of rounds OLD and NEW differ.

    List the points that were added (+), removed (-) or changed (~), with their runs,
    mean and smallest acceptable mean (limit). A point whose runs did not change is
    listed if the RCP test uses the point in only one of the two rounds.

    Exit status: 0 with or without differences, 2 if a round has no points.

    \b
    Examples:
      mlperf-pkg rcp diff 5.0 5.1
      mlperf-pkg rcp diff 4.1 5.0 retinanet
      mlperf-pkg rcp diff 1.0 3.0 --usage hpc --format csv
    """
    target.refuse_early([])
    target.show(differences(usage or "training", round_name(old), round_name(new), benchmark))
    return 0
