"""Many records of one key, asked the same at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import decode_values

# Runs of a set say the same again and again, so what was found of it is remembered.
_REMEMBERED = 256  # texts
_LONGEST_REMEMBERED = 1 << 16  # bytes of one

Test = Callable[[Any], Any]


class Group:
    """Records of one key, whose parts are decoded once, if at all.

    ``first`` and ``last`` are the numbers of the first and the last of them in the log.
    """

    def __init__(self, indexes: Sequence[int], block: Block) -> None:
        """Take the records at some indexes of a block, at least one."""
        self._indexes = indexes
        self._block = block
        self.first = block.first + indexes[0]
        self.last = block.first + indexes[-1]

    @cached_property
    def values(self) -> list[Any]:
        """The value of each."""
        return self._block.values(self._indexes)

    def metadata_passes(self, tests: tuple[Test, ...]) -> bool:
        """Whether the metadata of each record passes some tests."""
        if self._text is None:
            return _all_pass(tests, self._metadata)
        return _remembered(tests, self._text)

    def tensors(self) -> Sequence[Any]:
        """The tensors that the records name."""
        if self._text is None:
            return [each["tensor"] for each in self._metadata]
        return _tensors_in(self._text)

    @cached_property
    def _metadata(self) -> list[Any]:
        return self._block.metadata(self._indexes)

    @cached_property
    def _text(self) -> bytes | None:
        text = self._block.metadata_text(self._indexes)
        return text if text and len(text) <= _LONGEST_REMEMBERED else None


def _all_pass(tests: tuple[Test, ...], metadata: Sequence[Any]) -> bool:
    return all(all(map(holds, metadata)) for holds in tests)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(tests: tuple[Test, ...], array: bytes) -> bool:
    return _all_pass(tests, decode_values(array))


@lru_cache(maxsize=_REMEMBERED)
def _tensors_in(array: bytes) -> tuple[Any, ...]:
    return tuple([metadata["tensor"] for metadata in decode_values(array)])
