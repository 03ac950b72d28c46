"""Our rules compared with those of the installed mlperf-logging."""
