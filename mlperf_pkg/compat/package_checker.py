"""``mlperf_logging.package_checker``, which also writes ``scaling.json`` into the submission."""

import sys
from argparse import ArgumentParser, Namespace

from msgspec.structs import replace

from mlperf_pkg.checker.check import check_inputs
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.checks.runs import failed_runs
from mlperf_pkg.compat import console as tools
from mlperf_pkg.compat.official import package_crash_paths, rejects, warned_runs, write_as_checked
from mlperf_pkg.compat.system_desc_checker import say_system
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis
from mlperf_pkg.infra.paths import ListedPath
from mlperf_pkg.results.rcp import BYPASS
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.submission.find import find_input
from mlperf_pkg.submission.model import Submission

FLAGS = ("rcp-bypass", "rcp-bert-train-samples", "seed-checker-bypass")
FOUND_NONE = "PACKAGE CHECKER FOUND NO ERRORS, SUCCESS !"
CRASH = "the official package checker crashes on an error above"
FOUND_ERRORS = "PACKAGE CHECKER FOUND ERRORS, LOOK INTO ERROR LOG LINES AND FIX THEM."
_UNET3D = "unet3d"


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = tools.parser_of("package_checker", "Check a submission.")
    parser.add_argument("folder", type=tools.path, help="the folder of a submission")
    tools.add_rules(parser)
    tools.add_warnings(parser)
    for flag in FLAGS:
        parser.add_argument(f"--{flag}", action="store_true", help="for all result sets")
    tools.add_log_output(parser, "package_checker")
    return parser


def check_training_package(  # noqa: PLR0917 - as in mlperf-logging
    folder: str,
    usage: str,
    ruleset: str,
    quiet: bool,
    werror: bool,
    rcp_bypass: bool,
    rcp_bert_train_samples: bool,
    seed_checker_bypass: bool,
    log_output: str,
) -> None:
    """Check a submission, log the outcome with ``logging``, and write ``scaling.json`` into it.

    Raises:
        UserError: the folder is not a submission, the rulebook does not have the round, or the
            official function would raise an exception.
    """
    console = tools.LoggingConsole()
    console.log_output = log_output
    args = Namespace(
        folder=folder,
        usage=usage,
        ruleset=ruleset,
        quiet=quiet,
        werror=werror,
        rcp_bypass=rcp_bypass,
        rcp_bert_train_samples=rcp_bert_train_samples,
        seed_checker_bypass=seed_checker_bypass,
        exit_status=False,
    )
    if _check(args, console):
        raise UserError(f"{folder}: {CRASH}")


def _checked_submission(folder: str, usage: str, ruleset: str, flags: frozenset[str]) -> Checked:
    """Check a submission as the package checker does, with ``flags`` instead of those at its top.

    Raises:
        UserError: the folder is not a submission, or the rulebook does not have the round.
    """
    contents = find_input(folder, folder.rstrip("/"))
    if len(contents.submissions) != 1 or isinstance(contents.submissions[0].place.path, ListedPath):
        raise UserError(f"{folder}: not one submission; expected {folder}/results and systems")
    (submission,) = contents.submissions
    inputs = (replace(contents, submissions=(_without_top_flags(submission),)),)
    checked = check_inputs(inputs, Options(usage, round_name(ruleset), flags=flags))
    tools.refuse_drift_of_runs(checked, usage, ruleset)
    return checked


def _without_top_flags(submission: Submission) -> Submission:
    """Remove the flags at the top, which the package checker does not read."""
    sets = []
    for files in submission.result_sets:
        folders = {*files.place.labels_above, files.place.label} - {submission.place.label}
        flags: set[str] = set()
        for path, params_file in submission.params.items():
            folder = path.rpartition("/")[0]
            if folder in folders:
                flags |= params_file.flags
        sets.append(replace(files, flags=frozenset(flags)))
    return replace(submission, result_sets=tuple(sets), flags=frozenset())


def _check(args: Namespace, console: tools.Console) -> int:
    flags = frozenset(flag for flag in FLAGS if getattr(args, flag.replace("-", "_")))
    checked = _checked_submission(args.folder, args.usage, args.ruleset, flags)
    write_as_checked(checked)
    quiet = args.quiet and not args.werror
    warned = warned_runs(checked.report) if args.werror else set()
    _say_systems(checked, args.ruleset, console, quiet=quiet)
    is_rejected = rejects(checked.report.findings)
    for context, result in zip(checked.contexts, checked.sets, strict=True):
        is_rejected |= _say_set(context, result, console, warned, quiet=quiet)
    _say_others(checked, console, quiet=quiet)
    console.log("INFO", FOUND_ERRORS if is_rejected else FOUND_NONE)
    if not quiet:
        _say_errors_of_rules(checked, console)
    console.bar()
    console.say_where("\n** Detailed log output is also at")
    if package_crash_paths(checked):
        return tools.CRASHED
    return int(is_rejected and args.exit_status)


