"""Records of one key, checked together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from typing import Any

import msgspec

from mlperf_pkg.log.block import METADATA, Block
from mlperf_pkg.log.record import decode_values

# The runs of a result set repeat the same metadata, so results are cached.
_CACHED_TEXTS = 256
_LONGEST_CACHED = 1 << 16  # bytes

Test = Callable[[Any], Any]


class Group:
    """Records of one key, whose parts are decoded lazily and once.

    ``first`` and ``last`` are the numbers of the first and the last record in the log.
    """

    def __init__(self, indexes: Sequence[int], block: Block) -> None:
        """Take the records at some indexes of a block, at least one."""
        self._indexes = indexes
        self._block = block
        text = block.json(METADATA, indexes)
        self._text = text if text and len(text) <= _LONGEST_CACHED else None
        self.first = block.first + indexes[0]
        self.last = block.first + indexes[-1]

    @cached_property
    def values(self) -> list[Any]:
        """The values of the records."""
        return self._block.values(self._indexes)

    def metadata_passes(self, tests: tuple[Test, ...], names: tuple[str, ...] = ()) -> bool:
        """Return whether the metadata of every record passes all tests.

        If the tests only require ``names``, pass these too: the values are then not decoded.
        """
        if self._text is None:
            return _all_pass(tests, self._metadata)
        return _text_passes(tests, names, self._text)

    def tensors(self) -> Sequence[Any]:
        """Return the tensors that the records name."""
        if self._text is None:
            return _tensors(self._metadata)
        return _tensors_of_text(self._text)

    @cached_property
    def _metadata(self) -> list[Any]:
        return self._block.parts(METADATA, self._indexes)


def _all_pass(tests: tuple[Test, ...], metadata: Sequence[Any]) -> bool:
    return all(all(map(passes, metadata)) for passes in tests)


def _tensors(metadata: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([fields["tensor"] for fields in metadata])


@lru_cache(maxsize=_CACHED_TEXTS)
def _text_passes(tests: tuple[Test, ...], names: tuple[str, ...], array: bytes) -> bool:
    if names:
        with suppress(msgspec.MsgspecError):
            return bool(_decoder_of_objects_with(names)(array))
    return _all_pass(tests, decode_values(array))


@cache
def _decoder_of_objects_with(names: tuple[str, ...]) -> Callable[[bytes], Any]:
    """Return a decoder of an array of objects that raises an exception if one lacks any name."""
    fields = {f"name_{number}": name for number, name in enumerate(dict.fromkeys(names))}
    kinds = [(field, msgspec.Raw) for field in fields]
    named = msgspec.defstruct("Named", kinds, rename=fields, gc=False)
    return msgspec.json.Decoder(list[named]).decode  # type: ignore[valid-type]


@lru_cache(maxsize=_CACHED_TEXTS)
def _tensors_of_text(array: bytes) -> tuple[Any, ...]:
    return _tensors(decode_values(array))
