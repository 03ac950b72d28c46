"""The command line: one module per command, and the options that they share."""

import gc

# Python's default, 700, collects far too often among the objects that imports and checks keep.
gc.set_threshold(200_000)

# glibc keeps twice the largest mapped block freed so far for reuse: freeing 8 MiB makes that 16.
bytes(8 << 20)
