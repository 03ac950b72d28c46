"""From the bytes of a log to its records."""
