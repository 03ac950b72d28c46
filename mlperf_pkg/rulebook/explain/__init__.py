"""What a rule or a code means, an example of it, and what changed between rounds."""
