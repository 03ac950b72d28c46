"""Writing simulated logs: one result set, or a whole round of submissions."""
