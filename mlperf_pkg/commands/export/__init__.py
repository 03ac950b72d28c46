"""The results of rounds as tables of data: Parquet, CSV, SQLite and DuckDB."""
