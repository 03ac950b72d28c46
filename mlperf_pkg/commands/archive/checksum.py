"""Checksum files beside archives, as ``sha256sum -c`` and ``sha1sum -c`` read them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

SUFFIX = ".sha256"
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """Return the digest of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def checksum_line(digest: str, name: str) -> str:
    """Return the line of a checksum file for the file ``name``."""
    return f"{digest}  {name}\n"


def expected_of(text: str, name: str) -> str | None:
    """Return the SHA-256 of the file ``name`` in a checksum file; None if it is not listed."""
    matches = filter(None, map(_LINE.fullmatch, text.splitlines()))
    return next((match[1].lower() for match in matches if match[2] == name), None)
