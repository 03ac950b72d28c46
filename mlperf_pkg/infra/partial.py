"""Streams that may end before their file does, and the reason for it.

Whoever only looks for something in a file reads such a stream to its end. Whoever judges the file
asks for the problem then, so that each file has one finding for it.
"""

from __future__ import annotations

import io
from typing import BinaryIO


class PartialReader(io.RawIOBase):
    """A raw stream that ends early where something is wrong; ``problem`` then gives the reason."""

    problem: str | None = None

    def readable(self) -> bool:
        """Return True."""
        return True


class Unreadable(PartialReader):
    """A file that this process cannot open."""

    def __init__(self, problem: str) -> None:
        """Give the reason."""
        self.problem = problem

    def readinto(self, _: object) -> int:
        """Read nothing."""
        return 0


def problem_of(stream: BinaryIO) -> str | None:
    """Return why a stream ended before its file did; None if it did not."""
    raw = stream.raw if isinstance(stream, io.BufferedReader) else None
    return raw.problem if isinstance(raw, PartialReader) else None


def unreadable(problem: str) -> BinaryIO:
    """Return an empty stream in place of a file that cannot be opened."""
    return io.BufferedReader(Unreadable(problem))
