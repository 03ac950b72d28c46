"""Scores, and how each is computed."""
