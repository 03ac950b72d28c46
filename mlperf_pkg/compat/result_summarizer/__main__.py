"""``mlperf_logging.result_summarizer``: the tables of submissions."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.official_tables.rows import Summary, summarize
from mlperf_pkg.commands.official_tables.workbook import workbook
from mlperf_pkg.commands.publication.files import IDS, with_private_ids
from mlperf_pkg.commands.publication.ids import read_ids
from mlperf_pkg.compat.console import CRASHED, Console, add_rules, add_warnings, parser_of, run
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import refuse_within, write_all

_SEVERAL = re.compile(r"(.*)\{(.*)\}")
_NO_DESCRIPTION = "is missing or not readable"


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
    files = _names(args)
    for file in files.values():
        refuse_within(file, folders)
    checked = check(folders, Options(args.usage, round_name(args.ruleset)))
    if args.generate_private_ids:
        refuse_within(Path(IDS), folders)
        checked = with_private_ids(args.folder, checked, read_ids(Path(IDS)))
    summary = summarize(checked)
    write_all(dict(_contents(summary, files)), replace=True)
    for reason in summary.left_out:
        console.log("ERROR", f"not in the tables: {reason}")
    console.say("Strong Scaling Scores:")
    if summary.weak:
        console.say("Weak Scaling Scores:")
    crashed = any(not reason.endswith(_NO_DESCRIPTION) for reason in summary.left_out)
    return CRASHED if crashed else int(bool(summary.left_out) and args.exit_status)


def _names(args: Namespace) -> dict[str, Path]:
    """Return the files by the table and format that they have."""
    files = {}
    if args.csv is None:  # the summarizer writes all tables into one file, the last of which stays
        files["detailed.json"] = Path("summary.json")
    else:
        if not args.csv.endswith(".csv"):
            raise UserError(f"{args.csv}: expected a name that ends with .csv")
        stem = args.csv.removesuffix(".csv")
        for table, ending in (("plain", ""), ("detailed", "_detailed"), ("weak", "_weak_scaling")):
            for suffix in ("csv", "json"):
                files[f"{table}.{suffix}"] = Path(f"{stem}{ending}.{suffix}")
    if args.xlsx is not None:
        files["xlsx"] = Path(args.xlsx)
    return files


def _contents(summary: Summary, files: dict[str, Path]) -> Iterator[tuple[Path, str | bytes]]:
    tables = {"plain": summary.plain, "detailed": summary.detailed, "weak": summary.weak}
    for name, file in files.items():
        table_name, _, suffix = name.partition(".")
        if name == "xlsx":
            yield file, workbook(summary)
        elif table := tables[table_name]:
            yield file, table.csv() if suffix == "csv" else table.json()


if __name__ == "__main__":
    sys.exit(main())
