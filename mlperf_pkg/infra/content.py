"""What a file holds, by its first bytes: compressed data, an archive, text."""

from __future__ import annotations

from io import BytesIO
from typing import BinaryIO

from msgspec import Struct

from mlperf_pkg.infra.compression import Compression, compression_of, decompressed
from mlperf_pkg.infra.listed_path import AnyPath
from mlperf_pkg.infra.opening import open_file
from mlperf_pkg.infra.partial import problem_of
from mlperf_pkg.infra.source import source_of
from mlperf_pkg.infra.text import FROM_UTF_16, UTF_16_MARKS

_PACKED_BYTES, _UNPACKED_BYTES = 1 << 18, 1 << 20
_ZIP = (b"PK\3\4", b"PK\5\6")
_TAR, _TAR_AT = b"ustar", 257
_ENCRYPTED = (b"age-encryption.org/", b"Salted__")


class Content(Struct, frozen=True):
    """The first bytes of a file: ``head``, decompressed if it has a ``compression``.

    ``problem`` is the reason why compressed data cannot be decompressed even at its start.
    """

    head: bytes
    compression: Compression | None = None
    problem: str | None = None

    @property
    def is_zip(self) -> bool:
        """Whether it is a zip archive."""
        return self.compression is None and self.head.startswith(_ZIP)

    @property
    def is_archive(self) -> bool:
        """Whether it is a tar archive, compressed or not, or a zip archive."""
        return self.is_zip or self.head[_TAR_AT:].startswith(_TAR)

    @property
    def is_encrypted(self) -> bool:
        """Whether it is encrypted in a form that ``mlperf-pkg pack`` writes."""
        return self.compression is None and self.head.startswith(_ENCRYPTED)

    @property
    def text(self) -> bytes:
        """The head as UTF-8, if it is UTF-16."""
        if not self.head.startswith(UTF_16_MARKS):
            return self.head
        return self.head.decode("utf-16", "replace").encode("utf-8", "replace")

    def open(self, path: AnyPath) -> BinaryIO:
        """Open the file with this content, decompressed."""
        return source_of(path, path.name, self.compression).open()


class ForeignText(Struct, frozen=True):
    """What a file is that should be text in UTF-8, and how to make that of it."""

    name: str
    remedy: str


def foreign_text(head: bytes) -> ForeignText | None:
    """Return what a file is by its first bytes if it is UTF-16, compressed or an archive."""
    if head.startswith(UTF_16_MARKS):
        return ForeignText("UTF-16 text", FROM_UTF_16)
    if compression := compression_of(head):
        tool = compression.title
        return ForeignText(f"{tool} data", f"decompress it with {tool} -d")
    if Content(head).is_archive:
        return ForeignText("an archive", "unpack it")
    return None


def content_of(path: AnyPath, size: int) -> Content:
    """Return the content of a file by its first ``size`` bytes, or by more if it is compressed.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as stream:
        head = stream.read(size)
        compression = compression_of(head)
        if compression is None:
            return Content(head)
        head += stream.read(max(0, _PACKED_BYTES - len(head)))
    with decompressed(BytesIO(head), compression) as unpacked:
        text = unpacked.read(_UNPACKED_BYTES)
        return Content(text, compression, None if text else problem_of(unpacked))
