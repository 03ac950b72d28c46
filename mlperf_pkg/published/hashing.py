"""The hashes by which published logs are found."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import Source

_CHUNK = 1 << 20
_BYTES = 8


def digests_of(sources: Mapping[str, Source]) -> dict[str, bytes]:
    """Return the SHA-256 of logs by path, without those that cannot be read."""
    from hashlib import sha256  # noqa: PLC0415 - most checks need none

    digests = {}
    for path, source in sources.items():
        digest = sha256()
        with suppress(OSError, UserError), source.open() as stream:
            while data := stream.read(_CHUNK):
                digest.update(data)
            digests[path] = digest.digest()
    return digests


def log_hash(digest: bytes) -> int:
    """Return the part of a digest that the published results hold."""
    return int.from_bytes(digest[:_BYTES], "big")
