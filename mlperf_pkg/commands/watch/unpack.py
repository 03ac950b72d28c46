"""The text of a growing file, decompressed if the file is compressed."""

from __future__ import annotations

from collections.abc import Iterator

from mlperf_pkg.infra.source import foreign_text
from mlperf_pkg.infra.streams import Compression, DamagedError, Decompressor, compression_of


class Unpacker:
    """Takes the bytes of a file as it grows; ``problem`` says why its text cannot be read."""

    def __init__(self) -> None:
        """Start before the first byte."""
        self.problem: str | None = None
        self._head: bytes | None = b""
        self._decompressor: Decompressor | None = None

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield the text of the next bytes; nothing while they may be the start of a format."""
        if self._head is not None:
            data = self._head + data
            if any(form.value.startswith(data) for form in Compression if form.value):
                self._head = data
                return
            self._head = None
            self._begin(data)
        if self._decompressor is None:
            yield data
            return
        try:
            yield from self._decompressor.feed(data)
        except DamagedError as error:
            self.problem = str(error)

    def _begin(self, head: bytes) -> None:
        if compression := compression_of(head):
            self._decompressor = Decompressor(compression)
        elif foreign := foreign_text(head):
            self.problem = f"the log is {foreign.name}; expected UTF-8 text: {foreign.remedy}"
