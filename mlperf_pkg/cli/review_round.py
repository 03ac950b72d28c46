"""``mlperf-pkg review ROUND_DIR``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.types import LocalPath

DEFAULT_FOLDER = "review"


@click.command(name="review")
@click.argument("round_dir", metavar="ROUND_DIR", type=click.Path())
@options.judged
@click.option(
    "-o",
    "--output",
    type=LocalPath(file_okay=False, path_type=Path),
    metavar="FOLDER",
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Write the review to FOLDER.",
)
@options.force_option("Replace an existing review.")
@click.option(
    "--joint",
    multiple=True,
    metavar="A+B",
    help="A and B submit together: the folder of that name, or FOLDER=A+B; repeatable.",
)
@click.option(
    "--exclude", multiple=True, metavar="NAME", help="Give NAME no assignment; repeatable."
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Decide ties in the rank of submitters by N.",
)
@click.option(
    "--one-spelling",
    is_flag=True,
    help="Count names that differ only in case, space and punctuation as one submitter.",
)
def command(
    *,
    round_dir: str,
    check_options: Options,
    output: Path,
    force: bool,
    joint: tuple[str, ...],
    exclude: tuple[str, ...],
    seed: int,
    one_spelling: bool,
) -> int:
    """Write what reviewers look up in a round, and print a summary.

    ROUND_DIR is a folder of submissions. The folder written has Markdown for each
    section, CSV for each table, review.json, and one page: review.html. What is
    missing in the round comes first; everything else is complete without it.

    For a folder named like a command below, write ./NAME.

    Exit status: 0 if the review was written, 1 if something is missing in it, 2 if it
    could not be written.

    \b
    Examples:
      mlperf-pkg review training_results_v5.1
      mlperf-pkg review training_results_v5.1 -o review-5.1 --force
      mlperf-pkg review training_results_v5.1 --joint ACME+Beta --seed 7
    """
    from mlperf_pkg.commands.review import formats, writing  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.review.model import Choices  # noqa: PLC0415
    from mlperf_pkg.commands.review.reading import read_round  # noqa: PLC0415
    from mlperf_pkg.commands.review.sections import sections  # noqa: PLC0415

    writing.refuse_early(output, [round_dir], force=force)
    reviewed = read_round(round_dir, check_options, Choices(joint, exclude, seed, one_spelling))
    parts = list(sections(reviewed))
    writing.write_review(output, writing.files_of(reviewed, parts), force=force)
    click.echo(formats.summary(reviewed, parts), nl=False)
    click.echo(f"\nwritten: {output}/{writing.PAGE}")
    return int(bool(reviewed.problems))
