"""Rows that stay in their files: NPY, Parquet, Arrow, CSV, TSV."""