def _say_others(checked: Checked, console: tools.Console, *, quiet: bool) -> None:
    """Write the findings that are about neither a system nor a result set."""
    covered = {system.path for system in checked.systems}
    covered.update(result.row.path for result in checked.sets)
    others = (finding for finding in checked.report.findings if finding.about not in covered)
    console.findings(others, quiet=quiet)


def _say_errors_of_rules(checked: Checked, console: tools.Console) -> None:
    """Write how many errors there are where the official checker sees nothing."""
    errors = (finding for finding in checked.report.findings if finding.is_error)
    number = sum(error.basis is Basis.RULES for error in errors)
    if number:
        shows = "mlperf-pkg check shows them"
        console.log("WARNING", f"errors by the written rules alone: {number}; {shows}")


def _say_systems(checked: Checked, ruleset: str, console: tools.Console, *, quiet: bool) -> None:
    if version_of(ruleset) < (1, 0):
        return
    console.log("INFO", " Checking System Description Files")
    passed = True
    for item in checked.systems:
        passed &= not rejects(item.findings)
        say_system(item, console)
        console.findings(item.findings, quiet=quiet)
    if not passed:
        console.log("ERROR", "System description file checker failed")


def _say_set(
    context: SetContext, result: SetResult, console: tools.Console, warned: set[str], *, quiet: bool
) -> bool:
    """Write what is covered of a result set; return whether too many logs of it were warned of."""
    if context.officially_skipped:
        console.log("WARNING", f" Skipping benchmark: {context.files.benchmark}")
        return False
    console.bar()
    console.log("INFO", f" Running compliance checks in dir {context.path}")
    console.log("INFO", f" System {context.files.system}")
    console.log("INFO", f" Benchmark {context.files.benchmark}")
    console.bar()
    if any(finding.code == "SET101" for finding in result.findings):
        _say_number(context, result, console)
    for number, log in enumerate(context.runs, 1):
        console.log("INFO", f"Run {number}/{len(context.runs)}")
        console.log("INFO", f"Running compliance on file: {log.path}")
        console.findings(log.findings, quiet=quiet, errors=False)
    failed = {log.path for log in failed_runs(context)}
    failed |= warned.intersection(result.runs)
    _say_failed(len(failed), context, console)
    _say_seeds(context, result, console)
    _say_rcp(context, result, console)
    console.findings(result.findings, quiet=quiet)
    console.bar()
    return bool(warned) and len(failed) > context.drop


def _say_number(context: SetContext, result: SetResult, console: tools.Console) -> None:
    runs = result.row.runs_found
    required = result.row.runs_required
    if context.weak:
        reason = f"Expected at least {required} runs, but detected {runs} runs."
    else:
        where = f"wrong file names in directory {context.path}"
        reason = f"Incorrect number of files in dir, or {where}, found {runs}, expected {required}"
    console.log("ERROR", reason)


def _say_failed(number: int, context: SetContext, console: tools.Console) -> None:
    is_one = number == 1 and context.files.benchmark != _UNET3D
    subject = "1 file does" if is_one else f"{number} files do"
    if number > context.drop:
        console.log("ERROR", f" {number} files do not comply, directory cannot be accepted")
    elif number:
        console.log("WARNING", f" {subject} not comply, accepting this under olympic scoring")


def _say_seeds(context: SetContext, result: SetResult, console: tools.Console) -> None:
    if not context.closed:
        return
    console.log("INFO", " Running Seed Checker")
    if "seed-checker-bypass" in context.files.flags:
        console.log("INFO", "Bypassing Seed Checker")
    elif not result.row.seeds.official_pass:
        console.log("ERROR", "Seed checker failed")


def _say_rcp(context: SetContext, result: SetResult, console: tools.Console) -> None:
    test = result.row.rcp
    if not context.rcp_required or test is None:
        return
    console.log("INFO", " Running RCP Checker, pass: pruned_rcps")
    if test.official_pass or test.bypassed:
        how = BYPASS if test.bypassed else ""
        console.log("INFO", f"RCP Test Passed: {test.message}{how}")
    else:
        console.log("ERROR", f"RCP Test Failed: {test.message}")


main = tools.command(get_parser, _check)
"""Check a submission and return the exit status."""

if __name__ == "__main__":
    sys.exit(main())
