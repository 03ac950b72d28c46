"""From raw logs and system descriptions to a submission tree.

``workspace`` reads, ``plan`` and ``judge`` decide without touching a file, ``contents`` says what
the tree holds and ``tree`` writes it.
"""
