"""The errors of reading an archive."""

from __future__ import annotations


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


def unsafe(path: str, message: str) -> BadArchive:
    """Return the error of a member that must not be unpacked."""
    return BadArchive("PACK103", message, path)


def too_large(message: str) -> BadArchive:
    """Return the error of an archive that unpacks to more than is allowed."""
    return BadArchive("PACK104", message)
