"""What a command does beyond a check; one package each."""
