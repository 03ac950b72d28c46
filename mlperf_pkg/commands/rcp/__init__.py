"""Reference convergence points: show them, compare them, and test result sets against them.

``reference`` holds the points of a benchmark in a round, of mlperf-logging or of a file.
"""
