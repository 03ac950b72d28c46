"""The official tables as files: CSV, JSON and a workbook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.official_tables.rows import Summary, summarize
from mlperf_pkg.commands.official_tables.workbook import official_workbook
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import refuse_within, write_together
from mlperf_pkg.infra.resources import MissingPackageError


class TableFolder(Struct, frozen=True):
    """The folder that receives the tables; existing files are overwritten only with ``force``."""

    path: Path
    force: bool

    def refuse_early(self, inputs: Sequence[str]) -> None:
        """Check before the work starts that the tables can be written.

        Raises:
            UserError: tables exist already, or the folder is inside an input.
        """
        refuse_within(self.path, inputs)
        existing = sorted(self.path.glob("summary*"))
        if existing and not self.force:
            raise UserError(f"{existing[0]}: exists already; --force overwrites it")

    def write(self, checked: Checked) -> list[str]:
        """Write all tables or none; return notes on omitted results.

        Raises:
            UserError: this check has no such tables, or they cannot be written.
        """
        summary = summarize(checked)
        files = _files(summary)
        notes = []
        try:
            files["summary.xlsx"] = official_workbook(summary)
        except MissingPackageError as error:
            notes.append(f"no summary.xlsx: {error}")
        write_together(self.path, files, replace=self.force)
        return [*notes, *(f"not in the tables: {reason}" for reason in summary.left_out)]


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
