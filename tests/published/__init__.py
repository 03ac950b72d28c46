"""Tests of the published results."""
