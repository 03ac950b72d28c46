"""``mlperf-pkg rcp``: commands about reference convergence points."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import EXISTING_FILE, Group, reads
from mlperf_pkg.cli.options import noted
from mlperf_pkg.cli.output import Output, note
from mlperf_pkg.commands.rcp import authoring
from mlperf_pkg.commands.rcp import reference as reference_points
from mlperf_pkg.commands.rcp.bootstrap import BOOTSTRAP_FORMATS, bootstrap
from mlperf_pkg.commands.rcp.differences import DIFF_FORMATS, differences
from mlperf_pkg.commands.rcp.table import SHOW_FORMATS, points_picture, shown
from mlperf_pkg.commands.rcp.tested import CHECK_FORMATS, tested_sets
from mlperf_pkg.infra.files import write_whole

_Command = Callable[..., Any]


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


# ---- arguments and options that the commands share ----------------------------------------

LARGEST_SIZE = 999_999_999


def benchmark_argument(*, required: bool = True) -> Callable[[_Command], _Command]:
    """Add ``benchmark``."""
    return click.argument(
        "benchmark",
        required=required,
        callback=lambda _, __, value: value and value.lower(),
        shell_complete=completion.benchmarks,
    )


def round_option(function: _Command) -> _Command:
    """Add ``round_`` and ``usage``, by default that which has the benchmark."""
    text = "Use this round (default: the newest with points of the benchmark)."
    with_round: _Command = options.round_option(text)(reads("usage")(function))
    return with_round


def origin_options(function: _Command) -> _Command:
    """Add ``origin``, the source of the points."""

    @wraps(function)
    def with_origin(custom: Path | None, merge: bool, **others: Any) -> Any:
        if merge and not custom:
            raise click.UsageError("--merge needs --custom FILE")
        return function(origin=reference_points.Origin(custom, merge), **others)

    merging = options.flag(
        "--merge",
        text="Add the points of --custom FILE to those of mlperf-logging; a point of FILE"
        " replaces one of the same batch size.",
    )
    text = "Use the points in FILE (format of mlperf-logging) instead of those of mlperf-logging."
    return click.option("--custom", type=EXISTING_FILE, help=text)(merging(with_origin))


# ---- commands -----------------------------------------------------------------------------


@command.command(name="show")
@benchmark_argument(required=False)
@round_option
@click.option(
    "--all/--pruned",
    "--unpruned",
    "all_",
    default=True,
    help="Show all points (default), or only those that remain after pruning.",
)
@options.repeatable(
    "--batch-size",
    "batch_sizes",
    type=click.IntRange(1, LARGEST_SIZE),
    metavar="N",
    text="Show the point that sets of batch size N are compared with, interpolated if necessary",
)
@options.flag(
    "--interpolate",
    text="Show every batch size from the smallest to the largest point that the test uses.",
)
@options.chart_option("all reference runs and points into FILE, .svg, .png or .html")
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
    origin: reference_points.Origin,
    target: Output,
) -> int:
    """Show the reference points of a benchmark.

    Show for each batch size the number of reference runs, their olympic mean and
    deviation, the smallest acceptable mean (limit), and whether pruning removes the
    point. Without BENCHMARK, list the benchmarks of the round; csv and json then
    contain all their points. Numbers in csv and json are not rounded.

    --chart draws every reference run, the mean of each batch size, the points that
    pruning removes, and the smallest acceptable mean between them.

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
        chosen = reference_points.references(usage, round_)
    else:
        chosen = [reference_points.reference(usage, round_, benchmark, origin)]
    if chart:
        write_whole(chart, draw(chosen[0]), replace=target.force)
    sizes = [item.every_size if interpolate else batch_sizes for item in chosen]
    target.show([shown(*pair, pruned=not all_) for pair in zip(chosen, sizes, strict=True)])
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
    origin: reference_points.Origin,
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
    target.show(result)
    return result.status


