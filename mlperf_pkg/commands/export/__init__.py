"""The results of rounds as tables: Parquet, CSV and SQLite."""
