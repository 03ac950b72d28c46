"""From paths to a report: find, read, judge, fold."""
