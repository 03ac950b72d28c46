"""From raw logs and system descriptions to a submission tree.

``workspace`` reads, ``plan`` and ``judge`` decide without touching a file, ``contents`` lists the
files of the tree and ``writing`` writes them.
"""
