"""Reference convergence points: show, compare and check them, and write new ones.

``reference`` holds the points of a benchmark in a round, ``custom`` reads those of a file.
"""
