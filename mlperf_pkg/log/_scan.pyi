from collections.abc import Iterable
from typing import TypeAlias

# Of the lines unlike all remembered ones: their number, their records (one a line), and their text
# outside their keys. Of all lines with a token: the offsets of their parts, their number, and their
# indexes by key, and of these the samples. Finally, whether all lines have a token, and whether one
# without it names a time.
Indexes: TypeAlias = dict[str, list[int]]
Result: TypeAlias = tuple[int, bytes, bytes, bytes, int, Indexes, Indexes, bool, bool]

class Memory: ...

def memory() -> Memory: ...
def scan(memory: Memory, text: bytes, /) -> Result | None: ...
def cut(text: bytes, spans: bytes, part: int, indexes: Iterable[int], /) -> bytes: ...
