"""Write tables into a file or a folder, whole or not at all, and read them back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.commands.export.formats import (
    FORMATS,
    NOT_AN_EXPORT,
    DatabaseFormat,
    TableFormat,
)
from mlperf_pkg.commands.export.rows import Rows
from mlperf_pkg.commands.export.schema import TABLES, VERSION
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.files import new_folder, private_folder, refuse_within


class Destination(Struct, frozen=True):
    """The destination of tables: a file, or a folder with a file for each table.

    ``table`` is the only table to write, None for all tables, as in a database.
    """

    path: Path
    table: str | None = None

    @property
    def holds_all(self) -> bool:
        """Whether this is a database, which holds all tables."""
        return isinstance(self._format, DatabaseFormat)

    @property
    def is_folder(self) -> bool:
        """Whether the tables are files of a folder."""
        return self.table is None and not self.holds_all

    def refuse_early(self, inputs: Sequence[str], *, replace: bool) -> None:
        """Check before the work starts that the tables can be written.

        Raises:
            UserError: the path exists and is not an export or ``replace`` is not set, or a library
                is not installed (``MissingPackageError``).
        """
        refuse_within(self.path, inputs)
        self._format.library()
        if not self.path.parent.is_dir():
            raise UserError(f"{self.path}: the folder {self.path.parent} does not exist")
        if not self.path.exists():
            return
        if not replace:
            raise UserError(f"{self.path}: exists already; --append adds to it, --force overwrites")
        if self.is_folder and not self._holds_only_tables(self.path):
            raise UserError(f"{self.path}: is not a folder that contains only tables")
        if not self.is_folder and not self.path.is_file():
            raise UserError(f"{self.path}: is not a regular file")

    def read(self) -> Rows:
        """Return the rows of an earlier export.

        Raises:
            UserError: the path cannot be read, is not an export, or a library is not installed.
        """
        self._format.library()
        try:
            if isinstance(self._format, DatabaseFormat):
                return self._format.read(self.path)
            files = self._files(self.path)
            return {name: self._format.read(file, TABLES[name]) for name, file in files.items()}
        except NOT_AN_EXPORT as error:
            reason = f"is not an export of this version (format {VERSION}): {reason_of(error)}"
            raise UserError(f"{self.path}: {reason}; --force overwrites it") from error

    def write(self, rows: Rows, *, replace: bool) -> None:
        """Write the rows.

        Raises:
            UserError: the path exists and ``replace`` is not set, or it cannot be written.
        """
        if not self.is_folder:
            with private_folder(self.path.parent, [self.path.name], replace=replace) as private:
                self._write(private / self.path.name, rows)
            return
        try:
            with new_folder(self.path, lambda old: replace and self._holds_only_tables(old)) as new:
                self._write(new, rows)
        except FileExistsError as error:
            raise UserError(f"{self.path}: exists already and is not overwritten") from error
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"{self.path}: cannot be written: {reason}") from error

    @property
    def _format(self) -> TableFormat | DatabaseFormat:
        return FORMATS[self.path.suffix]

    def _files(self, path: Path) -> dict[str, Path]:
        """Return the files of the tables by their names."""
        if self.table:
            return {self.table: path}
        return {name: path / f"{name}{self.path.suffix}" for name in TABLES}

    def _write(self, path: Path, rows: Rows) -> None:
        if isinstance(self._format, DatabaseFormat):
            self._format.write(path, rows)
            return
        for name, file in self._files(path).items():
            self._format.write(file, TABLES[name], rows.get(name, ()))

    def _holds_only_tables(self, folder: Path) -> bool:
        files = set(self._files(folder).values())
        return folder.is_dir() and all(path in files for path in folder.iterdir())
