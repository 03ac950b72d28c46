"""``mlperf-pkg review``: a round for its reviewers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import LazyGroup

DEFAULT_FOLDER = "review"
COMMANDS: dict[str, str] = {
    "objection": "mlperf_pkg.cli.review_objection",
    "objections": "mlperf_pkg.cli.review_objections",
    "previews": "mlperf_pkg.cli.review_previews",
    "resubmitted": "mlperf_pkg.cli.review_resubmitted",
}


class _ReviewRound(click.Command):
    """The command that reviews a round; its help lists the other commands too."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the commands of the group."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            commands = {name: command.get_command(ctx, name) for name in COMMANDS}
            formatter.write_dl([(n, c.get_short_help_str(60)) for n, c in commands.items() if c])


def _completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of commands and files."""
    names = [
        CompletionItem(name) for name in COMMANDS if incomplete and name.startswith(incomplete)
    ]
    return names or completion.files(ctx, param, incomplete)


@click.command(name="review", cls=_ReviewRound)
@click.argument("round_dir", metavar="ROUND_DIR", type=click.Path(), shell_complete=_completed)
@options.judged
@options.output_folder_option(
    "Write the review into FOLDER.", metavar="FOLDER", default=DEFAULT_FOLDER, show_default=True
)
@options.force_option("Replace an existing review.")
@click.option(
    "--joint",
    multiple=True,
    metavar="A+B",
    help="Treat A and B as joint submitters, in the folder of that name or, with"
    " FOLDER=A+B, in FOLDER; repeatable.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="NAME",
    help="Leave NAME out of the assignments; repeatable.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Break ties in the ranking of submitters with seed N.",
)
@click.option(
    "--one-spelling",
    is_flag=True,
    help="Count names that differ only in case, spaces and punctuation as one submitter.",
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
    """Write a review of a round, and print its summary.

    ROUND_DIR is a folder of submissions. FOLDER receives Markdown for each section, CSV
    for each table, review.json, and one page, review.html. Problems, such as a missing
    system description, come first; they do not affect the rest of the review.

    To review a folder that is named like a command below, write ./NAME.

    Exit status: 0 if the review was written, 1 if it lists problems, 2 if it could not
    be written.

    \b
    Examples:
      mlperf-pkg review training_results_v5.1
      mlperf-pkg review training_results_v5.1 -o review-5.1 --force
      mlperf-pkg review training_results_v5.1 --joint ACME+Beta --seed 7
    """
    from mlperf_pkg.commands.review import files  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.review.round import Choices, read_round  # noqa: PLC0415

    files.refuse_early(output, [round_dir], force=force)
    reviewed = read_round(round_dir, check_options, Choices(joint, exclude, seed, one_spelling))
    parts = list(files.sections(reviewed))
    files.write_review(output, files.files_of(reviewed, parts), force=force)
    click.echo(files.summary(reviewed, parts), nl=False)
    click.echo(f"\nwritten: {output}/{files.PAGE}")
    return int(bool(reviewed.problems))


class _ReviewGroup(LazyGroup):
    """A group whose first argument is the name of a command, or else a round to review."""

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
    """Review a round, or run another command of a review."""
