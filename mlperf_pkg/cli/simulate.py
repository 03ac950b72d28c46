"""``mlperf-pkg simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.simulated import LAYOUTS, write_a_round, write_a_set
from mlperf_pkg.cli.types import Choice, LocalPath
from mlperf_pkg.rulebook.load import usages
from mlperf_pkg.simulate import DIVISIONS, FAILURES

_OF_A_SET = ("system", "submitter", "runs", "minutes", "accelerators", "optimizer", "layout")
_OF_A_ROUND = ("submitters", "systems", "sets", "power", "code", "jobs", "force")


@click.command(name="simulate")
@click.argument("folder", metavar="DIR", type=LocalPath(file_okay=False, path_type=Path))
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.benchmarks,
    help="The benchmark, such as bert.",
)
@click.option("--system", metavar="ID", shell_complete=completion.systems, help="The system's id.")
@click.option("--submitter", metavar="ORG", help="The submitting organisation.")
@click.option(
    "--usage",
    type=Choice(usages()),
    default="training",
    show_default=True,
    help="MLPerf Training or HPC.",
)
@options.round_option("The round, such as 2.0; by default the newest with the benchmark.")
@click.option(
    "--division",
    type=Choice(DIVISIONS),
    help="The division; by default closed, in a whole round both.",
)
@click.option(
    "--runs", type=click.IntRange(min=1), metavar="N", help="Runs; by default as many as required."
)
@click.option("--seed", type=int, metavar="N", default=0, show_default=True, help="The seed.")
@click.option(
    "--minutes", type=float, metavar="M", help="The mean time to train; by default a model's."
)
@click.option(
    "--accelerators",
    type=click.IntRange(min=1),
    metavar="N",
    help="Accelerators; by default those of the system, if it is a known one.",
)
@click.option("--optimizer", metavar="NAME", help="The optimizer, where a benchmark has several.")
@click.option(
    "--failure",
    "failures",
    multiple=True,
    type=Choice(list(FAILURES)),
    help="How the last run fails; of a whole round, that of every tenth set. Repeat for several.",
)
@click.option(
    "--records",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    help="Records of training statistics in each log besides; 1000 make it as large as real ones.",
)
@click.option(
    "--layout",
    type=Choice(list(LAYOUTS)),
    default="flat",
    show_default=True,
    help="Loose logs, or folders as in results/.",
)
@click.option("--whole-round", is_flag=True, help="Write a whole round of submissions.")
@click.option(
    "--submitters",
    type=click.IntRange(min=1),
    metavar="N",
    help="Submitters in a whole round; by default 3.",
)
@click.option(
    "--systems",
    type=click.IntRange(min=1),
    metavar="N",
    help="Systems in a whole round, of all submitters; by default 10.",
)
@click.option(
    "--sets",
    type=click.IntRange(min=1),
    metavar="N",
    help="Benchmarks on each system of a whole round; by default 1 or 2 in turn.",
)
@click.option("--power", is_flag=True, help="Power logs of systems of up to four nodes.")
@click.option("--code", is_flag=True, help="Stubs of code in benchmarks/.")
@options.jobs_option
@click.option("--force", is_flag=True, help="Replace a whole round that was simulated before.")
@click.pass_context
def command(
    ctx: click.Context, /, *, folder: Path, usage: str, round_: str | None, **given: Any
) -> int:
    """Write the logs of simulated runs that keep the rules into DIR.

    They make one result set; the same options make the same bytes. Written are
    DIR/<ID>_<benchmark>_<number>.log or, with --layout tree,
    DIR/<ID>/<benchmark>/result_<number>.txt; a file that exists is never
    overwritten. The paths are printed.

    With --whole-round, --submitters or --systems DIR becomes a whole round: a
    submission of each submitter with systems/ and results/ of every benchmark
    that --benchmark names, by default all. DIR must not exist.

    Exit status: 0 if it was written, 2 if it could not be.

    \b
    Examples:
      mlperf-pkg simulate logs --benchmark bert --system dgx-a100 --submitter ACME
      mlperf-pkg simulate logs --round 1.1 --benchmark resnet --system dgx-a100 \\
          --submitter ACME --runs 3 --minutes 27.5 --failure diverged
      mlperf-pkg simulate training_results_v5.1 --round 5.1 --submitters 10 \\
          --systems 200 --records 1000
    """
    whole = given["whole_round"] or given["submitters"] or given["systems"]
    _refuse(ctx, _OF_A_SET if whole else _OF_A_ROUND, whole)
    return (write_a_round if whole else write_a_set)(folder, usage, round_, given)


def _refuse(ctx: click.Context, names: Sequence[str], whole: bool) -> None:
    """Options that mean nothing here."""
    for name in names:
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            kind = "one result set, not a whole round" if whole else "a whole round (--whole-round)"
            raise click.UsageError(f"--{name} is an option of {kind}")
