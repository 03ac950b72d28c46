"""``mlperf-pkg review``: a round for its reviewers."""

from datetime import datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import FILE, FOLDER, PATH, Command, CommandGroup, SuggestingChoice
from mlperf_pkg.cli.output import Output, note
from mlperf_pkg.commands.review import calendar as dates
from mlperf_pkg.commands.review import github, objection_text
from mlperf_pkg.commands.review import objections as states
from mlperf_pkg.commands.review.examined import examine
from mlperf_pkg.commands.review.round import (
    LISTING_FORMATS,
    Choices,
    read_proofs,
    read_round,
    read_side,
    read_sides,
)
from mlperf_pkg.rulebook.explain import known_prefix


class _ReviewRound(Command):
    """The command that reviews a round; its help lists the other commands too."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the commands of the group."""
        super().format_options(ctx, formatter)
        summaries = []
        for name, subcommand in command.commands.items():
            summaries.append((name, subcommand.get_short_help_str(60)))
        with formatter.section("Commands"):
            formatter.write_dl(summaries)


def _completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of commands and files."""
    names = completion.beginning(incomplete, command.commands) if incomplete else []
    return list(map(CompletionItem, names)) or completion.files(ctx, param, incomplete)


@click.command(name="review", cls=_ReviewRound)
@click.argument("round_dir", metavar="ROUND_FOLDER", type=PATH, shell_complete=_completed)
@options.judged
@options.counting_samples
@options.output_folder_option(
    "Write the review into FOLDER.", metavar="FOLDER", default="review", show_default=True
)
@options.force_option("Replace an existing review.")
@options.repeatable(
    "--joint",
    metavar="A+B",
    text="Treat companies A and B as joint submitters of the folder A+B. If the folder has another"
    " name, write FOLDER=A+B",
)
@options.repeatable(
    "--exclude",
    "excluded",
    metavar="NAME",
    text="Leave submitter NAME out of the assignments of reviewers",
)
@options.seed_option("Break ties in the ranking of submitters with seed N.")
@click.option(
    "--previous",
    metavar="ROUND",
    shell_complete=completion.files_or_rounds,
    help="Compare with this earlier round: a folder, or a published round such as 5.1 (default:"
    " compare with all published rounds).",
)
def review_round(
    *,
    round_dir: str,
    check_options: Options,
    output: Path,
    force: bool,
    previous: str | None,
    **choices: Any,
) -> int:
    """Write a review of a round, and print its summary.

    ROUND_FOLDER is a folder of submissions. FOLDER receives the review as one page,
    review.html, the same content as README.md and review.json, and a folder tables/
    with each table as a CSV file. The summary shows counts first, then objections,
    findings by weight, and problems such as a missing system description. A problem
    does not affect the rest of the review.

    The states of objections are read from objections/objections.yaml or
    objections.yaml, and their deadlines from calendar.yaml, if the current folder has
    such files.

    To review a folder that is named like a command below, write ./NAME.

    Exit status: 0 if the review was written and lists no problems, 1 if it lists
    problems, 2 if it could not be written.

    \b
    Examples:
      mlperf-pkg review training_results_v5.1
      mlperf-pkg review training_results_v5.1 -o review-5.1 --force
      mlperf-pkg review training_results_v5.1 --joint ACME+Beta --seed 7
      mlperf-pkg review training_results_v5.1 --previous training_results_v5.0
    """
    from mlperf_pkg.commands.review import files  # noqa: PLC0415 - slow to import

    inputs = [path for path in (round_dir, previous) if path]
    files.refuse_early(output, inputs, force=force)
    reviewed = read_round(round_dir, check_options, Choices(**choices), previous)
    review = files.review_of(reviewed, list(files.sections(reviewed)))
    files.write_review(output, files.files_of(review), force=force)
    click.echo(files.summary(review), nl=False)
    click.echo(f"\nwritten: {output}/{files.PAGE}")
    return int(bool(reviewed.problems))


class _ReviewGroup(CommandGroup):
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
        try:  # what follows the general options; nothing after options of the round's command
            _, words, _ = self.make_parser(click.Context(self, parent)).parse_args(list(args))
        except click.UsageError:
            words = []
        if words and words[0] in self.commands:
            return super().make_context(info_name, args, parent, **extra)
        return self.default.make_context(info_name, args, parent, **extra)


@click.group(name="review", cls=_ReviewGroup, help=review_round.help)
def command() -> None:
    """Review a round, or run another command of a review."""


# ---- objections ---------------------------------------------------------------------------


@command.command(name="objection")
@click.argument("codes", metavar="CODES")
@click.argument("path", type=PATH)
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
def objection(
    *, codes: str, path: str, check_options: Options, by: str | None, output: Path | None
) -> int:
    """Write objections, ready to be filed as issues.

    An objection covers the findings of one code against one submitter. It quotes the
    lines of the logs, and gives the values found and expected, the rule with its
    section, and the values of the reference. Its title names the submitter, the system
    and the benchmark. CODES are codes or prefixes of codes, separated by commas, or
    'all' for all errors that break a written rule. PATH is a round, a submission, or a
    part of one.

    FOLDER/objections.yaml lists the objections with their states, which are drafted at
    first. Beside each objection, a JSON file has the runs that the objection is about.
    Objections that objections.yaml lists already are not written again. 'review
    objections' changes the states.

    Exit status: 0 if objections were written, 2 if not.

    \b
    Examples:
      mlperf-pkg review objection RUN121 submissions/ACME/results/dgx/bert
      mlperf-pkg review objection SET108 training_results_v5.1 --by Beta
      mlperf-pkg review objection RCP,SEED training_results_v5.1 -o objections
      mlperf-pkg review objection all training_results_v5.1 -o objections
    """
    wanted = tuple(_wanted(part.strip()) for part in codes.split(","))
    objector = by or check_options.config.submitter
    if output is None:
        Output().write(objection_text.texts(path, check_options, wanted, objector))
    else:
        for line in objection_text.write(output, path, check_options, wanted, objector):
            click.echo(line)
    return 0


def _wanted(code: str) -> str:
    """Return a code, a prefix of codes, or the word for all codes, as the objections know it."""
    return code if code == states.ALL else known_prefix(code)


@command.command(name="objections")
@click.argument("file", type=FILE)
@click.argument("tree", type=PATH, required=False)
@options.judged
@options.repeatable("--id", "ids", metavar="ID", text="Change the objection with this ID")
@click.option("--state", metavar="STATE", help="Set the state of the objections that --id names.")
@click.option("--issue", metavar="URL", help="Record URL as the GitHub issue of the objection.")
@click.option("--note", metavar="TEXT", help="Record TEXT as a note on the objection.")
@options.repeatable("--by", metavar="ORG", text="Add ORG to the organisations that object")
@options.repeatable("--not-by", metavar="ORG", text="Remove ORG from the organisations that object")
@click.option(
    "--issues",
    type=FILE,
    metavar="JSON",
    help=(
        "Read the output of 'gh issue list' from the file JSON. Add the objections that are new,"
        " and update the states and the objecting organisations of the others."
    ),
)
@options.written(objection_text.OBJECTION_FORMATS)
def objections(
    *,
    file: Path,
    tree: str | None,
    check_options: Options,
    ids: tuple[str, ...],
    issues: Path | None,
    target: Output,
    **changes: Any,
) -> int:
    """Show or change the states of objections.

    FILE is an objections.yaml written by 'review objection -o', by hand or from issues.
    States are drafted, open, supported (a fix is required), rejected, withdrawn, settled
    and waived. Deadlines are those of calendar.yaml in the current folder, if there is
    one.

    TREE is the corrected round, or a submission. An objection is settled if its findings
    are gone because of new runs, a new description or other files. If the logs of the
    same runs were edited, the objection stands until the committee decides. A file
    beside FILE has the runs as they were when the objection was written or, with --id or
    --issues, when a TREE was first given. An objection is removed if its result sets and
    descriptions are gone, as after a withdrawal. After the objections, new errors are
    listed, which no objection names. A waiver requires TREE: the correction must change
    the scores by less than 2 %, and must not change the order of the competitors.

    JSON is the output of 'gh issue list --state all --limit 1000 --json FIELDS', with
    the fields number,title,body,state,stateReason,labels,author,url. Its labels are
    'by <org>', 'against <org>', fix_required, rejected, withdrawn, settled and waived.
    --format gh writes a shell script: its commands open, label and close the issues with
    gh, the command-line client of GitHub. 'review objections' itself sends nothing.

    Exit status: 0 if no objection stands or no TREE is given, 1 if an objection stands
    (withdrawn, rejected and waived objections do not count), 2 if the command could not
    do its work.

    \b
    Examples:
      mlperf-pkg review objections objections/objections.yaml
      mlperf-pkg review objections o.yaml --id a-1 --state supported
      mlperf-pkg review objections o.yaml --id a-1 --by Beta --not-by Gamma
      mlperf-pkg review objections o.yaml training_results_v5.1
      mlperf-pkg review objections o.yaml corrected_v5.1 --id a-1 --state waived
      mlperf-pkg review objections o.yaml --issues issues.json
      mlperf-pkg review objections o.yaml --format gh -o file-objections.sh
    """
    if bool(ids) != any(changes.values()):
        needed = "--state, --issue, --note, --by or --not-by"
        raise click.UsageError(
            f"--id needs a change, and a change needs --id; changes are {needed}"
        )
    state = changes["state"]
    if state:
        changes["state"] = states.state_of(state, "--state").value
    if changes["state"] == states.ObjectionState.WAIVED and tree is None:
        raise click.UsageError("--state waived needs TREE, the corrected round")
    target.refuse_early([str(path) for path in (file, tree, issues) if path])
    calendar = dates.calendar_here()
    if issues:
        for line in github.take_issues(file, issues):
            note(line)
    entries = states.read_entries(file)
    examined = examine(tree, check_options) if tree else None
    if ids:
        removed = changes.pop("not_by")
        fields = {name: content for name, content in changes.items() if content}
        if fields.get("state") == states.ObjectionState.WAIVED:
            fields["corrected"] = tree
        states.change_states(file, ids, fields, examined, removed)
        entries = states.read_entries(file)
    if examined and (ids or issues):
        states.record_evidence(file, entries, examined)
    if examined is None:
        outcome = states.ObjectionOutcome(tuple(map(states.Judged, entries)))
    else:
        outcome = states.judge(entries, examined, check_options, file)
    target.show(replace(outcome, file=file, calendar=calendar))
    return int(not outcome.is_settled)


@command.command(name="agenda")
@click.argument("file", type=FILE)
def agenda(*, file: Path) -> int:
    """Print the agenda of the next meeting, as Markdown.

    FILE is an objections.yaml. Objections on which somebody still has to act come
    first, by submitter; settled, rejected, withdrawn and waived objections follow, with
    the decisions that were noted. Deadlines are read from calendar.yaml in the current
    folder, if there is such a file.

    Exit status: 0 if the agenda was printed, 2 if not.

    \b
    Examples:
      mlperf-pkg review agenda objections/objections.yaml
      mlperf-pkg review agenda objections/objections.yaml > agenda.md
    """
    Output().write(objection_text.agenda(states.read_entries(file), dates.calendar_here()))
    return 0


@command.command(name="calendar")
@click.option(
    "--start",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="Count from DATE, the day on which submissions are due, such as 2026-10-16 (default: the"
    f" day in {dates.NAME}).",
)
@options.written(dates.CALENDAR_FORMATS)
def calendar(*, start: datetime | None, target: Output) -> int:
    """Write the dates of a review as text, YAML, JSON or .ics.

    All dates follow from the deadline of submissions, a Friday at 13:00. Times are
    Pacific. If a command of mlperf-pkg helps with what is due, the date names the
    command. To change a date, write calendar.yaml into the current folder and edit the
    file: 'review', 'review objections' and 'review agenda' read calendar.yaml there.
    Without the file, 'review' counts from the submission deadline that mlperf-pkg knows
    for the round.

    Exit status: 0 if the dates were written, 2 if not.

    \b
    Examples:
      mlperf-pkg review calendar --start 2026-10-16
      mlperf-pkg review calendar --start 2026-10-16 -o calendar.yaml
      mlperf-pkg review calendar -o calendar.ics
    """
    target.refuse_early(())
    chosen = dates.calendar_of(start.date()) if start else dates.calendar_here()
    if chosen is None:
        raise click.UsageError(f"give --start DATE, as the current folder has no {dates.NAME}")
    if start and start.weekday() != dates.FRIDAY:
        note(f"{start:%Y-%m-%d} is a {start:%A}; by the rules, submissions are due on a Friday")
    target.show(chosen)
    return 0


@command.command(name="audits")
@click.argument("drawn_from", metavar="ROUND", type=PATH, shell_complete=completion.files_or_rounds)
@options.seed_option("Draw with seed N.")
@click.option(
    "--number",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="N",
    help="Draw N result sets.",
)
@options.judging
@options.written(LISTING_FORMATS)
def audits(
    *, drawn_from: str, seed: int, number: int, check_options: Options, target: Output
) -> int:
    """Draw result sets that are candidates for an audit.

    ROUND is a folder of submissions or a published round, such as 5.1. The
    candidates are result sets with a score, of different submitters as far as possible.
    The output has the seed: with the same seed and results, anybody draws the same sets.

    Exit status: 0 if the candidates were drawn, 2 if not.

    \b
    Examples:
      mlperf-pkg review audits training_results_v5.1 --seed 7
      mlperf-pkg review audits 5.1 --seed 7 --number 3 --format csv
    """
    from mlperf_pkg.commands.review import audits as drawing  # noqa: PLC0415 - slow to import

    target.refuse_early((drawn_from,))
    target.show(drawing.audits(read_side(drawn_from, check_options), seed, number))
    return 0


@command.command(name="packages")
@click.argument("review_dir", metavar="REVIEW_FOLDER", type=FOLDER)
@options.output_folder_option(
    "Write the packages into FOLDER.", metavar="FOLDER", default="packages", show_default=True
)
def packages(*, review_dir: Path, output: Path) -> int:
    """Write a package for each submitter.

    A package is a review that contains only what concerns the submitter.

    REVIEW_FOLDER is a review that 'mlperf-pkg review' wrote. A package has the objections
    by and against the submitter, its results in each section, whom it reviews and who
    reviews it, and the checklists of these submissions.

    Exit status: 0 if the packages were written, 2 if not.

    \b
    Examples:
      mlperf-pkg review packages review
      mlperf-pkg review packages review-5.1 -o packages-5.1
    """
    from mlperf_pkg.commands.review import files  # noqa: PLC0415 - slow to import

    files.refuse_early(output, [str(review_dir)], force=False)
    review = files.read_review(review_dir)
    files.write_review(output, files.packages_of(review), force=False)
    click.echo(f"written: {output}/, a folder for each of {len(review.submitters)} submitters")
    return 0


# ---- two rounds ---------------------------------------------------------------------------


def _sides(ctx: click.Context, _: click.Parameter, sides: tuple[str, ...]) -> tuple[str, ...]:
    if len(sides) in (0, 2) or ctx.resilient_parsing:
        return sides
    raise click.UsageError("give OLD and NEW, or neither of them to compare all published rounds")


@command.command(name="compare")
@click.argument("what", type=SuggestingChoice(("previews", "resubmitted")))
@click.argument(
    "sides",
    nargs=-1,
    metavar="[OLD NEW]",
    callback=_sides,
    type=PATH,
    shell_complete=completion.files_or_rounds,
)
@click.option(
    "--proof",
    type=PATH,
    metavar="FOLDER",
    help="Read new results from FOLDER. They are on benchmarks of OLD that NEW no longer has, and"
    " can settle a Preview.",
)
@options.judging
@options.written(LISTING_FORMATS)
def compare(
    *,
    what: str,
    sides: tuple[str, ...],
    proof: str | None,
    check_options: Options,
    target: Output,
) -> int:
    """Compare two rounds to judge Previews or resubmitted logs.

    OLD is the earlier round, NEW the later one. Both are folders of submissions or
    published rounds, such as 4.1; without them, all published rounds are compared. Text
    shows what is not settled or not allowed; --verbose shows all.

    previews: The smallest and the largest scale of a Preview in OLD each need a
    successor: a result of the same submitter, accelerator, benchmark and division, in
    the next round or in the first round 140 days later. The successor may be 2 %
    slower. With more accelerators, it must be faster; with fewer, time x accelerators
    is compared. If Preview and successor measured energy, energy is compared instead.
    Logs of a Preview itself do not count. If none of the benchmarks of a system is
    comparable any more, the submitter shows new runs of the old benchmarks (--proof).

    resubmitted: Logs of OLD may be in NEW if the system description is the same in both
    rounds and the logs pass the checker of the newer round. Logs of a Preview do not
    prove an Available result. The record of a published round has few fields of a
    description and no libraries, so it is not known whether the libraries are the same.

    Exit status: 0 if all Previews are settled or all sets are allowed, 1 if not, 2 if
    the rounds could not be compared.

    \b
    Examples:
      mlperf-pkg review compare previews
      mlperf-pkg review compare previews 4.1 5.0 --verbose
      mlperf-pkg review compare previews 5.1 training_results_v6.0
      mlperf-pkg review compare previews 5.0 5.1 --proof shown/
      mlperf-pkg review compare resubmitted 5.0 5.1 --format csv
      mlperf-pkg review compare resubmitted round_v5.0 round_v5.1 -v
    """
    from mlperf_pkg.commands.review import previews, resubmitted  # noqa: PLC0415 - slow to import

    if proof and (what != "previews" or not sides):
        raise click.UsageError("--proof applies only to Previews of two rounds: previews OLD NEW")
    target.refuse_early([*sides, proof] if proof else sides)
    old, new = read_sides(sides, check_options)
    if what == "previews":
        shown = read_proofs(proof, old, check_options) if proof else ()
        listing = previews.previews(old, new, shown)
    else:
        listing = resubmitted.resubmitted(old, new)
    target.show(listing)
    return int(any(map(listing.is_open, listing.rows)))
