"""From a folder to submissions, systems, result sets and logs. No verdicts."""
