"""Benchmarks: times, growth curves and memory, printed beside the targets they have to meet."""
