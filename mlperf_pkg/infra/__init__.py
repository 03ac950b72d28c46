"""What knows nothing of MLPerf: files, object stores, processes, text."""
