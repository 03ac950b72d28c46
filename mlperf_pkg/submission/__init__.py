"""What a folder holds: submissions, systems, result sets, logs. No verdicts."""
