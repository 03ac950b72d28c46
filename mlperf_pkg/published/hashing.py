"""The hashes by which published logs are found."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from hashlib import _Hash

_BYTES = 8


class HashedStream:
    """A stream whose content is hashed while it is read.

    The first portion, which is all of most logs, waits until the hash is asked for.
    """

    def __init__(self, stream: BinaryIO) -> None:
        """Start at the head of a stream."""
        self._stream = stream
        self._first = b""

    def read(self, size: int, /) -> bytes:
        """Return the next portion."""
        data = self._stream.read(size)
        if not self._first:
            self._first = data
        elif data:
            self._digest.update(data)
        return data

    @property
    def log_hash(self) -> int:
        """The first eight bytes of the SHA-256 of what was read."""
        return int.from_bytes(self._digest.digest()[:_BYTES], "big")

    @cached_property
    def _digest(self) -> _Hash:
        from hashlib import sha256  # noqa: PLC0415 - logs later than the published ones need none

        return sha256(self._first)
