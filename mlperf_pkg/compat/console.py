"""What the tools write: log lines to standard error and a log file, and text to standard output."""

import logging
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import EMPTY_PATH, UserError
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.files import refuse_within
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.text import in_line
from mlperf_pkg.rulebook.documents import every_round, usages
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.verified import drift, installed_name, remedy, verified_name

STATUS = "MLPERF_PKG_EXIT_STATUS"
CRASHED = 1
"""The exit status where a tool of mlperf-logging raises an exception."""
INTERRUPTED = 128 + 2

_Tool = Callable[[Namespace, "Console"], int]


class Console:
    """Writes log lines and text; writes no log file among the files of a submission."""

    log_output: str | None = None
    _file: TextIO | None = None

    def open(self, log_output: str, inputs: Sequence[str], stack: ExitStack) -> None:
        """Open the log file, to which lines are added as the official tools do."""
        try:
            refuse_in_submissions(Path(log_output), inputs)
        except UserError:
            self.log("WARNING", f"{log_output}: is inside the results, and is not written")
            return
        file = Path(log_output).open("a", encoding="utf-8")  # noqa: SIM115 - closed by the stack
        self.log_output = log_output
        self._file = stack.enter_context(file)

    def log(self, level: str, text: str) -> None:
        """Write one line."""
        line = f"{level} - {visible(text)}\n"
        sys.stderr.write(line)
        if self._file:
            self._file.write(line)

    def bar(self) -> None:
        """Write the line that divides parts."""
        self.log("INFO", "-" * 30)

    def findings(self, findings: Iterable[Finding], *, quiet: bool, errors: bool = True) -> None:
        """Write errors of the official verdict and, unless ``quiet``, other ones as warnings."""
        for finding in findings:
            is_error = errors and finding.fails(Basis.OFFICIAL)
            if is_error or not (quiet or finding.severity is Severity.NOTE):
                self.log("ERROR" if is_error else "WARNING", in_line(finding))

    def say(self, text: str) -> None:
        """Write to standard output."""
        sys.stdout.write(f"{text}\n")

    def say_where(self, words: str) -> None:
        """Name the log file, if there is one."""
        if self.log_output is not None:
            self.say(f"{words} {visible(self.log_output)}")


class LoggingConsole(Console):
    """Writes log lines with ``logging``, which the program that imports the tools configures."""

    def log(self, level: str, text: str) -> None:
        """Log one line."""
        logging.log(logging.getLevelNamesMapping()[level], visible(text))


def refuse_in_submissions(file: Path, inputs: Sequence[str]) -> None:
    """Refuse a file among the logs, descriptions or code of a submission, or inside other inputs.

    Raises:
        UserError: the file is in one of these folders, or is an input itself.
    """
    for argument in inputs:
        folder = Path(argument)
        is_submission = (folder / "results").is_dir()
        parts = ("results", "systems", "benchmarks") if is_submission else ("",)
        refuse_within(file, [str(folder / part) for part in parts])


def refuse_drift(usage: str, ruleset: str, benchmarks: Collection[str] = ()) -> None:
    """Refuse to speak for an mlperf-logging that the rulebook was not verified against.

    Raises:
        UserError: the installed one differs in its code, or in the rules or reference points of one
            of the benchmarks.
    """
    differences = drift(usage, round_name(ruleset)).of(benchmarks)
    if differences:
        raise UserError(
            f"{installed_name()} is installed, which differs from {verified_name()} in"
            f" {differences.in_words()}: run its own tools, or {remedy()}"
        )


def refuse_drift_of_runs(checked: Checked, usage: str, ruleset: str) -> None:
    """Refuse as ``refuse_drift``, for the benchmarks of a check.

    Raises:
        UserError: as ``refuse_drift``.
    """
    refuse_drift(usage, ruleset, {run.benchmark for run in checked.runs})


def parser_of(tool: str, description: str) -> ArgumentParser:
    """Return a parser with the option that the official tools lack."""
    parser = ArgumentParser(
        prog=f"mlperf_pkg.compat.{tool}",
        description=f"{description} The command line is that of mlperf_logging.{tool}.",
    )
    parser.add_argument(
        "--exit-status",
        action="store_true",
        default=os.environ.get(STATUS, "") not in ("", "0"),
        help=f"exit with status 1 if errors are found, as with {STATUS}=1",
    )
    return parser


def path(text: str) -> str:
    """Return a path that an argument names.

    Raises:
        ArgumentTypeError: it is empty; the parser reports it, with exit status 2.
    """
    if not text:
        raise ArgumentTypeError(EMPTY_PATH)
    return text


def file_path(text: str) -> Path:
    """Return the path of a file that an argument names.

    Raises:
        ArgumentTypeError: as ``path``.
    """
    return Path(path(text))


def add_log_output(parser: ArgumentParser, tool: str) -> None:
    """Add ``--log_output``."""
    parser.add_argument(
        "--log_output",
        type=path,
        default=f"{tool}.log",
        help="the file that log lines are added to",
    )


def add_warnings(parser: ArgumentParser) -> None:
    """Add ``--werror`` and ``--quiet``."""
    parser.add_argument("--werror", action="store_true", help="treat warnings as errors")
    parser.add_argument("--quiet", action="store_true", help="do not show warnings")


def add_rules(parser: ArgumentParser) -> None:
    """Add ``usage`` and ``ruleset``."""
    parser.add_argument("usage", choices=usages(), help="training or hpc")
    parser.add_argument("ruleset", choices=rulesets(), help="the ruleset, such as 5.1.0")


def rulesets() -> list[str]:
    """Return the rulesets of all rounds."""
    return sorted({load_round(usage, name).ruleset for usage, name in every_round()})


def command(
    get_parser: Callable[[], ArgumentParser], tool: _Tool, argument: str = "folder"
) -> Callable[..., int]:
    """Return the function that runs a tool with an optional ``argv``, and returns its exit status.

    ``argument`` names what it reads.
    """

    def main(argv: Sequence[str] | None = None) -> int:
        return _run(tool, get_parser().parse_args(argv), argument)

    main.__doc__ = tool.__doc__
    return main


def _run(tool: _Tool, args: Namespace, argument: str) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with ExitStack() as stack:
            console = Console()
            if hasattr(args, "log_output"):
                console.open(args.log_output, [getattr(args, argument)], stack)
            return tool(args, console)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # nothing is flushed at the end
        return CRASHED
    except UserError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except Exception as error:  # noqa: BLE001 - a defect, as in the other commands
        reason = f"{type(error).__name__}: {error} (a bug in mlperf-pkg: please report it)"
    sys.stderr.write(f"ERROR - {visible(reason)}\n")
    return CRASHED
