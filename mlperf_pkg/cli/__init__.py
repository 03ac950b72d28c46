"""The command line: one module per command, and the options that they share."""

import gc
import sys
from importlib import import_module

# Python's default, 700, collects far too often among the objects that imports and checks keep.
gc.set_threshold(200_000)

# glibc keeps twice the largest mapped block freed so far for reuse: freeing 8 MiB makes that 16.
bytes(8 << 20)

# msgspec imports typing_extensions if it can, but does without it: 2 % of the start of a check.
if "typing_extensions" not in sys.modules:
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import_module("msgspec")
    del sys.modules["typing_extensions"]
