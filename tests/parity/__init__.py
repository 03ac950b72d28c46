"""Differential testing: the official compliance checker, live, against our official verdict."""
