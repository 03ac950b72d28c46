"""Check and build MLPerf Training submissions."""

__version__ = "0.1.0"
