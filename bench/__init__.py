"""Benchmarks: times, growth curves and memory, printed with the targets that they have to meet."""
