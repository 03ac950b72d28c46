"""The command line: one module per command, and the options that they share."""
