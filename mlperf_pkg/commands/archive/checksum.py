"""Checksum files beside archives, as ``sha256sum -c`` and ``sha1sum -c`` read them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

SUFFIX = ".sha256"
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """The digest of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def checksum_line(digest: str, name: str) -> str:
    """One line of a checksum file."""
    return f"{digest}  {name}\n"


def expected_of(text: str, name: str) -> str | None:
    """The SHA-256 that a checksum file tells of the file ``name``; None if it does not."""
    lines = (_LINE.fullmatch(line) for line in text.splitlines())
    return next((found[1].lower() for found in lines if found and found[2] == name), None)
