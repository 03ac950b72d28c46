"""``mlperf_logging.result_summarizer``: the tables of submissions.

It also writes ``scaling.json`` into them, after it has read the existing files.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.results.official import (
    OfficialTable,
    Summary,
    official_workbook,
    summarize,
)
from mlperf_pkg.commands.results.systems import read_ids, with_private_ids
from mlperf_pkg.commands.results.tables import IDS
from mlperf_pkg.compat import console as tools
from mlperf_pkg.compat.official import summary_crash_paths, write_as_summarized
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_all
from mlperf_pkg.infra.resources import require
from mlperf_pkg.submission.model import AS_FILED

if TYPE_CHECKING:
    from pandas import DataFrame

_POWER = "_power"
_TABLES = ("", "_detailed", _POWER)
_HINT = "'mlperf-pkg score --tables DIR' writes the tables of the other results"
_SORTED_BY = ["division", "system", "accelerator_model_name", "framework", "accelerators_count"]
_SEVERAL = re.compile(r"(.*)\{(.*)\}")


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = tools.parser_of("result_summarizer", "Write the tables of submissions.")
    parser.add_argument("folder", type=tools.path, help="a submission, or several as 'round/{*}'")
    tools.add_rules(parser)
    parser.add_argument(
        "--generate_private_ids", action="store_true", help=f"keep private ids in ./{IDS}"
    )
    tools.add_warnings(parser)
    parser.add_argument(
        "-csv",
        "--csv",
        type=tools.path,
        help="write the table to this file, and as JSON beside it",
    )
    parser.add_argument(
        "-xlsx", "--xlsx", type=tools.path, help="write the tables to this workbook"
    )
    return parser


def _folders(argument: str) -> list[str]:
    braces = _SEVERAL.search(argument)
    if braces is None:
        return [argument]
    prefix, names = braces.groups()
    if names != "*":
        return [prefix + name for name in names.split(",")]
    return sorted(str(path.parent) for path in Path(prefix).glob("*/results") if path.is_dir())


def _summarize(args: Namespace, console: tools.Console) -> int:
    folders = _folders(args.folder)
    if folders != [args.folder]:
        console.say(f"Detected organizations: {', '.join(Path(name).name for name in folders)}")
    for file in _names(args):
        tools.refuse_in_submissions(file, folders)
    if args.generate_private_ids:
        tools.refuse_in_submissions(Path(IDS), folders)
    summary, crashes = _summarized(folders, args)
    for reason in (*summary.left_out, *crashes):
        console.log("ERROR", f"not in the tables: {reason}")
    if summary.crashed or crashes:
        console.log("ERROR", f"the official summarizer crashes here: no tables; {_HINT}")
        return tools.CRASHED
    write_all(_contents(summary, args), replace=True)
    for _, table in _printed(summary):
        is_weak = summary.weak and table.columns == summary.weak.columns
        scaling = "Weak" if is_weak else "Strong"
        console.say(f"{scaling} Scaling Scores:")
    return int(bool(summary.left_out) and args.exit_status)


def _summarized(folders: Sequence[str], args: Namespace) -> tuple[Summary, list[str]]:
    """Return the tables, and the paths at which the official summarizer crashes."""
    options = Options(
        args.usage, round_name(args.ruleset), flags=frozenset({AS_FILED}), whole_files=True
    )
    checked = check(folders, options)
    tools.refuse_drift_of_runs(checked, args.usage, args.ruleset)
    ids = None
    if args.generate_private_ids:
        ids = with_private_ids(args.folder, checked, read_ids(Path(IDS)))
    summary = summarize(checked, ids)
    write_as_summarized(checked, summary.tested)
    return summary, sorted(summary_crash_paths(checked.report.findings))


def summarize_results(
    folder: str,
    usage: str,
    ruleset: str,
    csv_file: str | None = None,
    *,
    generate_private_ids: bool = False,
) -> tuple[DataFrame, ...]:
    """Return the tables of one submission: strong and weak scaling, detailed, energy (weak).

    Like the command, it writes ``scaling.json`` into the submission. ``csv_file`` has no effect.
    The cells are those of the command's files.

    Raises:
        UserError: the folder is not a submission, the official function would raise an
            exception, or pandas is not installed.
    """
    pd = require("pandas", "pandas", "a table of a submission")
    args = Namespace(
        folder=folder,
        usage=usage,
        ruleset=ruleset,
        csv=csv_file,
        generate_private_ids=generate_private_ids,
    )
    summary, crashes = _summarized([folder], args)
    if summary.crashed or crashes:
        raise UserError(f"{folder}: {'; '.join((*summary.left_out, *crashes))}")
    weak = summary.weak or OfficialTable(summary.plain.columns, ())
    frames = []
    for table in (summary.plain, weak, summary.detailed, _without_scores(weak)):
        frame = pd.DataFrame(table.rows, columns=list(table.columns))
        frames.append(frame.sort_values(_SORTED_BY, ignore_index=True))
    return tuple(frames)


def _names(args: Namespace) -> list[Path]:
    """Return the files that may be written."""
    names: list[Path] = []
    if args.csv is None:
        names.append(Path("summary.json"))
    else:
        if not args.csv.endswith(".csv"):
            raise UserError(f"{args.csv}: expected a name that ends with .csv")
        for table in _TABLES:
            names.append(_beside(args.csv, table, "csv"))
            names.append(_beside(args.csv, table, "json"))
    if args.xlsx is not None:
        names.append(Path(args.xlsx))
    return names


def _beside(csv: str, table: str, kind: str) -> Path:
    return Path(f"{csv.removesuffix('.csv')}{table}.{kind}")


def _printed(summary: Summary) -> list[tuple[str, OfficialTable]]:
    """Return the tables in the order in which the summarizer writes them, with their names.

    The table of weak scaling is appended to the CSV of the first, and replaces its JSON. The last
    table, for the energy of weak scaling, has no scores.
    """
    tables = [("", summary.plain)]
    weak = summary.weak if summary.weak and summary.weak.rows else None
    if weak:
        tables.append(("", weak))
    if summary.detailed.rows:
        tables.append(("_detailed", summary.detailed))
    if weak:
        tables.append((_POWER, _without_scores(weak)))
    return tables


def _without_scores(table: OfficialTable) -> OfficialTable:
    """Return the table of energy, whose cells the official summarizer leaves empty."""
    rows = []
    for row in table.rows:
        cells = zip(row, table.columns, strict=True)
        rows.append(tuple(None if ":" in column else cell for cell, column in cells))
    return OfficialTable(table.columns, tuple(rows))


def _contents(summary: Summary, args: Namespace) -> dict[Path, str | bytes]:
    files: dict[Path, str | bytes] = {}
    texts: dict[str, str] = {}
    for name, table in _printed(summary):
        if args.csv is None:
            files[Path("summary.json")] = table.json()
            continue
        shown = OfficialTable(table.columns, ()) if name == _POWER else table
        texts[name] = texts.get(name, "") + shown.csv()
        files[_beside(args.csv, name, "csv")] = texts[name]
        files[_beside(args.csv, name, "json")] = table.json()
    if args.xlsx is not None:
        files[Path(args.xlsx)] = official_workbook(summary)
    return files


main = tools.command(get_parser, _summarize)
"""Write the tables and return the exit status."""
