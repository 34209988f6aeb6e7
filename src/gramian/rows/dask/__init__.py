"""Rows that dask holds, in this process or on a cluster. Only this package imports dask."""
