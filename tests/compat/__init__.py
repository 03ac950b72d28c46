"""The command lines of mlperf-logging."""
