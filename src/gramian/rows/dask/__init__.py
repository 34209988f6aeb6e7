"""Rows of dask arrays and dataframes. Only this package imports dask."""
