"""The results of rounds as tables: Parquet, CSV, SQLite and DuckDB."""
