"""The tables of the official summarizer, cell by cell: plain, detailed and weak scaling (HPC)."""

from __future__ import annotations

from mlperf_pkg.commands.official_tables.rows import Summary, summarize
from mlperf_pkg.commands.official_tables.table import Table

__all__ = ["Summary", "Table", "summarize"]
