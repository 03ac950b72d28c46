"""The official summarizer's tables as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.cli.output import refuse_within
from mlperf_pkg.commands.official_tables import Summary, summarize
from mlperf_pkg.commands.official_tables.workbook import workbook
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_together
from mlperf_pkg.infra.text import visible


class OfficialTables(Struct, frozen=True):
    """Where they go; files that exist are overwritten only by ``force``."""

    folder: Path
    force: bool

    def refuse_early(self, inputs: Sequence[str]) -> None:
        """Refuse before the work rather than after it.

        Raises:
            UserError: tables are there already, or they would be written into an input.
        """
        refuse_within(self.folder, inputs)
        there = sorted(self.folder.glob("summary*"))
        if there and not self.force:
            raise UserError(f"{there[0]}: exists already; --force overwrites it")

    def write(self, checked: Checked) -> None:
        """Write all of them or none; what they lack is said on standard error.

        Raises:
            UserError: there are no such tables of this check, or they cannot be written.
        """
        summary = summarize(checked)
        files = _files(summary)
        if (book := workbook(summary)) is not None:
            files["summary.xlsx"] = book
        else:
            _say("no summary.xlsx: it needs pip install 'mlperf-pkg[xlsx]'")
        write_together(self.folder, files, replace=self.force)
        for reason in summary.left_out:
            _say(f"not in the tables: {reason}")


def _files(summary: Summary) -> dict[str, str | bytes]:
    tables = {
        "summary": summary.plain,
        "summary_detailed": summary.detailed,
        "summary_weak_scaling": summary.weak,
    }
    files: dict[str, str | bytes] = {}
    for name, table in tables.items():
        if table is not None:
            files |= {f"{name}.csv": table.csv(), f"{name}.json": table.json()}
    return files


def _say(text: str) -> None:
    click.echo(visible(f"note: {text}"), err=True)
