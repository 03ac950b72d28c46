"""What a user's machine has of the tool: completion scripts, manual pages, a diagnosis."""
