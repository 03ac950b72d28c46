"""``mlperf-pkg compare``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.types import LocalPath
from mlperf_pkg.commands.compare.formats import COMPARE_FORMATS
from mlperf_pkg.commands.compare.prices import known_prices
from mlperf_pkg.commands.compare.ratios import Entry, Row, compete, named
from mlperf_pkg.commands.compare.results import Wanted, contenders
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.text import did_you_mean


def _patterns(name: str, text: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    return click.option(name, f"{name[2:]}s", multiple=True, metavar="NAME", help=text)


@click.command(name="compare")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--baseline", metavar="NAME", help="What to compare with; default: the first PATH.")
@_patterns("--benchmark", "Only this benchmark; repeatable, * is any text.")
@_patterns("--system", "Only this system or submitter; repeatable, * is any text.")
@_patterns("--division", "Only this division.")
@click.option(
    "--prices",
    type=LocalPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="List prices that go before those of --config and systems/prices.yaml.",
)
@click.option(
    "--chart",
    type=LocalPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the ratios there too, as .svg or .png; needs the extra: report.",
)
@options.judged
@options.written(COMPARE_FORMATS)
def command(
    *,
    paths: tuple[str, ...],
    baseline: str | None,
    benchmarks: tuple[str, ...],
    systems: tuple[str, ...],
    divisions: tuple[str, ...],
    prices: Path | None,
    chart: Path | None,
    how: Options,
    format_: str,
    target: Output,
) -> int:
    """Compare results in speed, price and energy.

    PATH is a submission, a folder of submissions, a system or result set in
    one (ACME/results/dgx/bert), a folder of logs, or a .csv file of published
    scores with the columns system, benchmark and minutes, and as known round,
    submitter, division, accelerators, nodes, energy_joules.

    Results compare where benchmark and division agree. The baseline of each is
    the first result of the first PATH, or of the system, submitter or both
    (ACME/dgx) that --baseline names.

    Exit status: 0 if something was compared with a baseline, 1 if there was
    nothing to compare, 2 if it could not be done.

    \b
    Examples:
      mlperf-pkg compare v1.0/NVIDIA v1.0/Graphcore --division closed
      mlperf-pkg compare ACME/results/dgx/bert published.csv --system 'pod*'
      mlperf-pkg compare v1.0/NVIDIA v1.0/Graphcore --chart speed.svg
      mlperf-pkg compare v1.0 v1.1 --baseline 'ipu-pod16*' --benchmark resnet
    """
    target.refuse_early(paths)
    picture = _picture(chart, target.force, paths)
    known = known_prices(prices, how.config.prices, Path())
    entries = contenders(paths, Wanted(benchmarks, systems, divisions), how)
    if not entries:
        raise UserError("no result here is of such a benchmark, system and division")
    rows = compete(entries, known, _is_baseline(baseline, entries))
    if chart:
        write_whole(chart, picture(rows), replace=target.force)
    target.write(COMPARE_FORMATS[format_](rows, target.view()))
    return int(not any(row.speed is not None and not row.baseline for row in rows))


def _picture(
    file: Path | None, force: bool, inputs: Sequence[str]
) -> Callable[[Sequence[Row]], bytes]:
    """What draws into ``file``; what stands in the way is told before the work."""
    if file is None:
        return lambda _: b""
    from mlperf_pkg.commands.charts import pictures as vega  # noqa: PLC0415 - only here
    from mlperf_pkg.commands.charts.comparison import comparison  # noqa: PLC0415
    from mlperf_pkg.infra.resources import needed  # noqa: PLC0415

    draw = vega.PICTURES.get(file.suffix.lower().removeprefix("."))
    if draw is None:
        raise UserError(f"{file}: a chart is a file .svg or .png")
    Output(file, force).refuse_early(inputs)
    needed("vl_convert")

    def picture(rows: Sequence[Row]) -> bytes:
        chart = comparison(rows)
        if chart is None:
            raise UserError(f"{file}: there is nothing to draw")
        return draw(chart)

    return picture


def _is_baseline(name: str | None, entries: Sequence[Entry]) -> Callable[[Entry], bool]:
    if name is None:
        return lambda entry: entry.argument == 0
    if not any(named(entry, name) for entry in entries):
        known = {entry.system for entry in entries} | {each.submitter or "" for each in entries}
        meant = did_you_mean(name, sorted(known))
        raise UserError(f"--baseline {name}: no such system or submitter here{meant}")
    return lambda entry: named(entry, name)
