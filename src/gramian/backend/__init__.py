"""The foundation: arrays, linear algebra, threads, compiled loops, settings, memory, progress.

Settings are read when a public call starts; worker threads never look at them. Blocks of rows run
in threads with BLAS limited to one thread each, because NumPy's element-wise functions use a single
core. Cut-offs are relative to the largest value and to the precision of the data. Optional packages
are imported where they are needed, with an error that names the command to install them.
"""
