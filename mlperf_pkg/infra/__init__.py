"""Files, object stores, processes and text, without any knowledge of MLPerf."""
