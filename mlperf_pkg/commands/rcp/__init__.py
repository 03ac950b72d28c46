"""Reference convergence points: show, compare and check them, and write new ones.

``reference`` holds the points of a benchmark in a round, of mlperf-logging or of a file.
"""
