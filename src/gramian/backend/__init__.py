"""What everything stands on: arrays, linear algebra, threads, settings, memory, progress."""
