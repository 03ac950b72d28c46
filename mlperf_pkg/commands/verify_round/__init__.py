"""What the scripts verify_for_v*.sh do: package checker, repository checker and summarizer."""
