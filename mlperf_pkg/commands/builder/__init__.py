"""From raw logs and system descriptions to a submission tree.

``workspace`` reads, ``plan`` decides without touching a file, ``writing`` lists the files of the
tree and writes them.
"""