@command.command(name="new")
@options.checked
@options.counting_samples
@click.option("--creator", metavar="ORG", help="Name the organisation (default: as logged).")
@click.option("--platform", metavar="TEXT", help="Name the system (default: as logged).")
@click.option(
    "--when",
    metavar="TEXT",
    help="Give the time of the runs (default: 'Prior to ROUND submission').",
)
@click.option("--precision", metavar="TEXT", help="Name the numerical format, such as BF16.")
@options.output_option(
    "Write the point to FILE; - is standard output.", metavar="FILE", default="-", show_default=True
)
@options.force_option()
def new(
    *, paths: tuple[str, ...], check_options: Options, output: Path, force: bool, **about: Any
) -> int:
    """Make a new reference point from logs of the reference.

    PATH is as for 'mlperf-pkg check': the logs of at least 2N runs, where a submission
    has N. All runs must converge and have the same benchmark, batch size and
    hyperparameters. The point is written in the format of mlperf-logging, which
    --custom_rcps of the official RCP checker and 'mlperf-pkg rcp check --custom' read.
    stderr shows its mean and limit, and whether pruning would keep it.

    Exit status: 0 if the point was written, 2 if not.

    \b
    Examples:
      mlperf-pkg rcp new reference-logs/ -o new-point.json
      mlperf-pkg rcp new logs/ --creator ACME --platform H100 --precision BF16
    """
    target = Output(None if output == Path("-") else output, force)
    target.refuse_early(paths)
    text, notes = authoring.new_point(noted(check(paths, check_options)), about)
    target.write(text)
    for remark in notes:
        note(remark)
    return 0


@command.command(name="bootstrap")
@benchmark_argument()
@round_option
@origin_options
@options.count_option(
    "--batch-size", most=LARGEST_SIZE, required=True, text="Resample the limit at this batch size."
)
@options.count_option(
    "--resamples", least=100, most=100_000, default=2000, text="Resample N times."
)
@options.seed_option("Seed the random numbers; the same options and seed give the same result.")
@options.written(BOOTSTRAP_FORMATS)
def confidence(
    *,
    benchmark: str,
    round_: str | None,
    usage: str | None,
    origin: reference_points.Origin,
    batch_size: int,
    resamples: int,
    seed: int,
    target: Output,
) -> int:
    """Show the confidence interval of a limit.

    Resample the reference runs of the limit (of two points if it is interpolated), and
    show the 95 % confidence intervals of mean and limit. Show also how often a set of
    runs drawn from the reference itself fails the test, which aims at 5 %.

    Exit status: 0 if there is a limit, 2 if not.

    \b
    Examples:
      mlperf-pkg rcp bootstrap llama31_8b --batch-size 32
      mlperf-pkg rcp bootstrap bert --round 5.0 --batch-size 1024 --seed 7
    """
    points = reference_points.reference(usage, round_, benchmark, origin)
    target.refuse_early([])
    target.show(bootstrap(points, batch_size, resamples=resamples, seed=seed))
    return 0


@command.command(name="diff")
@click.argument("old", shell_complete=completion.rounds)
@click.argument("new", shell_complete=completion.rounds)
@benchmark_argument(required=False)
@reads("usage")
@options.written(DIFF_FORMATS)
def diff_points(
    *, old: str, new: str, benchmark: str | None, usage: str | None, target: Output
) -> int:
    """Show how the reference points of rounds OLD and NEW differ.

    List the points that were added (+), removed (-) or changed (~), with their runs,
    mean and smallest acceptable mean (limit). A point with the same runs is listed if
    pruning removes it in only one of the rounds.

    Exit status: 0 with or without differences, 2 if a round has no points.

    \b
    Examples:
      mlperf-pkg rcp diff 5.0 5.1
      mlperf-pkg rcp diff 4.1 5.0 retinanet
      mlperf-pkg rcp diff 1.0 3.0 --usage hpc --format csv
    """
    target.refuse_early([])
    rounds = old.removeprefix("v"), new.removeprefix("v")
    target.show(differences(usage or "training", *rounds, benchmark))
    return 0


@command.command(name="lint")
@click.argument("file", required=False, type=EXISTING_FILE)
@click.option(
    "--benchmark",
    metavar="NAME",
    shell_complete=completion.benchmarks,
    help="Check only this benchmark (default with FILE: that of its points).",
)
@round_option
@options.written(authoring.LINT_FORMATS)
def lint(
    *,
    file: Path | None,
    benchmark: str | None,
    round_: str | None,
    usage: str | None,
    target: Output,
) -> int:
    """Find mistakes in the data of reference points.

    FILE has points in the format of mlperf-logging. Without FILE, check the points of
    the installed mlperf-logging. Mistakes are a run far from the others (outlier),
    fewer than 2N runs where a submission has N (few_runs), runs that are all equal
    (equal_runs), another benchmark than that of the file (misnamed), and a benchmark
    that the round does not have (unused).

    Exit status: 0 if there are no mistakes except known ones, 1 if there are others, 2
    if the points could not be read.

    \b
    Examples:
      mlperf-pkg rcp lint
      mlperf-pkg rcp lint --round 4.1 --verbose
      mlperf-pkg rcp lint rcps_llama31_8b.json
    """
    target.refuse_early([str(file)] if file else [])
    result = authoring.mistakes(file, usage, round_, benchmark)
    target.show(result)
    return int(result.new > 0)
