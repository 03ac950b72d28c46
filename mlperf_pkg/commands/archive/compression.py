"""Write gzip whose bytes depend on the content alone, and read any gzip strictly.

The zlib of an operating system may be zlib, zlib-ng or another fork, and these compress to
different bytes. So archives are compressed by one version of libdeflate, which the package
``deflate`` contains and ``pyproject.toml`` pins. It compresses whole buffers: the content is cut
into pieces of ``PIECE`` bytes, each a gzip member of its own, as RFC 1952 allows.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

PIECE = 4 << 20
LEVEL = 6
# No flags, no time, no extra flags, unknown operating system.
HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
GZIP = HEADER[:3]

_READ = 1 << 14
_WITH_HEADER = 16 + zlib.MAX_WBITS


class BadArchive(Exception):  # noqa: N818 - the state of a file, which becomes a finding
    """An archive cannot or must not be unpacked further.

    ``code`` is the code of the finding that it becomes; ``path`` is the member concerned, if any.
    """

    def __init__(self, code: str, message: str, path: str = "") -> None:
        """Keep all three."""
        super().__init__(message)
        self.code, self.message, self.path = code, message, path


def damaged(message: str) -> BadArchive:
    """Return the error of an archive that is cut off, changed, or not an archive."""
    return BadArchive("PACK102", message)


def gzipped(portions: Iterable[bytes]) -> Iterator[bytes]:
    """Yield portions of any size as gzip members."""
    held = bytearray()
    for data in portions:
        held += data
        while len(held) >= PIECE:
            yield _member(bytes(held[:PIECE]))
            del held[:PIECE]
    if held:
        yield _member(bytes(held))


def _member(data: bytes) -> bytes:
    from deflate import deflate_compress

    sizes = zlib.crc32(data).to_bytes(4, "little") + (len(data) % (1 << 32)).to_bytes(4, "little")
    return HEADER + bytes(deflate_compress(data, LEVEL)) + sizes


class Decompressor:
    """Reads gzip of one or more members, to the last byte of the file.

    Its reads raise ``BadArchive`` if the file is cut off or changed, or if anything follows it.
    ``gzip`` of the standard library reads on after zeros between two members, where GNU gzip
    ends, so that two readers would see different files.
    """

    def __init__(self, stream: BinaryIO) -> None:
        """Read compressed bytes from ``stream``, which stays open."""
        self._stream = stream
        self._left = b""
        self._inflate = zlib.decompressobj(_WITH_HEADER)

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; none only at the end."""
        while True:
            data = self._left or self._stream.read(_READ)
            if self._inflate.eof:
                if not data:
                    return b""
                if not data.startswith(GZIP[: len(data)]):
                    raise damaged("something follows the compressed data")
                self._inflate = zlib.decompressobj(_WITH_HEADER)
            elif not data:
                raise damaged("it is cut off: the compressed data does not end")
            try:
                inflated = self._inflate.decompress(data, size)
            except zlib.error as error:
                raise damaged(f"the compressed data is damaged ({error})") from error
            self._left = self._inflate.unused_data or self._inflate.unconsumed_tail
            if inflated:
                return inflated
