"""One pass over one log: everything known about a run."""
