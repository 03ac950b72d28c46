"""Reading logs: from bytes to records."""
