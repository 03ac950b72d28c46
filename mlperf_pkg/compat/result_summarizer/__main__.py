"""``mlperf_logging.result_summarizer``: the tables of submissions.

It also writes ``scaling.json`` into them, after reading it.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.official_tables import Summary, Table, summarize
from mlperf_pkg.commands.official_tables.workbook import workbook
from mlperf_pkg.commands.publication.files import IDS, with_private_ids
from mlperf_pkg.commands.publication.ids import read_ids
from mlperf_pkg.compat.console import (
    CRASHED,
    Console,
    add_rules,
    add_warnings,
    parser_of,
    refuse_in_submissions,
    run,
)
from mlperf_pkg.compat.judged import summary_crash_paths
from mlperf_pkg.compat.scaling import write_as_summarized
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_all
from mlperf_pkg.submission.params import KEEP_SCALING

_POWER = "_power"
_TABLES = ("", "_detailed", _POWER)
_HINT = "'mlperf-pkg score --tables DIR' writes those of the other results"
_SEVERAL = re.compile(r"(.*)\{(.*)\}")


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of("result_summarizer", "Write the tables of submissions.")
    parser.add_argument("folder", help="a submission, or several as 'round/{*}'")
    add_rules(parser)
    parser.add_argument(
        "--generate_private_ids", action="store_true", help=f"keep private ids in {IDS}, here"
    )
    add_warnings(parser)
    parser.add_argument("-csv", "--csv", help="the table as CSV, beside one as JSON")
    parser.add_argument("-xlsx", "--xlsx", help="the tables as a workbook")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Write the tables and return the exit status."""
    return run(get_parser(), _summarize, argv)


def _folders(argument: str) -> list[str]:
    braces = _SEVERAL.search(argument)
    if braces is None:
        return [argument]
    prefix, names = braces.groups()
    if names != "*":
        return [prefix + name for name in names.split(",")]
    return sorted(str(path.parent) for path in Path(prefix).glob("*/results") if path.is_dir())


def _summarize(args: Namespace, console: Console) -> int:
    folders = _folders(args.folder)
    if folders != [args.folder]:
        console.say(f"Detected organizations: {', '.join(Path(name).name for name in folders)}")
    for file in _names(args):
        refuse_in_submissions(file, folders)
    options = Options(args.usage, round_name(args.ruleset), flags=frozenset({KEEP_SCALING}))
    checked = check(folders, options)
    if args.generate_private_ids:
        refuse_in_submissions(Path(IDS), folders)
        checked = with_private_ids(args.folder, checked, read_ids(Path(IDS)))
    summary = summarize(checked)
    write_as_summarized(checked, summary.tested)
    crashes = sorted(summary_crash_paths(checked.report.findings))
    for reason in (*summary.left_out, *crashes):
        console.log("ERROR", f"not in the tables: {reason}")
    if summary.crashed or crashes:
        console.log("ERROR", f"the official summarizer crashes on this: no tables; {_HINT}")
        return CRASHED
    write_all(_contents(summary, args), replace=True)
    for _, table in _printed(summary):
        is_weak = summary.weak and table.columns == summary.weak.columns
        console.say(f"{'Weak' if is_weak else 'Strong'} Scaling Scores:")
    return int(bool(summary.left_out) and args.exit_status)


def _names(args: Namespace) -> tuple[Path, ...]:
    """Return the files that may be written."""
    names = [Path("summary.json")]
    if args.csv is not None:
        if not args.csv.endswith(".csv"):
            raise UserError(f"{args.csv}: expected a name that ends with .csv")
        names = [_beside(args.csv, table, kind) for table in _TABLES for kind in ("csv", "json")]
    return (*names, Path(args.xlsx)) if args.xlsx is not None else tuple(names)


def _beside(csv: str, table: str, kind: str) -> Path:
    return Path(f"{csv.removesuffix('.csv')}{table}.{kind}")


def _printed(summary: Summary) -> list[tuple[str, Table]]:
    """Return the tables in the order in which the summarizer writes them, with their names.

    That of weak scaling is appended to the first, whose JSON it replaces. A last one, for the
    energy of weak scaling, has no scores.
    """
    tables = [("", summary.plain)]
    if weak := summary.weak if summary.weak and summary.weak.rows else None:
        tables.append(("", weak))
    if summary.detailed.rows:
        tables.append(("_detailed", summary.detailed))
    if weak:
        is_score = [":" in column for column in weak.columns]
        rows = (
            tuple(None if blank else cell for cell, blank in zip(row, is_score, strict=True))
            for row in weak.rows
        )
        tables.append((_POWER, Table(weak.columns, tuple(rows))))
    return tables


def _contents(summary: Summary, args: Namespace) -> dict[Path, str | bytes]:
    files: dict[Path, str | bytes] = {}
    texts: dict[str, str] = {}
    for name, table in _printed(summary):
        if args.csv is None:
            files[Path("summary.json")] = table.json()
            continue
        shown = Table(table.columns, ()) if name == _POWER else table
        texts[name] = texts.get(name, "") + shown.csv()
        files[_beside(args.csv, name, "csv")] = texts[name]
        files[_beside(args.csv, name, "json")] = table.json()
    if args.xlsx is not None:
        files[Path(args.xlsx)] = workbook(summary)
    return files


if __name__ == "__main__":
    sys.exit(main())
