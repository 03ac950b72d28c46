"""Sort the files of a folder without a submission: logs, archives, and what is not read."""

from collections.abc import Callable
from pathlib import PurePath

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.errors import ArchiveError
from mlperf_pkg.infra.paths import ListedPath
from mlperf_pkg.infra.source import NO_PERMISSION, Content, content_of
from mlperf_pkg.infra.streams import Spool, compression_of
from mlperf_pkg.log.record import TOKEN
from mlperf_pkg.submission.model import (
    Input,
    Place,
    ResultSet,
    Submission,
    Unread,
    Why,
    is_power_log,
    is_result_log,
)

ENCRYPTED = "an archive, not a log"
_TEXT_SUFFIXES = frozenset({".txt", ".log", ".out", ".mllog"})
_PACKED_SUFFIXES = frozenset({".gz", ".xz", ".zst", ".tar", ".tgz", ".txz", ".tzst", ".zip"})
_SUFFIXES = _TEXT_SUFFIXES | _PACKED_SUFFIXES | {""}
_SNIFF_BYTES = 1 << 20


class Loose(Struct):
    """Takes files one by one; ``find_in`` finds what the top folder of an archive holds.

    ``in_archive`` says that the files themselves are in an archive.
    """

    find_in: Callable[[Place], Input]
    in_archive: bool = False
    submissions: list[Submission] = field(default_factory=list)
    logs: list[Place] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    result_sets: list[ResultSet] = field(default_factory=list)
    _spool: Spool | None = None

    @property
    def contents(self) -> Input:
        """All that was taken."""
        return Input(
            submissions=tuple(self.submissions),
            logs=tuple(self.logs),
            unread=tuple(self.unread),
            result_sets=tuple(self.result_sets),
        )

    def take(self, file: Place) -> None:
        """Take a file: by its name alone if it is that of a result, else by its content.

        Raises:
            OSError: the file cannot be read, for another reason than its permissions.
        """
        if is_result_log(file.name):
            self.logs.append(file)
            return
        if is_power_log(file.name) and file.folder.folder.name == "power":
            return
        if file.path.suffix.lower() not in _SUFFIXES:
            return
        try:
            content = content_of(file.path, _SNIFF_BYTES)
        except PermissionError:
            self._leave(file, NO_PERMISSION)
            return
        if content.is_archive:
            self._take_archive(file, content)
        else:
            self._take_text(replace(file, compression=content.compression), content)

    def take_archive(self, file: Place, content: Content) -> None:
        """Take the contents of an archive.

        Raises:
            ArchiveError: it is damaged, or must not be read.
            OSError: it cannot be read.
        """
        from mlperf_pkg.infra.archives import open_archive  # noqa: PLC0415 - slow to import

        top = open_archive(file.path, content, self._spool_of_all)
        for name, reason in top.listing.left_out.items():
            self._leave(file.child(name), f"{reason} in an archive")
        contents = self.find_in(_below_only_folder(Place(top, file.label)))
        self.submissions += contents.submissions
        self.logs += contents.logs
        self.unread += contents.unread
        self.result_sets += contents.result_sets

    def _take_archive(self, file: Place, content: Content) -> None:
        if self.in_archive:
            self._leave(file, "an archive in an archive")
            return
        try:
            self.take_archive(file, content)
        except ArchiveError as error:
            self._leave(file, str(error))

    def _take_text(self, file: Place, content: Content) -> None:
        """Take a file that is a log if some line of its head holds a record."""
        inner = PurePath(file.name).stem if content.compression else file.name
        if content.problem:
            self._leave(file, content.problem)
        elif content.is_encrypted:
            self._leave(file, ENCRYPTED)
        elif content.compression and compression_of(content.head):
            self._leave(file, "compressed twice")
        elif TOKEN in content.text or is_result_log(inner):
            self.logs.append(file)
        elif content.head and PurePath(inner).suffix.lower() in _TEXT_SUFFIXES:
            self._leave(file, f"no line holds '{TOKEN.decode()}'", Why.NOT_A_LOG)

    def _leave(self, file: Place, reason: str, why: Why = Why.PROBLEM) -> None:
        self.unread.append(Unread(file, reason, why))

    def _spool_of_all(self) -> Spool:
        self._spool = self._spool or Spool()
        return self._spool


def _below_only_folder(top: Place) -> Place:
    """Return the only folder of an archive, as most have one that contains everything."""
    assert isinstance(top.location, ListedPath)  # noqa: S101
    names = top.location.names
    if len(names) == 1 and names[0] != "results" and (top.location / names[0]).is_dir():
        return top.child(names[0])
    return top
