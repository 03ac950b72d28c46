"""``mlperf-pkg review``: a round for its reviewers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import LazyGroup
from mlperf_pkg.cli.types import LocalPath

DEFAULT_FOLDER = "review"
COMMANDS: dict[str, str] = {
    "objection": "mlperf_pkg.cli.review_objection",
    "objections": "mlperf_pkg.cli.review_objections",
    "previews": "mlperf_pkg.cli.review_previews",
    "resubmitted": "mlperf_pkg.cli.review_resubmitted",
}


class _ReviewRound(click.Command):
    """The command about a round, whose help lists the other commands too."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the commands of the group."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            commands = {name: command.get_command(ctx, name) for name in COMMANDS}
            formatter.write_dl([(n, c.get_short_help_str(60)) for n, c in commands.items() if c])


def _completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of the commands, and files."""
    names = [
        CompletionItem(name) for name in COMMANDS if incomplete and name.startswith(incomplete)
    ]
    return names or completion.files(ctx, param, incomplete)


@click.command(name="review", cls=_ReviewRound)
@click.argument("round_dir", metavar="ROUND_DIR", type=click.Path(), shell_complete=_completed)
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
def review_round(
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


class _ReviewGroup(LazyGroup):
    """A group whose first argument, if it is not the name of a command, is a round to review."""

    default: click.Command = review_round

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context of the round's command unless a command is named."""
        if args and args[0] in COMMANDS:
            return super().make_context(info_name, args, parent, **extra)
        return self.default.make_context(info_name, args, parent, **extra)


@click.group(name="review", cls=_ReviewGroup, modules=COMMANDS, help=review_round.help)
def command() -> None:
    """Review a round, or do what else a review requires."""
