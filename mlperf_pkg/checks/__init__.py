"""Checks of system descriptions, result sets and submissions: values in, findings out."""
