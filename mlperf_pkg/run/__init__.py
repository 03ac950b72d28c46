"""One pass over one log: everything that it says about a run."""
