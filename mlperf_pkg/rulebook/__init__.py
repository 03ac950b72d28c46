"""The rules of every round, read from ``rules/`` and compiled once into fast functions."""
