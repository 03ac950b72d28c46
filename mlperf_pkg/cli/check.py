"""``mlperf-pkg check``."""

from collections.abc import Callable
from pathlib import Path

import click
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FILE, Command
from mlperf_pkg.cli.output import Output, Outputs, refuse_same
from mlperf_pkg.render import FORMATS


@click.command(name="check", cls=Command)
@options.checked
@options.bypassing
@options.filtered
@options.shown
@options.failing
@options.flag(
    "--partial",
    text="Judge only the logs of a result set that does not have all its runs yet. Without"
    " --partial, such a set fails.",
)
@click.option(
    "--objections",
    type=FILE,
    help="Print on standard error which objections in FILE are settled. FILE is an objections.yaml,"
    " see 'mlperf-pkg review objections --help'.",
)
@click.option(
    "--log-output",
    type=FILE,
    help="Also write the findings to FILE, one per line, such as 'ERROR - text'; an existing file"
    " is replaced.",
)
@options.written(FORMATS, many=True)
def command(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    filter_findings: options.Filter,
    showing: options.Showing,
    status: options.Status,
    partial: bool,
    objections: Path | None,
    log_output: Path | None,
    target: Outputs,
) -> int:
    """Check logs, result sets, submissions or whole rounds.

    PATH is a log, a folder of logs, a submission (a folder with results/ and
    systems/) or a folder of submissions, on this machine or in an object store
    (s3://...). The default is logs/. The report has two verdicts: one of the
    official checker and one by the written rules.

    Raw logs in a folder are judged as result sets: the runs of one system, benchmark
    and division, whatever folders they are in. A file of several runs is read as
    several logs; several files of one run count once. Systems are described in the workspace
    around the logs, by systems/ and mlperf-pkg.yaml. Too few runs are an error; with
    --partial, only the logs of such a set are judged. If logs are named one by one,
    only these logs are judged.

    A finding is about one result set, system description or submission, and names
    all places where it occurs. For several submissions, a table comes first, then errors and
    warnings by code. Waived findings (mlperf-pkg.yaml) do not fail the verdict by the
    rules, but may still fail the official one.

    Exit status: 0 if there is no error (--fail-on), 1 if there is one, 2 if the
    check could not be done. With --fail-on official: 0 if the official package and
    repository checkers find no error.

    \b
    Examples:
      mlperf-pkg check logs/
      mlperf-pkg check logs/ --partial
      mlperf-pkg check training_results_v2.0/ACME
      mlperf-pkg check logs/ --round 2.0 -o report.json
      mlperf-pkg check submissions/ -o - -o report.sarif -o report.xml
      mlperf-pkg check submissions/ --ignore CODE,REPO102 --fail-on warning
      mlperf-pkg check submissions/ --show statistics
      mlperf-pkg check submissions/ --fail-on official
      mlperf-pkg check ACME --round 5.1 --rcp-bypass --log-output check.log
      mlperf-pkg check s3://bucket/ACME --scheduler tcp://10.0.0.1:8786
    """
    inputs = [*paths, str(objections)] if objections else paths
    target.refuse_early(inputs)
    log = Output(log_output, force=True)
    log.refuse_early(inputs)
    refuse_same(log_output, *target.files)
    check_options = replace(check_options, partial=partial)
    show_settled = _settled(objections, check_options) if objections else None
    checked = check(paths, check_options)
    # Kept by the context until the process ends, as freeing the runs and findings is slow.
    click.get_current_context().meta[__name__] = checked
    report = filter_findings(checked.report)
    if log_output:
        log.write(FORMATS["log"](report, showing(log.view())))
    target.show(report, paths, showing)
    if show_settled:
        show_settled(checked)
    return status(report)


def _settled(file: Path, check_options: Options) -> Callable[[Checked], None]:
    """Read the objections in a file; return what shows which of them a check settles."""
    from mlperf_pkg.commands.review import objection_text, objections  # noqa: PLC0415 - rarely
    from mlperf_pkg.commands.review.examined import Examined  # noqa: PLC0415 - rarely

    entries = objections.read_entries(file)

    def show(checked: Checked) -> None:
        outcome = objections.judge(entries, Examined(checked), check_options, file)
        click.echo(f"\n{objection_text.text(outcome, Output().view())}", err=True, nl=False)

    return show
