"""What a user's machine has of the tool."""
