"""The campaign of hostile input: ``make fuzz``. Each case follows from its campaign and a seed."""
