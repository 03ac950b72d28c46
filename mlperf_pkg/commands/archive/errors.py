"""What is wrong with an archive, while it is read."""

from __future__ import annotations


class BadArchive(Exception):  # noqa: N818 - the state of a file, which becomes a finding
    """An archive that cannot or must not be unpacked further.

    ``code`` is that of the finding it becomes; ``path`` is the member that it is about, if any.
    """

    def __init__(self, code: str, message: str, path: str = "") -> None:
        """Keep all three."""
        super().__init__(message)
        self.code, self.message, self.path = code, message, path


def damaged(message: str) -> BadArchive:
    """The archive is not whole: cut off, changed, or no archive at all."""
    return BadArchive("PACK102", message)


def unsafe(path: str, message: str) -> BadArchive:
    """A member that must not be unpacked."""
    return BadArchive("PACK103", message, path)


def too_large(message: str) -> BadArchive:
    """The archive would unpack to more than what is allowed."""
    return BadArchive("PACK104", message)
