"""The command line: one module per command, and the options that they share."""

import gc

# Python's default, 700, collects far too often among the objects that imports and checks keep.
gc.set_threshold(200_000)

# glibc returns freed memory beyond twice the largest block that was freed, instead of reusing it.
bytes(8 << 20)
