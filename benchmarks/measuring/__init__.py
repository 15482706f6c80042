"""What the benchmarks have in common: their programs, the processes that they measure, and figures of several rounds."""
