"""``mlperf-pkg review objection``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output


@click.command(name="objection")
@click.argument("codes", metavar="CODES")
@click.argument("path", type=click.Path())
@options.judged
@click.option(
    "--by",
    metavar="ORG",
    help="Name the organisation that objects (default: the submitter in mlperf-pkg.yaml,"
    " else a placeholder).",
)
@options.output_folder_option(
    "Write a file for each objection, and objections.yaml, into FOLDER.", metavar="FOLDER"
)
def command(
    *, codes: str, path: str, check_options: Options, by: str | None, output: Path | None
) -> int:
    """Write objections, ready to be filed as issues.

    An objection covers the findings of one code against one submitter: excerpts of the
    lines, the values found and expected, the rule with its section, and the values of
    the reference. CODES are codes or prefixes of codes, separated by commas, or 'all'
    for all errors by the rules. PATH is a round, a submission, or a part of one.

    FOLDER/objections.yaml lists the objections with their states, drafted at first.
    Objections that it lists already are not written again. 'review objections' changes
    the states.

    Exit status: 0 if objections were written, 2 if not.

    \b
    Examples:
      mlperf-pkg review objection RUN121 submissions/ACME/results/dgx/bert
      mlperf-pkg review objection SET108 training_results_v5.1 --by Beta
      mlperf-pkg review objection RCP,SEED training_results_v5.1 -o objections
      mlperf-pkg review objection all training_results_v5.1 -o objections
    """
    from mlperf_pkg.commands.review import objection_text  # noqa: PLC0415 - slow to import

    wanted = objection_text.wanted_codes(codes)
    if output is not None:
        objection_text.refuse_early(output, path)
    by = by or check_options.config.submitter
    if output is None:
        Output().write(objection_text.texts(path, check_options, wanted, by))
        return 0
    for line in objection_text.write(output, path, check_options, wanted, by):
        click.echo(line)
    return 0
