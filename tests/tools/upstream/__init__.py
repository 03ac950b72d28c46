"""The rulebook, compared with the rules and reference points of an mlperf-logging."""
