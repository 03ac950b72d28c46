"""Records of one key, checked together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import decode_values

# The runs of a result set log the same metadata again and again, so results are remembered.
_REMEMBERED = 256  # texts
_LONGEST_REMEMBERED = 1 << 16  # bytes of a text

Test = Callable[[Any], Any]


class Group:
    """Records of one key, whose parts are decoded once, if at all.

    ``first`` and ``last`` are the numbers of the first and the last record in the log.
    """

    def __init__(self, indexes: Sequence[int], block: Block) -> None:
        """Take the records at some indexes of a block, at least one."""
        self._indexes = indexes
        self._block = block
        self.first = block.first + indexes[0]
        self.last = block.first + indexes[-1]

    @cached_property
    def values(self) -> list[Any]:
        """The values of the records."""
        return self._block.values(self._indexes)

    def metadata_passes(self, tests: tuple[Test, ...]) -> bool:
        """Whether the metadata of every record passes all tests."""
        if self._text is None:
            return _all_pass(tests, self._metadata)
        return _text_passes(tests, self._text)

    def tensors(self) -> Sequence[Any]:
        """Return the tensors that the records name."""
        if self._text is None:
            return _tensors(self._metadata)
        return _tensors_of_text(self._text)

    @cached_property
    def _metadata(self) -> list[Any]:
        return self._block.metadata(self._indexes)

    @cached_property
    def _text(self) -> bytes | None:
        text = self._block.metadata_text(self._indexes)
        return text if text and len(text) <= _LONGEST_REMEMBERED else None


def _all_pass(tests: tuple[Test, ...], metadata: Sequence[Any]) -> bool:
    return all(all(map(passes, metadata)) for passes in tests)


def _tensors(metadata: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([fields["tensor"] for fields in metadata])


@lru_cache(maxsize=_REMEMBERED)
def _text_passes(tests: tuple[Test, ...], array: bytes) -> bool:
    return _all_pass(tests, decode_values(array))


@lru_cache(maxsize=_REMEMBERED)
def _tensors_of_text(array: bytes) -> tuple[Any, ...]:
    return _tensors(decode_values(array))
